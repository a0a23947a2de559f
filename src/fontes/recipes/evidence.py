"""Fact-checking: evidence for or against a claim by lexical, dense and hybrid retrieval, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..calibration import Calibrated, PromisedCut
from ..core import FontesError, ParameterError, Qrels, Run, Stage, Topics
from ..core.checks import check_whole
from ..core.parameters import parameters
from ..core.part import Part, walk
from ..experiments import Collection
from ..fusion import fuse
from ..neural import ChunkedEncoder, ColBERT, CrossEncoder, SentenceEncoder, TransformerEncoder
from ..neural.encoders.architectures import configured_positions
from ..neural.encoders.transformer import tokenizer_limit
from ..neural.models.hub import find_local_model
from ..passages import to_documents
from ..text import Analyzer
from ..train import BiEncoderSettings, train_calibration
from ..train.runner.running import check_training
from ..tuning import tune
from .base import PUBLISHED, Division, Recipe, Systems
from .learning import MODELS, RecipeTraining
from .sides import split_disjoint

if TYPE_CHECKING:
    from ..lexical import BM25
    from ..neural import Encoder, Reranker, Splade


DOCUMENT_TOKENS = 2048  # tokens of a whole document, the default of an encoder
WINDOW, STRIDE = 150, 75  # words
POSITIONS = 512  # tokens of a paragraph that late interaction reads
LANGUAGES = {"english": ("snowball:english", "en", "en_core_web_sm"), "czech": ("czech", "cs", "cs_core_news_sm")}
"""Analyzer of stems, language code, and small spaCy pipeline, by language."""
STARTS = {
    "nystromformer": "uw-madison/nystromformer-2048",
    "longformer": "allenai/longformer-base-4096",
    "performer": "a BERT with --attention favor+",
    "reformer": "a Reformer",
    "windows": "any encoder",
    "trained": "the encoder",
    "mbert": "google-bert/bert-base-multilingual-cased",
}
"""Possible starting models of `fontes train bi-encoder`, by parameter."""
TRAINED = ("nystromformer", "longformer", "reformer", "mbert")
"""Rows whose language models are trained with `--train`; so is `trained`, from `encoder`."""
MINING: dict[str, Any] = {"per_positive": 1, "ranks": (1, 20), "sampling": "random"}
DEPTH = 100  # documents per claim among which negatives are drawn
CALIBRATED = 100  # documents per claim of a list before it is cut
LATE_FILES = ("artifact.metadata", "1_Dense")  # files of late-interaction checkpoints
K1 = [0.2, 0.4, 0.6, 0.9, 1.2, 1.6, 2.0, 2.6]
B = [0.1, 0.25, 0.4, 0.55, 0.75, 0.9]
K3 = [None, 1.2, 2.0]
TUNED_BY = "RR@10"
AUTO = "auto"  # the language's small spaCy pipeline

System = Stage[Topics, Run]
T = TypeVar("T")


class EvidenceRows(dict[str, System]):
    """Systems of the table by row; notes in `learning` tell their models and the rows left out."""

    def __init__(self, recipe: Evidence, learning: RecipeTraining) -> None:
        super().__init__()
        self._recipe, self._learning = recipe, learning
        self._defaults = {name: parameter.default for name, parameter in parameters(type(recipe)).items()}

    def with_analyzer(self, row: str, analyzer: str, system: Callable[[str], System]) -> None:
        """Add a row over its own index, unless its analyzer is unavailable."""
        try:
            Analyzer.of(analyzer)("a")
        except FontesError as error:
            if "spacy" in analyzer and self._recipe.spacy != AUTO:
                raise
            self._leave_out(row, str(error))
        else:
            self[row] = system(analyzer)

    def with_model(self, parameter: str, system: Callable[[Any], System], row: str = "") -> None:
        """Add a row with the model of a parameter; `row` is its name if that differs from the parameter's.

        A missing model is an error if the user chose it; if it is the default, the row is left out.
        """
        model = getattr(self._recipe, parameter)
        if model is None:
            start = f", such as `fontes train bi-encoder` makes of {STARTS[parameter]}" if parameter in STARTS else ""
            advice = "not trained: give --train, or " * (parameter == "trained")
            self._leave_out(row or parameter, f"{advice}give -s {parameter}=FOLDER or a name{start}")
        elif model == self._defaults[parameter] and (problem := _missing_problem(model)):
            self._leave_out(row or parameter, f"{problem}, or give -s {parameter}=FOLDER")
        else:
            self[row or parameter] = stage = system(model)
            self._note(row or parameter, model, stage)

    def with_trained(self, parameter: str, candidates: System, system: Callable[[Any], System]) -> None:
        """Add a row with an encoder trained on negatives among `candidates`; without `train`, like `with_model`."""
        recipe, learning = self._recipe, self._learning
        start = starts_of(recipe).get(parameter)
        if start is None or not learning.train.qrels:
            self.with_model(parameter, system)
            return
        if learning.folder is not None:
            settings = settings_of(recipe).with_(max_length=_beyond_tokenizer(start) if parameter in TRAINED else None)
            start = learning.model(parameter, start, candidates % DEPTH, settings, seed=recipe.seed, **MINING)
        self[parameter] = system(start)

    def with_tuned(self, bm25: BM25) -> System:
        """Return BM25 with the k1, b and k3 that are best on the training topics; unchanged if there are none."""
        row, side = "bm25-tuned", self._learning.train
        if not side.qrels:
            row = "bm25-default"
            self._leave_out("bm25-tuned", "give --train, and k1, b and k3 are those that are best there")
        elif self._learning.folder is not None:
            tuning = tune(bm25, {"k1": K1, "b": B, "k3": K3}, side.topics, side.qrels, TUNED_BY, folds=min(5, len(side.qrels)))
            bm25 = bm25.with_(**tuning.params)
            values = ", ".join(f"{name} = {value}" for name, value in tuning.params.items())
            choice = f"{values}, with which {TUNED_BY} was best on {len(side.qrels):,} topics"
            self._learning.notes.append({"role": row, "chosen": choice})
        self[row] = bm25
        return bm25

    def with_promise(self, row: str, system: System) -> None:
        """Add a row that ends each list of a system where it is complete for the promised share of claims."""
        learning, level = self._learning, self._recipe.complete
        if level is None:
            return
        if not learning.dev.qrels or learning.folder is None:
            self._leave_out(row, "give --dev, claims from which it learns where lists end")
            return
        folder = learning.folder / MODELS / row
        try:
            training = train_calibration(learning.run(system, learning.dev), learning.dev.qrels, folder, overwrite=True)
            promise = training.model.promise("complete", level)
        except FontesError as error:
            self._leave_out(row, str(error))
            return
        learning.notes.append({"role": row, "chosen": promise.statement})
        self[row] = system >> Calibrated(str(folder)) >> PromisedCut(complete=level)

    def _leave_out(self, row: str, reason: str) -> None:
        self._learning.notes.append({"role": row, "without": reason})

    def _note(self, row: str, model: str | Part, system: System) -> None:
        """Note the model of a row: the last model in its system."""
        names = [str(getattr(part, "name_or_path", "")) for part in walk(model if isinstance(model, Part) else system)]
        label = model if isinstance(model, str) else next(filter(None, names), repr(model))
        self._learning.note_model(row, label)
        if self._learning.folder is not None:
            self._learning.notes[-1].setdefault("about", _description(row, label))


def starts_of(recipe: Evidence) -> dict[str, str]:
    """Return the starting model of each training of the recipe, by row."""
    models = {name: getattr(recipe, name) for name in TRAINED}
    starts = {name: model for name, model in models.items() if isinstance(model, str) and not _has_file(model, "modules.json")}
    if recipe.trained is None and isinstance(recipe.encoder, str):
        starts["trained"] = recipe.encoder
    defaults = {parameter.default for parameter in parameters(type(recipe)).values() if isinstance(parameter.default, str)}
    return {name: model for name, model in starts.items() if model not in defaults or not _missing_problem(model)}


def settings_of(recipe: Evidence) -> BiEncoderSettings:
    """Return the encoder training settings of a recipe. Raises ParameterError for an invalid parameter."""
    names = ("epochs", "batch", "lr", "precision", "seed")
    return BiEncoderSettings(mini_batch=8, dropout=0.0, **{name: getattr(recipe, name) for name in names})


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


def document_encoder(model: str | Encoder, attention: str = "model") -> Encoder:
    """Return an encoder of up to 2,048 document tokens; a trained sentence encoder keeps its folder's settings."""
    if not isinstance(model, str):
        return model
    if _has_file(model, "modules.json" if attention == "model" else "fontes.json"):
        return SentenceEncoder(model)
    return TransformerEncoder(model, max_length=_beyond_tokenizer(model), attention=attention)


