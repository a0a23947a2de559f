"""`Direct`: searches in one compiled call, from a text, terms or bags of terms to the best documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from ..core.arrays import AnyArray, Float32s, Float64s, Int32s, Int64s, UInt32s, UInt64s
from ..core.query import Group, Phrase, Term
from ..core.strings import SURROGATE, Strings
from ..core.work import thread_count
from ..index.columns import Filter
from ..index.parts import Part, Searchable
from ..index.postings import SegmentLists
from ..index.tables import finding_arrays
from ..storage.arrays import fixed
from ..storage.caches import Cached, LazyAttribute, weak_proxy
from ..storage.compiled import is_loaded, when_changed
from ..storage.threads import in_threads
from ..text.folding import STEMMERS
from ..text.tokenizers import TOKENIZERS, lowercase_shifts, properties
from .impacts import MAX_MODELS, Impacts, impacts_of, ready_impacts
from .kernel import NOT_SUPPORTED, UNKNOWN_IDF
from .keys import SORTED, best_first
from .merging import Ranked, Results, best, best_of_topics, merged_arrays
from .parts import NO_DOCS as NO_CANDIDATES, Parts, masks_of
from .weighting import Idfs, Statistics, Weighting, saturation_of

if TYPE_CHECKING:
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
MAX_RESULTS = 1 << 21  # results of the topics searched in one batch
NO_DOCS, NO_SCORES = np.empty(0, np.int32), np.empty(0, np.float32)
NO_KEYS = np.empty(0, np.uint64)
BOUNDS = ("best", "kth", "positive", "rows", "champions", "champion_weights", "cuts")
Arrays: TypeAlias = dict[str, AnyArray]
Lists: TypeAlias = tuple[Int64s, Int32s, Float32s]  # bounds, documents and weights of clauses


class Bags(NamedTuple):
    """Weighted bags of terms, one for each topic.

    Args:
        bounds: int64, (topics + 1,): start of the terms of each topic, and the end of the last.
        numbers: int64, (parts, terms): the number of each term in each part, -1 for none; terms ascend in each topic.
        df: int64, (terms,): number of living documents with each term in the whole index.
        weights: float64, (terms,): query weights.
    """

    bounds: Int64s
    numbers: Int64s
    df: Int64s
    weights: Float64s


class Direct:
    """Searches over an index, under one model.

    Args:
        searched: The index, or other lists of its documents.
        weighting: The model.
        parts: The parts of the index, in the order of the search.
        impacts: The impacts of each part.
    """

    def __init__(self, searched: Searchable, weighting: Weighting, parts: Parts, impacts: Sequence[Impacts]) -> None:
        from . import direct_kernels

        self._loops, self._documents = direct_kernels, len(searched)
        self._searched = parts
        self._in_one = len(parts) == 1 and parts[0].dead is None  # its numbers of documents are those of the index
        self._all = masks_of(parts, None, FEW)
        curve = next((part.curve for part in impacts if part.curve is not None), None)
        self._idfs = None if curve is None else Idfs.of(searched.whole, weighting, curve.function.idf)
        if self._idfs is not None:
            self._idfs.fill(_DISTINCT_DF.of(parts[0].lists))
        analyzer: Analyzer | None = getattr(searched, "analyzer", None)
        texts = {} if analyzer is None else _text_arrays(analyzer, weighting)
        self._composed = analyzer.composed if analyzer is not None else str
        self._phrases = partial(_phrase_arrays, weak_proxy(searched), weighting)
        arrays = [
            _arrays(part, of_part, self._idfs, len(searched.whole.parts) > len(parts))
            | merged_arrays(part, len(parts) > 1)
            | texts
            for part, of_part in zip(parts, impacts, strict=True)
        ]
        self._order, self._has_texts = fixed(arrays[0]["order"]), bool(texts)
        self._pin(arrays)
        self._query_weight = lru_cache(None)(lambda size: _equal_weight(weighting, size))
        if self._in_one and self._has_texts:
            when_changed(self._load_for_segments)
        self._weighs_alone = weighting.weighs_terms_alone  # else a term that no document has changes the weight of the others

    def _load_for_segments(self) -> None:
        """Load the compiled code of searches through several segments, which an addition will need."""
        self._call(self._loops.find_text, (b"a", self._all), 1)
        self.terms("a")
        best(self._tables, np.zeros(1, np.int64), np.zeros((1, 1), np.uint64), 1)
        best_of_topics(self._tables, np.zeros((1, 1), np.int64), np.zeros((1, 1, 1), np.uint64), 1)

    def _pin(self, parts: Sequence[Arrays]) -> None:
        from ..storage.pinned import pinned
        from .direct_tables import TYPES

        rows = [[(arrays.get(name), dtype) for name, dtype in TYPES] for arrays in parts]
        self._parts, self._pinned = parts, (np.stack([pinned(row) for row in rows]), rows)
        self._tables: Int64s = self._pinned[0]

    @cached_property
    def _has_phrases(self) -> bool:
        """Whether phrases can be searched; their arrays are read at the first phrase."""
        if "curve" not in self._parts[0] and self._idfs is not None and (phrase_arrays := self._phrases()):
            self._pin([arrays | of_phrases for arrays, of_phrases in zip(self._parts, phrase_arrays, strict=True)])
        return "curve" in self._parts[0]

    @classmethod
    def of(cls, searched: Searchable, weighting: Weighting, wait: bool = False) -> Self | None:
        """Return the searches of a model.

        None for lists without documents or terms; if loops are not compiled; and if the impacts of the model are not computed
        yet, which begins now, unless the caller would `wait` for them.
        """
        if not is_loaded():
            return None
        cache: Cached[Weighting, Self | None] = _DIRECT.of(searched)
        if (direct := cache.get(weighting, lambda: cls._make(searched, weighting, wait))) is None:
            cache.drop(weighting)
        return direct

    @classmethod
    def _make(cls, searched: Searchable, weighting: Weighting, wait: bool) -> Self | None:
        parts = searched.parts
        if not parts or not all(len(part.terms.blob) < 1 << 32 for part in parts):
            return None
        impacts = [impacts_of(part, weighting) if wait else ready_impacts(part, weighting) for part in parts]
        ready = [of_part for of_part in impacts if of_part is not None]
        return cls(searched, weighting, parts, ready) if len(ready) == len(parts) else None

    def bags(self, bags: Bags, k: int, where: Filter | None = None) -> Results:
        """Return the number of results of each topic, and their documents, as ordinals in the index, and scores end to end.

        `k` is at least 1, and at most the number of documents that may be returned.
        """
        topics, parts = len(bags.bounds) - 1, len(self._searched)
        idfs = np.ones(len(bags.weights)) if self._idfs is None else self._idfs(bags.df)
        numbers = np.ascontiguousarray(bags.numbers)
        masks = self._all if where is None else masks_of(self._searched, where, FEW)
        if topics == 1:
            counts, keys = np.empty((1, parts), np.int64), np.empty((1, parts * k), np.uint64)
            terms = bags.bounds, numbers, bags.weights, idfs
            self._loops.find_bags(self._tables, 0, 1, terms, masks, k, counts, keys)
            docs, scores = best(self._tables, counts[0], keys.reshape(parts, k), k)
            return np.array([len(docs)]), docs, scores
        results: list[Results] = []
        step = max(1, MAX_RESULTS // (k * parts))
        for start in range(0, topics, step):
            size = min(step, topics - start)
            counts, keys = np.empty((size, parts), np.int64), np.zeros((size, parts * k), np.uint64)

            def find(first: int, last: int, start: int = start, results: tuple[object, ...] = (counts, keys)) -> None:
                terms = bags.bounds[start:], numbers, bags.weights, idfs
                self._loops.find_bags(self._tables, first, last, terms, masks, k, *results)

            in_ranges(find, size)
            results.append(best_of_topics(self._tables, counts, keys.reshape(size, parts, k), k))
        if len(results) == 1:
            return results[0]
        all_counts, docs, scores = map(np.concatenate, zip(*results, strict=True))
        return all_counts, docs, scores

    def lists(
        self,
        numbers: Int64s,
        df: Int64s,
        weights: Float64s,
        clauses: Sequence[Lists],
        required: tuple[Int64s, Int64s],
        allowed: Sequence[UInt64s],
        docs: Sequence[Int32s],
        k: int,
    ) -> tuple[Int32s, Float32s, int | None]:
        """Return the best documents by the sums of terms and clauses, and the number of all that match, None if unknown.

        Args:
            numbers: As in `Bags`.
            df: As in `Bags`.
            weights: Query weights of the terms, then of the clauses.
            clauses: The clauses of each part.
            required: Which of the terms, and which of the clauses, a document must have.
            allowed: For each part, as in `kernel.search_bag`; empty: all that live.
            docs: The documents of each part that are returned, ascending; without parts: those that have what is required,
                or one of the terms and clauses.
            k: Greatest number of documents, at least 1.
        """
        terms, parts, total, k = numbers.shape[1], len(self._searched), 0, min(k, self._documents)
        idfs = np.ones(terms) if self._idfs is None else self._idfs(df)
        counts, keys = np.empty(parts, np.int64), np.empty((parts, k), np.uint64)
        for part, words in enumerate(allowed):
            candidates = (fixed(docs[part]), True) if docs else (NO_CANDIDATES, False)
            bounds, of_clauses, clause_weights = clauses[part]
            lists = (numbers[part], weights[:terms], idfs), (bounds, of_clauses, fixed(clause_weights), weights[terms:])
            results = counts[part : part + 1], keys[part]
            total += self._loops.find_lists(self._tables[part], *lists, required, words, candidates, k, *results)
        return *best(self._tables, counts, keys, k), total if total >= 0 else None

    def text(self, text: str, k: int, where: Filter | None = None) -> Ranked | None:
        """Return the best documents for a text and their scores; None if the text must be analysed in another way."""
        encoded = self._encode_text(text)
        if encoded is None:
            return None
        if where is None and (self._in_one or k <= SORTED):
            return self._find_in_all(encoded, min(k, self._documents))
        masks = self._all if where is None else masks_of(self._searched, where, FEW)
        hits = self._call(self._loops.find_text, (encoded, masks), k)
        return None if hits is None else hits[:2]

    def _find_in_all(self, text: bytes, k: int) -> Ranked | None:
        """Return the result of `text` without a filter; k is at most the number of documents."""
        if k > SORTED:
            docs, scores, keys = NO_DOCS, NO_SCORES, np.empty(k, np.uint64)
        else:
            docs, scores, keys = np.empty(k, np.int32), np.empty(k, np.float32), NO_KEYS
        while (size := self._loops.find_text_in_all(self._tables, text, k, docs, scores, keys)) < 0:
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

    def _call(self, loop: Any, query: tuple[object, ...], k: int) -> tuple[Int32s, Float32s, int] | None:
        """Return the best documents that a loop finds, their scores and its result; None if it does not support the query."""
        k, parts = min(k, self._documents), len(self._searched)
        if k > SORTED:
            docs, scores = NO_DOCS, NO_SCORES
        else:
            docs, scores = np.empty(k, np.int32), np.empty(k, np.float32)
        keys = NO_KEYS if self._in_one and k <= SORTED else np.empty(parts * k, np.uint64)
        counts = np.empty(parts, np.int64)
        while (total := loop(self._tables, *query, k, (counts, docs, scores, keys))) <= UNKNOWN_IDF and self._learn(total):
            pass
        if total == NOT_SUPPORTED:
            return None
        if k > SORTED:
            if self._in_one:
                return *ranked(keys[: counts.item()], self._order), total
            return *best(self._tables, counts, keys.reshape(parts, k), k), total
        size = int(counts[0]) if k else 0
        return (docs, scores, total) if size == k else (docs[:size], scores[:size], total)

    def terms(self, text: str) -> Int64s | None:
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

    def search(self, query: Group, k: int, where: Filter | None = None) -> tuple[Int32s, Float32s, int | None] | None:
        """Search by a structured query: terms that a document must, may or must not have, or an exact phrase.

        Args:
            query: The query.
            k: Greatest number of documents; 0 only counts.
            where: The documents that may be returned; None: all. There is no search for a phrase among them.

        Returns:
            The best documents, their scores, and the number of matching documents, None if unknown; None for another query.
        """
        must, should, excluded = query.must, query.should, query.must_not
        if query.weight != 1.0:
            return None
        clauses = (*must, *should, *excluded)
        if len(clauses) == 1 and type(clauses[0]) is Phrase and not excluded:
            return self._phrase(clauses[0], k) if where is None else None
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
        if where is None and not excluded and (not should if must else size == 1):
            return self._call(self._loops.find_all, (encoded, size, query_weight), k)
        if not (k and scoring) or (should and not self._weighs_alone):
            return None
        masks = self._all if where is None else masks_of(self._searched, where, FEW)
        sizes = len(must), len(should), len(excluded)
        hits = self._call(self._loops.find_clauses, (encoded, sizes, query_weight, masks), k)
        return hits if hits is None or must else (*hits[:2], None)

    def terms_of_union(self, query: Group) -> Int64s | None:
        """Return the numbers of the terms of a union in each part, -1 where a part lacks one; None for another query."""
        from .direct_tables import find_numbers

        if query.must or query.must_not or not query.should:
            return None
        names = []
        for clause in query.should:
            if type(clause) is not Term or clause.weight != 1.0 or clause.field:
                return None
            names.append(clause.term)
        if (encoded := _encode_terms("\0".join(names), len(names) - 1)) is None:
            return None
        numbers, offsets = np.empty((len(self._tables), len(names)), np.int64), np.empty(len(names), np.int64)
        size = find_numbers(self._tables, np.frombuffer(encoded, np.uint8), offsets, numbers)
        return numbers if size == len(names) else None

    def _phrase(self, phrase: Phrase, k: int) -> tuple[Int32s, Float32s, int] | None:
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


def ranked(keys: UInt64s, order: UInt32s) -> Ranked:
    """Return the documents and scores of sort keys, best first; the keys are sorted in place."""
    keys.sort()
    docs, scores = np.empty(len(keys), dtype=np.int32), np.empty(len(keys), dtype=np.float32)
    best_first(keys[None], np.array([len(keys)]), order, docs, scores)
    return docs, scores


def in_ranges(function: Callable[[int, int], None], count: int) -> None:
    """Call a function with consecutive ranges of `count` topics, in threads."""
    threads = min(thread_count(), count)
    if threads == 1:
        function(0, count)
    else:  # small ranges keep all threads busy until the end
        edges = np.linspace(0, count, min(8 * threads, count) + 1).astype(int).tolist()
        in_threads(function, edges[:-1], edges[1:])


def _arrays(part: Part, impacts: Impacts, idfs: Idfs | None, is_partial: bool) -> Arrays:
    """Return the arrays of a part."""
    (heads, blob, offsets), ids = _FINDING.of(part.lists), part.ids
    arrays: Arrays = {"heads": heads, "blob": blob, "offsets": offsets, "rank": ids.rank, "order": ids.order}
    lists = impacts.postings
    arrays |= dict(zip(LISTS, (*lists[:-1], *lists[-1]), strict=True))
    arrays |= {"row_of": impacts.lists.row_of, "starts": impacts.lists.starts, "ratios": impacts.ratios}
    arrays |= {name: getattr(impacts.bounds, name) for name in BOUNDS} | {"dead": np.zeros(1, np.int64)}
    if idfs is not None:
        arrays["idfs"] = idfs.values
    if (deletions := part.deletions) is not None:
        arrays |= {"dead_terms": deletions.terms.astype(np.int64), "dead_df": deletions.df.astype(np.int64)}
        arrays |= {"living": part.leaf.living, "dead": np.array([deletions.documents])}
    if is_partial:
        arrays["whole_df"] = part.in_whole(np.arange(len(part.df)))
    return arrays


def _phrase_arrays(index: Searchable, weighting: Weighting) -> list[Arrays]:
    """Return the arrays of each part to search phrases; none if the index or the model does not allow it."""
    curves = [saturation_of(weighting, Statistics.of(part)) for part in index.parts]
    if not index.has_positions:
        return []
    arrays: list[Arrays] = []
    for part, curve in zip(index.parts, curves, strict=True):
        rows, offsets, bounds, firsts = part.positions.row_arrays
        if curve is None or curve.sums_idf or offsets.dtype != np.uint32:
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


def _distinct_df(lists: SegmentLists) -> Int64s:
    return np.flatnonzero(np.bincount(lists.df))


_FINDING: LazyAttribute[SegmentLists, Any] = LazyAttribute("finding_arrays", lambda lists: finding_arrays(lists.terms))
_DISTINCT_DF: LazyAttribute[SegmentLists, Int64s] = LazyAttribute("distinct_df", _distinct_df)
_DIRECT: LazyAttribute[Searchable, Cached[Weighting, Any]] = LazyAttribute("direct", lambda searched: Cached(MAX_MODELS))
