"""Clauses of structured queries that count as terms: their documents, frequencies and weights.

A term in one field, any of several terms, a phrase and a window each have a frequency in a document, and therefore a document
frequency and a collection frequency in the index. Every model weighs them as it weighs terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Float32s, Float64s, Int32s, Ints
from ..core.errors import ParameterError
from ..core.query import AnyOf, Leaf, Phrase, Term, Window
from ..index.field_statistics import FIELDS
from ..index.parts import Part
from ..index.postings import SegmentLists
from ..storage.caches import Cached, LazyAttribute
from ..text.proximity import Spans
from .fields import ChosenFields, ChosenLists, part_of
from .impacts import weights_not_finite
from .parts import Parts, living_df, numbers_in
from .proximity import proximity_counts, spans_in
from .weighting import ClauseStatistics, Postings, Statistics, Weighting

if TYPE_CHECKING:
    from ..index.state import State

MEMORY = 1 << 28  # bytes of cached counts per segment, and of cached weights per state of an index
CLAUSE_NUMBER = np.zeros(1, np.int64)  # term number of a clause in its `ClauseStatistics`
RARE = 500  # df of the rarest term below which a phrase is counted again, which is faster than a lookup in the cache
DENSE = 8  # more than documents / DENSE postings are summed in an array with an entry for each document


@dataclass(eq=False)
class Counts:
    """The documents of a part of an index that match a clause.

    Args:
        docs: int32, ascending.
        tf: int32; frequency of the clause in each document.
    """

    docs: Int32s
    tf: Int32s

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return self.docs.nbytes + self.tf.nbytes

    def living(self, part: Part) -> Counts:
        """Return the counts in documents that are not deleted."""
        if (dead := part.dead) is None:
            return self
        alive = ~dead[self.docs]
        return Counts(self.docs[alive], self.tf[alive])


class ClauseLists:
    """A clause that counts as a term, in the parts of an index, weighed by a model.

    Args:
        parts: The parts; those of some of the fields of an index match a clause without a field in any of these.
        weighting: The model.
        clause: The clause, with weight 1.

    Attributes:
        counts: The living documents of each part that match.

    Raises:
        ParameterError: The index has no positions, no separate fields, or no field of this name.
    """

    def __init__(self, parts: Parts, weighting: Weighting, clause: Leaf) -> None:
        self._parts, self._weighting, self._clause = parts, weighting, clause
        self._weights: dict[int, Float32s] = {}
        self.counts = [counts_of(part, clause).living(part) for part in parts]
        for counts in self.counts:
            counts.docs.flags.writeable = False

    @cached_property
    def df(self) -> int:
        """Document frequency in the whole index."""
        return sum(len(counts.docs) for counts in self.counts)

    @cached_property
    def cf(self) -> int:
        """Collection frequency in the whole index."""
        return sum(int(counts.tf.sum(dtype=np.int64)) for counts in self.counts)

    def list(self, number: int) -> tuple[Int32s, Float32s]:
        """Return the documents of a part that match, and their weights.

        Raises:
            IndexFormatError: A weight is not finite.
        """
        if number not in self._weights:
            cache, key = _WEIGHTS.of(self._parts[number]), (self._weighting, self._clause)
            self._weights[number] = cache.get(key, lambda: self._weigh(number))
        return self.counts[number].docs, self._weights[number]

    def _weigh(self, number: int) -> Float32s:
        statistics, model, postings = self.postings(number)
        weights = model.postings(statistics, postings).astype(np.float32)
        if not math.isfinite(weights.sum(dtype=np.float64)):
            raise weights_not_finite(self._parts[number])
        weights.flags.writeable = False
        return weights

    def postings(self, number: int) -> tuple[ClauseStatistics, Weighting, Postings]:
        """Return the postings of the clause in a part, and the statistics and the model that weigh them as those of a term.

        A clause in one field is weighed as in an index of that field alone.
        """
        part, clause, counts = self._parts[number], self._clause, self.counts[number]
        postings = Postings(CLAUSE_NUMBER, np.array([len(counts.docs)]), counts.docs, counts.tf)
        statistics = self._statistics(number)
        if self._weighting.fields is None or clause.field:
            return statistics, self._weighting.of_field(clause.field), postings
        names = part.whole.separate
        members = [ClauseLists(self._parts, self._weighting, replace(clause, field=name)) for name in names]
        frequencies = np.zeros((len(counts.docs), len(names)), dtype=np.int32)
        for column, member in enumerate(members):
            of_member = member.counts[number]
            frequencies[np.searchsorted(counts.docs, of_member.docs), column] = of_member.tf
        by_field = {name: member._statistics(number) for name, member in zip(names, members, strict=True)}
        collection = ClauseStatistics(Statistics.of(part), self, self._df_of_terms, by_field=by_field)
        return collection, self._weighting, replace(postings, fields=frequencies)

    def _statistics(self, number: int) -> ClauseStatistics:
        """Return the statistics that a model needs to weigh the clause in a part."""
        vocabulary = Statistics.of(self._parts[number])
        if not self._clause.field:
            return ClauseStatistics(vocabulary, self, self._df_of_terms)
        lengths = _field_lengths(self._parts[number], self._clause.field).astype(np.float64)
        totals = [_field_totals(part, self._clause.field) for part in self._parts]
        tokens, present = sum(tokens for tokens, _ in totals), sum(present for _, present in totals)
        return ClauseStatistics(vocabulary, self, self._df_of_terms, lengths, tokens, present)

    def _df_of_terms(self) -> Float64s | None:
        """Return the df of each term of a phrase or window, in its field if it has one; None for other clauses."""
        if not (isinstance(self._clause, (Phrase, Window)) and self.df):
            return None
        if not self._clause.field:
            return living_df(self._parts, self._clause.terms, numbers_in(self._parts, self._clause.terms)).astype(np.float64)
        members = [Term(term, field=self._clause.field) for term in self._clause.terms]
        df = {member: ClauseLists(self._parts, self._weighting, member).df for member in dict.fromkeys(members)}
        return np.array([df[member] for member in members], dtype=np.float64)


def counts_of(part: Part, clause: Leaf) -> Counts:
    """Return the documents of a part that match a clause, deleted ones too, from the cache or computed.

    Args:
        part: The part.
        clause: The clause, with weight 1.

    Raises:
        ParameterError: As `ClauseLists`.
    """
    if type(clause) is Phrase and not isinstance(part.lists, ChosenLists):
        numbers, df = term_numbers(part, clause.terms), part.df
        if not numbers or min(numbers) < 0 or min([df.item(number) for number in numbers]) < RARE:
            return Counts(*proximity_counts(part, clause, numbers, field_number(part, clause.field) if clause.field else -1))
    return _COUNTS.of(part.lists).get(clause, lambda: _count(part, clause))


def spans_of(part: Part, clause: Phrase | Window, doc: int) -> Spans:
    """Return the first and last position of each match of a clause in a document of a part."""
    if isinstance(part.lists, ChosenLists) and not clause.field:
        spans = [spans_of(all_fields(part), replace(clause, field=name), doc) for name in part.whole.separate]
        return np.concatenate(spans)
    column = field_number(part, clause.field) if clause.field else -1
    return spans_in(all_fields(part), clause, term_numbers(part, clause.terms), column, doc)


def all_fields(part: Part) -> Part:
    """Return a part with all its fields."""
    return part_of(state_of(part), part) if isinstance(part.lists, ChosenLists) else part


def state_of(part: Part) -> State:
    """Return the index to which a part belongs, with all its fields."""
    state: State = part.whole.index if isinstance(part.whole, ChosenFields) else part.whole  # type: ignore[assignment]
    return state


def field_number(part: Part, name: str) -> int:
    """Return the position of a field among the separate fields of the index.

    Raises:
        ParameterError: The index has no separate fields, or none of this name.
    """
    state = state_of(part)
    state.require_fields()
    if name not in state.separate:
        raise ParameterError(f"the index {state.path} has no field '{name}'; its fields are {', '.join(state.separate)}")
    return state.separate.index(name)


def term_numbers(part: Part, terms: tuple[str, ...]) -> list[int]:
    """Return the numbers of terms, -1 for unknown ones."""
    return list(map(part.term_number, terms))


def _field_lengths(part: Part, name: str) -> Ints:
    """Return the length of a field in each document of a part."""
    column = field_number(part, name)
    return FIELDS.of(part.segment).lengths[:, column]


def _field_totals(part: Part, name: str) -> tuple[int, int]:
    """Return the number of terms of a field in the living documents of a part, and of those that have one."""

    def count() -> tuple[int, int]:
        lengths, dead = _field_lengths(part, name), part.dead
        living = lengths if dead is None else lengths[~dead]
        return int(living.sum()), int(np.count_nonzero(living))

    return _FIELD_TOTALS.of(all_fields(part)).get(name, count)


def _count(part: Part, clause: Leaf) -> Counts:
    """Count a clause; arguments as in `counts_of`."""
    if isinstance(part.lists, ChosenLists):
        if clause.field:
            return counts_of(all_fields(part), clause)
        if isinstance(clause, (Phrase, Window)):
            return _sum_counts(
                [counts_of(all_fields(part), replace(clause, field=name)) for name in part.whole.separate], len(part)
            )
    if isinstance(clause, AnyOf) and clause.phrases:
        return _sum_counts([counts_of(part, member) for member in dict.fromkeys(clause.clauses)], len(part))
    terms = term_numbers(part, (clause.term,) if isinstance(clause, Term) else clause.terms)
    column = field_number(part, clause.field) if clause.field else -1
    if isinstance(clause, (Phrase, Window)):
        return Counts(*proximity_counts(part, clause, terms, column))
    present = np.array(sorted({term for term in terms if term >= 0}), dtype=np.int64)
    docs, tf = part.postings(present)
    if column >= 0:
        tf = FIELDS.of(part.segment).frequencies(present)[:, column]
        docs, tf = docs[tf > 0], tf[tf > 0]
    return Counts(docs, tf) if len(present) == 1 else _sum_by_document(docs, tf, len(part))


def _sum_counts(parts: list[Counts], documents: int) -> Counts:
    """Sum the frequencies of several clauses in each document."""
    docs, tf = np.concatenate([part.docs for part in parts]), np.concatenate([part.tf for part in parts])
    return _sum_by_document(docs, tf, documents)


def _sum_by_document(docs: Int32s, tf: Int32s, documents: int) -> Counts:
    """Sum the frequencies of each document."""
    if len(docs) * DENSE > documents:
        sums = np.bincount(docs, tf, documents)
        rows = np.flatnonzero(sums)
        return Counts(rows.astype(np.int32), sums[rows].astype(np.int32))
    order = np.argsort(docs, kind="stable")
    docs, tf = docs[order], tf[order]
    firsts = np.flatnonzero(np.diff(docs, prepend=-1))
    return Counts(docs[firsts], np.add.reduceat(tf, firsts) if len(firsts) else tf)


_COUNTS: LazyAttribute[SegmentLists, Cached[Leaf, Counts]] = LazyAttribute(
    "clause_counts", lambda base: Cached(MEMORY, lambda counts: counts.nbytes)
)
_FIELD_TOTALS: LazyAttribute[Part, Cached[str, tuple[int, int]]] = LazyAttribute("field_totals", lambda part: Cached())
_WEIGHTS: LazyAttribute[Part, Cached[tuple[Weighting, Leaf], Float32s]] = LazyAttribute(
    "clause_weights", lambda part: Cached(MEMORY, lambda weights: weights.nbytes)
)


def clause_text(clause: Leaf) -> str:
    """Describe a clause, such as title:"desert spring"~2, for explanations and errors."""
    prefix = f"{clause.field}:" if clause.field else ""
    match clause:
        case Term():
            return f"{prefix}'{clause.term}'"
        case AnyOf():
            alternatives = [*(f"'{term}'" for term in clause.terms), *map(clause_text, clause.phrases)]
            return f"{prefix}any of {', '.join(alternatives[:3])}" + (
                f" and {len(alternatives) - 3} more" if alternatives[3:] else ""
            )
        case Phrase():
            words: list[str] = []
            for term, offset in zip(clause.terms, clause.offsets, strict=True):
                words += ["_"] * (offset - len(words)) + [term]
            return f'{prefix}"{" ".join(words)}"' + (f"~{clause.slop}" if clause.slop else "")
    return f"{prefix}window of {clause.width}: " + " ".join(f"'{term}'" for term in clause.terms)