def of_name(kind: Callable[..., T], model: Any, **settings: Any) -> T:
    """Return the model of a name or folder; a model is returned unchanged."""
    loaded: T = kind(model, **settings) if isinstance(model, str) else model
    return loaded


def _has_file(model: str, *files: str) -> bool:
    folder = find_local_model(model)
    return folder is not None and any((folder / file).exists() for file in files)


def _beyond_tokenizer(model: str) -> int | None:
    """Return the tokens to read if the tokenizer truncates below DOCUMENT_TOKENS and the model's positions; else None."""
    folder = find_local_model(model)
    positions = None if folder is None else configured_positions(folder)
    if folder is None or positions is None or min(DOCUMENT_TOKENS, positions) <= tokenizer_limit(folder):
        return None
    return min(DOCUMENT_TOKENS, positions)


def _description(row: str, model: str) -> str:
    if row == "colbert" and not _has_file(model, *LATE_FILES):
        return "token vectors of an encoder that is not a ColBERT"
    if row in (*STARTS, "encoder", "e5") and not _has_file(model, "modules.json"):
        return f"not trained: a language model as published{'; give --train, and it is trained' * (row in TRAINED)}"
    return "as published"


def _missing_problem(model: str) -> str:
    """Return the problem with a named model; empty if the model is on this machine."""
    try:
        return "" if find_local_model(model) else f"{model} is not on this machine: run `hf download {model}`"
    except FontesError as error:
        return str(error)


