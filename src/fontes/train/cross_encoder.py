"""Training a cross-encoder on examples: a query, a relevant document, and non-relevant ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..core.errors import ParameterError
from ..core.run import Run
from ..core.values import Qrels
from ..core.work import ProgressCallback
from ..neural.models.hub import find_model
from .examples import DISTILLED, Examples, TrainingSplit, check_teacher, training_split, unlearned
from .runner.running import Fit, Training, begin, run
from .runner.settings import LAST, LOSS, FitSettings

BASE = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Validation:
    """Validation of a cross-encoder or a MonoT5.

    Args:
        examples: Examples of held-out queries, for the validation loss; None: some training queries are held out.
        run: Candidates to rerank, with topics and documents; training topics are left out.
        qrels: Judgments of the run.
    """

    examples: object = None
    run: Run | None = None
    qrels: Qrels | None = None


def train_cross_encoder(
    examples: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: CrossEncoderSettings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Training:
    """Train a cross-encoder and write it to the folder `output`, which `CrossEncoder(output)` loads.

    The same seed, torch, processor and thread count give the same model in float32, also after an interruption: training
    resumes from its last checkpoint. Uses a GPU if there is one.

    Args:
        examples: Anything `Examples.of` takes: Examples, a list of Example, or the path of a file.
        output: Folder to create, complete when it appears. During the training, checkpoints are in OUTPUT.training.
        base: Start: a folder, or a name on the Hugging Face hub. An encoder without a scoring head gets a new one.
        settings: Training settings; None: the defaults.
        validation: A `Validation`, or examples as above; None: held-out queries.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.

    Raises:
        InputError: The examples, `output`, the base or the working folder cannot be used.
        ParameterError: The settings are unsuitable, or the loss is no longer a number.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or CrossEncoderSettings()
    target = begin(output, overwrite, "training a cross-encoder")
    split, candidates = reranker_split(examples, validation, settings)
    if settings.loss in DISTILLED:
        check_teacher(settings.loss, split.learned, split.validation)
    from .pair_model import PairModel

    folder = find_model(base, "cross-encoder", "cross-encoder")
    model = PairModel(folder, settings)
    rows = model.rows(split.learned)
    tokens = frozenset(model.tokens)
    fit = Fit(
        kind="cross-encoder",
        base=str(base),
        folder=folder,
        model=model.network,
        trainer="CrossEncoderTrainer",
        loss=model.loss(),
        train=rows,
        tokens=tokens,
        validation=model.rows(split.validation or ()),
        measure=candidates and model.measure(*candidates),
        save=model.save,
        restore=model.restore,
        identity=split.hashes,
        facts={
            **split.counts,
            "topics_measured": len(candidates[1]) if candidates else 0,
            "new_head": model.new_head,
            **model.cut_of(split.learned),
        },
    )
    return run(fit, settings, target, overwrite, progress)


def reranker_split(
    examples: object, validation: object, settings: FitSettings
) -> tuple[TrainingSplit[Examples], tuple[Run, Qrels] | None]:
    """Return the examples to learn from and to validate on, and the run to rerank with its judgments, None if none is given.

    Args:
        examples: Anything `Examples.of` takes.
        validation: A `Validation`, or examples; None: held-out queries.
        settings: The settings of the training.

    Raises:
        InputError: The examples cannot be used, or no topic of the run is left beside those that are learned from.
        ParameterError: The settings need a run, or one of run and judgments is missing.
    """
    data = Examples.of(examples)
    data.check_labels()
    checked = validation if isinstance(validation, Validation) else Validation(validation)
    split = training_split(data, None if checked.examples is None else Examples.of(checked.examples), settings)
    return split, _candidates(checked, split.learned, settings)


def _candidates(validation: Validation, learned: Examples, settings: FitSettings) -> tuple[Run, Qrels] | None:
    if (validation.run is None) != (validation.qrels is None):
        raise ParameterError("a validation run and its qrels belong together: give both or none")
    if validation.run is None or validation.qrels is None:
        if settings.by_measure:
            raise ParameterError(f"best='{settings.best}' is measured on a reranked run: give a validation run and qrels")
        return None
    validation.run.documents_for("a run to validate on")
    return unlearned(validation.run, validation.qrels, learned)


class CrossEncoderSettings(FitSettings):
    """Training settings of a cross-encoder; the defaults are the preset "air2025" (see `PRESETS`).

    Attributes:
        loss: "bce", "margin", "lambda", "teacher" or "kl". The loss "bce" is the binary cross-entropy of each pair of a query
            and a document; "margin" the hinge loss of the score differences between the relevant document and the others;
            "lambda" LambdaLoss over each group of a query's documents; "teacher" (MarginMSE) the squared error of these
            differences against those of a teacher, stored in the examples; "kl" (ListNet: Cao et al. 2007) the cross-entropy of
            the softmax of a group's scores against the softmax of a teacher's scores.
        batch: Rows per step: pairs with "bce", else examples with all their documents.
        margin: Required score difference, with "margin".
        teacher_scale: Factor of the teacher's scores, with "teacher" and "kl".
    """

    loss: Literal["bce", "margin", "lambda", "teacher", "kl"] = "bce"
    margin: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    teacher_scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)


PRESETS = {
    "air2025": CrossEncoderSettings(loss="bce", batch=16, epochs=2, held_out=0.1, best=LOSS),
    "air2025-run": CrossEncoderSettings(
        loss="bce",
        batch=16,
        epochs=2,
        lr=2e-5,
        warm_up=10_000,
        weight_decay=0.01,
        order="shuffled",
        held_out=0.0,
        best=LAST,
        precision="float32",
    ),
}
"""Published trainings. "air2025" is the training of the CheckThat! 2025 report: binary cross-entropy, batches of 16, two
epochs, and the checkpoint of least validation loss. The report names neither a validation set nor a learning rate: a tenth of
the training queries is held out, and the rate is 2e-5, customary in sentence-transformers, after warm-up over a tenth of the
steps.

"air2025-run" is the training in the notebook of the same authors: `CrossEncoder.fit` of sentence-transformers with two epochs
and shuffled batches of 16, and its defaults: a learning rate of 2e-5 after 10,000 warm-up steps, weight decay .01, and, without
evaluations, the last state. With 11,392 tweets there are 7,120 steps, in which the rate rises to 1.42e-5."""


def settings_of(preset: str | None = None, **changes: object) -> CrossEncoderSettings:
    """Return the settings of a preset, or the defaults, with changes; raise ParameterError for an unknown preset."""
    if preset is not None and preset not in PRESETS:
        raise ParameterError(f"there is no preset '{preset}'; there are {', '.join(PRESETS)}")
    return (CrossEncoderSettings() if preset is None else PRESETS[preset]).with_(**changes)
