"""Dense retrieval: documents whose vectors have the greatest inner product with the query's."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_whole
from ...core.errors import ParameterError
from ...core.progress import Report
from ...core.run import Run
from ...core.stage import Stage
from ...core.values import Explanation, Topic, Topics
from ...storage.caches import Attached, Cached
from ..encoders.base import text_of
from .settings import settings_of

if TYPE_CHECKING:
    from ...index import Index
    from ...index.embeddings import Embeddings
    from ..encoders.base import Encoder
    from .ann import Searcher
    from .vectors import Found

logger = logging.getLogger("fontes.neural")

QUERIES = 50_000  # whose vectors are kept in memory at most
SAMPLE = 200  # documents whose first words are the queries that recall is measured with
WORDS = 12
DEPTHS = (10, 100)  # of recall


def _no_vectors(index: Index) -> Cached[tuple[str, str], NDArray[np.float32]]:
    return Cached(QUERIES)


_QUERY_VECTORS = Attached("query_vectors", _no_vectors)  # by encoder and text


@dataclass(frozen=True)
class Dense(Stage[Topics, Run], name="dense"):
    """Dense retrieval over the vectors that `index.encode(encoder)` stored: the inner product of query and document.

    A document with several vectors has the greatest product of them. A topic is searched by its text, a rewritten one too. A
    topic without text finds nothing, and a document whose vector is zeros is not found. Topics are encoded one by one, so that
    a topic has the same vector in every batch.

    algorithm  "flat": exact; the same run for the same vectors whatever the batch, k and
               threads. Or approximate: "hnsw"; a factory string of FAISS, such as "IVF256,Flat" or "OPQ16,IVF64,PQ16"; or
               "annoy:1000", Annoy with its number of trees, for vectors of length 1. An approximate index is built when it is
               first needed, its recall against exact search is measured and logged, and it is kept in the index's cache. It
               finds twice k documents, 100 at least; they get their exact scores, and the best k stay
    k          how many documents a topic gets at most
    effort     of an approximate search: how many lists IVF visits (one in 8, more for a large k), HNSW's efSearch (256, or
               twice k), how many nodes Annoy inspects (trees times twice k); more is slower and finds more
    dtype      which of the stored vectors; default: the most exact ones
    threads    default: as many as the machine has

    (Karpukhin et al., EMNLP 2020; Malkov and Yashunin, TPAMI 2020, for HNSW; Jégou et al., TPAMI 2011, for IVF and PQ.)
    """

    index: Index = field(repr=False)
    encoder: Encoder
    algorithm: str = "flat"
    k: int = 1000
    effort: int | None = None
    dtype: str | None = None
    threads: int | None = field(default=None, repr=False)

    def apply(self, given: Topics, progress: Report, /) -> Run:
        self._check()
        embeddings = self.index.embeddings(self.encoder, self.dtype)
        asked = [i for i, topic in enumerate(given.values()) if topic.text.strip()]
        nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
        found: list[Found] = [nothing] * len(given)
        searcher = None if self.algorithm == "flat" else self._searcher(embeddings)
        vectors = self._queries([topic.text for topic in given.values() if topic.text.strip()], embeddings)
        for i, of_topic in zip(asked, self._nearest(embeddings, searcher, vectors, self.k), strict=True):
            found[i] = of_topic
        bounds = np.array([0, *accumulate(len(docs) for docs, _ in found)], dtype=np.int64)
        docs = np.concatenate([docs for docs, _ in [nothing, *found]])
        scores = np.concatenate([scores for _, scores in [nothing, *found]])
        provenance = {
            "index": str(self.index.path),
            "fingerprint": self.index.fingerprint,
            "encoder": embeddings.meta["fingerprint"],
            "vectors": embeddings.meta["digest"],
            "exact": searcher is None,
            **({"approximate": searcher.facts} if searcher else {}),
        }
        return Run(given, self.index.ids, bounds, docs, scores, documents=self.index, provenance=provenance)

    def cut(self, k: int) -> Self:
        return self if k >= self.k else self.with_(k=k)

    def key(self) -> str | None:
        """What this stage does, with all parameters of its encoder; None for an encoder that is not of Fontes."""
        if settings_of(self.encoder) is None:
            return None
        embeddings = self.index.embeddings(self.encoder, self.dtype)
        return f"{self!r} {self.index.fingerprint} {embeddings.meta['digest']}"

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """The inner product with its nearest facts: the lengths of the vectors, their cosine, which of a document's vectors."""
        from .vectors import exact

        text = query.text if isinstance(query, Topic) else query
        embeddings = self.index.embeddings(self.encoder, self.dtype)
        doc = self.index.ordinal(doc_id)
        if not text.strip():
            return Explanation(0.0, "the topic has no text")
        vector = self._queries([text], embeddings)[0]
        score = float(exact(embeddings, vector, np.array([doc], dtype=np.int32))[0])
        if not np.isfinite(score):
            return Explanation(0.0, "the document's vector is zeros, so it is not found")
        first, last = embeddings.rows(doc, doc + 1)
        rows = embeddings.decoded(slice(first, last)).astype(np.float64)
        best = int(np.argmax(rows @ vector.astype(np.float64)))
        lengths = float(np.linalg.norm(vector.astype(np.float64))), float(np.linalg.norm(rows[best]))
        product = lengths[0] * lengths[1]
        parts = [
            Explanation(lengths[0], "length of the query's vector"),
            Explanation(lengths[1], f"length of the document's vector, {embeddings.dtype}"),
            Explanation(score / product if product else 0.0, "cosine"),
        ]
        if not embeddings.single:
            parts.append(Explanation(best + 1, f"the number of the nearest of the document's {last - first} vectors"))
        return Explanation(score, f"{self!r}: inner product of query and document", tuple(parts))

    def recall(self) -> dict[str, float]:
        """The part of the exact search's best 10 and 100 documents that this search finds; the mean over a sample of queries.

        The queries are the first words of 200 documents (the same ones always). An exact search has 1.
        """
        self._check()
        embeddings = self.index.embeddings(self.encoder, self.dtype)
        if self.algorithm == "flat":
            return {f"R@{depth}": 1.0 for depth in DEPTHS}
        return self._measured(embeddings, self._searcher(embeddings))

    def _check(self) -> None:
        check_whole("k", self.k)
        if self.effort is not None and (not isinstance(self.effort, Integral) or self.effort < 1 or self.algorithm == "flat"):
            raise ParameterError(f"effort is a whole number from 1 up, of an approximate search, not {self.effort!r}")

    def _queries(self, texts: list[str], embeddings: Embeddings) -> NDArray[np.float32]:
        """The vectors of texts. Raises ParameterError where the encoder gives others than it should.

        Each text is encoded by itself, since a model's vectors change with the batch that a text is in; the last ones are kept.
        """
        vectors = np.zeros((len(texts), embeddings.dim), np.float32)
        known, name = _QUERY_VECTORS.of(self.index), repr(self.encoder)
        for row, text in zip(vectors, texts, strict=True):
            row[:] = known.get((name, text), partial(self._query, text, embeddings.dim))
        return vectors

    def _query(self, text: str, dim: int) -> NDArray[np.float32]:
        """The vector of one text. Raises ParameterError where the encoder gives another than it should."""
        vector = np.asarray(self.encoder.encode_queries([text]), dtype=np.float32)
        if vector.shape != (1, dim) or not np.isfinite(vector).all():
            raise ParameterError(
                f"{self.encoder!r} gave a vector of the shape {vector.shape}, or one that is not finite, for the query "
                f"'{text[:40]}'; the index needs {dim} dimensions"
            )
        return np.asarray(vector[0])

    def _nearest(self, embeddings: Embeddings, searcher: Searcher | None, queries: NDArray[np.float32], k: int) -> list[Found]:
        """For each query its best documents and their scores. A query of zeros finds nothing."""
        from .vectors import nearest, rescored

        if searcher is None or not len(embeddings):
            found = nearest(embeddings, queries, k, self.index.ids, self.threads)
        else:
            several = -(-len(embeddings) // embeddings.documents)
            count = min(max(2 * k, DEPTHS[-1]) * several, len(embeddings))
            found = []
            for query, rows in zip(queries, searcher.candidates(queries, count, self.effort, self.threads), strict=True):
                rows = rows[rows >= 0]
                docs = rows if embeddings.single else np.searchsorted(embeddings.bounds, rows, side="right") - 1
                found.append(rescored(embeddings, query, np.unique(docs).astype(np.int32), k, self.index.ids))
        nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
        return [of_query if query.any() else nothing for query, of_query in zip(queries, found, strict=True)]

    def _searcher(self, embeddings: Embeddings) -> Searcher:
        """The approximate index; where it is built now, its recall is measured and logged."""
        from .ann import searcher

        start = time.perf_counter()

        def measure(built: Searcher) -> dict[str, Any]:
            seconds = time.perf_counter() - start
            recall = self.with_(effort=None)._measured(embeddings, built)
            shown = ", ".join(f"{value:.1%} of the exact best {name[2:]}" for name, value in recall.items())
            logger.warning(
                "%s over %d vectors, built in %.1f s, is approximate: it finds %s",
                self.algorithm,
                len(embeddings),
                seconds,
                shown,
            )
            return {"recall": recall, "seconds": round(seconds, 2)}

        return searcher(embeddings, self.algorithm, self.index.cache_of(embeddings), measure)

    def _measured(self, embeddings: Embeddings, searcher: Searcher) -> dict[str, float]:
        count = len(self.index)
        places = np.unique(np.linspace(0, count - 1, min(SAMPLE, count)).astype(int)) if count else np.zeros(0, int)
        docs = self.index.docs([self.index.ids[int(place)] for place in places])
        texts = [" ".join(text_of(doc).split()[:WORDS]) for doc in docs]
        queries = self._queries([text for text in texts if text], embeddings)
        result = {}
        for depth in DEPTHS:
            expected = self._nearest(embeddings, None, queries, depth)
            found = self._nearest(embeddings, searcher, queries, depth)
            parts = [len(np.intersect1d(a, b)) / len(b) for (a, _), (b, _) in zip(found, expected, strict=True) if len(b)]
            result[f"R@{depth}"] = float(np.mean(parts)) if parts else 1.0
        return result

    def __repr__(self) -> str:
        others = {"effort": self.effort, "dtype": self.dtype, "k": self.k}
        shown = [f"{name}={value}" for name, value in others.items() if value is not None]
        return f"Dense({self.encoder!r}, {', '.join([self.algorithm, *shown])})"
