"""Late interaction: MaxSim over the token vectors stored with an index."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import Float32s, Int64s
from ...core.errors import ParameterError
from ...core.run import Run
from ...core.stage import Stage
from ...core.strings import offsets_of
from ...core.values import Doc, Explanation, Topic, Topics
from ...core.work import Progress, reporter, work
from ...index.columns import explain_exclusion, filter_of
from ..models.base import check_fields
from ..stored import named_model
from .colbert import ColBERT, colbert_in
from .encode import encode_late
from .maxsim import best_tokens
from .store import QUERY_BATCH, TOKENS, JoinedTokens, best, scores_of, search_settings, stored_tokens

if TYPE_CHECKING:
    from ...index import Index

DEPTH = 1000
ALGORITHMS = ("centroids", "exhaustive")


@dataclass(frozen=True)
class Late(Stage[Topics, Run], name="late"):
    """Late interaction over the token vectors that `encode_late` stored with the index.

    The score of a document is the sum, over the query's tokens, of the greatest similarity of one of the document's tokens
    (Khattab and Zaharia, SIGIR 2020), computed on the stored vectors. A topic without text has no results.

    Args:
        index: The index with the token vectors.
        colbert: The model; a string is the name under which token vectors are stored (`fontes encode --name`), or a
            checkpoint of `ColBERT`.
        algorithm: "centroids" (PLAID; Santhanam et al., CIKM 2022) is approximate, with its recall measured by
            `encode_late`; "exhaustive" scores every document.
        k: Maximum documents per topic.
        nprobe: Centroids probed for each token of a query. None: 4.
        threshold: Minimum similarity of a centroid to any token of the query, in a first round. None: no such round.
        candidates: Documents left after the first round; estimates of a quarter choose those that get exact scores. None: 2,048
            for k up to 10, else 4 k, at least 4,096. Collections of no more than a quarter are searched exhaustively.
        nbits: Bits per dimension of the stored vectors to use. None: the most.
        threads: Search threads, which do not change the run; None: one per processor.
        where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
            collection. None: no filter.

    Raises:
        ParameterError: When called: the index has no token vectors of this model, or a parameter is outside its range.
    """

    depth_field = "k"

    index: Index = field(repr=False)
    colbert: ColBERT | str = field(metadata={"string": "colbert"})
    algorithm: str = field(default="centroids", metadata={"choices": ALGORITHMS})
    k: int = field(default=DEPTH, metadata={"least": 1})
    nprobe: int | None = field(default=None, metadata={"least": 1})
    threshold: float | None = None
    candidates: int | None = field(default=None, metadata={"least": 4})
    nbits: int | None = None
    threads: int | None = field(default=None, repr=False, metadata={"least": 1})
    where: str | None = None

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, with the model of named token vectors in place of their name."""
        named = named_model(self.index, TOKENS, self.colbert)
        return {**super().params(), **({} if named is self.colbert else {"colbert": named})}

    @property
    def _colbert(self) -> ColBERT:
        return colbert_in(self)

    def apply(self, topics: Topics, /) -> Run:
        self.check()
        actors = self.index.actors
        if actors is not None and self.algorithm != "exhaustive":
            raise ParameterError(f"{self!r}: candidates are chosen among all documents; actors search only by 'exhaustive'")
        store = self._stored()
        queries = self._colbert.encode_queries([topic.text for topic in topics.values() if topic.text.strip()])
        if actors is None:
            return self.ranked(topics, queries)
        run = actors.run(self, "ranked", (topics, queries))
        return run.with_(provenance={**run.provenance, **self._facts(store)})

    def ranked(self, topics: Topics, queries: Sequence[Float32s]) -> Run:
        """Return the best documents of each topic; `queries` has the token vectors of each topic with text."""
        report = reporter()
        store = self._stored()
        searched = [i for i, topic in enumerate(topics.values()) if topic.text.strip()]
        rankings, started = [(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(topics), time.perf_counter()
        for start in range(0, len(searched), QUERY_BATCH):
            part = slice(start, start + QUERY_BATCH)
            for i, ranking in zip(searched[part], self._rankings(store, queries[part]), strict=True):
                rankings[i] = ranking
            done = len(searched[: part.stop])
            report(Progress("searching", done, len(searched), time.perf_counter() - started, "topics"))
        bounds = offsets_of([len(docs) for docs, _ in rankings])
        docs = np.concatenate([np.zeros(0, np.int32), *(docs.astype(np.int32) for docs, _ in rankings)])
        scores = np.concatenate([np.zeros(0, np.float32), *(scores for _, scores in rankings)])
        provenance = {**self.index.provenance, **self._facts(store)}
        return Run(topics, self.index.ids, bounds, docs, scores, documents=self.index, provenance=provenance)

    def _facts(self, store: JoinedTokens) -> dict[str, object]:
        """Provenance of a run: model, bits, and the measured recall of an approximate search."""
        recall = store.meta["recall"] if self.algorithm == "centroids" else None
        return {"colbert": store.meta["fingerprint"], "nbits": store.nbits, "recall": recall}

    def prepare(self) -> None:
        """Encode the documents' tokens, in 4 bits by default, if the index has no token vectors of this model."""
        self.check()
        try:
            self._stored()
        except ParameterError:  # no vectors yet
            encode_late(self.index, self._colbert, nbits=self.nbits)

    def cut(self, k: int) -> Stage[Topics, Run] | None:
        """Cut to `k`, if exhaustive or if an approximate search to `k` has the same settings; else None."""
        same = self.algorithm == "exhaustive" or k >= self.k or self._search_settings(k) == self._search_settings(self.k)
        return super().cut(k) if same else None

    @property
    def _is_cut(self) -> bool:
        return super()._is_cut and self.with_(k=DEPTH).cut(self.k) == self

    def key(self) -> str | None:
        """Text of the stage and its model with all parameters, also those that change queries only."""
        return f"{self!r} {self.index.fingerprint} {self._stored().meta['digest']}"

    def candidate_scores(self, run: Run) -> Float32s:
        """Score the documents of a run by their stored token vectors, float32 (rows,); NaN for a topic without text."""
        report = reporter()
        store, docs = self._stored(), self.index.ordinals_in(run, self._label).astype(np.int64)
        scores, start = np.full(run.rows, np.nan, dtype=np.float32), time.perf_counter()
        for number, topic in enumerate(run.topics.values()):
            rows = slice(run.bounds[number], run.bounds[number + 1])
            if rows.start < rows.stop and topic.text.strip():
                (query,) = self._colbert.encode_queries([topic.text])
                scores[rows] = store.scores(query, docs[rows])
            report(Progress("scoring", number + 1, len(run.topics), time.perf_counter() - start, "topics"))
        scores[np.isneginf(scores)] = np.nan
        return scores

    def recall(self) -> dict[str, Any]:
        """Recall against the exhaustive search at depths 10, 100 and 1,000, as `encode_late` measured it."""
        return dict(self._stored().meta["recall"])

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """Explain a document's score by the tokens of the query; the parts add up to the score."""
        self.check()
        text = query.text if isinstance(query, Topic) else query
        ordinal = self.index.ordinal(doc_id)
        if (absence := explain_exclusion(self.index, self.where, ordinal)) is not None:
            return absence
        vectors, _ = self._stored().vectors(np.array([ordinal]))
        return explained(self._colbert, text, self.index.doc(doc_id), vectors)

    def _stored(self) -> JoinedTokens:
        return stored_tokens(self.index, self._colbert, self.nbits)

    def _rankings(self, store: JoinedTokens, queries: Sequence[Float32s]) -> list[tuple[Int64s, Float32s]]:
        """Best documents of each query, by their ordinals, and their scores."""
        ranks, passing = self.index.ids.rank, filter_of(self.index, self.where)
        allowed = None if passing is None else passing.mask
        store.check_queries(queries)
        with work(threads=self.threads):
            if self.algorithm == "exhaustive":
                docs = np.arange(store.documents) if allowed is None else np.flatnonzero(allowed)
                scored = [(docs, scores) for scores in scores_of(store, queries, docs)]
            else:
                candidates = [store.candidates(query, *self._search_settings(self.k), allowed) for query in queries]
                scored = [(docs, store.scores(query, docs)) for query, docs in zip(queries, candidates, strict=True)]
        orders = [best(docs, scores, ranks, self.k) for docs, scores in scored]
        return [(docs[order], scores[order]) for (docs, scores), order in zip(scored, orders, strict=True)]

    def _search_settings(self, k: int) -> tuple[int, float, int, int]:
        """(nprobe, threshold, candidates, rescored) for the best k documents: this stage's parameters, or the defaults."""
        return search_settings(k, self.nprobe, self.threshold, self.candidates)

    def check(self) -> None:
        check_fields(self)
        filter_of(self.index, self.where)  # raises for an invalid condition
        self._colbert  # noqa: B018  # raises for anything but a ColBERT
        super().check()


def explained(colbert: ColBERT, text: str, doc: Doc, vectors: Float32s) -> Explanation:
    """Explain MaxSim: the document's best token for each token of the query, and their similarity.

    `vectors` are the document's token vectors, float32 (tokens, dim).
    """
    (query,) = colbert.encode_queries([text])
    best_positions, similarities = best_tokens(query, vectors)
    query_tokens, doc_tokens = colbert.query_tokens(text), colbert.document_tokens(doc)
    parts = tuple(
        Explanation(float(value), f"'{token}' is nearest to '{doc_tokens[position]}', token {position + 1} of {len(vectors)}")
        for token, position, value in zip(query_tokens, best_positions.tolist(), similarities, strict=True)
    )
    total = float(np.float32(sum(part.value for part in parts)))
    return Explanation(total, "MaxSim: sum over the tokens of the query", parts)
