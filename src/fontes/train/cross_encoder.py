"""Training a cross-encoder on examples: a query, a relevant document, and others that are not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..core.errors import ParameterError
from ..core.progress import Report, silent
from ..core.qrels import Qrels
from ..core.run import Run
from ..neural.models.hub import located
from .examples import Examples
from .runner.checkpoint_folder import check_place
from .runner.running import Fit, Training, check_training, run
from .runner.settings import LAST, LOSS, FitSettings
from .training_split import check_teacher, queries, training_split, unlearned

BASE = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Validation:
    """Validation of a cross-encoder.

    Args:
        examples: Of other queries than those that are learned from: their loss is measured. None: some of the training's
            queries are held out.
        run: Candidates, which know their topics and documents, to rerank with the model in training; topics that are learned
            from are left out.
        qrels: Their judgments.
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
    progress: Report = silent,
) -> Training:
    """Trains a cross-encoder and writes it to the folder `output`, from which `CrossEncoder(output)` loads it.

    The same seed, torch, processor and number of threads give the same model in float32; so does a training that was
    interrupted and is started again, which goes on from its last checkpoint. It runs on a GPU where there is one.

    Args:
        examples: What `Examples.of` takes: Examples, a list of Example, or the path of a file.
        output: The folder to make; it appears when all is done. Checkpoints are in OUTPUT.training meanwhile.
        base: The start: a folder, or a name on the Hugging Face hub. An encoder without a head for scores gets a new one.
        settings: How to train; None: the defaults.
        validation: What to validate on: a `Validation`, or examples as above; None: queries that are held out.
        overwrite: Whether a trained model that is there is replaced.
        progress: Is called about once a second.

    Raises:
        InputError: The examples cannot be learned from, `output` is there or cannot be written, the base is not there or cannot
            be read, or the working folder holds something else.
        ParameterError: The settings do not fit what there is, or the loss is no number any more.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or CrossEncoderSettings()
    place = Path(output)
    check_place(place, overwrite)
    check_training("training a cross-encoder")
    data = Examples.of(examples)
    data.check_labels()
    validated = validation if isinstance(validation, Validation) else Validation(validation)
    sides = training_split(data, None if validated.examples is None else Examples.of(validated.examples), settings)
    if settings.loss == "teacher":
        check_teacher(sides.learned, sides.validation)
    candidates = _candidates(validated, sides.learned, settings)
    from .pair_model import PairModel

    folder = located(base, "cross-encoder", "cross-encoder")
    model = PairModel(folder, settings)
    learned = model.rows(sides.learned)
    tokens = frozenset(model.tokens)
    fit = Fit(
        kind="cross-encoder",
        base=str(base),
        folder=folder,
        model=model.network,
        trainer="CrossEncoderTrainer",
        loss=model.loss(),
        train=learned,
        tokens=tokens,
        validation=model.rows(sides.validation or ()),
        measure=candidates and model.measure(*candidates),
        save=model.save,
        restore=model.restore,
        identity=sides.hashes,
        facts={
            "queries": len(sides.queries),
            "queries_validated": len(queries(sides.validation)) if sides.validation else 0,
            "topics_measured": len(candidates[1]) if candidates else 0,
            "new_head": model.new_head,
            **model.cut_of(sides.learned),
        },
    )
    return run(fit, settings, place, overwrite, progress)


def _candidates(validation: Validation, learned: Examples, settings: CrossEncoderSettings) -> tuple[Run, Qrels] | None:
    """The run to rerank and to measure with its judgments, without what is learned from; None where there is none."""
    if (validation.run is None) != (validation.qrels is None):
        raise ParameterError("a run to validate on and its qrels belong together: give both or none")
    if validation.run is None or validation.qrels is None:
        if settings.by_measure:
            raise ParameterError(f"best='{settings.best}' is measured on a reranked run: give a run and qrels to validate on")
        return None
    validation.run.documents_for("a run to validate on")
    return unlearned(validation.run, validation.qrels, learned)


class CrossEncoderSettings(FitSettings):
    """Settings of the training of a cross-encoder.

    The defaults are those of the preset "air2025" (see `PRESETS`).

    Attributes:
        loss: "bce": binary cross-entropy of each pair of a query and a document; "margin": a hinge on how far the score of the
            relevant document lies above that of each other; "lambda": LambdaLoss over each group; "teacher": the squared error
            of these distances against a teacher's, whose scores the examples carry (MarginMSE).
        batch: Rows of a step: pairs with "bce", and groups, each of an example with all its documents, with the others.
        margin: How far above the others the relevant document is to lie, with "margin".

    Raises:
        ParameterError: A setting makes no sense; each that does not is named.
    """

    loss: Literal["bce", "margin", "lambda", "teacher"] = "bce"
    margin: float = Field(default=1.0, gt=0, allow_inf_nan=False)


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
"""Published trainings. "air2025" is that of the CheckThat! 2025 report: binary cross-entropy, batches of 16, two epochs, the
checkpoint of least validation loss. The report names no validation set, so a tenth of the training queries is held out, and no
learning rate, so it is sentence-transformers' customary 2e-5, which rises over the first tenth of the steps.

"air2025-run" is what the notebook of the same authors runs: `CrossEncoder.fit` of sentence-transformers with two epochs and
shuffled batches of 16, all else by default: a learning rate of 2e-5 after 10,000 warm-up steps, weight decay .01, and, without
evaluations, the last state. With 11,392 tweets there are 7,120 steps, in which the rate rises to 1.42e-5."""


def settings_of(preset: str | None = None, **changes: Any) -> CrossEncoderSettings:
    """The settings of a preset, or the defaults, with changes.

    Args:
        preset: Its name; None: the defaults.
        **changes: Settings by name.

    Raises:
        ParameterError: There is no such preset, or a setting makes no sense.
    """
    if preset is not None and preset not in PRESETS:
        raise ParameterError(f"there is no preset '{preset}'; there are {', '.join(PRESETS)}")
    return (CrossEncoderSettings() if preset is None else PRESETS[preset]).with_(**changes)
