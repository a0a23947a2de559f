"""Training a term classifier for QuReTeC on conversations with manual rewrites, such as CANARD's."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from ..core.errors import InputError, ParameterError
from ..core.progress import Report, silent
from ..core.values import Topic, Topics
from ..neural.models.compute import candidates
from ..neural.models.hub import device, fingerprint, library, located, readable
from ..rewrite.quretec import THRESHOLD, QuReTeC
from ..rewrite.terms import Labels, TermScores, history_of, term_scores
from ..rewrite.turns import conversation_of
from ..storage.hashes import hash_json
from .runner.checkpoint_folder import check_place, temporary_workplace, workplace, writing
from .runner.running import Fit
from .runner.settings import LAST, FitSettings, Settings

BASE = "sentence-transformers/all-MiniLM-L6-v2"
CARD = "term_classifier.json"
KIND = "term classifier"
WARM_UP = 0.1  # the share of the training in which the learning rate rises
DECAY = 0.01  # of the weights, biases and norms excepted


class TermSettings(Settings):
    """Settings of the training of a term classifier.

    Attributes:
        epochs: Passes over the topics.
        minutes: Stop after so many, with what was learned by then; None: no limit.
        batch: Topics of a step.
        lr: The greatest learning rate of AdamW: it rises over the first tenth and falls to 0 at the end.
        dropout: Of the hidden layers, while training; from 0 to below 1.
        max_length: Tokens of an input, 8 at least.
        answers: Of how many turns before the current one the answers belong to the history.
        weight: Weight of a relevant word in the loss; any other word has 1.
        held_out: The share of conversations kept out, half to choose the threshold on and half to measure with; above 0 and
            below 1.
        limit: At most so many topics, the first after the shuffle; None: all.
        analyzer: Whose stems and stop words say which words are relevant.
        precision: Of the products of matrices: "float32", "bfloat16", or "auto": bfloat16 where the device computes in it.
        seed: Of the order, the part held out and the dropout; below 2**32.

    Raises:
        ParameterError: A setting makes no sense; each that does not is named.
    """

    epochs: int = Field(default=3, gt=0)
    minutes: float | None = Field(default=None, gt=0)
    batch: int = Field(default=16, gt=0)
    lr: float = Field(default=1.5e-4, gt=0, allow_inf_nan=False)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_length: int = Field(default=256, ge=8)
    answers: int = Field(default=0, ge=0)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    held_out: float = Field(default=0.05, gt=0, lt=1)
    limit: int | None = Field(default=None, gt=0)
    analyzer: str = "english"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = Field(default=0, ge=0, lt=2**32)

    def fit_settings(self) -> FitSettings:
        """The settings of the runner."""
        precision = self.precision
        if precision == "auto":
            precision = "bfloat16" if "bfloat16" in candidates(device()) else "float32"
        names = ("epochs", "batch", "lr", "max_length", "dropout", "seed")
        same = {name: getattr(self, name) for name in names}
        return FitSettings(**same, weight_decay=DECAY, warm_up=WARM_UP, held_out=0.0, best=LAST, precision=precision)


@dataclass(frozen=True)
class TermTraining:
    """Record of a training; beside the model as term_classifier.json.

    Args:
        base: The encoder that the training began with.
        fingerprint: Of the model's weights, configuration and vocabulary, without this file.
        settings: Of the training.
        topics: Number of topics that were read.
        trained: Those of them that have a history and were learned from.
        validation: Those kept out to choose the threshold on.
        held_out: Those kept out of that too, for `scores`.
        steps: Number of steps.
        epochs: Passes over the topics; below the number that was set where the minutes were over.
        seconds: Duration.
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
    that was interrupted and resumed from its checkpoints. It runs on a GPU where there is one.

    Args:
        topics: With turns and manual rewrites; those without earlier turns, or a rewrite of their own, teach nothing. All
            topics of one conversation, `<conversation>_<turn>`, are learned from or held out together.
        output: The folder to make; it appears when all is done, so a killed training leaves nothing there.
        base: The encoder to start from: a folder, or a name on the Hugging Face hub.
        settings: How to train; None: the defaults.
        overwrite: Whether a term classifier that is there is replaced.
        progress: Is called about once a second.
        checkpoints: A folder for the state of the training, every five minutes. An interrupted training resumes from there when
            it is started again with the same topics, base and settings. None: it begins anew.

    Raises:
        InputError: The topics have no rewrites or histories, `output` is there or cannot be written, the base is not there or
            no encoder, or the checkpoints are of another training.
        ParameterError: The numbers overflow at this learning rate and weight, or there are minutes and checkpoints.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or TermSettings()
    place = Path(output)
    check_place(place, overwrite, CARD, KIND)
    if checkpoints is not None and settings.minutes is not None:
        raise ParameterError(
            "with minutes the learning rate follows the clock, so checkpoints are of no use: give one of the two"
        )
    for name in ("torch", "transformers", "accelerate"):
        library(name, "training", extra="train")
    from .runner.fitting import fitted
    from .term_model import TermModel

    start = time.perf_counter()
    topics = Topics.of(topics)
    sides = topic_split(topics, settings)
    folder = located(base, "encoder")
    model = TermModel(folder, settings)
    rows = model.rows(sides.learned)
    fit = Fit(
        kind=KIND,
        base=str(base),
        folder=folder,
        model=model.network,
        trainer="Trainer",
        loss=model.loss,
        train=rows,
        save=model.save,
        restore=model.restore,
        collator=model.collator,
        identity={"topics": hash_json(rows.rows), "weight": settings.weight},
        rate=rate,
        factors={"weight": settings.weight},
        minutes=settings.minutes,
    )
    fit_settings = settings.fit_settings()
    with temporary_workplace() if checkpoints is None else workplace(Path(checkpoints)) as work:
        work.begin(fit.identity_with(fit_settings), "give another folder, or train as it says")
        losses = fitted(fit, fit_settings, work, progress).losses
    with writing(place) as folder:
        unwritten = f"{place} cannot be written"
        with readable(unwritten):
            model.save(folder, THRESHOLD)
        threshold, chosen, scores = _measured(folder, sides, settings)
        with readable(unwritten):
            model.save(folder, threshold)
        training = TermTraining(
            base=str(base),
            fingerprint=fingerprint(folder),
            settings=settings,
            topics=len(topics),
            trained=len(sides.learned),
            validation=len(sides.validation),
            held_out=len(sides.held_out),
            steps=len(losses),
            epochs=round(len(losses) / math.ceil(len(rows) / settings.batch), 3),
            seconds=round(time.perf_counter() - start, 1),
            losses=tuple(round(float(np.mean(part)), 4) for part in np.array_split(losses, min(10, len(losses)))),
            threshold=threshold,
            chosen=chosen,
            scores=scores,
        )
        (folder / CARD).write_text(json.dumps(training.to_dict(), indent=2) + "\n", encoding="utf-8")
    return training


