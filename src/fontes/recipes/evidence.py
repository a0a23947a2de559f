"""Fact-checking: evidence for or against a claim by lexical, dense and hybrid retrieval, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..core import ParameterError, Qrels, Run, Stage, Topics
from ..core.checks import check_whole
from ..experiments import Collection
from ..fusion import fuse
from ..neural import ChunkedEncoder, ColBERT, CrossEncoder, SentenceEncoder
from ..passages import Passages, to_documents
from ..plots.tables import ResultTable
from ..train.runner.running import check_training
from .base import PUBLISHED, Division, Recipe, Systems
from .learning import RecipeTraining
from .result import MeanInterval, RecipeResult
from .rows import AUTO, TUNED, EvidenceRows, System, document_encoder, settings_of, starts_of, tokenizer_in
from .sides import split_disjoint

if TYPE_CHECKING:
    from ..neural import Encoder, Reranker, Splade

PARAGRAPH = 230  # tokens, or words of a model without a tokenizer
POSITIONS = 512  # tokens of a paragraph that late interaction reads
LANGUAGES = {"english": ("snowball:english", "en", "en_core_web_sm"), "czech": ("czech", "cs", "cs_core_news_sm")}
"""Analyzer of stems, language code, and small spaCy pipeline, by language."""
CALIBRATED = 100  # documents per claim of a list before it is cut
DEPTHS = (1, 5, 10, 20)
BESIDE = f"Mean differences from {TUNED} over the claims, with intervals of 95% that are not corrected for the number of rows."

T = TypeVar("T")


def analyzers_of(language: str, spacy: str | None) -> dict[str, str]:
    """Return the analyzers of a language, by kind of term."""
    stems, code, pipeline = LANGUAGES[language]
    return {
        "words": "standard",
        "stems": stems,
        "simplemma": f"simplemma:{code}",
        **({} if spacy is None else {"spacy": f"spacy:{pipeline if spacy == AUTO else spacy}+lower"}),
        "chars": "standard+chars:3-5",
    }


def of_name(kind: Callable[..., T], model: str | T, **settings: object) -> T:
    """Return the model of a name or folder; a model is returned unchanged."""
    loaded: T = kind(model, **settings) if isinstance(model, str) else model
    return loaded


@dataclass(frozen=True, repr=False)
class Evidence(Recipe, name="evidence"):
    """Finds evidence for or against a claim by words, stems, lemmas and n-grams, and by encoders of documents and paragraphs.

    Each row of the table is a retriever. Lexical rows need only an analyzer. Dense rows need a model: a name, or a folder such
    as `fontes train` makes. Nothing is downloaded: a row without a model is left out, and the page says what the row needs. The
    page also describes each model and its training data.

    Two-tower encoders read whole documents, up to 2,048 tokens, or windows of 150 words; several lengths make several rows,
    such as nystromformer-512, and the page has the cost of each. mBERT and ColBERT read paragraphs; a document scores as its
    best paragraph. "hybrid" fuses BM25 with the first available of `trained`, `e5` and `encoder`, by reciprocal ranks or with
    weights chosen on `dev`. "reranked" reranks its best documents. "together" moves those up that resemble the best ones, as
    the documents of an evidence set do. "complete" ends lists of the fusion by reciprocal ranks where a promise holds that
    `dev` allows.

    The page has the differences of rows with a model from "bm25-tuned": BM25 with the k1, b and k3 that are best on `train` or,
    without it, for each claim those that are best on the folds of the judged claims that share no evidence with it.

    With `train`, `nystromformer`, `longformer`, `reformer` and `mbert` are trained on these claims unless they are already
    retrieval models, and `trained`, if None, is trained from `encoder`: by multiple negatives, each claim with one non-evidence
    document among BM25's best 20. Without `train`, the page says that the model of such a row is not trained.

    Args:
        language: "english" or "czech", which determines stems and lemmas.
        spacy: spaCy pipeline for lemmas; "auto": the small one of the language; None: no such row.
        k1: BM25 parameter of the row bm25-formula (textbook BM25), and without `train` of bm25-default (Lucene's BM25), which
            is then part of "hybrid"; the paper has k1 and k3 from 1.2 to 2.
        b: BM25 parameter, likewise.
        k3: Parameter of the row bm25-formula: the query part is (k3 + 1) qtf / (k3 + qtf).
        nystromformer: Encoder of whole documents, like the next three: a name, a folder or an encoder; None: no row.
        longformer: Another.
        performer: A BERT, run with the Performer's attention.
        reformer: Another.
        length: Maximum tokens that these four read of a document, or several: 512,1024,2048. Training is at the greatest. An
            encoder that is not a name or folder keeps its own.
        windows: Sentence encoder over windows of words.
        window: Words of a window.
        stride: Words from the start of a window to that of the next.
        passages: Passage splitter for the next two; None: paragraphs of 230 tokens of the row's model, or of 230 words if its
            tokenizer is unknown.
        mbert: Encoder of paragraphs, such as one trained from mBERT.
        colbert: Late-interaction model for paragraphs, or any encoder, whose token vectors are used.
        e5: Sentence encoder with E5's prompts.
        encoder: Sentence encoder.
        trained: Another; None: with `train`, `encoder` after training.
        splade: Learned sparse encoder.
        reranker: Cross-encoder, or a reranker.
        reread: Number of documents reranked per claim, and of candidates of "together".
        together: Weight of `companions` in the row "together", if it is not chosen on `dev` by Complete@5; None: no row.
        complete: Share of claims for which lists of the row "complete" promise to hold a whole evidence set; None: no row.
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
    published_on = (
        "No published values: the tables of the paper, in open access, could not be obtained. They are for the archive "
        "of the Czech News Agency, 2.2 million articles, which is not public, so no figure here is comparable with them."
    )

    language: str = "english"
    spacy: str | None = "auto"
    k1: float = field(default=1.2, metadata=PUBLISHED)
    b: float = field(default=0.75, metadata=PUBLISHED)
    k3: float | None = field(default=1.2, metadata=PUBLISHED)
    nystromformer: str | Encoder | None = "uw-madison/nystromformer-2048"
    longformer: str | Encoder | None = None
    performer: str | Encoder | None = None
    reformer: str | Encoder | None = None
    length: int | tuple[int, ...] = 2048
    windows: str | Encoder | None = None
    window: int = 150
    stride: int = 75
    passages: str | Stage[Run, Run] | None = field(default=None, metadata=PUBLISHED)
    mbert: str | Encoder | None = "google-bert/bert-base-multilingual-cased"
    colbert: str | ColBERT | None = "colbert-ir/colbertv2.0"
    e5: str | Encoder | None = "intfloat/multilingual-e5-small"
    encoder: str | Encoder | None = "sentence-transformers/all-MiniLM-L6-v2"
    trained: str | Encoder | None = None
    splade: str | Splade | None = None
    reranker: str | Reranker | None = "cross-encoder/ms-marco-MiniLM-L6-v2"
    reread: int = 50
    together: float | None = 1.0
    complete: float | None = 0.9
    epochs: int = 3
    batch: int = 32
    lr: float = 5e-5
    precision: str = "auto"
    seed: int = 0

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths in ascending order, each once."""
        return tuple(sorted(set(self.length) if isinstance(self.length, (tuple, list)) else {self.length}))

    def systems(self, collection: Collection) -> Systems:
        return self.learned_systems(collection, RecipeTraining())

    def divide(self, topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None) -> Division:
        if train is not None and starts_of(self):
            check_training("training an encoder")
        return super().divide(topics, qrels, None, None) if train is dev is None else split_disjoint(topics, qrels, train, dev)

    def analysis(self, result: RecipeResult) -> list[str]:
        """Return a table of the differences of rows with a model from tuned BM25, with intervals."""
        report = result.report
        if report is None or TUNED not in report.systems:
            return []
        measures = [measure for measure in report.measures if str(measure) in self.printed] or report.measures
        tuned = report.systems[TUNED].evaluation
        rows = []
        for name, system in report.systems.items():
            if result.weights.get(name):
                differences = [system.evaluation.array(measure) - tuned.array(measure) for measure in measures]
                rows.append([name, *(f"{MeanInterval.of(values):+}" for values in differences)])
        table = ResultTable.of(["system", *map(str, measures)], rows, 1).markdown()
        return ["## Models beside tuned BM25", BESIDE, table] if rows else []

    def check(self) -> None:
        if self.language not in LANGUAGES:
            raise ParameterError(f"recipe evidence: there is no language '{self.language}'; there are {', '.join(LANGUAGES)}")
        for name, value in (("reread", self.reread), ("window", self.window), ("stride", self.stride)):
            check_whole(f"recipe evidence: {name}", value)
        for length in self.lengths or (0,):
            check_whole("recipe evidence: length", length, 3)
        settings_of(self)

    def paragraphs(self, model: object) -> Passages:
        """Return the splitter into paragraphs of tokens of a model, or of words if its tokenizer is unknown."""
        tokenizer = tokenizer_in(model)
        length = {"tokens": PARAGRAPH, "tokenizer": tokenizer} if tokenizer else {"words": PARAGRAPH}
        return Passages(stride=PARAGRAPH, **length)

    def learned_systems(self, collection: Collection, learning: RecipeTraining) -> Systems:
        """Return the rows by name whose requirements are met."""
        rows = EvidenceRows(self, learning)
        index = collection.index(self.language)

        # Words.
        rows["tfidf"] = index.tfidf()
        rows["bm25-pyserini"] = collection.index("english").bm25(lengths="lucene")
        for name, analyzer in analyzers_of(self.language, self.spacy).items():
            rows.with_analyzer(f"bm25-{name}", analyzer, lambda analyzer: collection.index(analyzer).bm25())
        rows["bm25-formula"] = index.bm25(variant="atire", k1=self.k1, b=self.b, k3=self.k3)
        bm25 = rows.with_tuned(index.bm25(k1=self.k1, b=self.b))

        # Whole documents: two towers, their first tokens or windows.
        for name in ("nystromformer", "longformer", "reformer"):
            rows.with_lengths(name, index.dense, bm25)
        rows.with_lengths("performer", index.dense, attention="favor+")
        chunks = partial(ChunkedEncoder, window=self.window, stride=self.stride)
        rows.with_model("windows", lambda model: index.dense(of_name(lambda name: chunks(SentenceEncoder(name)), model)))
        rows.with_model("encoder", lambda model: index.dense(of_name(SentenceEncoder, model)))
        rows.with_model("trained", lambda model: index.dense(of_name(SentenceEncoder, model)), candidates=bm25)
        e5 = partial(of_name, SentenceEncoder, query_prompt="query: ", document_prompt="passage: ")
        rows.with_model("e5", lambda model: index.dense(e5(model)))
        rows.with_model("splade", index.splade)

        # Paragraphs: the best one counts for a document.
        def best(model: object, retriever: Callable[[Any], System]) -> System:
            passages: Any = self.stage("passages") or self.paragraphs(model)
            paragraphs = collection.split(passages).index(self.language)
            return retriever(paragraphs) >> to_documents("max", separator=passages.separator)

        rows.with_model("mbert", lambda model: best(model, lambda i: i.dense(document_encoder(model))), candidates=bm25)
        late = partial(of_name, ColBERT, document_length=POSITIONS)
        rows.with_model("colbert", lambda model: best(model, lambda i: i.late(late(model))))

        # Both, reranked, put together, and with an end.
        hybrid = unweighted = bm25
        if name := next(filter(rows.__contains__, ("trained", "e5", "encoder")), ""):
            dense = rows[name]
            rows.note("hybrid", f"BM25 and {name}")
            weights = learning.weights("hybrid", (bm25, dense), "RR@10") if learning.dev.qrels else None
            unweighted = fuse(bm25, dense)
            hybrid = unweighted if weights is None else fuse(bm25, dense, method="wsum", weights=weights)
            rows["hybrid"] = hybrid
        scores = collection.folder / "scores.sqlite"  # kept for resuming
        rerank = partial(of_name, CrossEncoder, cache=scores)
        rows.with_model("reranker", lambda model: hybrid % self.reread >> rerank(model), row="reranked")
        rows.with_companions("together", hybrid % self.reread, index)
        rows.with_promise("complete", unweighted % CALIBRATED)  # weights are chosen on the same claims
        return rows
