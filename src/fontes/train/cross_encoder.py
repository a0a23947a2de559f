"""Training a cross-encoder on examples: a query, a relevant document, and others that are not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ParameterError
from ..core.progress import Report, silent
from ..core.qrels import Qrels
from ..core.run import Run
from ..neural.models.hub import located
from .examples import Examples
from .pair_settings import CrossEncoderSettings
from .runner.checkpoint_folder import check_place
from .runner.fit import Fit
from .runner.running import Training, check_training, run
from .training_split import check_teacher, queries, training_split, unlearned

BASE = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Validation:
    """What a training is validated on.

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
