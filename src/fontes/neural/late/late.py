"""Late interaction end to end: MaxSim over the token vectors that are stored with an index."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_whole
from ...core.errors import ParameterError
from ...core.progress import Report
from ...core.run import Run
from ...core.stage import Stage
from ...core.values import Doc, Explanation, Topic, Topics
from .colbert import ColBERT
from .maxsim import best_tokens
from .store import TOGETHER, TokenVectors, best, effort, scores_of, stored

if TYPE_CHECKING:
    from ...index import Index

ALGORITHMS = ("centroids", "exhaustive")


@dataclass(frozen=True)
class Late(Stage[Topics, Run], name="late"):
    """Late interaction over the token vectors that `encode_late` stored with the index.

    The score of a document is the sum, over the tokens of the query, of the greatest similarity that one of the document's
    tokens has to it (Khattab and Zaharia, SIGIR 2020), computed on the vectors as they are stored. A topic without text finds
    nothing.

    algorithm    "centroids": documents are found by their tokens' centroids, and those
                 that look best get the exact score (PLAID; Santhanam et al., CIKM 2022); it is approximate, and `encode_late`
                 has measured what it finds. "exhaustive": every document gets its score
    k            how many documents a topic gets at most
    nprobe       how many centroids each token of a query looks into
    threshold    in the first round centroids less similar than this to all tokens of the query do not count
    candidates   how many documents are left after the first round; a quarter of them gets the exact score. None for these
                 three: as ColBERT's own search has them, 1, 0.5 and 256 for k up to 10; 2, 0.45 and 1,024 up to 100; else
                 4, 0.4 and 4 k, at least 4,096. A collection of no more than a quarter of that is searched exhaustively
    nbits        which of several stored vectors; default: those with most bits
    threads      default: as many as the machine has; they do not change the run
    """

    index: Index = field(repr=False)
    colbert: ColBERT
    algorithm: str = "centroids"
    k: int = 1000
    nprobe: int | None = None
    threshold: float | None = None
    candidates: int | None = None
    nbits: int | None = None
    threads: int | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}
        given = [
            f"{name}={value}" for name, value in shown.items() if value is not None and name not in ("colbert", "algorithm")
        ]
        return f"Late({', '.join([repr(self.colbert), self.algorithm, *given])})"

    def apply(self, given: Topics, progress: Report, /) -> Run:
        self._check()
        store = stored(self.index, self.colbert, self.nbits)
        asked = [i for i, topic in enumerate(given.values()) if topic.text.strip()]
        queries = self.colbert.encode_queries([topic.text for topic in given.values() if topic.text.strip()])
        found = [(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(given)
        for first in range(0, len(asked), TOGETHER):
            part = slice(first, first + TOGETHER)
            for i, of_topic in zip(asked[part], self._found(store, queries[part]), strict=True):
                found[i] = of_topic
        bounds = np.array([0, *accumulate(len(docs) for docs, _ in found)], dtype=np.int64)
        docs = np.concatenate([np.zeros(0, np.int32), *(docs.astype(np.int32) for docs, _ in found)])
        scores = np.concatenate([np.zeros(0, np.float32), *(scores for _, scores in found)])
        provenance = {
            "index": str(self.index.path),
            "fingerprint": self.index.fingerprint,
            "colbert": store.meta["fingerprint"],
            "nbits": store.nbits,
            "recall": store.meta["recall"] if self.algorithm == "centroids" else None,
        }
        return Run(given, self.index.ids, bounds, docs, scores, documents=self.index, provenance=provenance)

    def cut(self, k: int) -> Self | None:
        """Only the exhaustive search is sure to find the same with a smaller k."""
        if k >= self.k:
            return self
        return self.with_(k=k) if self.algorithm == "exhaustive" or self._effort(k) == self._effort(self.k) else None

    def key(self) -> str | None:
        """What this stage does; its model by its parameters as well, some of which change queries alone."""
        return f"{self!r} {self.index.fingerprint} {stored(self.index, self.colbert, self.nbits).meta['digest']}"

    def recall(self) -> dict[str, Any]:
        """What `encode_late` measured: for the best 10, 100 and 1,000 documents the share of those of the exhaustive search."""
        return dict(stored(self.index, self.colbert, self.nbits).meta["recall"])

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """The score of the document, token by token of the query. It adds up to the score in the run."""
        self._check()
        text = query.text if isinstance(query, Topic) else query
        place = self.index.ordinal(doc_id)
        vectors, _ = stored(self.index, self.colbert, self.nbits).vectors(np.array([place]))
        return explained(self.colbert, text, self.index.doc(doc_id), vectors)

    def _found(
        self, store: TokenVectors, queries: list[NDArray[np.float32]]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The best documents of some queries, in the one order, and their scores."""
        threads, ranks = self.threads or os.cpu_count() or 1, self.index.ids.rank
        if self.algorithm == "exhaustive":
            docs = np.arange(store.documents)
            scored = [(docs, scores) for scores in scores_of(store, queries, docs, threads)]
        else:
            near = [store.candidates(query, *self._effort(self.k)) for query in queries]
            scored = [(docs, store.scores(query, docs, threads)) for query, docs in zip(queries, near, strict=True)]
        places = [best(docs, scores, ranks, self.k) for docs, scores in scored]
        return [(docs[place], scores[place]) for (docs, scores), place in zip(scored, places, strict=True)]

    def _effort(self, k: int) -> tuple[int, float, int]:
        nprobe, threshold, candidates = effort(k)
        return (
            nprobe if self.nprobe is None else self.nprobe,
            threshold if self.threshold is None else self.threshold,
            candidates if self.candidates is None else self.candidates,
        )

    def _check(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ParameterError(f"algorithm is one of {' and '.join(ALGORITHMS)}, not {self.algorithm!r}")
        for name, least in (("k", 1), ("nprobe", 1), ("candidates", 4)):
            value = getattr(self, name)
            if value is not None:
                check_whole(name, value, least)


def explained(colbert: ColBERT, text: str, doc: Doc, vectors: NDArray[np.float32]) -> Explanation:
    """For each token of the query the best token of the document and their similarity; they add up to the score.

    `vectors` are the token vectors of the document.
    """
    (query,) = colbert.encode_queries([text])
    places, similarities = best_tokens(query, vectors)
    names, of_document = colbert.query_tokens(text), colbert.document_tokens(doc)
    parts = tuple(
        Explanation(float(value), f"'{name}' is nearest to '{of_document[place]}', token {place + 1} of {len(vectors)}")
        for name, place, value in zip(names, places.tolist(), similarities, strict=True)
    )
    total = float(np.float32(sum(part.value for part in parts)))
    return Explanation(total, "MaxSim: sum over the tokens of the query", parts)
