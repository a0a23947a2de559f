"""Clauses of structured queries that count as terms: their documents, frequencies and weights.

A term in one field, any of several terms, a phrase and a window each have a frequency in a document, and therefore a document
frequency and a collection frequency in the index. Every model weighs them as it weighs terms.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.query import AnyOf, Leaf, Phrase, Term, Window
from ..index.postings import Searchable
from ..storage.caches import Attached, Cached, weakly
from ..text.proximity import Spans
from .conjunctions import search_weighed
from .fields import ChosenFields
from .impacts import MAX_MODELS, weights_not_finite
from .pools import ImpactPool, PooledLists
from .proximity import proximity_counts, spans_in
from .searching import search_matches
from .weighting import ClauseStatistics, Floats, Idfs, Postings, Saturation, Statistics, Weighting, saturation_of

if TYPE_CHECKING:
    from ..index.state import State

MEMORY = 1 << 28  # bytes of cached counts per index, and of cached impacts per model
CLAUSE_NUMBER = np.zeros(1, np.int64)  # term number of a clause in its `ClauseStatistics`
RARE = 500  # df of the rarest term below which a phrase is counted again, which is faster than a lookup in the cache
DENSE = 8  # more than documents / DENSE postings are summed in an array with an entry for each document


@dataclass(eq=False)
class Counts:
    """The documents that match a clause.

    Args:
        docs: int32, ascending.
        tf: int32; frequency of the clause in each document.
        weighed: The last model that weighed the clause, and the weights.
    """

    docs: NDArray[np.int32]
    tf: NDArray[np.int32]
    weighed: tuple[Weighting, NDArray[np.float32]] | None = None

    @property
    def df(self) -> int:
        """Document frequency."""
        return len(self.docs)

    @cached_property
    def cf(self) -> int:
        """Collection frequency."""
        return int(self.tf.sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Size in memory, with weights."""
        return self.docs.nbytes + 2 * self.tf.nbytes


def counts_of(index: Searchable, clause: Leaf) -> Counts:
    """Return the documents that match a clause, from the cache or computed.

    Args:
        index: The index, or some of its fields; a clause without a field then matches in any of these.
        clause: The clause, with weight 1.

    Raises:
        ParameterError: The index has no positions, no separate fields, or no field of this name.
    """
    if type(clause) is Phrase and not isinstance(index, ChosenFields):
        numbers, df = term_numbers(index, clause.terms), index.df
        if not numbers or min(numbers) < 0 or min([df.item(number) for number in numbers]) < RARE:
            return Counts(*proximity_counts(index, clause, numbers, field_number(index, clause.field) if clause.field else -1))
    return _COUNTS.of(index).get(clause, lambda: _count(index, clause))


def weights_of(index: Searchable, weighting: Weighting, clause: Leaf, counts: Counts) -> NDArray[np.float32]:
    """Return the weights of a clause under a model, one for each document of its counts.

    Raises:
        IndexFormatError: A weight is not finite.
    """
    if (weighed := counts.weighed) is not None and weighed[0] == weighting:
        return weighed[1]
    statistics, model, postings = postings_of(index, weighting, clause, counts)
    weights = model.postings(statistics, postings).astype(np.float32)
    if not math.isfinite(weights.sum(dtype=np.float64)):
        raise weights_not_finite(index)
    weights.flags.writeable = False
    counts.weighed = weighting, weights
    return weights


