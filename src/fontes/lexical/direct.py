"""`Direct`: short queries searched in one compiled call, from the bytes of a text or of terms to the best documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.query import Group, Phrase, Term
from ..core.strings import SURROGATE, Strings
from ..index.positions import PositionLists
from ..index.tables import finding_arrays
from ..storage.arrays import fixed
from ..storage.caches import Attached, Cached, weakly
from ..storage.compiled import is_loaded
from ..text.folding import STEMMERS
from ..text.tokenizers import TOKENIZERS, lowercase_shifts, properties
from .impacts import MAX_MODELS, whole_impacts
from .kernel import SORTED
from .searching import NO_WORDS, Ranked, ranked
from .weighting import Statistics, Weighting, saturation_of

if TYPE_CHECKING:
    from ..index.columns import Filter
    from ..index.state import State
    from ..text.analyzer import Analyzer

FEW = 16  # documents for one that passes a filter, from which on these documents may be looked up
MAX_CACHED_DF = 1 << 16  # df of phrases whose idf is computed in advance
LISTS = (
    "bounds", "list_offsets", "docs", "codes", "places", "place_codes", "widths", "weights", "idfs", "saturation",
    "rest_bounds", "rest_docs", "rest_weights",
)  # fmt: skip
"""The parts of `Impacts.postings`, in order."""
MAX_CACHED_COUNT = 64  # counts of terms below this have their query weight computed in advance
MAX_TERMS = 64  # terms of a query
MAX_TEXT_LENGTH = 10_000  # characters of a text
NO_DOCS, NO_SCORES, NO_KEYS = np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.uint64)
Arrays: TypeAlias = dict[str, NDArray[Any]]


class Direct:
    """Searches over an index, under one model.

    Args:
        arrays: Arrays of the index by the names in `direct_kernels.TYPES`; arrays without a name here are empty.
        weighting: The model.
        documents: Number of documents.
        phrases: Returns the arrays to search phrases; none if the index or the model does not allow it.
    """

    def __init__(
        self,
        arrays: Arrays,
        weighting: Weighting,
        documents: int,
        phrases: Callable[[], Arrays],
    ) -> None:
        from . import direct_kernels

        self._loops, self._documents, self._phrases = direct_kernels, documents, phrases
        self._order, self._has_texts = fixed(arrays["order"]), "pipeline" in arrays
        self._pin(arrays)
        self._query_weight = lru_cache(None)(lambda size: _equal_weight(weighting, size))

    def _pin(self, arrays: Arrays) -> None:
        from ..storage.pinned import pinned

        arrays_and_types = [(arrays.get(name, np.empty(0, dtype)), dtype) for name, dtype in self._loops.TYPES]
        self._arrays, self._pinned = arrays, (pinned(arrays_and_types), arrays_and_types)

    @cached_property
    def _has_phrases(self) -> bool:
        """Whether phrases can be searched; their arrays are read at the first phrase."""
        if "curve" not in self._arrays and (phrase_arrays := self._phrases()):
            self._pin(self._arrays | phrase_arrays)
        return "curve" in self._arrays

    @classmethod
    def of(cls, index: State, weighting: Weighting) -> Self | None:
        """Return the searches of a model; None if loops are not compiled, or the weights of the model are incomplete."""
        if not is_loaded():
            return None
        cache: Cached[Weighting, Self | None] = _DIRECT.of(index)
        if (direct := cache.get(weighting, lambda: cls._make(index, weighting))) is None:
            cache.drop(weighting)
        return direct

    @classmethod
    def _make(cls, index: State, weighting: Weighting) -> Self | None:
        impacts = whole_impacts(index, weighting) if len(index) and len(index.terms) else None
        if impacts is None or len(index.terms.blob) >= 1 << 32:
            return None
        (heads, blob, offsets), ids, weak_index = finding_arrays(index.terms), index.ids, weakly(index)
        arrays: Arrays = {"heads": heads, "blob": blob, "offsets": offsets, "rank": ids.rank, "order": ids.order}
        *lists, curve, rest = impacts.postings
        arrays |= dict(zip(LISTS, (*lists, *curve, *rest), strict=True))
        arrays |= {"row_of": impacts.lists.row_of, "starts": impacts.lists.starts}
        names = ("best", "kth", "positive", "rows", "champions", "champion_weights")
        arrays |= {name: getattr(impacts, name) for name in names} | _text_arrays(index.analyzer, weighting)
        return cls(arrays, weighting, len(index), lambda: _phrase_arrays(weak_index, weighting))

    def text(self, text: str, k: int, where: Filter | None = None) -> Ranked | None:
        """Return the best documents for a text and their scores; None if the text must be analysed in another way."""
        encoded = self._encode_text(text)
        if encoded is None:
            return None
        candidates = where.docs if where is not None and where.count * FEW < self._documents else NO_DOCS
        return self._best(self._loops.find_text, (encoded, NO_WORDS if where is None else where.words, candidates), k)

    def terms(self, text: str) -> NDArray[np.int64] | None:
        """Return the numbers of a text's terms, ascending; None if the text must be analysed in another way."""
        if (encoded := self._encode_text(text)) is None:
            return None
        terms, counts = np.empty((2, len(encoded) + 1), dtype=np.int64)
        size = self._loops.find_terms(self._pinned[0], encoded, terms, counts)
        return None if size < 0 else terms[:size]

    def _encode_text(self, text: str) -> bytes | None:
        """Return the UTF-8 of a text; None if compiled loops cannot analyse the text."""
        if not (self._has_texts and len(text) <= MAX_TEXT_LENGTH and (text.isascii() or SURROGATE.search(text) is None)):
            return None
        return text.encode()

    def search(self, query: Group, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32], int | None] | None:
        """Search by a structured query: terms that a document must, may or must not have, or an exact phrase.

        Args:
            query: The query.
            k: Greatest number of documents; 0 only counts.

        Returns:
            The best documents, their scores, and the number of matching documents, None if unknown; None for another query.
        """
        must, should, excluded = query.must, query.should, query.must_not
        if query.weight != 1.0:
            return None
        clauses = (*must, *should, *excluded)
        if len(clauses) == 1 and type(clauses[0]) is Phrase and not excluded:
            return self._phrase(clauses[0], k)
        terms: dict[str, None] = {}
        for clause in clauses:
            if type(clause) is not Term or clause.weight != 1.0 or clause.field:
                return None
            terms[clause.term] = None
        size, scoring = len(terms), len(must) + len(should)
        query_weight = self._query_weight(scoring)
        encoded = _encode_terms("\0".join(terms), size - 1)
        if encoded is None or query_weight is None or size != len(clauses):
            return None
        if excluded or (must and should):
            return self._clauses((encoded, (len(must), len(should), len(excluded)), query_weight), k) if k and scoring else None
        if must or size == 1:
            return self._matches(self._loops.find_all, (encoded, size, query_weight), k)
        best = self._best(self._loops.find_any, (encoded, size, query_weight), k) if k else None
        return None if best is None else (*best, None)

    def _clauses(self, query: tuple[Any, ...], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32], int | None] | None:
        """Search by required, optional and excluded terms."""
        k, counts = min(k, self._documents), np.zeros(1, np.int64)
        docs, scores, keys = self._buffers(k)
        total = self._loops.find_clauses(self._pinned[0], *query, k, counts, docs, scores, keys)
        if total == self._loops.NOT_SUPPORTED:
            return None
        return *self._decode(int(counts[0]), docs, scores, keys), total if total >= 0 else None

    def _phrase(self, phrase: Phrase, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32], int] | None:
        terms, offsets, query_weight = phrase.terms, phrase.offsets, self._query_weight(1)
        if phrase.slop or phrase.field or phrase.weight != 1.0 or not self._has_phrases or query_weight is None:
            return None
        if offsets == tuple(range(len(terms))):
            text = "\0".join(terms)
        elif len(offsets) == len(terms) and offsets[0] == 0 and all(0 < b - a < MAX_TERMS for a, b in pairwise(offsets)):
            text = terms[0] + "".join("\0" * (b - a) + term for term, (a, b) in zip(terms[1:], pairwise(offsets), strict=True))
        else:
            return None
        encoded = _encode_terms(text, offsets[-1]) if 0 < len(terms) <= MAX_TERMS else None
        return None if encoded is None else self._matches(self._loops.find_phrase, (encoded, len(terms), query_weight), k)

    def _matches(self, loop: Any, query: tuple[Any, ...], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32], int] | None:
        """Call a loop that visits all matching documents."""
        k = min(k, self._documents)
        docs, scores, keys = self._buffers(k)
        total = loop(self._pinned[0], *query, k, docs, scores, keys)
        if total < 0:
            return None
        return *self._decode(min(total, k), docs, scores, keys), total

    def _buffers(self, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.uint64]]:
        """Return empty outputs of loops: documents and scores, or keys if k is greater than SORTED."""
        if k > SORTED:
            return NO_DOCS, NO_SCORES, np.empty(k, np.uint64)
        return np.empty(k, np.int32), np.empty(k, np.float32), NO_KEYS

    def _decode(self, size: int, docs: NDArray[np.int32], scores: NDArray[np.float32], keys: NDArray[np.uint64]) -> Ranked:
        """Return the documents and scores in the outputs of a loop."""
        if len(keys):
            return ranked(keys[:size], self._order)
        return (docs, scores) if size == len(docs) else (docs[:size], scores[:size])

    def _best(self, loop: Any, query: tuple[Any, ...], k: int) -> Ranked | None:
        """Call a loop that visits only documents that may be among the best."""
        k = min(k, self._documents)  # the loop returns documents or keys, depending on this k
        docs, scores, keys = self._buffers(k)
        size = loop(self._pinned[0], *query, k, docs, scores, keys)
        return None if size < 0 else self._decode(size, docs, scores, keys)


