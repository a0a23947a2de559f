"""Training a term classifier for QuReTeC on conversations with manual rewrites, as CANARD's."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InputError
from ..core.progress import Report, silent
from ..core.values import Topic, Topics
from ..neural.models.hub import fingerprint, located
from ..rewrite.quretec import THRESHOLD, QuReTeC
from ..rewrite.terms import Labels, TermScores, term_scores
from ..storage.artifact import commit, staging, umask
from .term_data import sides_of
from .term_settings import TermSettings
from .term_trainer import Trainer, check_finite

BASE = "sentence-transformers/all-MiniLM-L6-v2"
CARD = "term_classifier.json"


@dataclass(frozen=True)
class TermTraining:
    """What was trained on what; beside the model as term_classifier.json.

    Args:
        base: The encoder that the training began with.
        fingerprint: Of the model's weights, configuration and vocabulary, without this file.
        settings: How it was trained.
        topics: How many topics were read.
        trained: How many of them have a history and were learned from.
        held_out: How many were kept out for `scores`.
        steps: How many steps the training took.
        epochs: How often each topic was read; below the number that was set where the minutes were over.
        seconds: How long it took.
        losses: The mean loss of each tenth of the steps.
        threshold: The probability with the best F1 on the part held out, which QuReTeC uses.
        scores: The terms of the part held out.
    """

    base: str
    fingerprint: str
    settings: TermSettings
    topics: int
    trained: int
    held_out: int
    steps: int
    epochs: float
    seconds: float
    losses: tuple[float, ...]
    threshold: float
    scores: TermScores

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {**asdict(self), "settings": self.settings.model_dump(), "scores": self.scores.to_dict()}


def train_terms(
    topics: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: TermSettings | None = None,
    overwrite: bool = False,
    progress: Report = silent,
) -> TermTraining:
    """Trains a term classifier and writes it to the folder `output`, from which `QuReTeC(output)` loads it.

    The same seed, torch, processor and number of threads give the same model, unless minutes cut it short.

    Args:
        topics: With turns and manual rewrites; those without earlier turns, or a rewrite of their own, teach nothing. All
            topics of one conversation, `<conversation>_<turn>`, are learned from or held out together.
        output: The folder to make; it appears when all is done, so a killed training leaves nothing there.
        base: The encoder to start from: a folder, or a name on the Hugging Face hub.
        settings: How to train; None: the defaults.
        overwrite: Whether a term classifier that is there is replaced.
        progress: Is called about once a second.

    Raises:
        InputError: The topics have no rewrites or histories, `output` is there or cannot be written, or the base is not
            there or no encoder.
        ParameterError: The numbers overflow at this learning rate and weight.
    """
    settings = settings or TermSettings()
    place = Path(output)
    _check_place(place, overwrite)
    start = time.perf_counter()
    topics = Topics.of(topics)
    learned, held_out = sides_of(topics, settings)
    trainer = Trainer(located(base, "encoder"), settings)
    examples = trainer.examples(learned)
    losses = trainer.train(examples, progress)
    with _writing(place) as folder:
        trainer.save(folder, THRESHOLD, place)
        threshold, scores = _held_out(folder, held_out, settings)
        trainer.save(folder, threshold, place)
        training = TermTraining(
            base=str(base),
            fingerprint=fingerprint(folder),
            settings=settings,
            topics=len(topics),
            trained=len(learned),
            held_out=len(held_out),
            steps=len(losses),
            epochs=round(len(losses) / math.ceil(len(examples) / settings.batch), 3),
            seconds=round(time.perf_counter() - start, 1),
            losses=_tenths(losses),
            threshold=threshold,
            scores=scores,
        )
        (folder / CARD).write_text(json.dumps(training.to_dict(), indent=2) + "\n", encoding="utf-8")
    return training


def _check_place(place: Path, overwrite: bool) -> None:
    """Raises InputError where the model could not be written, which is better known before the training."""
    if place.exists() and not overwrite:
        raise InputError(f"{place} is there already; give another folder, or overwrite it")
    if place.exists() and not (place / CARD).is_file():
        raise InputError(f"{place} is no term classifier (it has no {CARD}), so it is not overwritten; give another folder")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place.parent} cannot be made: {error.strerror}") from None
    if not os.access(place.parent, os.W_OK):
        raise InputError(f"{place.parent} cannot be written to")


@contextmanager
def _writing(place: Path) -> Iterator[Path]:
    """A folder that takes its place when all went well. Raises InputError where it cannot be written."""
    try:
        with staging(place) as folder:
            yield folder
            for path in folder.iterdir():
                path.chmod(0o666 & ~umask())  # safetensors writes for the owner alone
            commit(folder, place)
    except OSError as error:
        raise InputError(f"{place} cannot be written: {error.strerror or error}") from error


def _held_out(folder: Path, topics: list[Topic], settings: TermSettings) -> tuple[float, TermScores]:
    """The threshold with the best F1 on the topics held out, and what it scores there."""
    held_out = Topics(topics)
    stage = QuReTeC(folder, settings.answers, max_length=settings.max_length, precision="float32", device="cpu")
    probabilities, labels = stage.probabilities(held_out), Labels(settings.analyzer)
    check_finite(settings, [value for words in probabilities.values() for _, value in words])
    thresholds = [round(0.05 * at, 2) for at in range(2, 19)]
    scores = {at: term_scores(probabilities, held_out, at, settings.answers, analyzer=labels) for at in thresholds}
    best = max(thresholds, key=lambda at: (scores[at].f1, -abs(at - THRESHOLD)))
    return best, scores[best]


def _tenths(losses: list[float]) -> tuple[float, ...]:
    return tuple(round(float(np.mean(part)), 4) for part in np.array_split(losses, min(10, len(losses))))