def search_clause(
    index: Searchable, weighting: Weighting, clause: Leaf, weight: float, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32], int] | None:
    """Search for the documents that match the only clause of a query.

    Returns:
        The best documents, their scores, and the number of all matching documents; None for a model without a compiled loop.

    Raises:
        IndexFormatError: A weight is not finite.
    """
    curve = _SATURATIONS.of(index).get(weighting, lambda: saturation_of(weighting, Statistics.of(index)))
    if curve is None or clause.field:
        return None
    counts = counts_of(index, clause)
    if not counts.df:
        return counts.docs, np.zeros(0, np.float32), 0
    if curve.sums_idf and (parts := statistics_of(index, clause, counts).parts) is not None:
        idf = float(np.sum(curve.idf(np.maximum(parts, 1.0))))
    else:
        idf = Idfs.of(index, weighting, curve.idf)(np.array([counts.df])).item()
    query_weight = weighting.query(np.array([weight])).item()
    arguments = counts.docs, counts.tf, curve.lengths, (idf, *curve.parameters), query_weight
    best = search_matches(search_weighed, arguments, index, k, lambda: counts.df)
    if best[2] < counts.df:
        raise weights_not_finite(index)
    return best


class ClauseImpacts:
    """Impacts of one model on clauses that count as terms, cached until they take more than MEMORY.

    Args:
        index: The index.
        weighting: The model.
    """

    def __init__(self, index: Searchable, weighting: Weighting) -> None:
        self._index, self._weighting, self._lock = index, weighting, threading.Lock()
        self._pool, self._numbers = ImpactPool(len(index)), dict[Leaf, int]()

    @classmethod
    def of(cls, index: Searchable, weighting: Weighting) -> ClauseImpacts:
        """Return the impacts of a model on an index."""
        return _IMPACTS.of(index).get(weighting, lambda: cls(weakly(index), weighting))

    def lists(self, clauses: Sequence[Leaf]) -> PooledLists:
        """Return the search input for some clauses; raises as `weights_of` does."""
        with self._lock:
            if self._pool.nbytes > MEMORY:
                self._pool, self._numbers = ImpactPool(len(self._index)), {}
            for clause in clauses:
                if clause not in self._numbers:
                    counts = counts_of(self._index, clause)
                    weights = weights_of(self._index, self._weighting, clause, counts)
                    self._numbers[clause] = self._pool.add(np.array([0, counts.df]), counts.docs, weights)
            return self._pool.lists(np.array([self._numbers[clause] for clause in clauses], dtype=np.int32))


def postings_of(
    index: Searchable, weighting: Weighting, clause: Leaf, counts: Counts
) -> tuple[ClauseStatistics, Weighting, Postings]:
    """Return the postings of a clause, and the statistics and the model that weigh them as postings of a term.

    A clause in one field is weighed as in an index of that field alone.
    """
    statistics = statistics_of(index, clause, counts)
    postings = Postings(CLAUSE_NUMBER, np.array([counts.df]), counts.docs, counts.tf)
    if weighting.fields is None or clause.field:
        return statistics, weighting.of_field(clause.field), postings
    of_fields = {name: replace(clause, field=name) for name in index.separate}
    frequencies = np.zeros((counts.df, len(of_fields)), dtype=np.int32)
    for column, of_field in enumerate(of_fields.values()):
        member = counts_of(index, of_field)
        frequencies[np.searchsorted(counts.docs, member.docs), column] = member.tf
    by_field = {name: statistics_of(index, of_field, counts_of(index, of_field)) for name, of_field in of_fields.items()}
    collection = ClauseStatistics(Statistics.of(index), counts, lambda: statistics.parts, by_field=by_field)
    return collection, weighting, replace(postings, fields=frequencies)


def statistics_of(index: Searchable, clause: Leaf, counts: Counts) -> ClauseStatistics:
    """Return the statistics that a model needs to weigh a clause."""
    fields, column = (state_of(index).field_statistics, field_number(index, clause.field)) if clause.field else (None, -1)

    def parts() -> Floats | None:
        if not (isinstance(clause, (Phrase, Window)) and counts.df):
            return None
        terms = term_numbers(index, clause.terms)
        df = index.df[terms] if fields is None else fields.df[terms, column]
        return df.astype(np.float64)

    if fields is None:
        return ClauseStatistics(Statistics.of(index), counts, parts)
    lengths = fields.lengths[:, column].astype(np.float64)
    return ClauseStatistics(Statistics.of(index), counts, parts, lengths, int(fields.tokens[column]))


