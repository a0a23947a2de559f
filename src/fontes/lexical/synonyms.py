"""Synonyms and one-way rewrites of queries, from a file in Solr's format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..core.errors import InputError, ParameterError
from ..core.parameters import tuned
from ..core.query import MAX_WEIGHT, AnyOf, Clause, Group, Phrase, Term, terms_of
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..storage.files import reading
from ..storage.hashes import hash_text
from ..text.analyzer import Analyzer

if TYPE_CHECKING:
    from ..index import Index

PIECE = re.compile(r"\\.|=>|,|[^\\,=]+|.", re.DOTALL)  # pieces of a line

Entry: TypeAlias = Term | Phrase
Stamp: TypeAlias = "tuple[int, int] | None"  # time and size of a file


@dataclass(frozen=True)
class SynonymTable:
    """The entries of a file.

    Args:
        entries: The clauses that replace an entry, by the terms of the entry.
        longest: Number of terms of the longest entry.
    """

    entries: Mapping[tuple[str, ...], tuple[Entry, ...]]
    longest: int


@dataclass(frozen=True)
class Synonyms(Stage[Topics, Topics], name="synonyms"):
    """Searches synonyms of the words of topics: `synonyms("synonyms.txt") >> bm25()`.

    The file has Solr's format, in UTF-8. In `tv, television` each entry stands for all of them; in `teh, hte => the` the
    entries on the left are replaced by those on the right. An entry may have several words. A line that begins with # is a
    comment, and a backslash makes a comma, a backslash or an arrow part of an entry. Lines with the same entry add up.

    The index's analyzer makes the terms of entries and topics. Where several entries begin at a word, the longest is taken;
    its synonyms are not looked up again. All synonyms count as one term: the frequency in a document is the sum of theirs, and
    df the number of documents with one of them (Lucene's SynonymQuery takes their greatest df). An entry of several words is
    searched as a phrase, beside its words if they were typed. In an index without positions, a document must have all of its
    words, which score each by itself.

    The topic's `query` has the clauses; its `text`, which models read, stays. A topic without entries is returned unchanged,
    as is a topic with weights. In a structured query, words side by side are looked up: `query() >> synonyms("synonyms.txt")`.

    Args:
        index: The index that is searched.
        file: File (decompressed if need be); it is read again when its time or size has changed.
        weight: Weight of added synonyms; with 1 they count as one term with the typed words, else apart.

    Raises:
        InputError: The file cannot be read, or a line has two arrows, an empty side, or an entry without terms.
        ParameterError: The weight is out of range.
    """

    index: Index = field(repr=False)
    file: str | Path = field(metadata={"leading": True, "file": True})
    weight: float = tuned(1.0, (0.1, 1.0, 0.1), (0.0, MAX_WEIGHT))

    def check(self) -> None:
        if not isinstance(self.weight, Real) or isinstance(self.weight, bool) or not 0 <= self.weight <= MAX_WEIGHT:
            raise ParameterError(f"synonyms: weight is a number from 0 to {MAX_WEIGHT:,.0f}, not {self.weight!r}")
        if not isinstance(self.file, str | Path):
            raise ParameterError(f"synonyms: file is a path, not {self.file!r}")
        self._table  # noqa: B018  # raises InputError

    def key(self) -> str | None:
        """Identity of this stage, with the content of the file."""
        if isinstance(self.file, Path):
            return replace(self, file=str(self.file)).key()
        inherited = super().key()
        return None if inherited is None else f"{inherited} {hash_text(repr(self._table))}"

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        table = self._table
        return Topics(self._rewrite(topic, table) for topic in topics.values())

    @property
    def _table(self) -> SynonymTable:
        path = Path(self.file)
        stat = path.stat() if path.is_file() else None
        return _read(str(path), stat and (stat.st_mtime_ns, stat.st_size), self.index.analyzer)

    def _rewrite(self, topic: Topic, table: SynonymTable) -> Topic:
        if topic.weights is not None:
            return topic
        original = topic.query or Group(should=tuple(map(Term, self.index.analyzer(topic.text))))
        query = self._group(original, table)
        return topic if query == original else replace(topic, query=query, origin=topic)

    def _group(self, group: Group, table: SynonymTable) -> Group:
        must, must_not = (tuple(self._clauses(clauses, table)) for clauses in (group.must, group.must_not))
        return Group(must, tuple(self._clauses(group.should, table, words=True)), must_not, group.weight)

    def _clauses(self, clauses: Sequence[Clause], table: SynonymTable, words: bool = False) -> Iterator[Clause]:
        """Yield the clauses with synonyms in place of terms; with `words`, also the terms of an entry of several words."""
        i = 0
        while i < len(clauses):
            first, size = clauses[i], 1
            if isinstance(first, Group):
                yield self._group(first, table)
            elif isinstance(first, Term):
                terms = _side_by_side(clauses[i : i + table.longest], first)
                size = next((n for n in range(len(terms), 0, -1) if terms[:n] in table.entries), 0)
                entries = table.entries[terms[:size]] if size else ()
                if not size or (words and size > 1 and any(tuple(terms_of(entry)) == terms[:size] for entry in entries)):
                    yield from clauses[i : i + max(size, 1)]
                if size:
                    yield self._synonyms(terms[:size], entries, first)
                size = max(size, 1)
            else:
                yield first
            i += size

    def _synonyms(self, typed: tuple[str, ...], entries: tuple[Entry, ...], first: Term) -> Clause:
        matching = tuple(entry for entry in entries if tuple(terms_of(entry)) == typed)
        if self.weight == 1.0 or not matching:
            return self._merged_clause(entries, first.field, first.weight)
        added = tuple(entry for entry in entries if entry not in matching)
        typed_clause = self._merged_clause(matching, first.field, first.weight)
        if not added or not self.weight:
            return typed_clause
        return Group(should=(typed_clause, self._merged_clause(added, first.field, first.weight * self.weight)))

    def _merged_clause(self, entries: tuple[Entry, ...], field: str, weight: float) -> Clause:
        """Return one clause for several entries."""
        terms = tuple(sorted(entry.term for entry in entries if isinstance(entry, Term)))
        phrases = tuple(entry for entry in entries if isinstance(entry, Phrase))
        if phrases and not self.index.state.has_positions:
            words = (Group(must=tuple(Term(term, field) for term in phrase.terms)) for phrase in phrases)
            singles = () if not terms else (Term(terms[0], field),) if len(terms) == 1 else (AnyOf(terms, field),)
            return Group(should=(*singles, *words), weight=weight)
        if len(entries) == 1:
            return replace(entries[0], field=field, weight=weight)
        return AnyOf(terms, field, weight, phrases)


def _side_by_side(clauses: Sequence[Clause], first: Term) -> tuple[str, ...]:
    """Return the terms at the beginning of some clauses that have the field and weight of the first."""
    terms = []
    for clause in clauses:
        if not isinstance(clause, Term) or (clause.field, clause.weight) != (first.field, first.weight):
            break
        terms.append(clause.term)
    return tuple(terms)


@lru_cache(maxsize=4)
def _read(path: str, stamp: Stamp, analyzer: Analyzer) -> SynonymTable:
    """Read a file, cached until its time or size (`stamp`) changes."""
    table: dict[tuple[str, ...], dict[Entry, None]] = {}
    with reading(path) as source:
        for number, line in source.texts():
            if line.startswith("#"):
                continue
            sides = [
                [_entry(text, analyzer, source.name, number) for text in side] for side in _sides(line, source.name, number)
            ]
            for typed in sides[0]:
                table.setdefault(tuple(terms_of(typed)), {}).update(dict.fromkeys(sides[-1]))
    return SynonymTable({terms: tuple(entries) for terms, entries in table.items()}, max(map(len, table), default=0))


def _sides(line: str, path: str, number: int) -> list[list[str]]:
    """Return the entries of a line: one list, or one for each side of an arrow."""
    sides = [[""]]
    for piece in PIECE.findall(line):
        if piece == "=>":
            sides.append([""])
        elif piece == ",":
            sides[-1].append("")
        else:
            sides[-1][-1] += piece[1:] if len(piece) == 2 and piece[0] == "\\" else piece
    entries = [[text.strip() for text in side if text.strip()] for side in sides]
    if len(entries) > 2:
        raise InputError.at(path, number, "there are two arrows (=>); write one rule a line")
    if not all(entries):
        side = "" if len(entries) == 1 else " left of =>" if not entries[0] else " right of =>"
        raise InputError.at(path, number, f"there is no entry{side}; write 'a, b' or 'a, b => c'")
    return entries


def _entry(text: str, analyzer: Analyzer, path: str, number: int) -> Entry:
    spans = analyzer.spans(text)
    positions = [(position, term) for position, (_, _, span_terms) in enumerate(spans) for term in span_terms]
    if not positions:
        raise InputError.at(path, number, f"the analyzer of the index leaves nothing of '{text}'; take this entry out")
    if len(positions) == 1:
        return Term(positions[0][1])
    return Phrase(tuple(term for _, term in positions), tuple(position - positions[0][0] for position, _ in positions))
