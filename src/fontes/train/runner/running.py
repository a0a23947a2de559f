"""Runner of trainings: from a base and rows to a model folder with its record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ...core.work import ProgressCallback, silent, work
from ...neural.models.hub import fingerprint, library, model_errors
from .card import describe, licence_of
from .checkpoint_folder import IDENTITY, check_output_folder, new_model_folder, open_checkpoints
from .settings import FitSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

SUFFIX = ".training"  # of the working folder beside the output
LIBRARIES = ("torch", "transformers", "sentence_transformers", "accelerate", "datasets")


class QueryRow(TypedDict):
    """A query, its documents and their labels."""

    query: str
    documents: list[str]
    labels: list[float]


@dataclass(frozen=True)
class Rows:
    """Rows of training or validation data, for the data collator of the trainer.

    Args:
        rows: Columns of each row, in one order; labels are under "label" or "labels".
        lengths: Tokens of each row, after truncation, used to make batches.
    """

    rows: Sequence[Mapping[str, Any]] = ()
    lengths: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Fit:
    """The parts of a training that differ between kinds of models.

    Args:
        kind: Kind of model, for messages and the card, such as "cross-encoder".
        base: Start, as named by the caller.
        folder: Folder of the start.
        model: Model of sentence-transformers or transformers, in float32 on the CPU.
        trainer: Name of its trainer in transformers or sentence_transformers.
        loss: For sentence_transformers a torch module of features and labels; for transformers a function of outputs and
            labels. None: the model's own loss.
        train: Training rows.
        validation: Validation rows; may be empty.
        measure: Function that returns the measure `best` of the validation run for the current model; None: no validation run.
        save: Function that writes the model to an empty folder, from which it can be loaded.
        restore: Function that loads weights written by `save`.
        identity: Identity of the training in addition to settings and base: hashes of the data.
        facts: Further facts for the card, such as the number of queries.
        tokens: Ids of all tokens in `train`, with special tokens and padding: only these word embeddings are trained, which is
            faster with equal results. None: all are trained.
        collator: Makes a batch of rows; None: the trainer's collator.
        counted: Function that returns the number of items whose mean loss a collated batch gives; None: the number of rows.
        rate: Function from the finished share of the training and the number of steps to the factor of the learning rate; None:
            linear warm-up and decay, as in the settings.
        rates: Learning rates of some parameters, by a pattern of their names, instead of the rate in the settings.
        scheduled: Function called before each step with the finished share of the training; a penalty warms up by it.
        factors: Settings other than the learning rate that may make the loss overflow.
        minutes: Time limit, after which the training ends early; None: no limit.
        finish: Function called with the folder of the trained model, which it may change; returns further facts.
    """

    kind: str
    base: str
    folder: Path
    model: nn.Module
    trainer: str
    loss: nn.Module | Callable[..., Tensor] | None
    train: Rows
    save: Callable[[Path], None]
    restore: Callable[[Path], None]
    identity: Mapping[str, object]
    validation: Rows = Rows()
    measure: Callable[[], float] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    tokens: frozenset[int] | None = None
    collator: Callable[..., Mapping[str, object]] | None = None
    counted: Callable[[Mapping[str, Tensor]], int] | None = None
    rate: Callable[[float, int], float] | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    scheduled: Callable[[float], None] | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    minutes: float | None = None
    finish: Callable[[Path], Mapping[str, object]] = lambda folder: {}

    def identity_with(self, settings: FitSettings) -> dict[str, Any]:
        """Return the identity of the training, as JSON values."""
        identity = {"kind": self.kind, "base": fingerprint(self.folder), "settings": settings.model_dump()}
        identity["data"] = dict(self.identity)
        values: dict[str, Any] = json.loads(json.dumps(identity))
        return values


@dataclass(frozen=True)
class Training:
    """Record of a training, saved with the model as training.json.

    Args:
        kind: "cross-encoder", "bi-encoder", "ColBERT model", "SPLADE model", "T5 reranker", "T5 rewriter" or "term
            classifier".
        base: Start, as named by the caller.
        base_fingerprint: Fingerprint of the start.
        licence: Licence of the start, from its README.md or config.json, or "not stated".
        fingerprint: Fingerprint of the model.
        settings: Training settings.
        hashes: Hashes of the data.
        rows: Number of training rows.
        validated: Number of validation rows.
        steps: Number of steps.
        best: Step of the model's state.
        losses: Loss of each step.
        evaluations: Evaluations: "step", "loss", and the measure by its name.
        precision: Precision of matrix products, and the result of the calibration.
        device: Device used.
        seconds: Duration, without interruptions.
        versions: Versions of the libraries.
        facts: Further facts.
    """

    kind: str
    base: str
    base_fingerprint: str
    licence: str
    fingerprint: str
    settings: dict[str, Any]
    hashes: dict[str, object]
    rows: int
    validated: int
    steps: int
    best: int
    losses: tuple[float, ...]
    evaluations: tuple[dict[str, float], ...]
    precision: str
    device: str
    seconds: float
    versions: dict[str, str]
    facts: dict[str, Any]

    def to_dict(self) -> dict[str, object]:
        """Return all fields, for JSON."""
        return asdict(self)

    @property
    def figures(self) -> dict[str, float]:
        """Validation values after the best step; empty without validation."""
        at_best = [row for row in self.evaluations if row["step"] == self.best]
        return {name: value for row in at_best for name, value in row.items() if name != "step"}


def check_training(purpose: str = "training") -> None:
    """Raise MissingExtraError if a library of the extra `train` is missing."""
    for name in LIBRARIES:
        library(name, purpose, extra="train")


def begin(output: str | Path, overwrite: bool, purpose: str = "training") -> Path:
    """Return the folder of a model to train; raise InputError or MissingExtraError if it cannot be written or trained."""
    check_output_folder(Path(output), overwrite)
    check_training(purpose)
    return Path(output)


def run(
    fit: Fit, settings: FitSettings, output: Path, overwrite: bool = False, progress: ProgressCallback | None = None
) -> Training:
    """Train a model and write it to the folder `output`, complete when it appears.

    Checkpoints are in the working folder beside it, OUTPUT.training. An interrupted training that is restarted with the same
    data, base and settings resumes from there, in float32 on the same machine to the same weights. `overwrite` replaces a
    trained model and removes another training in the working folder. Raises InputError for an unusable output or working
    folder, and ParameterError if the loss is no longer a number.
    """
    begin(output, overwrite)
    from .fitting import fit_model

    identity = fit.identity_with(settings)
    with work(progress=progress), open_checkpoints(output.with_name(output.name + SUFFIX)) as checkpoints:
        if overwrite and checkpoints.facts.get("identity") not in (None, identity):
            checkpoints.clear()
        checkpoints.begin(identity, "give another output, or overwrite it")
        history = fit_model(fit, settings, checkpoints)
        with new_model_folder(output) as folder, work(progress=silent):
            with model_errors(f"{output} cannot be written"):
                fit.save(folder)
            facts = {**fit.facts, **fit.finish(folder)}
            training = Training(
                kind=fit.kind,
                base=fit.base,
                base_fingerprint=identity["base"],
                licence=licence_of(fit.folder),
                fingerprint=fingerprint(folder),
                settings=settings.model_dump(),
                hashes=dict(fit.identity),
                rows=len(fit.train),
                validated=len(fit.validation),
                steps=len(history.losses),
                best=history.best,
                losses=tuple(round(loss, 6) for loss in history.losses),
                evaluations=history.evaluations,
                precision=history.precision,
                device=history.device,
                seconds=round(history.seconds, 1),
                versions={name.replace("_", "-"): version(name.replace("_", "-")) for name in ("fontes", *LIBRARIES)},
                facts=facts,
            )
            describe(training, folder, output)
            (folder / IDENTITY).write_text(json.dumps(training.to_dict(), indent=1) + "\n", encoding="utf-8")
        checkpoints.remove()
    return training
