"""The one runner of trainings: a start and rows go in, and a model that loads by its path comes out, with its figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...core.progress import Report, silent
from ...neural.models.hub import fingerprint, library
from .card import describe, licence_of
from .checkpoint_folder import IDENTITY, check_place, workplace, writing
from .settings import FitSettings

SUFFIX = ".training"  # of the working folder beside the output
LIBRARIES = ("torch", "transformers", "sentence_transformers", "accelerate", "datasets")


@dataclass(frozen=True)
class Rows:
    """The rows that a model is trained or validated on, as the data collator of its trainer takes them.

    Args:
        rows: A dict of columns for each row, all with the same columns in the same order; labels are under "label" or "labels".
        lengths: The tokens of each row, by which batches are made; texts that are cut count as they are cut.
    """

    rows: Sequence[Mapping[str, Any]] = ()
    lengths: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Fit:
    """The subject of a training: all in which the kinds of models differ.

    Args:
        kind: The kind of model, for messages and the card: "cross-encoder".
        base: The start, as it was named.
        folder: Folder of the start.
        model: The model of sentence-transformers or transformers, in float32 on the CPU.
        trainer: The name of its trainer in transformers or sentence_transformers.
        loss: What the trainer calls for the loss: in sentence_transformers a torch module, of features and labels; in
            transformers a function of outputs and labels. None: the model gives its own.
        train: What is learned from.
        validation: What its loss is validated on; none where there is nothing.
        measure: Gives the value of the measure `best` on the validation run, for the model as it is; None: there is no run.
        save: Writes the model to an empty folder, from which it can be loaded.
        restore: Puts the weights that `save` wrote to a folder into the model again.
        identity: What tells this training from others, besides settings and base: the hashes of the data.
        facts: What else the card says: how many queries there were, that a head is new.
        tokens: The ids of all tokens in `train`, special ones and padding among them: of the word embeddings these alone are
            trained, which is quicker and no other training. None: all.
        collator: Makes a batch of rows; None: that of the trainer.
        counted: Gives the number of items that the loss of a batch, as the collator made it, is the mean of; None: its rows.
        rate: Gives the factor of the learning rate for the part of the training that is over and the number of steps; None: a
            linear warm-up and decay, as the settings say.
        factors: Settings beside the learning rate that may make the loss overflow.
        minutes: Time limit, after which the training ends with what was learned; None: none.
    """

    kind: str
    base: str
    folder: Path
    model: Any
    trainer: str
    loss: Any
    train: Rows
    save: Callable[[Path], None]
    restore: Callable[[Path], None]
    identity: Mapping[str, Any]
    validation: Rows = Rows()
    measure: Callable[[], float] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    tokens: frozenset[int] | None = None
    collator: Any = None
    counted: Callable[[Any], int] | None = None
    rate: Callable[[float, int], float] | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    minutes: float | None = None

    def identity_with(self, settings: FitSettings) -> dict[str, Any]:
        """Identity of the training, as JSON values."""
        identity = {"kind": self.kind, "base": fingerprint(self.folder), "settings": settings.model_dump()}
        identity["data"] = dict(self.identity)
        return json.loads(json.dumps(identity))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Training:
    """Record of a training; beside the model as training.json.

    Args:
        kind: "cross-encoder", "bi-encoder" or "T5 rewriter".
        base: The start, as it was named.
        base_fingerprint: Of the start.
        licence: Of the start, where its README.md or config.json names one; else "not stated".
        fingerprint: Of the model.
        settings: Of the training.
        hashes: Of the data.
        rows: Number of rows to learn from.
        validated: Number of rows to validate on.
        steps: Number of steps.
        best: The step whose state the model has.
        losses: The loss of each step.
        evaluations: Evaluations: the "step", and there the "loss" and the measure by its name.
        precision: In which matrices were multiplied, and what the calibration found.
        device: Where it ran.
        seconds: Duration, without interruptions.
        versions: Of the libraries.
        facts: Further facts.
    """

    kind: str
    base: str
    base_fingerprint: str
    licence: str
    fingerprint: str
    settings: dict[str, Any]
    hashes: dict[str, Any]
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

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)

    @property
    def figures(self) -> dict[str, float]:
        """Values on the validation set after the best step; empty without one."""
        at_best = [row for row in self.evaluations if row["step"] == self.best]
        return {name: value for row in at_best for name, value in row.items() if name != "step"}


def check_training(purpose: str = "training") -> None:
    """Raises MissingExtraError where a library of the extra `train` is missing."""
    for name in LIBRARIES:
        library(name, purpose, extra="train")


def run(fit: Fit, settings: FitSettings, output: Path, overwrite: bool = False, progress: Report = silent) -> Training:
    """Trains a model and writes it to the folder `output`.

    While it trains, checkpoints are in a folder beside it, OUTPUT.training. A training that was interrupted goes on from there
    when it is started again with the same data, base and settings: on one machine to the same weights in float32.

    Args:
        fit: Model, data and loss.
        settings: Of the training.
        output: The folder to make; it appears when all is done.
        overwrite: Whether a model that was trained before is replaced, and another training in the working folder dropped.
        progress: Is called about once a second.

    Raises:
        InputError: The output is there or cannot be written, or the working folder holds something else.
        ParameterError: The loss is no number any more.
    """
    check_place(output, overwrite)
    check_training()
    from .fitting import fitted

    identity = fit.identity_with(settings)
    with workplace(output.with_name(output.name + SUFFIX)) as place:
        if overwrite and place.facts.get("identity") not in (None, identity):
            place.clear()
        place.begin(identity, "give another output, or overwrite it")
        history = fitted(fit, settings, place, progress)
        with writing(output) as folder:
            fit.save(folder)
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
                facts=dict(fit.facts),
            )
            describe(training, folder, output)
            (folder / IDENTITY).write_text(json.dumps(training.to_dict(), indent=1) + "\n", encoding="utf-8")
        place.remove()
    return training
