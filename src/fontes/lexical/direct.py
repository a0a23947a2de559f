"""`Direct`: short queries searched in one compiled call, from the bytes of a text or of terms to the best documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.query import Group, Phrase, Term
from ..core.strings import SURROGATE, Strings
from ..index.positions import POSITIONS, PositionLists
from ..index.segment import Part
from ..index.tables import finding_arrays
from ..storage.arrays import fixed
from ..storage.caches import Attached, Cached, weakly
from ..storage.compiled import is_loaded
from ..text.folding import STEMMERS
from ..text.tokenizers import TOKENIZERS, lowercase_shifts, properties
from .impacts import MAX_MODELS, Impacts, whole_impacts
from .kernel import SORTED
from .merging import Merge, parts_for
from .searching import NOT_SUPPORTED, UNKNOWN_IDF, Ranked, ranked
from .weighting import Idfs, Statistics, Weighting, base_of, saturation_of

if TYPE_CHECKING:
    from ..index.columns import Filter
    from ..index.postings import Searchable
    from ..index.state import State
    from ..text.analyzer import Analyzer

FEW = 16  # documents for one that passes a filter, from which on these documents may be looked up
LISTS = (
    "bounds", "list_offsets", "docs", "codes", "places", "place_codes", "widths", "weights", "saturation", "rest_bounds",
    "rest_docs", "rest_values",
)  # fmt: skip
"""The parts of `Impacts.postings`, in order."""
MAX_CACHED_COUNT = 64  # counts of terms below this have their query weight computed in advance
MAX_TERMS = 64  # terms of a query
MAX_TEXT_LENGTH = 10_000  # characters of a text
NO_DOCS, NO_SCORES = np.empty(0, np.int32), np.empty(0, np.float32)
NO_KEYS = np.empty(0, np.uint64)
BOUNDS = ("best", "kth", "positive", "rows", "champions", "champion_weights", "cuts")
Arrays: TypeAlias = dict[str, NDArray[Any]]


class Direct:
    """Searches over an index, under one model.

    Args:
        parts: Arrays of each part of the index by the names in `direct_tables.TYPES`; arrays without a name here are empty.
        weighting: The model.
        documents: Number of documents.
        phrases: Returns the arrays to search phrases; none if the index or the model does not allow it.
        idfs: The idf of document frequencies; None for a model without a curve.
        merge: Merges the best documents of several parts.
        composed: Returns the form of a text in which tokens are found: `Analyzer.composed`.
    """

    def __init__(
        self,
        parts: Sequence[Arrays],
        weighting: Weighting,
        documents: int,
        phrases: Callable[[], Sequence[Arrays]],
        idfs: Idfs | None,
        merge: Merge | None,
        composed: Callable[[str], str],
    ) -> None:
        from . import direct_kernels

        self._loops, self._documents, self._phrases, self._idfs, self._merge = direct_kernels, documents, phrases, idfs, merge
        self._composed = composed
        self._order, self._has_texts = fixed(parts[0]["order"]), "pipeline" in parts[0]
        self._pin(parts)
        self._query_weight = lru_cache(None)(lambda size: _equal_weight(weighting, size))

    def _pin(self, parts: Sequence[Arrays]) -> None:
        from ..storage.pinned import pinned
        from .direct_tables import TYPES

        rows = [[(arrays.get(name, np.empty(0, dtype)), dtype) for name, dtype in TYPES] for arrays in parts]
        self._parts, self._pinned = parts, (np.stack([pinned(row) for row in rows]), rows)
        self._tables: NDArray[np.int64] = self._pinned[0]

    @cached_property
    def _has_phrases(self) -> bool:
        """Whether phrases can be searched; their arrays are read at the first phrase."""
        if "curve" not in self._parts[0] and self._idfs is not None and (phrase_arrays := self._phrases()):
            self._pin([arrays | of_phrases for arrays, of_phrases in zip(self._parts, phrase_arrays, strict=True)])
        return "curve" in self._parts[0]

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
        parts = parts_for(index, weighting)
        searched: tuple[State | Part, ...] = parts or (index,)
        if not all(len(part) and len(part.terms.blob) < 1 << 32 for part in searched):
            return None
        every = [impacts for part in searched if (impacts := whole_impacts(part, weighting)) is not None]
        if len(every) < len(searched):
            return None
        texts = _text_arrays(index.analyzer, weighting)
        curve = next((impacts.curve for impacts in every if impacts.curve is not None), None)
        idfs = None if curve is None else Idfs.of(index, weighting, curve.function.idf)
        if idfs is not None:
            idfs.fill(_DISTINCT_DF.of(base_of(searched[0])))
        arrays = [_arrays(part, impacts, idfs) | texts for part, impacts in zip(searched, every, strict=True)]
        weak_index = weakly(index)
        phrases = partial(_phrase_arrays, weak_index, weighting)
        return cls(arrays, weighting, len(index), phrases, idfs, Merge.of(index) if parts else None, index.analyzer.composed)

    def text(self, text: str, k: int, where: Filter | None = None) -> Ranked | None:
        """Return the best documents for a text and their scores; None if the text must be analysed in another way."""
        encoded = self._encode_text(text)
        if encoded is None:
            return None
        if where is None and self._merge is None:
            return self._find_in_one(encoded, min(k, self._documents))
        if self._merge is not None:
            masks = self._merge.masks(where, FEW)
        elif where is not None:
            few = where.docs if where.count * FEW < self._documents else NO_DOCS
            masks = where.words, np.array((0, len(where.words))), few, np.array((0, len(few)))
        hits = self._call(self._loops.find_text, (encoded, *masks), k)
        return None if hits is None else hits[:2]

    def _find_in_one(self, text: bytes, k: int) -> Ranked | None:
        """Return the result of `text` for an index of one part; k is at most the number of documents."""
        if k > SORTED:
            docs, scores, keys = NO_DOCS, NO_SCORES, np.empty(k, np.uint64)
        else:
            docs, scores, keys = np.empty(k, np.int32), np.empty(k, np.float32), NO_KEYS
        while (size := self._loops.find_text_in_one(self._tables, text, k, docs, scores, keys)) < 0:
            if not self._learn(size):
                return None
        if k > SORTED:
            return ranked(keys[:size], self._order)
        return (docs, scores) if size == k else (docs[:size], scores[:size])

    def _learn(self, status: int) -> bool:
        """Compute the idf that a loop lacked; return whether there was one, so that the loop can be called again."""
        if status > UNKNOWN_IDF or self._idfs is None:
            return False
        self._idfs.fill(np.array([UNKNOWN_IDF - status]))
        return True

    def _call(self, loop: Any, query: tuple[Any, ...], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32], int] | None:
        """Return the best documents that a loop finds, their scores and its result; None if it does not support the query."""
        k, parts = min(k, self._documents), len(self._parts)
        keys = NO_KEYS
        if k > SORTED or self._merge is not None:
            docs, scores, keys = NO_DOCS, NO_SCORES, np.empty(parts * k, np.uint64)
        else:
            docs, scores = np.empty(k, np.int32), np.empty(k, np.float32)
        counts = np.empty(parts, np.int64)
        while (total := loop(self._tables, *query, k, counts, docs, scores, keys)) <= UNKNOWN_IDF and self._learn(total):
            pass
        if total == NOT_SUPPORTED:
            return None
        if self._merge is not None:
            return *(self._merge.best(counts, keys.reshape(parts, k), k) if k else (NO_DOCS, NO_SCORES)), total
        size = counts.item() if k else 0
        if k > SORTED:
            return *ranked(keys[:size], self._order), total
        return (docs, scores, total) if size == k else (docs[:size], scores[:size], total)

    @property
    def has_parts(self) -> bool:
        """Whether the index is searched part by part."""
        return self._merge is not None

    def terms(self, text: str) -> NDArray[np.int64] | None:
        """Return the numbers of a text's terms in each part, a row for each, ascending by term and -1 where a part lacks it.

        None if the text must be analysed in another way.
        """
        from .direct_tables import find_terms

        if (encoded := self._encode_text(text)) is None:
            return None
        counts = np.empty(len(encoded) + 1, dtype=np.int64)
        terms = np.empty((len(self._tables), len(encoded) + 1), dtype=np.int64)
        size = find_terms(self._tables, encoded, terms, counts)
        return None if size < 0 else terms[:, :size]

    def _encode_text(self, text: str) -> bytes | None:
        """Return the UTF-8 of a text; None if compiled loops cannot analyse the text."""
        if not (self._has_texts and len(text) <= MAX_TEXT_LENGTH and (text.isascii() or SURROGATE.search(text) is None)):
            return None
        return (text if text.isascii() else self._composed(text)).encode()

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
            if not (k and scoring):
                return None
            hits = self._call(self._loops.find_clauses, (encoded, (len(must), len(should), len(excluded)), query_weight), k)
            return hits if hits is None or must else (*hits[:2], None)
        if must or size == 1:
            return self._call(self._loops.find_all, (encoded, size, query_weight), k)
        hits = self._call(self._loops.find_any, (encoded, size, query_weight), k) if k else None
        return None if hits is None else (*hits[:2], None)

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
        return None if encoded is None else self._call(self._loops.find_phrase, (encoded, len(terms), query_weight), k)


def _encode_terms(text: str, gaps: int) -> bytes | None:
    """Return the UTF-8 of terms separated by `gaps` zero bytes; None if a term has a zero byte or no UTF-8."""
    if text.count("\0") != gaps or not (text.isascii() or SURROGATE.search(text) is None):
        return None
    return text.encode()


def _equal_weight(weighting: Weighting, size: int) -> float | None:
    """Return the query weight of each of `size` terms that occur once; None if the weights differ."""
    weights = weighting.query(np.ones(size)).tolist()
    return float(weights[0]) if weights and weights.count(weights[0]) == size <= MAX_TERMS else None


def _arrays(part: State | Part, impacts: Impacts, idfs: Idfs | None) -> Arrays:
    """Return the arrays of a part of an index, or of an index that is searched as one."""
    (heads, blob, offsets), ids = _FINDING.of(base_of(part)), part.ids
    arrays: Arrays = {"heads": heads, "blob": blob, "offsets": offsets, "rank": ids.rank, "order": ids.order}
    *lists, rest = impacts.postings
    arrays |= dict(zip(LISTS, (*lists, *rest), strict=True))
    arrays |= {"row_of": impacts.lists.row_of, "starts": impacts.lists.starts, "ratios": impacts.ratios}
    arrays |= {name: getattr(impacts.bounds, name) for name in BOUNDS} | {"dead": np.zeros(1, np.int64)}
    if idfs is not None:
        arrays["idfs"] = idfs.values
    if isinstance(part, Part) and (deletions := part.leaf.deletions) is not None:
        arrays |= {"dead_terms": deletions.terms.astype(np.int64), "dead_df": deletions.df.astype(np.int64)}
        arrays |= {"living": part.leaf.living, "dead": np.array([deletions.documents])}
    elif (whole := getattr(part, "whole", None)) is not None and not isinstance(part, Part):
        arrays["whole_df"] = whole.df.astype(np.int64)
    return arrays


def _phrase_arrays(index: State, weighting: Weighting) -> list[Arrays]:
    """Return the arrays of each part to search phrases; none if the index or the model does not allow it."""
    parts = parts_for(index, weighting)
    searched: tuple[State | Part, ...] = parts or (index,)
    curves = [saturation_of(weighting, Statistics.of(part)) for part in searched]
    if not index.has_positions or any(curve is None or curve.sums_idf for curve in curves):
        return []
    every: list[Any] = [POSITIONS.of(part.segment) for part in parts] or [index.positions]
    arrays: list[Arrays] = []
    for positions, curve in zip(every, curves, strict=True):
        if not isinstance(positions, PositionLists) or curve is None:
            return []
        rows, offsets, bounds, firsts = positions.row_arrays
        if offsets.dtype != np.uint32:
            return []
        of_rows = {"positions": rows, "position_offsets": offsets, "position_bounds": bounds, "firsts": firsts}
        arrays.append(of_rows | {"lengths": curve.lengths.astype(np.float64), "curve": np.array(curve.parameters)})
    return arrays


def _text_arrays(analyzer: Analyzer, weighting: Weighting) -> Arrays:
    """Return the arrays to analyse texts; none if the analyzer or the model does not allow it."""
    has_loops = analyzer.tokenizer in TOKENIZERS and analyzer.stemmer in STEMMERS and not analyzer.language
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


def _distinct_df(base: Searchable) -> NDArray[np.int64]:
    return np.flatnonzero(np.bincount(base.df))


_FINDING: Attached[Searchable, Any] = Attached("finding_arrays", lambda base: finding_arrays(base.terms))  # type: ignore[arg-type]
_DISTINCT_DF: Attached[Searchable, NDArray[np.int64]] = Attached("distinct_df", _distinct_df)
_DIRECT: Attached[State, Cached[Weighting, Any]] = Attached("direct", lambda index: Cached(MAX_MODELS))
