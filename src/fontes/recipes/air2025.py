"""CheckThat! 2025, task 4b: the paper that a post speaks of, by BM25 and a cross-encoder fine-tuned on hard negatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ..core import Run, Stage, Topics
from ..core.checks import check_whole
from ..experiments import Collection
from ..fusion import fuse
from ..neural import CrossEncoder
from ..text import Analyzer
from ..train.pair_settings import settings_of
from .learned import LearningRecipe, Systems
from .learning import Learning
from .origins import AUTHORS_CODE, PUBLISHED

PRESET = "air2025"


@dataclass(frozen=True, repr=False)
class Air2025(LearningRecipe, name="air2025"):
    """The paper that a post speaks of: BM25's best 20, reranked by a cross-encoder that is fine-tuned on hard negatives.

    Posts with the same text are one, and a fifth of the posts is measured, drawn by the seed; of the others the cross-encoder
    learns. A document is title and text. Both sides are NLTK's `word_tokenize`, the case kept. For each post to learn from, the
    first five hits of BM25 with the relevant document among them are five pairs; the training is binary cross-entropy in
    batches of 16, two epochs, and the state of the least validation loss is kept.

    "interpolated" is not in the report: the sum of both scores, from 0 to 1, with weights chosen on the posts to choose with.

    Args:
        analyzer: Of posts and documents.
        variant: Of BM25, as rank_bm25 has it.
        k1: Of BM25.
        b: Of BM25.
        epsilon: Of BM25: the part of the mean idf that terms in more than half of the documents get.
        candidates: How many documents are reranked.
        start: The cross-encoder that is fine-tuned, or an encoder, which gets a new layer for scores.
        reranker: A cross-encoder that is trained already, in place of a training.
        precision: Of the training: "float32", "bfloat16", or "auto", the quicker one.
        batch: Pairs of a step.
        epochs: Of the training.
        lr: The greatest learning rate, which the report does not name.
        test: The share of the posts that is measured, where they are divided here.
        held_out: The share of the posts to learn from that weights are chosen with and the training is validated on.
        seed: Of what is drawn.
    """

    source = (
        "D. Krasniqi, F. Berisha, R. Kastrati, A. Ahmeti and R. Selimi, AIR, a report on CheckThat! 2025, task 4b, 2025; "
        "https://github.com/donkrasniqi/AIR"
    )
    cite = "Krasniqi et al., CheckThat! 2025"
    task = "a claim or post"
    needs = ("fontes[train,nltk]", "cross-encoder/ms-marco-MiniLM-L-6-v2", "NLTK's punkt_tab")
    sample = "harbour/posts"
    measures = ("RR@5", "R@5", "R@20", "nDCG@10")
    baseline = "bm25"
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {"bm25": {"RR@5": 0.5460}, "reranked": {"RR@5": 0.6499}}
    published_on = "2,848 of the 14,240 distinct tweets of training and development, and 7,718 papers"
    without: ClassVar[Mapping[tuple[str, ...], str]] = {
        ("analyzer=standard",): "splits words, and puts them in lower case, without NLTK and its data",
    }

    analyzer: str | Analyzer = field(default="nltk", metadata=PUBLISHED)
    variant: str = field(default="okapi", metadata=PUBLISHED)
    k1: float = field(default=1.5, metadata=AUTHORS_CODE)
    b: float = field(default=0.75, metadata=AUTHORS_CODE)
    epsilon: float = field(default=0.25, metadata=AUTHORS_CODE)
    candidates: int = field(default=20, metadata=PUBLISHED)
    start: str = field(default="cross-encoder/ms-marco-MiniLM-L-6-v2", metadata=PUBLISHED)
    reranker: str | None = None
    precision: str = "auto"
    batch: int = field(default=16, metadata=PUBLISHED)
    epochs: int = field(default=2, metadata=PUBLISHED)
    lr: float = field(default=2e-5, metadata=AUTHORS_CODE)
    test: float = field(default=0.2, metadata=PUBLISHED)

    def learned_systems(self, collection: Collection, learning: Learning) -> Systems:
        index = collection.index(self.analyzer)
        bm25 = index.bm25(variant=self.variant, k1=self.k1, b=self.b, epsilon=self.epsilon)
        first = bm25 % self.candidates
        reranked = first >> CrossEncoder(self._model(first, learning))
        weights = learning.weights("interpolated", (first, reranked), "RR@5")
        interpolated = fuse(first, reranked, method="wsum", weights=weights)
        return {"bm25": first, "reranked": reranked, "interpolated": interpolated}

    def check(self) -> None:
        check_whole("recipe air2025: candidates", self.candidates)
        super().check()

    def _model(self, candidates: Stage[Topics, Run], learning: Learning) -> str:
        """The fine-tuned cross-encoder."""
        if self.reranker is not None:
            return learning.noted("reranker", self.reranker)
        settings = settings_of(
            PRESET, batch=self.batch, epochs=self.epochs, lr=self.lr, precision=self.precision, seed=self.seed
        )
        return learning.cross_encoder("reranker", self.start, candidates, settings, preset=PRESET)
