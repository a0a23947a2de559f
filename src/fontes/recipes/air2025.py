"""CheckThat! 2025, task 4b: the paper that a post mentions, by BM25 and a cross-encoder fine-tuned on hard negatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ..core import InputError, ParameterError, Qrels, Run, Stage, Topics
from ..core.checks import check_whole
from ..experiments import Collection
from ..fusion import fuse
from ..neural import CrossEncoder, SentenceEncoder
from ..neural.models.hub import library
from ..text import Analyzer
from ..train import CrossEncoderSettings, Side
from .base import AUTHORS_CODE, PUBLISHED, LearningRecipe, Need, Systems
from .learning import RecipeTraining
from .result import RecipeResult

DRAWS = ("numpy", "sklearn")
ONE_TO_ONE: Mapping[str, object] = {"epochs": 1, "warm_up": 100, "weight_decay": 0.01, "order": "shuffled", "best": "last"}
AS_RUN: Mapping[str, object] = {
    "draw": "sklearn",
    "seed": 42,
    "held_out": 0.0,
    "warm_up": 10_000.0,
    "weight_decay": 0.01,
    "order": "shuffled",
    "best": "last",
    "precision": "float32",
}
ENCODERS = {  # parameter, model, RR@5, RR@1 and RR@10 of the README
    "e5_large": ("intfloat/e5-large-v2", 0.6394, 0.5771, 0.6461),
    "e5_base": ("intfloat/e5-base-v2", 0.5994, 0.5400, 0.6071),
    "minilm": ("sentence-transformers/all-MiniLM-L6-v2", 0.4897, 0.4157, 0.4994),
    "distilbert": ("sentence-transformers/msmarco-distilbert-base-v4", 0.4280, 0.3650, 0.4344),
    "minilm_l12": ("sentence-transformers/msmarco-MiniLM-L-12-v3", 0.4126, 0.3479, 0.4218),
}


def row_of(parameter: str) -> str:
    """Return the name of the row of a model parameter."""
    return parameter.replace("_", "-")


@dataclass(frozen=True, repr=False)
class Air2025(LearningRecipe, name="air2025"):
    """Finds the paper that a post mentions: BM25's best 20, reranked by a cross-encoder fine-tuned on hard negatives.

    Posts with equal text are merged. A fifth of them, drawn by the seed, is measured; the cross-encoder learns from the rest. A
    document is title and text; both sides are tokenized by NLTK's `word_tokenize`, case kept. Each training post gives five
    pairs: the first five hits of BM25, the relevant document among them. Training is binary cross-entropy, batches of 16, two
    epochs; the state with the least validation loss is kept.

    "as=run" is the authors' notebook: scikit-learn divides the posts with `random_state=42`; all 11,392 posts are learned from;
    warm-up lasts 10,000 steps, of which training has 7,120; weight decay, shuffled batches, last state. "as=all" adds their
    other systems: a second reranker, trained on one negative per post, and five encoders without training. Their README
    measures these encoders on the development posts, not on the fifth.

    "interpolated" is not in the report: the sum of both scores scaled to 0 to 1, with weights chosen on the held-out posts.
    Without such posts the row is left out. With `dense`, "hybrid" is the sum of BM25 and an encoder, with weights chosen
    likewise or else .5 each, and "reranked-hybrid" its best documents in the reranker's order. recipe.md counts the posts whose
    paper is not among the candidates, is ranked down, or is tied.

    Args:
        analyzer: Analyzer of posts and documents.
        variant: BM25 variant, as in rank_bm25.
        k1: BM25 parameter.
        b: BM25 parameter.
        epsilon: BM25 parameter: the part of the mean idf given to terms in more than half of the documents.
        candidates: Number of documents reranked.
        start: Cross-encoder to fine-tune, or an encoder, which gets a new scoring layer.
        reranker: Trained cross-encoder to use instead of training.
        negatives: Negatives per post: of the first hits, this number plus one, the relevant document takes the last place if
            missing.
        guard: Whether to leave out negatives that duplicate the relevant document, which the report does not.
        dense: Encoder of the rows "hybrid" and "reranked-hybrid", a folder or a name on the hub; None: no such rows.
        precision: Training precision: "float32", "bfloat16", or "auto", the faster one.
        batch: Pairs per step.
        epochs: Training epochs.
        lr: Peak learning rate, which the report does not state.
        warm_up: Warm-up steps: a share of all, below 1, or a number.
        weight_decay: Weight decay of AdamW.
        order: Order of the pairs: "length", batches of similar length, or "shuffled".
        best: State to keep: the least validation "loss", the greatest value of a measure, or the "last".
        start_1to1: Cross-encoder of the row "reranked-1to1", trained on the first non-relevant hit for one epoch with 100
            warm-up steps; None: no such row.
        reranker_1to1: Trained cross-encoder of this row, to use instead of training.
        candidates_1to1: Number of documents it reranks.
        e5_large: Encoder of the row "e5-large", a folder or a name on the hub; None: no such row.
        e5_base: Likewise.
        minilm: Likewise.
        distilbert: Likewise.
        minilm_l12: Likewise.
        draw: How posts are divided: "numpy", or "sklearn": `train_test_split` of the distinct posts in order.
        test: Share of the posts that is measured, if the recipe divides them.
        held_out: Share of the training posts used to choose weights and validate; 0: none.
        seed: Random seed.
    """

    source = (
        "D. Krasniqi, F. Berisha, R. Kastrati, A. Ahmeti and R. Selimi, AIR, a report on CheckThat! 2025, task 4b, 2025; "
        "https://github.com/donkrasniqi/AIR"
    )
    cite = "Krasniqi et al., CheckThat! 2025"
    task = "a claim or post"
    needs = ("fontes[train,nltk]", "cross-encoder/ms-marco-MiniLM-L-6-v2", "NLTK's punkt_tab")
    sample = "harbour/posts"
    measures = ("RR@5", "R@5", "R@20", "nDCG@10", "RR@1", "RR@10")
    printed = ("RR@5", "R@5", "R@20", "nDCG@10")
    baseline = "bm25"
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {
        "bm25": {"RR@5": 0.5460},
        "reranked": {"RR@5": 0.6499},
        "reranked-1to1": {"RR@5": 0.6352},
        **{row_of(name): {"RR@5": at5, "RR@1": at1, "RR@10": at10} for name, (_, at5, at1, at10) in ENCODERS.items()},
    }
    published_on = (
        "2,848 of the 14,240 distinct tweets of training and development, and 7,718 papers; the encoders on the 1,400 tweets "
        "of development"
    )
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "report": {},
        "run": AS_RUN,
        "all": {
            **AS_RUN,
            "start_1to1": "cross-encoder/ms-marco-MiniLM-L-12-v2",
            **{name: model for name, (model, *_) in ENCODERS.items()},
        },
    }
    analyzer: str | Analyzer = field(default="nltk", metadata=PUBLISHED)
    variant: str = field(default="okapi", metadata=PUBLISHED)
    k1: float = field(default=1.5, metadata=AUTHORS_CODE)
    b: float = field(default=0.75, metadata=AUTHORS_CODE)
    epsilon: float = field(default=0.25, metadata=AUTHORS_CODE)
    candidates: int = field(default=20, metadata=PUBLISHED)
    start: str = field(default="cross-encoder/ms-marco-MiniLM-L-6-v2", metadata=PUBLISHED)
    reranker: str | None = None
    negatives: int = field(default=4, metadata=PUBLISHED)
    guard: bool = field(default=False, metadata=AUTHORS_CODE)
    dense: str | None = None
    precision: str = "auto"
    batch: int = field(default=16, metadata=PUBLISHED)
    epochs: int = field(default=2, metadata=PUBLISHED)
    lr: float = field(default=2e-5, metadata=AUTHORS_CODE)
    warm_up: float = 0.1
    weight_decay: float = 0.0
    order: str = "length"
    best: str = field(default="loss", metadata=PUBLISHED)
    start_1to1: str | None = None
    reranker_1to1: str | None = None
    candidates_1to1: int = field(default=50, metadata=PUBLISHED)
    e5_large: str | None = None
    e5_base: str | None = None
    minilm: str | None = None
    distilbert: str | None = None
    minilm_l12: str | None = None
    draw: str = "numpy"
    test: float = field(default=0.2, metadata=PUBLISHED)

    def learned_systems(self, collection: Collection, learning: RecipeTraining) -> Systems:
        index = collection.index(self.analyzer)
        bm25 = index.bm25(variant=self.variant, k1=self.k1, b=self.b, epsilon=self.epsilon)
        first = bm25 % self.candidates
        reranker = CrossEncoder(self._reranker(first, learning))
        reranked = first >> reranker
        systems: Systems = {"bm25": first, "reranked": reranked}
        if learning.chooses:
            weights = learning.weights("interpolated", (first, reranked), "RR@5")
            systems["interpolated"] = fuse(first, reranked, method="wsum", weights=weights)
        if self.dense is not None:
            pair = bm25, index.dense(SentenceEncoder(learning.note_model("hybrid", self.dense)))
            weights = learning.weights("hybrid", pair, "RR@5") if learning.chooses else (0.5, 0.5)
            hybrid = fuse(*pair, method="wsum", weights=weights) % self.candidates
            systems |= {"hybrid": hybrid, "reranked-hybrid": hybrid >> reranker}
        if self.start_1to1 is not None or self.reranker_1to1 is not None:
            systems["reranked-1to1"] = bm25 % self.candidates_1to1 >> CrossEncoder(self._reranker_1to1(first, learning))
        for name in ENCODERS:
            if (model := getattr(self, name)) is not None:
                encoder = SentenceEncoder(learning.note_model(row_of(name), model), query_prompt="", document_prompt="")
                systems[row_of(name)] = index.dense(encoder, k=self.candidates)
        return systems

    def analysis(self, result: RecipeResult) -> list[str]:
        before = {"reranked": "bm25", "interpolated": "bm25", "reranked-hybrid": "hybrid"}
        return result.errors_of_reranking(before)

    def halves(self, topics: Topics, qrels: Qrels) -> tuple[Side, Side]:
        if self.draw == "numpy":
            return super().halves(topics, qrels)
        # As pandas' drop_duplicates: the first post of each text, with only its own judgments.
        first = {topic.text: topic.id for topic in reversed(list(topics.values())) if topic.id in qrels}
        ids = [topic.id for topic in topics.values() if first.get(topic.text) == topic.id]
        selection = library("sklearn.model_selection", "recipe air2025 with draw=sklearn", "train")
        try:
            drawn = selection.train_test_split(ids, test_size=self.test, random_state=self.seed)
        except ValueError:
            raise InputError(f"{len(ids)} judged topics are too few to learn from some and measure with others") from None
        learned, measured = (Side(topics, qrels).only(set(half)) for half in drawn)
        return learned, measured

    def requirements(self, topics: Topics | None) -> Iterator[Need]:
        without = "-s analyzer=standard splits words, and puts them in lower case, without NLTK and its data"
        yield Need(lambda: Analyzer.of(self.analyzer)("a"), without)

    def check(self) -> None:
        for name in ("candidates", "negatives", "candidates_1to1"):
            check_whole(f"recipe air2025: {name}", getattr(self, name))
        if self.draw not in DRAWS:
            raise ParameterError(f"recipe air2025: draw must be {' or '.join(DRAWS)}, not '{self.draw}'")
        self._settings()
        super().check()

    def _settings(self) -> CrossEncoderSettings:
        names = ("precision", "batch", "epochs", "lr", "warm_up", "weight_decay", "order", "best", "seed")
        return CrossEncoderSettings(held_out=0.0, **{name: getattr(self, name) for name in names})

    def _reranker(self, candidates: Stage[Topics, Run], learning: RecipeTraining) -> str:
        ranks = 1, self.candidates if self.guard else self.negatives + 1  # the next hits replace duplicates
        mining = {"per_positive": self.negatives, "ranks": ranks, "gold_last": True, "guard_duplicates": self.guard}
        return learning.model("reranker", self.start, candidates, self._settings(), self.reranker, **mining)

    def _reranker_1to1(self, candidates: Stage[Topics, Run], learning: RecipeTraining) -> str:
        start, settings = self.start_1to1 or "", self._settings().with_(**ONE_TO_ONE)
        mining = {"per_positive": 1, "ranks": (1, self.candidates), "guard_duplicates": self.guard}
        return learning.model("reranker-1to1", start, candidates, settings, self.reranker_1to1, **mining)
