"""The query language as a stage: from typed texts to structured queries over the terms of an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Ints
from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.hints import nearest
from ..core.query import AnyOf, Clause, Condition, Group, Phrase, Term, Window
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..formats.decoding import warn
from ..storage.caches import Cached
from ..suggest.edits import MAX_LETTERS, near, prefixed
from ..text.tokenizers import TOKENIZERS
from . import syntax
from .clauses import Clauses, Prefix, Quoted, TypedClause, TypedFilter, TypedSimilar, TypedWord

if TYPE_CHECKING:
    from ..core.strings import Strings
    from ..index import Index
    from ..index.parts import Part

JOINS = ("or", "and")
NO_POSITIONS = "the index keeps no positions"
SHORT_WORD = 5  # letters of the longest word that `~` allows one edit
MAX_PARSED = 256  # parsed texts kept in memory
MAX_FACTOR = 1e30  # greatest product of the weights of nested groups, which keeps scores within float32


@dataclass(frozen=True)
class ParsedQuery:
    """The result of reading a text of the query language.

    Args:
        text: The text as typed.
        query: The structured query; None for a plain text.
        canonical: The query in canonical syntax; for a plain text its words.
        words: The words to find, without operators and conditions.
        remarks: Parts of the text that were probably meant otherwise, or were left out.
    """

    text: str
    query: Group | None
    canonical: str
    words: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryLanguage(Stage[Topics, Topics], name="query"):
    """Reads topics in the query language: `query() >> bm25()`.

    `+must -not`, `AND OR NOT`, `(groups)`, `"a phrase"~2`, `"a window"~uw8`, `title:word`, `prefix*`, `word~1`, `word^2` and
    comparisons of columns such as `year:[2020 TO 2024]`. The topic's `query` becomes the structured query, its `text` the words
    to find. A text without operators is left unchanged, as is a topic that has weights or a query.

    Words are analysed by the index. A word with several terms matches by each of them, or by all with `operator="and"`; the
    gaps of stop words in a phrase are kept. Prefixes and similar words are looked up among the terms of the index.

    Args:
        index: The index that is searched.
        operator: How clauses side by side are joined: "or" or "and".
        strict: Whether a text that is not well-formed is an error; otherwise what is no operator is text.
        fixed: How many first letters of a word such as geyser~1 are never edited.
        max_expansions: Maximum terms of a prefix or of similar words, the most frequent ones.
    """

    index: Index = field(repr=False)
    operator: str = "or"
    strict: bool = False
    fixed: int = 0
    max_expansions: int = 1024

    def check(self) -> None:
        if self.operator not in JOINS:
            raise ParameterError(f"operator: there is no '{self.operator}'; {nearest(str(self.operator), JOINS)}")
        if not isinstance(self.strict, bool):
            raise ParameterError(f"strict must be True or False, not {self.strict!r}")
        check_whole("fixed", self.fixed, 0)
        check_whole("max_expansions", self.max_expansions)

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        return Topics(self._rewrite(topic, len(topics) > 1) for topic in topics.values())

    def _rewrite(self, topic: Topic, named: bool) -> Topic:
        try:
            return self.one(topic)
        except ParameterError as error:
            raise (ParameterError(f"topic '{topic.id}': {error}") if named else error) from None

    def one(self, topic: Topic, k: int = 0, /) -> Topic:
        rewritten, parsed = self.read(topic)
        if parsed is not None and any(remark.startswith(NO_POSITIONS) for remark in parsed.remarks):
            path, remedy = self.index.state.path, self.index.state.positions_remedy()
            warn(f"{path} keeps no positions: phrases ask for all of their words in any order; {remedy}")
        return rewritten

    def read(self, topic: Topic) -> tuple[Topic, ParsedQuery | None]:
        """Read the text of a topic.

        Returns:
            The topic with the query, and the parsed text; the topic unchanged and None if it has weights or a query already.

        Raises:
            ParameterError: The text is not well-formed, and `strict` is set.
        """
        if topic.weights is not None or topic.query is not None:
            return topic, None
        parsed = self.parse(topic.text)
        if parsed.query is None and parsed.words == topic.text:
            return topic, parsed
        return replace(topic, text=parsed.words, query=parsed.query, origin=topic), parsed

    def parse(self, text: str) -> ParsedQuery:
        """Read one text.

        Raises:
            ParameterError: The text is not well-formed, and `strict` is set; the message gives the place and the remedy.
        """
        return self._parsed.get(text, lambda: self._parse(text))

    @cached_property
    def _parsed(self) -> Cached[str, ParsedQuery]:
        return Cached(MAX_PARSED)

    def _parse(self, text: str) -> ParsedQuery:
        clauses, operators, remarks = syntax.read(text, self._names, self.operator, self.strict)
        plain = not clauses.must and not clauses.must_not and all(isinstance(clause, TypedWord) for clause in clauses.should)
        if plain and not operators - {"\\", "("} and (clauses.should or not operators):
            words = " ".join(clauses.words) if operators else text
            return ParsedQuery(text, None, str(clauses), words, remarks)
        analysis = _Analysis(self)
        query = analysis.group(clauses)
        notes = analysis.notes(query)
        if self.strict and analysis.problems:
            raise ParameterError(f"query: {analysis.problems[0]}")
        return ParsedQuery(text, query, str(clauses), " ".join(clauses.words), (*remarks, *notes))

    @cached_property
    def _names(self) -> syntax.Names:
        return syntax.Names.of(self.index.state)


def most_frequent(df: Ints, limit: int) -> Ints:
    """Return the indices of the greatest document frequencies, at most `limit`, ascending; among equals the first."""
    if len(df) <= limit:
        return np.arange(len(df))
    cutoff = np.partition(df, -limit)[-limit]
    above, ties = np.flatnonzero(df > cutoff), np.flatnonzero(df == cutoff)
    return np.sort(np.concatenate([above, ties[: limit - len(above)]]))


def terms_among(parts: Sequence[Part], select: Callable[[Strings], Ints], limit: int) -> tuple[list[str], int]:
    """Return the most frequent terms of an index among those that `select` finds in each part, and the number of all.

    Args:
        parts: The parts of the index.
        select: Returns the numbers of terms in the terms of a part.
        limit: Greatest number of terms to return; among equally frequent terms the first.
    """
    numbers = [select(part.terms) for part in parts]
    df = [part.living(of_part) for part, of_part in zip(parts, numbers, strict=True)]
    if len(parts) == 1:
        present = np.flatnonzero(df[0])
        frequent = present[most_frequent(df[0][present], limit)]
        return parts[0].terms.take(numbers[0][frequent]), len(present)
    sums: dict[str, int] = {}
    for part, of_part, counts in zip(parts, numbers, df, strict=True):
        for term, count in zip(part.terms.take(of_part), counts.tolist(), strict=True):
            sums[term] = sums.get(term, 0) + count
    terms = sorted(term for term, count in sums.items() if count)
    return [terms[i] for i in most_frequent(np.array([sums[term] for term in terms]), limit)], len(terms)


def _has_alternatives_only(group: Group) -> bool:
    """Whether a group has only `should` clauses and the weight 1, and can be replaced by these clauses."""
    return bool(group.should) and not group.must and not group.must_not and group.weight == 1.0


class _Analysis:
    """Translation of typed clauses to a query over index terms."""

    def __init__(self, stage: QueryLanguage) -> None:
        self._stage = stage
        self._state = stage.index.state
        self._analyzer = self._state.analyzer
        self._factor = 1.0
        self.problems: list[str] = []  # errors if reading is strict
        self._notes: list[str] = []

    def notes(self, query: Group) -> tuple[str, ...]:
        """Return the remarks about the query."""
        nothing = [] if query.must or query.should else ["nothing is left to be found"]
        return tuple(dict.fromkeys([*self._notes, *nothing]))

    def group(self, clauses: Clauses) -> Group:
        """Return a group over index terms."""
        outer_factor, self._factor = self._factor, self._factor * max(clauses.weight, 1.0)
        group = Group(
            tuple(self._each(clauses.must)),
            tuple(self._any(clauses.should)),
            tuple(self._each(clauses.must_not)),
            self._weight(clauses.weight, outer_factor),
        )
        self._factor = outer_factor
        return group

    def _each(self, clauses: Sequence[TypedClause]) -> list[Clause]:
        """Return each clause over index terms; clauses without terms, such as stop words, are left out."""
        return [analyzed for clause in clauses if (analyzed := self._clause(clause)) is not None]

    def _any(self, clauses: Sequence[TypedClause]) -> list[Clause]:
        """Return the alternatives over index terms; words side by side are analysed as one text."""
        results: list[Clause] = []
        words: list[str] = []
        for clause in (*clauses, None):
            if isinstance(clause, TypedWord) and not clause.field and clause.weight == 1.0:
                words.append(clause.text)
                continue
            results += [Term(term) for term in self._analyzer(" ".join(words))]
            words = []
            if clause is None or (analyzed := self._clause(clause)) is None:
                continue
            if isinstance(analyzed, Group) and _has_alternatives_only(analyzed):
                results += analyzed.should
            else:
                results.append(analyzed)
        return results

    def _clause(self, clause: TypedClause) -> Clause | None:
        """Return a clause over index terms; None if it has none."""
        match clause:
            case TypedFilter(where=where):
                return Condition(where)
            case Clauses():
                group = self.group(clause)
                return group if group.must or group.should or group.must_not else None
            case Quoted():
                return self._quoted(clause)
            case Prefix():
                return self._prefix(clause)
        terms = self._analyzer(clause.text)
        weight = self._weight(clause.weight, self._factor)
        if isinstance(clause, TypedSimilar):
            return self._join([self._similar(term, clause, weight) for term in terms or self._unstemmed(clause.text)])
        return self._join([Term(term, clause.field, weight) for term in terms])

    def _join(self, clauses: list[Clause]) -> Clause | None:
        """Join the clauses of the terms of one word; None if there are none."""
        if len(clauses) < 2:
            return clauses[0] if clauses else None
        return Group(must=tuple(clauses)) if self._stage.operator == "and" else Group(should=tuple(clauses))

    def _quoted(self, clause: Quoted) -> Clause | None:
        """Return a phrase or a window; a group of its terms if the index keeps no positions; None if it has no terms."""
        weight = self._weight(clause.weight, self._factor)
        spans = self._analyzer.spans(clause.text)
        positions = [(position, term) for position, (_, _, span_terms) in enumerate(spans) for term in span_terms]
        terms = tuple(term for _, term in positions)
        if len(terms) < 2:
            return Term(terms[0], clause.field, weight) if terms else None
        if not self._state.has_positions:
            phrase, remedy = f'"{clause.text[:80]}"', self._state.positions_remedy("INDEX")
            self._notes.append(f"{NO_POSITIONS}, so that {phrase} asks for all of its words in any order; {remedy}")
            self.problems.append(f"{NO_POSITIONS}, which {phrase} needs; {remedy}")
            return Group(must=tuple(Term(term, clause.field) for term in terms), weight=weight)
        if clause.width:
            return Window(terms, max(clause.width, len(terms)), clause.field, weight)
        return Phrase(terms, tuple(position - positions[0][0] for position, _ in positions), clause.slop, clause.field, weight)

    def _prefix(self, clause: Prefix) -> Clause:
        """Return the terms with a prefix; if there are none, the term of the prefix as a word, which may be stemmed."""
        *words, last = self._unstemmed(clause.text)
        weight = self._weight(clause.weight, self._factor)
        matching = self._among(lambda terms: np.arange(*(prefixed(terms, last) if last else (0, 0))))
        word_terms = () if matching[1] else self._analyzer(last)
        expanded = self._expand(f"{clause.text[:80]}*", *matching, word_terms, clause.field, weight)
        joined = self._join([*(Term(word, clause.field, weight) for word in words), expanded])
        assert joined is not None
        return joined

    def _similar(self, term: str, clause: TypedSimilar, weight: float) -> Clause:
        """Return the terms within the edit distance of a term."""
        edits = clause.edits if clause.edits is not None else 1 if len(term) <= SHORT_WORD else 2
        typed = f"{clause.text[:80]}~{'' if clause.edits is None else clause.edits}"
        if len(term) > MAX_LETTERS:
            problem = f"similar words are found for words of at most {MAX_LETTERS} letters"
            self._notes.append(f"{problem}; {typed} is read without ~")
            self.problems.append(problem)
            return Term(term, clause.field, weight)
        matching = self._among(lambda terms: near(terms, term, edits, prefix=self._stage.fixed)[0])
        return self._expand(typed, *matching, [term], clause.field, weight)

    def _among(self, select: Callable[[Strings], Ints]) -> tuple[list[str], int]:
        return terms_among(self._state.parts, select, self._stage.max_expansions)

    def _expand(
        self, typed: str, frequent: Sequence[str], size: int, word_terms: Sequence[str], field_name: str, weight: float
    ) -> Term | AnyOf:
        """Return the most frequent of `size` terms, and the terms of the word itself that the index has."""
        if len(frequent) < size:
            self._notes.append(
                f"{typed} stands for the {len(frequent):,} most frequent of {size:,} terms; max_expansions sets how many"
            )
        terms = sorted({*frequent, *(term for term in word_terms if self._state.df_of(term))})
        if not terms:
            self._notes.append(f"the index has no term for {typed}")
        return Term(terms[0], field_name, weight) if len(terms) == 1 else AnyOf(tuple(terms), field_name, weight)

    def _unstemmed(self, text: str) -> list[str]:
        """Return the tokens of a word normalised but not stemmed, stop words included; [""] if there are none."""
        analyzer = replace(self._analyzer, stopwords=(), stemmer="", words=(1, 1), chars=None)
        if isinstance(analyzer.tokenizer, str) and analyzer.tokenizer in TOKENIZERS:
            return analyzer(text) or [""]
        return [term for term in analyzer.terms([analyzer.composed(text)]) if term] or [""]

    def _weight(self, weight: float, factor: float) -> float:
        """Return a weight; 1 if its product with the weights of the groups around it is too great."""
        if weight * factor <= MAX_FACTOR:
            return weight
        self._notes.append(f"weights within each other multiply to {MAX_FACTOR:g} at most; those beyond are left out")
        return 1.0
