"""Training a term classifier for QuReTeC on conversations with manual rewrites, as CANARD's."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ParameterError
from ...core.progress import Report, silent
from ...core.values import Topic, Topics
from ...neural.models.hub import fingerprint, library, located
from ...rewrite.quretec import THRESHOLD, QuReTeC
from ...rewrite.terms import Labels, TermScores, term_scores
from ..runner.checkpoint_folder import check_place, writing
from .data import TopicSplit, topic_split
from .settings import TermSettings, check_finite

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
        validation: How many were kept out to choose the threshold on.
        held_out: How many were kept out of that too, for `scores`.
        steps: How many steps the training took.
        epochs: How often each topic was read; below the number that was set where the minutes were over.
        seconds: How long it took.
        losses: The mean loss of each tenth of the steps.
        threshold: The probability with the best F1 on the topics for validation, which QuReTeC uses.
        chosen: The terms of the topics for validation at this threshold, which was chosen on them: too good to be expected.
        scores: The terms of the topics held out.
    """

    base: str
    fingerprint: str
    settings: TermSettings
    topics: int
    trained: int
    validation: int
    held_out: int
    steps: int
    epochs: float
    seconds: float
    losses: tuple[float, ...]
    threshold: float
    chosen: TermScores
    scores: TermScores

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        scores = {"chosen": self.chosen.to_dict(), "scores": self.scores.to_dict()}
        return {**asdict(self), "settings": self.settings.model_dump(), **scores}


def train_terms(
    topics: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: TermSettings | None = None,
    overwrite: bool = False,
    progress: Report = silent,
    checkpoints: str | Path | None = None,
) -> TermTraining:
    """Trains a term classifier and writes it to the folder `output`, from which `QuReTeC(output)` loads it.

    The same seed, torch, processor and number of threads give the same model, unless minutes cut it short; so does a training
    that was interrupted and went on from its checkpoints. It runs on a GPU where there is one.

    Args:
        topics: With turns and manual rewrites; those without earlier turns, or a rewrite of their own, teach nothing. All
            topics of one conversation, `<conversation>_<turn>`, are learned from or held out together.
        output: The folder to make; it appears when all is done, so a killed training leaves nothing there.
        base: The encoder to start from: a folder, or a name on the Hugging Face hub.
        settings: How to train; None: the defaults.
        overwrite: Whether a term classifier that is there is replaced.
        progress: Is called about once a second.
        checkpoints: A folder for the state of the training, every five minutes. A training that was interrupted goes on from
            there, when it is started again with the same topics, base and settings. None: it begins anew.

    Raises:
        InputError: The topics have no rewrites or histories, `output` is there or cannot be written, the base is not there or
            no encoder, or the checkpoints are of another training.
        ParameterError: The numbers overflow at this learning rate and weight, or there are minutes and checkpoints.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or TermSettings()
    place = Path(output)
    check_place(place, overwrite, CARD, "term classifier")
    if checkpoints is not None and settings.minutes is not None:
        raise ParameterError(
            "with minutes the learning rate follows the clock, so checkpoints are of no use: give one of the two"
        )
    for name in ("torch", "transformers", "accelerate"):
        library(name, "training", extra="train")
    from .trainer import TermTrainer

    start = time.perf_counter()
    topics = Topics.of(topics)
    sides = topic_split(topics, settings)
    trainer = TermTrainer(located(base, "encoder"), settings)
    examples = trainer.examples(sides.learned)
    losses = trainer.train(examples, progress, None if checkpoints is None else Path(checkpoints))
    with writing(place) as folder:
        trainer.save(folder, THRESHOLD, place)
        threshold, chosen, scores = _measured(folder, sides, settings)
        trainer.save(folder, threshold, place)
        training = TermTraining(
            base=str(base),
            fingerprint=fingerprint(folder),
            settings=settings,
            topics=len(topics),
            trained=len(sides.learned),
            validation=len(sides.validation),
            held_out=len(sides.held_out),
            steps=len(losses),
            epochs=round(len(losses) / math.ceil(len(examples) / settings.batch), 3),
            seconds=round(time.perf_counter() - start, 1),
            losses=_tenths(losses),
            threshold=threshold,
            chosen=chosen,
            scores=scores,
        )
        (folder / CARD).write_text(json.dumps(training.to_dict(), indent=2) + "\n", encoding="utf-8")
    return training


def _measured(folder: Path, sides: TopicSplit, settings: TermSettings) -> tuple[float, TermScores, TermScores]:
    """The threshold with the best F1 on the topics for validation; what it scores there, and on those held out."""
    stage = QuReTeC(folder, settings.answers, max_length=settings.max_length, precision="float32")
    labels = Labels(settings.analyzer)

    def scores(side: list[Topic], thresholds: Sequence[float]) -> dict[float, TermScores]:
        topics = Topics(side)
        probabilities = stage.probabilities(topics)
        check_finite(settings, [value for words in probabilities.values() for _, value in words])
        return {at: term_scores(probabilities, topics, at, settings.answers, analyzer=labels) for at in thresholds}

    by_threshold = scores(sides.validation, [round(0.05 * at, 2) for at in range(2, 19)])
    best = max(by_threshold, key=lambda at: (by_threshold[at].f1, -abs(at - THRESHOLD)))
    return best, by_threshold[best], scores(sides.held_out, [best])[best]


def _tenths(losses: list[float]) -> tuple[float, ...]:
    return tuple(round(float(np.mean(part)), 4) for part in np.array_split(losses, min(10, len(losses))))