DEPTHS = (1, 5, 10, 20)


@dataclass(frozen=True, repr=False)
class Evidence(Recipe, name="evidence"):
    """Finds evidence for or against a claim by words, stems, lemmas and n-grams, and by encoders of documents and paragraphs.

    Each row of the table is a retriever. Lexical rows need only an analyzer. Dense rows need a model: a name, or a folder such
    as `fontes train` makes. Nothing is downloaded: a row without a model is left out, and the page says what the row needs. The
    page also describes each model and its training data.

    Two-tower encoders read whole documents, up to 2,048 tokens, or windows of 150 words. mBERT and ColBERT read paragraphs; a
    document scores as its best paragraph. "hybrid" fuses BM25 with the first available of `trained`, `e5` and `encoder`, by
    reciprocal ranks or with weights chosen on `dev`. "reranked" reranks its best documents. "complete" ends lists of the fusion
    by reciprocal ranks where a promise holds that `dev` allows.

    With `train`, `nystromformer`, `longformer`, `reformer` and `mbert` are trained on these claims unless they are already
    retrieval models, and `trained`, if None, is trained from `encoder`: by multiple negatives, each claim with one non-evidence
    document among BM25's best 20. Without `train`, the page says that the model of such a row is not trained.

    Args:
        language: "english" or "czech", which determines stems and lemmas.
        spacy: spaCy pipeline for lemmas; "auto": the small one of the language; None: no such row.
        k1: BM25 parameter of the row bm25-formula (textbook BM25), and of Lucene's BM25 without `train`; the paper has k1 and
            k3 from 1.2 to 2. With `train`, Lucene's k1, b and k3 are chosen on it.
        b: BM25 parameter, likewise.
        k3: Parameter of the row bm25-formula: the query part is (k3 + 1) qtf / (k3 + qtf).
        nystromformer: Encoder of whole documents, like the next four: a name, a folder or an encoder; None: no row.
        longformer: Another.
        performer: A BERT, run with the Performer's attention.
        reformer: Another.
        windows: Sentence encoder over windows of 150 words.
        passages: Passage splitter for the next two: paragraphs of 230 words; of 230 tokens in the paper.
        mbert: Encoder of paragraphs, such as one trained from mBERT.
        colbert: Late-interaction model for paragraphs, or any encoder, whose token vectors are used.
        e5: Sentence encoder with E5's prompts.
        encoder: Sentence encoder.
        trained: Another; None: with `train`, `encoder` after training.
        splade: Learned sparse encoder.
        reranker: Cross-encoder, or a reranker.
        reread: Number of documents reranked per claim.
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

    language: str = "english"
    spacy: str | None = "auto"
    k1: float = field(default=1.2, metadata=PUBLISHED)
    b: float = field(default=0.75, metadata=PUBLISHED)
    k3: float | None = field(default=1.2, metadata=PUBLISHED)
    nystromformer: str | Encoder | None = "uw-madison/nystromformer-2048"
    longformer: str | Encoder | None = None
    performer: str | Encoder | None = None
    reformer: str | Encoder | None = None
    windows: str | Encoder | None = None
    passages: str | Stage[Run, Run] = field(default="passages(words=230, stride=230)", metadata=PUBLISHED)
    mbert: str | Encoder | None = "google-bert/bert-base-multilingual-cased"
    colbert: str | ColBERT | None = "colbert-ir/colbertv2.0"
    e5: str | Encoder | None = "intfloat/multilingual-e5-small"
    encoder: str | Encoder | None = "sentence-transformers/all-MiniLM-L6-v2"
    trained: str | Encoder | None = None
    splade: str | Splade | None = None
    reranker: str | Reranker | None = "cross-encoder/ms-marco-MiniLM-L6-v2"
    reread: int = 50
    complete: float | None = 0.9
    epochs: int = 3
    batch: int = 32
    lr: float = 5e-5
    precision: str = "auto"
    seed: int = 0

    def systems(self, collection: Collection) -> Systems:
        return self.learned_systems(collection, RecipeTraining())

    def divide(self, topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None) -> Division:
        if train is not None and starts_of(self):
            check_training("training an encoder")
        return super().divide(topics, qrels, None, None) if train is dev is None else split_disjoint(topics, qrels, train, dev)

    def check(self) -> None:
        if self.language not in LANGUAGES:
            raise ParameterError(f"recipe evidence: there is no language '{self.language}'; there are {', '.join(LANGUAGES)}")
        check_whole("recipe evidence: reread", self.reread)
        settings_of(self)

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

        # Whole documents: two towers, their first 2,048 tokens or windows.
        for name in ("nystromformer", "longformer", "reformer"):
            rows.with_trained(name, bm25, lambda model: index.dense(document_encoder(model)))
        rows.with_model("performer", lambda model: index.dense(document_encoder(model, attention="favor+")))
        chunks = partial(ChunkedEncoder, window=WINDOW, stride=STRIDE)
        rows.with_model(
            "windows", lambda model: index.dense(chunks(SentenceEncoder(model)) if isinstance(model, str) else model)
        )
        rows.with_model("encoder", lambda model: index.dense(of_name(SentenceEncoder, model)))
        rows.with_trained("trained", bm25, lambda model: index.dense(of_name(SentenceEncoder, model)))
        e5 = partial(of_name, SentenceEncoder, query_prompt="query: ", document_prompt="passage: ")
        rows.with_model("e5", lambda model: index.dense(e5(model)))
        rows.with_model("splade", index.splade)

        # Paragraphs: the best one counts for a document.
        passages: Any = self.stage("passages")
        paragraphs = partial(collection.split(passages).index, self.language)
        best = to_documents("max", separator=passages.separator)
        rows.with_trained("mbert", bm25, lambda model: paragraphs().dense(document_encoder(model)) >> best)
        rows.with_model("colbert", lambda model: paragraphs().late(of_name(ColBERT, model, document_length=POSITIONS)) >> best)

        # Both, reranked, and with an end.
        hybrid = unweighted = bm25
        if (dense := rows.get("trained") or rows.get("e5") or rows.get("encoder")) is not None:
            weights = learning.weights("hybrid", (bm25, dense), "RR@10") if learning.dev.qrels else None
            unweighted = fuse(bm25, dense)
            hybrid = unweighted if weights is None else fuse(bm25, dense, method="wsum", weights=weights)
            rows["hybrid"] = hybrid
        scores = collection.folder / "scores.sqlite"  # kept for resuming
        rerank = partial(of_name, CrossEncoder, cache=scores)
        rows.with_model("reranker", lambda model: hybrid % self.reread >> rerank(model), row="reranked")
        rows.with_promise("complete", unweighted % CALIBRATED)  # weights are chosen on the same claims
        return rows