def _encode_terms(text: str, gaps: int) -> bytes | None:
    """Return the UTF-8 of terms separated by `gaps` zero bytes; None if a term has a zero byte or no UTF-8."""
    if text.count("\0") != gaps or not (text.isascii() or SURROGATE.search(text) is None):
        return None
    return text.encode()


def _equal_weight(weighting: Weighting, size: int) -> float | None:
    """Return the query weight of each of `size` terms that occur once; None if the weights differ."""
    weights = weighting.query(np.ones(size)).tolist()
    return float(weights[0]) if weights and weights.count(weights[0]) == size <= MAX_TERMS else None


def _phrase_arrays(index: State, weighting: Weighting) -> Arrays:
    """Return the arrays to search phrases; none if the index or the model does not allow it."""
    positions = index.positions if index.has_positions else None
    curve = saturation_of(weighting, Statistics.of(index))
    if not isinstance(positions, PositionLists) or curve is None or curve.sums_idf:
        return {}
    rows, offsets, bounds, firsts = positions.row_arrays
    if offsets.dtype != np.uint32:
        return {}
    df = np.arange(min(MAX_CACHED_DF, len(index)) + 1, dtype=np.float64)
    df[0] = 1.0  # a df of 0 has no idf and is never looked up
    of_curve = {"lengths": curve.lengths.astype(np.float64), "idf": curve.idf(df), "curve": np.array(curve.parameters)}
    return {"positions": rows, "position_offsets": offsets, "position_bounds": bounds, "firsts": firsts} | of_curve


