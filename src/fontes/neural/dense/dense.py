"""Dense retrieval: documents whose vectors have the greatest inner product with the query's vector."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.arrays import Float32s, Ints
from ...core.errors import ParameterError
from ...core.part import Part
from ...core.registry import provided
from ...core.run import Ranking, Run
from ...core.searches import check_page
from ...core.stage import Stage, topic_of
from ...core.strings import offsets_of
from ...core.values import Doc, Explanation, Topic, Topics, text_of
from ...core.work import Progress, reporter, silent, work
from ...index.columns import Filter, explain_exclusion, filter_of
from ...index.embeddings.vectors import DTYPES
from ...storage.caches import Cached, LazyAttribute
from ..encoders.base import Encoder, document_vectors, encoder_in, unit
from ..models.base import check_fields
from ..results import NO_RESULTS, Best
from ..stored import named_encoder

if TYPE_CHECKING:
    from ...index import Index
    from ...index.embeddings.vectors import JoinedEmbeddings
    from .ann import Searcher
    from .graph import WalkLimits


logger = logging.getLogger("fontes.neural")

CACHED_QUERIES = 50_000  # query vectors cached in memory
SAMPLE = 200  # documents whose first words are the queries for measuring recall
WORDS = 12  # of a document in such a query
DEPTHS = (10, 100)  # at which recall is measured
HYPOTHETICAL = "hypothetical"  # key of a topic's metadata with a "query" and hypothetical "passages" that answer it
VISIT_PARAMETERS = ("ef_search", "nprobe", "search_k")


class Ready(NamedTuple):
    """A prepared search.

    Args:
        embeddings: The documents' vectors.
        searcher: The approximate index; None for exact search.
        allowed: The documents that pass the filter; None without a filter.
        encoder: Text of the encoder, the key of its cached query vectors.
    """

    embeddings: JoinedEmbeddings
    searcher: Searcher | None
    allowed: Filter | None
    encoder: str = ""


def _query_vector_cache(index: Index) -> Cached[tuple[str, str], Float32s]:
    return Cached(CACHED_QUERIES)


_QUERY_VECTORS = LazyAttribute("query_vectors", _query_vector_cache)  # by encoder and text


@dataclass(frozen=True)
class Dense(Stage[Topics, Run], name="dense"):
    """Dense retrieval over the vectors that `index.encode` stored: the inner product of query and document.

    The score of a document with several vectors is the greatest of their products. A topic is searched by its text, rewritten
    or not; a topic without text has no results. A document whose vector is zeros is never retrieved. Topics are encoded one by
    one, so that a topic has the same vector in every batch.

    (Karpukhin et al., EMNLP 2020; Malkov and Yashunin, TPAMI 2020, for HNSW; Jégou et al., TPAMI 2011, for IVF and PQ.)

    Args:
        index: The index with the vectors.
        encoder: Encodes topics and documents; a string is the name under which vectors are stored (`fontes encode --name`), or
            the model of a `SentenceEncoder`.
        algorithm: "flat": exact. Approximate, cached and rescored, with its recall logged: "hnsw", a factory string of
            FAISS such as "IVF256,Flat", or "annoy:1000", Annoy with its number of trees.
        k: Maximum documents per topic.
        ef_search: HNSW's efSearch; greater values are slower and raise recall.
        dtype: Stored vectors to use: "float32", "float16", "int8", "rabitq4", "rabitq2" or "rabitq1". None: the most
            exact ones.
        threads: Search threads, which do not change the run. None: one per processor.
        where: Filter on document metadata. HNSW applies it during the search; another approximate search is repeated until
            it has k documents. The run's provenance lists topics with fewer as "exhausted". None: no filter.
        nprobe: Number of IVF lists visited; greater values are slower and raise recall.
        search_k: Number of Annoy nodes inspected; greater values are slower and raise recall.
        dims: Number of leading dimensions of the vectors that are compared, scaled to length 1 again if the encoder's vectors
            are; they are cut when first used, and kept in memory as float32. None: all.

    Raises:
        ParameterError: When called: the index has no vectors of this encoder, or a parameter is outside its range.
    """

    depth_field = "k"

    index: Index = field(repr=False)
    encoder: Encoder | str = field(metadata={"string": "sentence_encoder"})
    algorithm: str = "flat"
    k: int = field(default=1000, metadata={"least": 1})
    ef_search: int | None = field(default=None, metadata={"least": 1})
    dtype: str | None = field(default=None, metadata={"choices": tuple(DTYPES)})
    threads: int | None = field(default=None, repr=False, metadata={"least": 1})
    where: str | None = None
    nprobe: int | None = field(default=None, kw_only=True, metadata={"least": 1})
    search_k: int | None = field(default=None, kw_only=True, metadata={"least": 1})
    dims: int | None = field(default=None, kw_only=True, metadata={"least": 1})

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, with the encoder of named vectors in place of their name."""
        named = named_encoder(self.index, self.encoder)
        return {**super().params(), **({} if named is self.encoder else {"encoder": named})}

    @property
    def _encoder(self) -> Encoder:
        changes = self.index.vectors.changes
        if changes not in self._encoders:
            self._encoders.clear()
            self._encoders[changes] = encoder_in(self)
        return self._encoders[changes]

    @cached_property
    def _encoders(self) -> dict[int, Encoder]:
        """The encoder, which may be that of named vectors, by the version of the vectors."""
        return {}

    def apply(self, topics: Topics, /) -> Run:
        actors = self.index.actors
        if actors is not None and self.algorithm != "flat":
            raise ParameterError(f"{self!r}: an approximate index is of all vectors; actors search shards only by 'flat'")
        embeddings = self._ready().embeddings
        vectors = self._queries([topic for topic in topics.values() if topic.text.strip()], embeddings)
        if actors is None:
            return self.ranked(topics, vectors)
        run = actors.run(self, "ranked", (topics, vectors))
        return run.with_(provenance={**run.provenance, **self._facts(embeddings)})

    def ranked(self, topics: Topics, vectors: Float32s) -> Run:
        """Return the best documents of each topic; `vectors` has a row for each topic with text."""
        embeddings, searcher, allowed, _ = ready = self._ready()
        with_text = [i for i, topic in enumerate(topics.values()) if topic.text.strip()]
        rankings: list[Best] = [NO_RESULTS] * len(topics)
        for i, ranking in zip(with_text, self._nearest(ready, vectors, self.k), strict=True):
            rankings[i] = ranking
        bounds = offsets_of([len(docs) for docs, _ in rankings])
        docs, scores = (np.concatenate(arrays) for arrays in zip(NO_RESULTS, *rankings, strict=True))
        provenance = {
            **self.index.provenance,
            **self._facts(embeddings),
            **({"approximate": searcher.facts} if searcher else {}),
        }
        if searcher is not None and allowed is not None:
            expected, topic_ids = min(self.k, len(allowed.docs)), list(topics)
            provenance["exhausted"] = [topic_ids[i] for i in with_text if len(rankings[i][0]) < expected]
        return Run(topics, self.index.ids, bounds, docs, scores, documents=self.index, provenance=provenance)

    def _facts(self, embeddings: JoinedEmbeddings) -> dict[str, object]:
        """Provenance of a run: encoder, vectors, and whether the search is exact."""
        meta = embeddings.meta
        return {"encoder": meta["fingerprint"], "vectors": meta["digest"], "exact": self.algorithm == "flat"}

    def best(self, query: str | Topic, k: int = 10, offset: int = 0) -> Ranking:
        """Return the best `k` documents for one query, after the best `offset`, as a Ranking."""
        if self.index.actors is not None:
            return super().best(query, k, offset)
        topic, ready, best = topic_of(query), self._ready(), NO_RESULTS
        depth = check_page(k, offset)
        if depth > self.k:
            depth = min(depth, len(self.index)) if self.has_default_depth else self.k
        if topic.text.strip():
            (best,) = self._nearest(ready, self._topic_vector(topic, ready.embeddings.dim, ready.encoder)[None], depth)
        return Ranking(topic, self.index.ids, *best, self.index).page(offset, partial(self.count, topic))

    def _ready(self) -> Ready:
        """The prepared search, renewed when the index's vectors or the encoder change."""
        key = self.index.vectors.changes, self._encoder.fingerprint
        if key not in self._ready_by_vectors:
            self.check()
            embeddings = self._embeddings()
            searcher = None if self.algorithm == "flat" else self._searcher(embeddings)
            allowed = filter_of(self.index, self.where)
            self._ready_by_vectors.clear()
            self._ready_by_vectors[key] = Ready(embeddings, searcher, allowed, repr(self._encoder))
        return self._ready_by_vectors[key]

    @cached_property
    def _ready_by_vectors(self) -> dict[tuple[int, str], Ready]:
        """The last prepared search, by the version of the vectors and the fingerprint of the encoder."""
        return {}

    def prepare(self) -> None:
        """Encode the documents if the index has no vectors of this encoder, and build the approximate index."""
        self.check()
        try:
            embeddings = self._embeddings()
        except ParameterError:  # no vectors yet
            provided("encode")(self.index, self._encoder, dtype=self.dtype)
            embeddings = self._embeddings()
        if self.algorithm != "flat":
            self._searcher(embeddings)

    def key(self) -> str | None:
        """Text of this stage with all parameters of its encoder; None for an encoder from outside Fontes."""
        encoder = self._encoder
        if not isinstance(encoder, Part) or encoder.key() is None:
            return None
        return f"{self!r} {self.index.fingerprint} {self._embeddings().meta['digest']}"

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """Explain a score: the lengths of the vectors, their cosine, and which of the document's vectors is the nearest."""
        from .vectors import exact

        topic = topic_of(query)
        embeddings = self._embeddings()
        doc = self.index.ordinal(doc_id)
        if (absence := explain_exclusion(self.index, self.where, doc)) is not None:
            return absence
        if not topic.text.strip():
            return Explanation(0.0, "the topic has no text")
        vector = self._queries([topic], embeddings)[0]
        score = float(exact(embeddings, embeddings.coordinates(vector[None])[0], np.array([doc], dtype=np.int32))[0])
        if not np.isfinite(score):
            return Explanation(0.0, "the document's vector is zeros, so it is never retrieved")
        first, last = embeddings.rows(doc, doc + 1)
        rows = embeddings.decoded(slice(first, last)).astype(np.float64)
        best = int(np.argmax(rows @ vector.astype(np.float64)))
        query_length, doc_length = float(np.linalg.norm(vector.astype(np.float64))), float(np.linalg.norm(rows[best]))
        product = query_length * doc_length
        parts = [
            Explanation(query_length, "length of the query's vector"),
            Explanation(doc_length, f"length of the document's vector, {embeddings.dtype}"),
            Explanation(score / product if product else 0.0, "cosine"),
        ]
        if not embeddings.single:
            parts.append(Explanation(best + 1, f"the number of the nearest of the document's {last - first} vectors"))
        return Explanation(score, f"{self!r}: inner product of query and document", tuple(parts))

    def candidate_scores(self, run: Run) -> Float32s:
        """Score the documents of a run by their stored vectors, float32 (rows,); NaN without text, and for vectors of zeros."""
        from .vectors import exact

        embeddings, docs = self._embeddings(), self.index.ordinals_in(run, self._label).astype(np.int32)
        topics, scores = list(run.topics.values()), np.full(run.rows, np.nan, dtype=np.float32)
        scored = [i for i, topic in enumerate(topics) if topic.text.strip() and run.bounds[i] < run.bounds[i + 1]]
        vectors = embeddings.coordinates(self._queries([topics[i] for i in scored], embeddings))
        for i, vector in zip(scored, vectors, strict=True):
            if vector.any():
                rows = slice(run.bounds[i], run.bounds[i + 1])
                scores[rows] = exact(embeddings, vector, docs[rows])
        scores[np.isneginf(scores)] = np.nan
        return scores

    def recall(self) -> dict[str, float]:
        """Recall of this search against exact search at depths 10 and 100: the mean over a sample of queries.

        The queries are the first 12 words of 200 evenly spaced documents.

        Returns:
            Recall, 0 to 1, as "R@10" and "R@100"; 1 for an exact search.
        """
        self.check()
        embeddings = self._embeddings()
        if self.algorithm == "flat":
            return {f"R@{depth}": 1.0 for depth in DEPTHS}
        return self._measure_recall(Ready(embeddings, self._searcher(embeddings), None))

    def check(self) -> None:
        check_fields(self)
        filter_of(self.index, self.where)  # raises for an invalid condition
        self._encoder  # noqa: B018  # raises for anything but an encoder
        self._visit_limit("" if self.algorithm == "flat" else None)
        super().check()

    def _visit_limit(self, parameter: str | None) -> int | None:
        """Value of `ef_search`, `nprobe` or `search_k`; None if unset.

        Raises ParameterError if another of them than `parameter` is set, unless `parameter` is None.
        """
        values = {name: value for name in VISIT_PARAMETERS if (value := getattr(self, name)) is not None}
        for name in values:
            if parameter is not None and name != parameter:
                has = f"has {parameter}, not {name}" if parameter else f"has no {name}"
                raise ParameterError(f"the algorithm {self.algorithm!r} {has}; HNSW has ef_search, IVF nprobe, Annoy search_k")
        return next(iter(values.values()), None)

    def check_needs(self) -> None:
        if self.algorithm != "flat":
            from .ann import check_algorithm

            check_algorithm(self.algorithm)
        super().check_needs()

    def _embeddings(self) -> JoinedEmbeddings:
        encoder = self._encoder
        embeddings = self.index.embeddings(encoder, self.dtype)
        return embeddings if self.dims is None else embeddings.cut(self.dims, encoder.similarity == "cosine")

    def _queries(self, topics: list[Topic], embeddings: JoinedEmbeddings) -> Float32s:
        """Vectors of topics, float32 (topics, dim); raises ParameterError for vectors of a wrong shape."""
        report = reporter()
        vectors, encoder = np.zeros((len(topics), embeddings.dim), np.float32), repr(self._encoder)
        start = time.perf_counter()
        for i, topic in enumerate(topics):
            vectors[i] = self._topic_vector(topic, embeddings.dim, encoder)
            report(Progress("encoding", i + 1, len(topics), time.perf_counter() - start, "topics"))
        return vectors

    def _topic_vector(self, topic: Topic, dim: int, encoder: str) -> Float32s:
        """Vector of a topic's text; with hypothetical passages, the mean of their vectors and the query's (HyDE)."""
        hypothetical = topic.metadata.get(HYPOTHETICAL)
        if not isinstance(hypothetical, Mapping):
            return self._cached_vector(topic.text, dim, encoder)
        with work(progress=silent):
            passages = [self._cut(document_vectors(self._encoder, [Doc("", text)])[0]) for text in hypothetical["passages"]]
        vectors = np.concatenate([self._cached_vector(hypothetical["query"], dim, encoder)[None], *passages])
        return np.asarray(vectors.astype(np.float64).mean(axis=0), dtype=np.float32)

    def _cached_vector(self, text: str, dim: int, encoder: str) -> Float32s:
        """Vector of a text, encoded by itself, since a model's vectors vary with the batch; recent vectors are cached."""
        key = encoder if self.dims is None else f"{encoder} {self.dims}"
        return _QUERY_VECTORS.of(self.index).get((key, text), partial(self._encode_query, text, dim))

    def _encode_query(self, text: str, dim: int) -> Float32s:
        """Encode one text; raises ParameterError for a vector of a wrong shape."""
        encoder = self._encoder
        vector = self._cut(np.asarray(encoder.encode_queries([text]), dtype=np.float32))
        if vector.shape != (1, dim) or not np.isfinite(vector).all():
            raise ParameterError(
                f"{encoder!r} gave a vector of the shape {vector.shape}, or one that is not finite, for the query "
                f"'{text[:40]}'; the index needs {dim} dimensions"
            )
        return np.asarray(vector[0])

    def _cut(self, vectors: Float32s) -> Float32s:
        """The first `dims` dimensions of vectors, of length 1 if those of the encoder are."""
        if self.dims in (None, vectors.shape[1]):
            return vectors
        leading = vectors[:, : self.dims]
        return unit(leading) if self._encoder.similarity == "cosine" else leading

    def _nearest(self, ready: Ready, queries: Float32s, k: int) -> list[Best]:
        """Best `k` documents that pass the filter, with scores, for each query; none for a query of zeros."""
        from .exact import nearest

        embeddings, searcher, allowed, _ = ready
        vectors_per_doc = -(-len(embeddings) // max(1, embeddings.documents))
        count = min(max(2 * k, DEPTHS[-1]) * vectors_per_doc, len(embeddings))
        passing = embeddings.documents if allowed is None else len(allowed.docs)
        score_all = allowed is not None and (passing * vectors_per_doc <= count or self._exact_is_faster(ready, passing, count))
        if searcher is None or not len(embeddings) or score_all:
            mask = None if allowed is None else allowed.mask
            with work(threads=self.threads):
                rankings = nearest(embeddings, queries, k, self.index.ids, mask)
        else:
            if not searcher.filters:
                count = min(count * embeddings.documents // passing, len(embeddings))
            rankings = self._nearest_approximate(ready, queries, k, count)
        return [ranking if np.count_nonzero(query) else NO_RESULTS for query, ranking in zip(queries, rankings, strict=True)]

    def _exact_is_faster(self, ready: Ready, passing: int, count: int) -> bool:
        """Whether scoring the `passing` documents of a filter takes less time than a walk through a graph to `count` of them.

        A walk visits the neighbors of about visits · documents / passing rows, each of which takes as long as two scores.
        """
        from .graph import EF_SEARCH
        from .vectors import RARE

        embeddings, searcher, _, _ = ready
        if searcher is None or not searcher.filters or passing * RARE > embeddings.documents:
            return False
        visits = max(count, self._visit_limit(searcher.parameter) or EF_SEARCH)
        return passing * passing <= 2 * visits * embeddings.documents

    def _nearest_approximate(self, ready: Ready, queries: Float32s, k: int, count: int) -> list[Best]:
        """Best `k` of about `count` approximate neighbors of each query.

        With a filter, queries with fewer than k documents are searched again with twice the rows and visits.
        """
        from .graph import WalkLimits

        embeddings, searcher, allowed, _ = ready
        assert searcher is not None
        visits = self._visit_limit(searcher.parameter)
        rankings, remaining = [NO_RESULTS] * len(queries), list(range(len(queries)))
        rows_allowed = None if allowed is None or not searcher.filters else embeddings.rows_that_pass(allowed.mask)
        while remaining:
            min_count = max(min(k, count), count * k // max(2 * k, DEPTHS[-1]))
            part = queries if len(remaining) == len(queries) else queries[remaining]
            with nullcontext() if searcher.filters and len(part) == 1 else work(threads=self.threads):
                best, complete = self._best_candidates(ready, part, k, WalkLimits(min_count, count, visits, rows_allowed))
            if len(part) == len(queries):
                rankings = best
            else:
                for i, ranking in zip(remaining, best, strict=True):
                    rankings[i] = ranking
            if allowed is None or (count == len(embeddings) and (visits is None or visits >= count)):
                break
            remaining = [
                i
                for i, has_all in zip(remaining, complete, strict=True)
                if len(rankings[i][0]) < k and queries[i].any() and (has_all or rows_allowed is None)
            ]
            count, visits = min(2 * count, len(embeddings)), None if visits is None else 2 * visits
        return rankings

    def _best_candidates(self, ready: Ready, queries: Float32s, k: int, limits: WalkLimits) -> tuple[list[Best], list[bool]]:
        """Best `k` of each query's candidates, and whether it had the full number of candidates."""
        from .vectors import StoredVectors

        embeddings, searcher, _, _ = ready
        assert searcher is not None
        stored = StoredVectors.of(embeddings, self.index.ids) if embeddings.single else None
        if stored is not None and (best := searcher.best(queries, limits, stored, k)) is not None:
            return best
        products, rows = searcher.candidates(queries, limits)
        return self._rescore(ready, queries, products, rows, k), (rows[:, -1] >= 0).tolist()

    def _rescore(self, ready: Ready, queries: Float32s, products: Float32s, rows: Ints, k: int) -> list[Best]:
        """Return the best `k` documents of each query's rows by their exact scores."""
        from .vectors import all_rescored, rescored

        embeddings, searcher, allowed, _ = ready
        assert searcher is not None
        queries = embeddings.coordinates(queries)
        if embeddings.single and (allowed is None or searcher.filters):
            precise = searcher.precise and not embeddings.with_zeros
            return all_rescored(embeddings, queries, rows, k, self.index.ids, products if precise else products[:, :0])
        rankings = []
        for query, query_rows in zip(queries, rows, strict=True):
            docs = query_rows[query_rows >= 0]
            if not embeddings.single:
                docs = np.searchsorted(embeddings.bounds, docs, side="right") - 1
            if allowed is not None:
                docs = docs[allowed.mask[docs]]
            if not embeddings.single:
                docs = np.unique(docs)
            rankings.append(rescored(embeddings, query, docs.astype(np.int32), k, self.index.ids))
        return rankings

    def _searcher(self, embeddings: JoinedEmbeddings) -> Searcher:
        """The approximate index; if it is newly built, its recall is measured and logged."""
        from .ann import searcher

        start = time.perf_counter()

        def measure(built: Searcher) -> dict[str, object]:
            seconds = time.perf_counter() - start
            recall = self.with_(**dict.fromkeys(VISIT_PARAMETERS))._measure_recall(Ready(embeddings, built, None))
            shown = ", ".join(f"{value:.1%} of the exact best {name[2:]}" for name, value in recall.items())
            logger.warning(
                "%s over %d vectors, built in %.1f s, is approximate: it finds %s",
                self.algorithm,
                len(embeddings),
                seconds,
                shown,
            )
            return {"recall": recall, "seconds": round(seconds, 2)}

        with work(threads=self.threads):
            return searcher(embeddings, self.algorithm, measure)

    def _measure_recall(self, ready: Ready) -> dict[str, float]:
        """Recall of a prepared search at each of DEPTHS; see `recall`."""
        count = len(self.index)
        indices = np.unique(np.linspace(0, count - 1, min(SAMPLE, count)).astype(int)) if count else np.zeros(0, int)
        docs = self.index.docs([self.index.ids[int(i)] for i in indices])
        texts = [" ".join(text_of(doc).split()[:WORDS]) for doc in docs]
        queries = self._queries([Topic("", text) for text in texts if text], ready.embeddings)
        recall = {}
        for depth in DEPTHS:
            exact = self._nearest(ready._replace(searcher=None), queries, depth)
            approximate = self._nearest(ready, queries, depth)
            shares = [len(np.intersect1d(a, b)) / len(b) for (a, _), (b, _) in zip(approximate, exact, strict=True) if len(b)]
            recall[f"R@{depth}"] = float(np.mean(shares)) if shares else 1.0
        return recall
