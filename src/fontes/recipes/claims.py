"""Sources of claims and posts: plain posts, tuned BM25, a trained encoder, learned sparse terms, a trained reranker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from ..core import ParameterError, Qrels, Run, Stage, Topics
from ..core.checks import check_whole
from ..experiments import Collection
from ..fusion import fuse
from ..neural import CrossEncoder, SentenceEncoder
from ..rewrite import AsTyped
from ..text import Analyzer
from ..train import BiEncoderSettings, CrossEncoderSettings, Side, split
from .base import LearningRecipe, Systems
from .learning import RecipeTraining
from .result import RecipeResult

if TYPE_CHECKING:
    from ..index_methods import Index

MEASURE = "RR@5"
NO_DROPOUT: dict[str, Any] = {"dropout": 0.0}
ENCODER = BiEncoderSettings(batch=32, mini_batch=None, lr=5e-5, epochs=3, **NO_DROPOUT)
RERANKER = CrossEncoderSettings(loss="lambda", batch=4, lr=1e-4, epochs=1, evaluations=1, **NO_DROPOUT)


@dataclass(frozen=True, repr=False)
class Claims(LearningRecipe, name="claims"):
    """Finds the source of a claim or post by BM25, a trained encoder and learned sparse terms, summed and reranked.

    Posts become plain sentences. BM25's k1 and b are chosen on the training and dev topics. The encoder and the reranker learn
    from negatives among the hits of BM25 and the starting encoder, without near duplicates of relevant documents: the encoder
    by multiple negatives, the reranker by a list-wise loss. The weights of the sum and of the reranker, and whether models read
    plain or original posts, are chosen on the dev topics. If the recipe divides the topics itself, near duplicates are left
    out.

    Args:
        analyzer: Analyzer of BM25.
        posts: Stage that turns topics into plain sentences; None leaves them unchanged.
        k1: Values of BM25's k1 to try, separated by spaces.
        b: Values of b to try.
        depth: Number of documents per retriever.
        candidates: Number of documents reranked.
        start: Encoder from which both trainings start.
        encoder: Trained sentence encoder to use instead of training.
        sparse: Learned sparse model; None: none.
        reranker: Trained cross-encoder to use instead of training.
        precision: Training precision: "float32", "bfloat16", or "auto", the faster one.
        test: Share of the topics that is measured, if the recipe divides them.
        held_out: Share of the training topics used to choose weights and validate.
        seed: Random seed.
    """

    source = "Fontes; the parts are those of its guide to claims"
    cite = "Fontes"
    task = "a claim or post"
    needs = ("fontes[train]", "sentence-transformers/all-MiniLM-L6-v2")
    sample = "harbour/posts"
    measures = (MEASURE, "R@5", "R@20", "nDCG@10")
    baseline = "claims"
    chooses = True

    analyzer: str | Analyzer = "english"
    posts: str | Stage[Topics, Topics] | None = "plain_posts()"
    k1: str = "0.6 0.9 1.2 1.5 2"
    b: str = "0.2 0.4 0.6 0.75 0.9"
    depth: int = 1000
    candidates: int = 20
    start: str = "sentence-transformers/all-MiniLM-L6-v2"
    encoder: str | None = None
    sparse: str | None = None
    reranker: str | None = None
    precision: str = "auto"

    def learned_systems(self, collection: Collection, learning: RecipeTraining) -> Systems:
        index = collection.index(self.analyzer)
        bm25 = index.bm25(k=self.depth)
        tuned = self._tune(bm25, learning)
        # The reranker reads the texts of the first of these, the plain posts.
        retrievers = {"tuned": tuned, **self._dense_systems(index, learning)}
        stages = tuple(retrievers.values())
        fused = fuse(*stages, method="wsum", weights=learning.weights("fused", stages, MEASURE))
        first = fused % self.candidates
        reranked = self._rerank(first, CrossEncoder(self._reranker(index, learning)), learning)
        weights = learning.weights("claims", (first, reranked), MEASURE)
        claims = fuse(first, reranked, method="wsum", weights=weights)
        return {"bm25": bm25, **retrievers, "fused": fused, "reranked": reranked, "claims": claims}

    def analysis(self, result: RecipeResult) -> list[str]:
        return result.errors_of_reranking({"reranked": "fused", "claims": "fused"})

    def halves(self, topics: Topics, qrels: Qrels) -> tuple[Side, Side]:
        sides = split(topics, qrels, self.test, seed=self.seed)
        return sides.train, sides.test

    def as_model_input(self, topics: Topics) -> Topics:
        posts = self.stage("posts")
        return topics if posts is None else posts(topics)

    def check(self) -> None:
        for name in ("depth", "candidates"):
            check_whole(f"recipe claims: {name}", getattr(self, name))
        for name in ("k1", "b"):
            list(_numbers(name, getattr(self, name)))
        super().check()

    def _tune(self, bm25: Stage[Topics, Run], learning: RecipeTraining) -> Stage[Topics, Run]:
        default = bm25.params()["k1"], bm25.params()["b"]
        pairs = sorted(product(_numbers("k1", self.k1), _numbers("b", self.b)), key=lambda pair: pair != default)
        grid = {f"k1 {k1:g}, b {b:g}": self._plain(bm25.with_(k1=k1, b=b)) for k1, b in pairs}  # ties go to the default
        return grid[learning.best("tuned", grid, MEASURE, (learning.train, learning.dev))]

    def _dense_systems(self, index: Index, learning: RecipeTraining) -> Systems:
        dense = index.dense(SentenceEncoder(self._encoder(index, learning)), k=self.depth)
        systems: Systems = {"dense": dense}
        if self.sparse is not None:
            systems["sparse"] = index.splade(learning.note_model("sparse", self.sparse), k=self.depth)
        if self.posts is None:
            return systems
        readings = {name: {"plain": self._plain(stage), "as they are": stage} for name, stage in systems.items()}
        return {name: variants[learning.best(name, variants, MEASURE, (learning.dev,))] for name, variants in readings.items()}

    def _rerank(self, first: Stage[Topics, Run], reranker: CrossEncoder, learning: RecipeTraining) -> Stage[Topics, Run]:
        if self.posts is None:
            return first >> reranker
        readings = {"plain": first >> reranker, "as they are": first >> AsTyped() >> reranker}
        return readings[learning.best("reranked", readings, MEASURE, (learning.dev,))]

    def _plain(self, stage: Stage[Topics, Run]) -> Stage[Topics, Run]:
        posts = self.stage("posts")
        return stage if posts is None else posts >> stage

    def _candidates(self, index: Index) -> Stage[Topics, Run]:
        """Return the stage from whose results negatives are drawn: BM25 and the encoder before training."""
        retrievers = self._plain(index.bm25(k=self.depth)), self._plain(index.dense(SentenceEncoder(self.start), k=self.depth))
        return fuse(*retrievers, method="wsum", weights=(0.5, 0.5)) % 100

    def _encoder(self, index: Index, learning: RecipeTraining) -> str:
        settings = ENCODER.with_(precision=self.precision, seed=self.seed)
        mining: dict[str, object] = {"per_positive": 1, "ranks": (1, 20), "sampling": "random", "seed": self.seed}
        return learning.model("encoder", self.start, self._candidates(index), settings, self.encoder, **mining)

    def _reranker(self, index: Index, learning: RecipeTraining) -> str:
        settings = RERANKER.with_(precision=self.precision, seed=self.seed)
        mining: dict[str, object] = {"per_positive": 4, "ranks": (1, 30), "sampling": "random", "seed": self.seed}
        return learning.model("reranker", self.start, self._candidates(index), settings, self.reranker, **mining)


def _numbers(name: str, text: str) -> Iterator[float]:
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        values = []
    if not values:
        raise ParameterError(f"recipe claims: {name} must be numbers divided by spaces, such as '0.9 1.2', not {text!r}")
    yield from values