def _text_arrays(analyzer: Analyzer, weighting: Weighting) -> Arrays:
    """Return the arrays to analyse texts; none if the analyzer or the model does not allow it."""
    has_loops = analyzer.tokenizer in TOKENIZERS and analyzer.stemmer in STEMMERS
    if not has_loops or analyzer.words != (1, 1) or analyzer.chars is not None or not weighting.weighs_terms_alone:
        return {}
    stems, folds_non_ascii = analyzer.stemmer == "porter", not analyzer.normalize
    steps = TOKENIZERS.index(str(analyzer.tokenizer)), analyzer.possessive, analyzer.lowercase, stems, folds_non_ascii
    stops, counts = Strings.of(analyzer.stopwords), np.arange(1, MAX_CACHED_COUNT, dtype=np.float64)
    return {
        "properties": properties(),
        "stops": stops.blob,
        "stop_bounds": fixed(stops.offsets),
        "pipeline": np.array(steps, dtype=np.int64),
        "shifts": lowercase_shifts() if analyzer.lowercase else np.empty(0, dtype=np.int32),
        "counts": np.concatenate([[0.0], weighting.query(counts)]),
    }


_DIRECT: Attached[State, Cached[Weighting, Any]] = Attached("direct", lambda index: Cached(MAX_MODELS))