class TopicSplit(NamedTuple):
    """The topics of a training, each conversation on one side.

    Attributes:
        learned: Those to learn from.
        validation: Those to choose the threshold on.
        held_out: Those that have no part in the training, to measure with.
    """

    learned: list[Topic]
    validation: list[Topic]
    held_out: list[Topic]


def topic_split(topics: Topics, settings: TermSettings) -> TopicSplit:
    """The topics with history and rewrite, divided by conversation, in a shuffled order.

    Raises:
        InputError: There is nothing to learn, or too little to hold out.
    """
    rewritten = [topic for topic in topics.values() if topic.turns and topic.turns[-1].manual.strip()]
    usable = [topic for topic in rewritten if history_of(topic, settings.answers)]
    if not usable:
        raise InputError("there is nothing to learn: no topic has earlier turns and a manual rewrite of its own turn")
    random = np.random.default_rng(settings.seed)
    usable = [usable[at] for at in random.permutation(len(usable))][: settings.limit]
    names = sorted({conversation_of(topic) for topic in usable})
    if len(names) < 3:
        need = "three at least are needed: to learn from, to choose the threshold on, and to measure with"
        raise InputError(f"the topics are of {len(names)} conversation{'s' * (len(names) > 1)}; {need}")
    count = min(len(names) - 1, max(2, round(settings.held_out * len(names))))
    chosen = [names[at] for at in random.permutation(len(names))[:count]]
    side = dict.fromkeys(chosen[: count // 2], 1) | dict.fromkeys(chosen[count // 2 :], 2)
    sides = TopicSplit([], [], [])
    for topic in usable:
        sides[side.get(conversation_of(topic), 0)].append(topic)
    return sides


def rate(part: float, steps: int) -> float:
    """The factor of the learning rate before a step: it rises over WARM_UP and falls to 0 at the end.

    Args:
        part: The part of the training that is over, by steps or by the clock.
        steps: Steps of the training.
    """
    return max(0.0, min((part + 1 / steps) / WARM_UP, (1 - part) / (1 - WARM_UP), 1.0))


def _measured(folder: Path, sides: TopicSplit, settings: TermSettings) -> tuple[float, TermScores, TermScores]:
    """The threshold with the best F1 on the topics for validation, its scores there, and those on the topics held out."""
    stage = QuReTeC(folder, settings.answers, max_length=settings.max_length, precision="float32")
    labels = Labels(settings.analyzer)

    def scores(side: list[Topic], thresholds: Sequence[float]) -> dict[float, TermScores]:
        topics = Topics(side)
        probabilities = stage.probabilities(topics)
        if not np.isfinite([value for words in probabilities.values() for _, value in words]).all():
            raise ParameterError(f"with lr={settings.lr:g} and weight={settings.weight:g} the numbers overflow: take less")
        return {at: term_scores(probabilities, topics, at, settings.answers, analyzer=labels) for at in thresholds}

    by_threshold = scores(sides.validation, [round(0.05 * at, 2) for at in range(2, 19)])
    best = max(by_threshold, key=lambda at: (by_threshold[at].f1, -abs(at - THRESHOLD)))
    return best, by_threshold[best], scores(sides.held_out, [best])[best]