def spans_of(index: Searchable, clause: Phrase | Window, doc: int) -> Spans:
    """Return the first and last position of each match of a clause in a document."""
    if isinstance(index, ChosenFields) and not clause.field:
        spans = [spans_of(index.index, replace(clause, field=name), doc) for name in index.separate]
        return np.concatenate(spans)
    column = field_number(index, clause.field) if clause.field else -1
    return spans_in(state_of(index), clause, term_numbers(index, clause.terms), column, doc)


def state_of(index: Searchable) -> State:
    """Return the index with all its fields."""
    state: State = index.index if isinstance(index, ChosenFields) else index  # type: ignore[assignment]
    return state


def field_number(index: Searchable, name: str) -> int:
    """Return the position of a field among the separate fields of the index.

    Raises:
        ParameterError: The index has no separate fields, or none of this name.
    """
    state = state_of(index)
    names = tuple(state.field_statistics.names)
    if name not in names:
        raise ParameterError(f"the index {state.path} has no field '{name}'; its fields are {', '.join(names)}")
    return names.index(name)


def term_numbers(index: Searchable, terms: tuple[str, ...]) -> list[int]:
    """Return the numbers of terms, -1 for unknown ones."""
    return list(map(index.term_number, terms))


def _count(index: Searchable, clause: Leaf) -> Counts:
    """Count a clause; arguments as in `counts_of`."""
    if isinstance(index, ChosenFields):
        if clause.field:
            return counts_of(index.index, clause)
        if isinstance(clause, (Phrase, Window)):
            return _sum_counts([counts_of(index.index, replace(clause, field=name)) for name in index.separate], len(index))
    if isinstance(clause, AnyOf) and clause.phrases:
        return _sum_counts([counts_of(index, member) for member in dict.fromkeys(clause.clauses)], len(index))
    terms = term_numbers(index, (clause.term,) if isinstance(clause, Term) else clause.terms)
    column = field_number(index, clause.field) if clause.field else -1
    if isinstance(clause, (Phrase, Window)):
        return Counts(*proximity_counts(index, clause, terms, column))
    present = np.array(sorted({term for term in terms if term >= 0}), dtype=np.int64)
    docs, tf = index.postings(present)
    if column >= 0:
        tf = index.field_statistics.frequencies(present)[:, column]
        docs, tf = docs[tf > 0], tf[tf > 0]
    return Counts(docs, tf) if len(present) == 1 else _sum_by_document(docs, tf, len(index))


def _sum_counts(parts: list[Counts], documents: int) -> Counts:
    """Sum the frequencies of several clauses in each document."""
    docs, tf = np.concatenate([part.docs for part in parts]), np.concatenate([part.tf for part in parts])
    return _sum_by_document(docs, tf, documents)


def _sum_by_document(docs: NDArray[np.int32], tf: NDArray[np.int32], documents: int) -> Counts:
    """Sum the frequencies of each document."""
    if len(docs) * DENSE > documents:
        sums = np.bincount(docs, tf, documents)
        rows = np.flatnonzero(sums)
        return Counts(rows.astype(np.int32), sums[rows].astype(np.int32))
    order = np.argsort(docs, kind="stable")
    docs, tf = docs[order], tf[order]
    firsts = np.flatnonzero(np.diff(docs, prepend=-1))
    return Counts(docs[firsts], np.add.reduceat(tf, firsts) if len(firsts) else tf)


_COUNTS: Attached[Searchable, Cached[Leaf, Counts]] = Attached(
    "clause_counts", lambda index: Cached(MEMORY, lambda counts: counts.nbytes)
)
_SATURATIONS: Attached[Searchable, Cached[Weighting, Saturation | None]] = Attached(
    "saturations", lambda index: Cached(MAX_MODELS)
)
_IMPACTS: Attached[Searchable, Cached[Weighting, ClauseImpacts]] = Attached("clause_impacts", lambda index: Cached(MAX_MODELS))


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
