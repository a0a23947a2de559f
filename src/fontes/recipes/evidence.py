"""Fact-checking: evidence for or against a claim by lexical, dense and hybrid retrieval, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ..core import ParameterError, Qrels, Run, Stage, Topics
from ..core.checks import check_whole
from ..experiments import Collection
from ..fusion import fuse
from ..passages import to_documents
from ..train.runner.running import check_training
from .base import Division, Recipe
from .evidence_parts import (
    LANGUAGES,
    EvidenceRows,
    analyzers_of,
    in_windows,
    of_sentences,
    of_tokens,
    reranker_of,
    settings_of,
    starts_of,
    whole,
    with_prompts,
)
from .learned import check_apart, measured_apart
from .learning import NOBODY, RecipeTraining, side_of

if TYPE_CHECKING:
    from ..neural import ColBERT, Encoder, Reranker, Splade

DEPTHS = (1, 5, 10, 20)


@dataclass(frozen=True, repr=False)
class Evidence(Recipe, name="evidence"):
    """Evidence for or against a claim: words, stems, lemmas and n-grams, encoders of whole documents and of paragraphs.

    Each row of the table is a retriever. Lexical rows need only an analyzer. Dense rows need weights, a model's name or folder,
    such as `fontes train` makes. Nothing is downloaded: a row without weights is left out, and the page says what it needs. The
    page also describes each model and how much it learned from.

    Two-tower encoders read whole documents, up to 2,048 tokens, or windows of 150 words. mBERT and ColBERT read paragraphs; a
    document scores as its best paragraph. "hybrid" fuses BM25 with the first available of `trained`, `e5` and `encoder`, by
    reciprocal ranks or with weights chosen on `dev`. "reranked" reranks its best documents.

    With `train`, `nystromformer`, `longformer`, `reformer` and `mbert` are trained on these claims unless they are already
    retrieval models, and `trained`, if None, is trained from `encoder`: by multiple negatives, each claim with one non-evidence
    document among BM25's best 20. Without `train` such a row says that it is not trained.

    Args:
        language: "english" or "czech": which stems and lemmas there are.
        spacy: spaCy pipeline for lemmas; "auto": the small one of the language; None: no such row.
        k1: BM25 parameter of the row bm25-formula (textbook BM25), and of Lucene's BM25 without `train`. With `train`, Lucene's
            k1, b and k3 are chosen on it.
        b: BM25 parameter, likewise.
        k3: Parameter of the row bm25-formula: the query part is (k3 + 1) qtf / (k3 + qtf).
        nystromformer: Encoder of whole documents, like the next four: a name, a folder or an encoder; None: no row.
        longformer: Another.
        performer: A BERT, run with the Performer's attention.
        reformer: Another.
        windows: Sentence encoder over windows of 150 words.
        passages: Passage splitter for the next two: paragraphs of 230 words.
        mbert: Encoder of paragraphs, such as one trained from mBERT.
        colbert: Late-interaction model for paragraphs, or any encoder, whose token vectors are used.
        e5: Sentence encoder with E5's prompts.
        encoder: Sentence encoder.
        trained: Another; None: with `train`, `encoder` after training.
        splade: Learned sparse encoder.
        reranker: Cross-encoder, or a reranker.
        reread: Number of documents reranked per claim.
        epochs: Epochs of each training.
        batch: Claims per step.
        lr: Peak learning rate.
        precision: Training precision: "float32", "bfloat16", or "auto", the faster one.
        seed: Random seed.
    """

    source = (
        "After H. Ullrich, J. Drchal, M. Rýpar, H. Vincourová and V. Moravec, CsFEVER and CTKFacts: acquiring Czech data for "
        "fact verification, Language Resources and Evaluation 57, 2023; https://arxiv.org/abs/2201.11115"
    )
    cite = "after Ullrich et al., LREV 2023"
    task = "a claim to check"
    needs = ("fontes[neural,simplemma,spacy]", "models of your choice, or none")
    sample = "harbour/claims"
    measures = tuple(f"{name}@{k}" for name in ("R", "RR", "SetP", "SetF", "Complete") for k in DEPTHS)
    printed = ("R@10", "RR@10", "SetP@5", "SetF@5", "Complete@10")
    baseline = "bm25-pyserini"
    published: ClassVar[Mapping[str, Mapping[str, float]]] = {}

    language: str = "english"
    spacy: str | None = "auto"
    k1: float = 1.2
    b: float = 0.75
    k3: float | None = 1.2
    nystromformer: str | Encoder | None = "uw-madison/nystromformer-2048"
    longformer: str | Encoder | None = None
    performer: str | Encoder | None = None
    reformer: str | Encoder | None = None
    windows: str | Encoder | None = None
    passages: str | Stage[Run, Run] = "passages(words=230, stride=230)"
    mbert: str | Encoder | None = "google-bert/bert-base-multilingual-cased"
    colbert: str | ColBERT | None = "colbert-ir/colbertv2.0"
    e5: str | Encoder | None = "intfloat/multilingual-e5-small"
    encoder: str | Encoder | None = "sentence-transformers/all-MiniLM-L6-v2"
    trained: str | Encoder | None = None
    splade: str | Splade | None = None
    reranker: str | Reranker | None = "cross-encoder/ms-marco-MiniLM-L6-v2"
    reread: int = 50
    epochs: int = 3
    batch: int = 32
    lr: float = 5e-5
    precision: str = "auto"
    seed: int = 0

    def systems(self, collection: Collection) -> dict[str, Stage[Topics, Run]]:
        return self._table(collection, RecipeTraining())

    def systems_with(self, learning: RecipeTraining | None) -> Callable[[Collection], dict[str, Stage[Topics, Run]]]:
        return partial(self._table, learning=learning or RecipeTraining())

    def divided(self, topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None) -> Division:
        if train is None and dev is None:
            return topics, qrels, RecipeTraining()
        if train is not None and starts_of(self):
            check_training("training an encoder")
        check_apart({"measure with": qrels or (), "learn from": train or (), "choose with": dev or ()})
        learned, chosen = (NOBODY if one is None else side_of(topics, one, one) for one in (train, dev))
        return *measured_apart(topics, qrels, {*(train or ()), *(dev or ())}), RecipeTraining(learned, chosen)

    def check(self) -> None:
        if self.language not in LANGUAGES:
            raise ParameterError(f"recipe evidence: there is no language '{self.language}'; there are {', '.join(LANGUAGES)}")
        check_whole("recipe evidence: reread", self.reread)
        settings_of(self)

    def _table(self, collection: Collection, learning: RecipeTraining) -> dict[str, Stage[Topics, Run]]:
        """Rows by name whose requirements are met."""
        rows = EvidenceRows(self, learning)
        index = collection.index(self.language)

        # Words.
        rows["tfidf"] = index.tfidf()
        rows["bm25-pyserini"] = collection.index("english").bm25(lengths="lucene")
        for name, analyzer in analyzers_of(self.language, self.spacy).items():
            rows.with_analyzer(f"bm25-{name}", analyzer, lambda analyzer: collection.index(analyzer).bm25())
        rows["bm25-formula"] = index.bm25(variant="atire", k1=self.k1, b=self.b, k3=self.k3)
        bm25 = rows.tuned(index.bm25(k1=self.k1, b=self.b))

        # Whole documents: two towers, their first 2,048 tokens or windows.
        for name in ("nystromformer", "longformer", "reformer"):
            rows.with_trained(name, bm25, lambda model: index.dense(whole(model)))
        rows.with_model("performer", lambda model: index.dense(whole(model, attention="favor+")))
        rows.with_model("windows", lambda model: index.dense(in_windows(model)))
        rows.with_model("encoder", lambda model: index.dense(of_sentences(model)))
        rows.with_trained("trained", bm25, lambda model: index.dense(of_sentences(model)))
        rows.with_model("e5", lambda model: index.dense(with_prompts(model)))
        rows.with_model("splade", index.splade)

        # Paragraphs: the best one counts for a document.
        passages: Any = self.stage("passages")
        paragraphs = partial(collection.split(passages).index, self.language)
        best = to_documents("max", separator=passages.separator)
        rows.with_trained("mbert", bm25, lambda model: paragraphs().dense(whole(model)) >> best)
        rows.with_model("colbert", lambda model: paragraphs().late(of_tokens(model)) >> best)

        # Both, and reranked.
        hybrid = bm25
        if (dense := rows.first("trained", "e5", "encoder")) is not None:
            weights = learning.weights("hybrid", (bm25, dense), "RR@10") if learning.dev.qrels else None
            hybrid = fuse(bm25, dense) if weights is None else fuse(bm25, dense, method="wsum", weights=weights)
            rows["hybrid"] = hybrid
        rows.with_model("reranker", lambda model: hybrid % self.reread >> reranker_of(model, collection.folder), row="reranked")
        return rows.done()
