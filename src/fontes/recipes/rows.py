"""Rows of the recipe `evidence`: systems by name, with notes of their models, choices, and reasons to leave a row out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calibration import Calibrated, PromisedCut
from ..core import FontesError, Run, Stage, Topics
from ..core.parameters import parameters
from ..core.part import Part, walk
from ..neural import SentenceEncoder, TransformerEncoder
from ..neural.encoders.architectures import configured_positions
from ..neural.encoders.transformer import MAX_TOKENS, tokenizer_limit
from ..neural.models.hub import find_local_model, read_json
from ..text import Analyzer
from ..train import BiEncoderSettings, train_calibration
from ..tuning import tune
from .folds import tune_by_folds
from .learning import MODELS, RecipeTraining

if TYPE_CHECKING:
    from ..index_methods import Index
    from ..lexical import BM25
    from ..neural import Encoder
    from .evidence import Evidence

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
LATE_FILES = ("artifact.metadata", "1_Dense")  # files of late-interaction checkpoints
AUTO = "auto"  # the language's small spaCy pipeline
K1 = [0.2, 0.4, 0.6, 0.9, 1.2, 1.6, 2.0, 2.6]
B = [0.1, 0.25, 0.4, 0.55, 0.75, 0.9]
K3 = [None, 1.2, 2.0]
TUNED, TUNED_BY = "bm25-tuned", "RR@10"
WEIGHTS = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0]  # of companions
SETS = "Complete@5"

System = Stage[Topics, Run]


class EvidenceRows(dict[str, System]):
    """Systems of the table by row; notes in `learning` tell their models and the rows left out."""

    def __init__(self, recipe: Evidence, learning: RecipeTraining) -> None:
        super().__init__()
        self._recipe, self._learning = recipe, learning

    def with_analyzer(self, row: str, analyzer: str, system: Callable[[str], System]) -> None:
        """Add a row over its own index, unless its analyzer is unavailable."""
        try:
            Analyzer.of(analyzer)("a")
        except FontesError as error:
            if "spacy" in analyzer and self._recipe.spacy != AUTO:
                raise
            self.leave_out(row, str(error))
        else:
            self[row] = system(analyzer)

    def with_model(
        self, parameter: str, system: Callable[[Any], System], row: str = "", candidates: System | None = None
    ) -> None:
        """Add a row with the model of a parameter, or leave it out if the default model is missing.

        Args:
            parameter: The parameter. A missing model that the user chose is an error.
            system: Returns the system of a model.
            row: Name of the row if that differs from the parameter's.
            candidates: Documents among which negatives are drawn: with `train`, the model is trained on them first.
        """
        row = row or parameter
        learned = candidates is not None and self._learning.train.qrels
        start = starts_of(self._recipe).get(parameter) if learned else None
        if start is None and (problem := self._missing(parameter)):
            self.leave_out(row, problem)
        elif start is None:
            model = getattr(self._recipe, parameter)
            self[row] = stage = system(model)
            self._note_model(row, model, stage)
        elif self._learning.folder is None:
            self[row] = system(start)
        else:
            reads = _read_tokens(start, max(self._recipe.lengths)) if parameter in TRAINED else None
            settings = settings_of(self._recipe).with_(max_length=reads)
            assert candidates is not None
            self[row] = system(self._learning.model(row, start, candidates % DEPTH, settings, seed=self._recipe.seed, **MINING))

    def with_lengths(
        self,
        parameter: str,
        system: Callable[[Encoder], System],
        candidates: System | None = None,
        attention: str = "model",
    ) -> None:
        """Add a row for each length of the recipe at which the model of a parameter reads whole documents."""
        lengths = self._recipe.lengths
        rows: dict[str, Encoder] = {}
        # An encoder has a length of its own.
        if len(lengths) == 1 or not isinstance(getattr(self._recipe, parameter), str) or self._missing(parameter):
            self.with_model(parameter, lambda model: system(document_encoder(model, lengths[-1], attention)), "", candidates)
            return
        for length in lengths:
            row = f"{parameter}-{length}"

            def read(model: str | Encoder, length: int = length, row: str = row) -> System:
                encoder = document_encoder(model, length, attention)
                rows[row] = encoder
                return system(encoder)

            self.with_model(parameter, read, row, candidates)
            same = next(other for other, encoder in rows.items() if encoder == rows[row])
            if same != row:
                del self[row]
                self._learning.notes[:] = [note for note in self._learning.notes if note["role"] != row]
                self.leave_out(row, f"the model reads no more tokens than in the row {same}")

    def with_tuned(self, bm25: BM25) -> System:
        """Add BM25 with the k1, b and k3 that are best on the training topics, and return it.

        Without training topics, return and add BM25 unchanged, and add another row whose parameters are tuned by folds of the
        measured topics, for comparison alone.
        """
        learning = self._learning
        space: dict[str, object] = {"k1": K1, "b": B, "k3": K3}
        if side := learning.train.qrels:
            if learning.folder is not None:
                tuning = tune(bm25, space, learning.train.topics, side, TUNED_BY, folds=min(5, len(side)))
                bm25 = bm25.with_(**tuning.params)
                values = ", ".join(f"{name} = {value}" for name, value in tuning.params.items())
                self.note(TUNED, f"{values}, with which {TUNED_BY} was best on {len(side):,} topics")
            self[TUNED] = bm25
            return bm25
        self["bm25-default"] = bm25
        tuned = tune_by_folds(bm25, space, learning.measured, TUNED_BY) if learning.measured.qrels else None
        if tuned is None:
            claims = "claims that share no evidence" if learning.measured.qrels else "judged claims"
            self.leave_out(TUNED, f"give --train, or {claims}, and k1, b and k3 are those that are best for other claims")
        else:
            self[TUNED], chosen = tuned
            self.note(TUNED, chosen)
        return bm25

    def with_companions(self, row: str, candidates: System, index: Index) -> None:
        """Add a row that puts documents that belong together side by side, with the weight that is best on `dev`, if any."""
        weight = self._recipe.together
        if weight is not None:
            stages = {f"{value:g}": candidates >> index.companions(weight=value) for value in (weight, *WEIGHTS)}
            chosen = self._learning.best(row, stages, SETS, [self._learning.dev]) if self._learning.dev.qrels else f"{weight:g}"
            self[row] = stages[chosen]

    def with_promise(self, row: str, system: System) -> None:
        """Add a row that ends each list of a system where it is complete for the promised share of claims."""
        learning, level = self._learning, self._recipe.complete
        if level is None:
            return
        if not learning.dev.qrels or learning.folder is None:
            self.leave_out(row, "give --dev, claims from which it learns where lists end")
            return
        folder = learning.folder / MODELS / row
        try:
            training = train_calibration(learning.run(system, learning.dev), learning.dev.qrels, folder, overwrite=True)
            promise = training.model.promise("complete", level)
        except FontesError as error:
            self.leave_out(row, str(error))
            return
        self.note(row, promise.statement)
        self[row] = system >> Calibrated(str(folder)) >> PromisedCut(complete=level)

    def note(self, row: str, chosen: str) -> None:
        """Note what was chosen for a row."""
        self._learning.notes.append({"role": row, "chosen": chosen})

    def leave_out(self, row: str, reason: str) -> None:
        """Note why there is no such row."""
        self._learning.notes.append({"role": row, "without": reason})

    def _missing(self, parameter: str) -> str:
        """Return why a parameter has no model, and what to give; empty if it has one, or one that the user chose."""
        model = getattr(self._recipe, parameter)
        if model is None:
            start = f", such as `fontes train bi-encoder` makes of {STARTS[parameter]}" if parameter in STARTS else ""
            advice = "not trained: give --train, or " * (parameter == "trained")
            return f"{advice}give -s {parameter}=FOLDER or a name{start}"
        if model == parameters(type(self._recipe))[parameter].default and (problem := missing_problem(model)):
            return f"{problem}, or give -s {parameter}=FOLDER"
        return ""

    def _note_model(self, row: str, model: str | Part, system: System) -> None:
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
    return {name: model for name, model in starts.items() if model not in defaults or not missing_problem(model)}


def settings_of(recipe: Evidence) -> BiEncoderSettings:
    """Return the encoder training settings of a recipe. Raises ParameterError for an invalid parameter."""
    names = ("epochs", "batch", "lr", "precision", "seed")
    return BiEncoderSettings(mini_batch=8, dropout=0.0, **{name: getattr(recipe, name) for name in names})


def document_encoder(model: str | Encoder, length: int = MAX_TOKENS, attention: str = "model") -> Encoder:
    """Return an encoder of up to `length` document tokens; a trained sentence encoder reads no more than in its training."""
    if not isinstance(model, str):
        return model
    if _has_file(model, "modules.json" if attention == "model" else "fontes.json"):
        trained = read_json((find_local_model(model) or Path()) / "sentence_bert_config.json", {}).get("max_seq_length")
        return SentenceEncoder(model, max_length=None if trained is None or length >= trained else length)
    return TransformerEncoder(model, max_length=_read_tokens(model, length), attention=attention)


def _read_tokens(model: str, length: int) -> int | None:
    """Return `length`, or the model's positions if they are fewer; None if that is what an encoder reads by itself."""
    folder = find_local_model(model)
    if folder is None:
        return None if length == MAX_TOKENS else length
    positions = configured_positions(folder)
    if positions is None:  # a Reformer, which knows its limit only when it is loaded
        most = read_json(folder / "config.json", {}).get("max_position_embeddings") or MAX_TOKENS
        return length if length < min(MAX_TOKENS, most) else None
    reads = min(length, positions)
    return None if reads == min(MAX_TOKENS, positions, tokenizer_limit(folder)) else reads


def tokenizer_in(model: object) -> str:
    """Return the folder or name of a model, or of the model of an encoder, if its folder has a fast tokenizer; else ""."""
    name = str(getattr(model, "name_or_path", "") if isinstance(model, Part) else model)
    return name if name and _has_file(name, "tokenizer.json") else ""


def missing_problem(model: str) -> str:
    """Return the problem with a named model; empty if the model is on this machine."""
    try:
        return "" if find_local_model(model) else f"{model} is not on this machine: run `hf download {model}`"
    except FontesError as error:
        return str(error)


def _has_file(model: str, *files: str) -> bool:
    folder = find_local_model(model)
    return folder is not None and any((folder / file).exists() for file in files)


def _description(row: str, model: str) -> str:
    if row == "colbert" and not _has_file(model, *LATE_FILES):
        return "token vectors of an encoder that is not a ColBERT"
    parameter = row.partition("-")[0]
    if parameter in (*STARTS, "encoder", "e5") and not _has_file(model, "modules.json"):
        return f"not trained: a language model as published{'; give --train, and it is trained' * (parameter in TRAINED)}"
    return "as published"
