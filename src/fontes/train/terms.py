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
from ..core.progress import ProgressCallback, silent
from ..core.values import Topic, Topics
from ..neural.models.compute import candidates
from ..neural.models.hub import NO_CODE, device, find_model, fingerprint, library, model_errors, quiet, without_warnings
from ..rewrite.quretec import RELEVANT, THRESHOLD, Pieces, QuReTeC, positions_of
from ..rewrite.terms import Labels, TermScores, history_of, term_scores, words_of
from ..rewrite.turns import conversation_of, utterance
from ..storage.hashes import hash_json
from .runner.checkpoint_folder import check_output_folder, new_model_folder, open_checkpoints, temporary_checkpoints
from .runner.running import Fit, Rows
from .runner.settings import LAST, FitSettings, Settings

BASE = "sentence-transformers/all-MiniLM-L6-v2"
CARD = "term_classifier.json"
KIND = "term classifier"
WARM_UP = 0.1  # share of the training
WEIGHT_DECAY = 0.01  # weight decay, except for biases and norms


class TermSettings(Settings):
    """Training settings of a term classifier.

    Attributes:
        epochs: Passes over the topics.
        minutes: Time limit, after which training ends early; None: no limit.
        batch: Topics per step.
        lr: Peak learning rate of AdamW, after warm-up over the first tenth.
        dropout: Dropout of the hidden layers; from 0 to below 1.
        max_length: Maximum tokens of an input, at least 8.
        answers: Previous turns whose answers belong to the history.
        weight: Weight of a relevant word in the loss; any other word has 1.
        held_out: Share of conversations held out, half for the threshold and half to measure; between 0 and 1.
        limit: Maximum topics, the first after the shuffle; None: all.
        analyzer: Analyzer whose stems and stop words define relevant words.
        precision: Precision of matrix products: "float32", "bfloat16", or "auto": bfloat16 if the device supports it.
        seed: Seed of order, held-out part and dropout; below 2**32.
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
        """Return the settings for the runner."""
        precision = self.precision
        if precision == "auto":
            precision = "bfloat16" if "bfloat16" in candidates(device()) else "float32"
        names = ("epochs", "batch", "lr", "max_length", "dropout", "seed")
        same = {name: getattr(self, name) for name in names}
        return FitSettings(**same, weight_decay=WEIGHT_DECAY, warm_up=WARM_UP, held_out=0.0, best=LAST, precision=precision)


@dataclass(frozen=True)
class TermTraining:
    """Record of a training, saved with the model as term_classifier.json.

    Args:
        base: Starting encoder.
        fingerprint: Fingerprint of the model's weights, configuration and vocabulary, without this file.
        settings: Training settings.
        topics: Topics read.
        trained: Number of training topics, which have a history.
        validation: Topics held out to choose the threshold.
        held_out: Topics held out for `scores`.
        steps: Number of steps.
        epochs: Passes over the topics; fewer than in the settings if the time ran out.
        seconds: Duration.
        losses: Mean loss of each tenth of the steps.
        threshold: Probability with the best F1 on the validation topics, used by QuReTeC.
        chosen: Scores on the validation topics at this threshold, which are optimistic, since it was chosen on them.
        scores: Scores on the held-out topics.
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
        """Return all fields, for JSON."""
        scores = {"chosen": self.chosen.to_dict(), "scores": self.scores.to_dict()}
        return {**asdict(self), "settings": self.settings.model_dump(), **scores}


def train_terms(
    topics: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: TermSettings | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = silent,
    checkpoints: str | Path | None = None,
) -> TermTraining:
    """Train a term classifier and write it to the folder `output`, which `QuReTeC(output)` loads.

    The same seed, torch, processor and thread count give the same model, unless `minutes` cut it short, also after an
    interruption resumed from `checkpoints`. Uses a GPU if there is one.

    Args:
        topics: Topics with turns and manual rewrites; those without earlier turns or a rewrite are not used. Topics of one
            conversation, `<conversation>_<turn>`, are on one side.
        output: Folder to create, complete when it appears.
        base: Starting encoder: a folder, or a name on the Hugging Face hub.
        settings: Training settings; None: the defaults.
        overwrite: Whether to replace a term classifier.
        progress: Called about once a second.
        checkpoints: Folder for the training state, saved every five minutes, from which the same training resumes. None: the
            training starts anew.

    Raises:
        InputError: There are no rewrites or histories, `output` or base is unusable, or the checkpoints belong to another
            training.
        ParameterError: Numbers overflow at this learning rate and weight, or both minutes and checkpoints are given.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or TermSettings()
    target = Path(output)
    check_output_folder(target, overwrite, CARD, KIND)
    if checkpoints is not None and settings.minutes is not None:
        raise ParameterError("with minutes the learning rate follows the clock, so checkpoints are useless: give one of them")
    for name in ("torch", "transformers", "accelerate"):
        library(name, "training", extra="train")
    from .runner.fitting import fit_model

    start = time.perf_counter()
    topics = Topics.of(topics)
    sides = topic_split(topics, settings)
    folder = find_model(base, "encoder")
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
    with temporary_checkpoints() if checkpoints is None else open_checkpoints(Path(checkpoints)) as checkpoint_folder:
        checkpoint_folder.begin(fit.identity_with(fit_settings), "give another folder, or train as it says")
        losses = fit_model(fit, fit_settings, checkpoint_folder, progress).losses
    with new_model_folder(target) as folder:
        unwritten = f"{target} cannot be written"
        with model_errors(unwritten):
            model.save(folder, THRESHOLD)
        threshold, chosen, scores = _choose_threshold(folder, sides, settings)
        with model_errors(unwritten):
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
    """Topics to learn from, to choose the threshold on, and to measure with; each conversation is on one side."""

    learned: list[Topic]
    validation: list[Topic]
    held_out: list[Topic]


def topic_split(topics: Topics, settings: TermSettings) -> TopicSplit:
    """Divide the topics with history and rewrite by conversation, shuffled; raise InputError if there are too few."""
    rewritten = [topic for topic in topics.values() if topic.turns and topic.turns[-1].manual.strip()]
    usable = [topic for topic in rewritten if history_of(topic, settings.answers)]
    if not usable:
        raise InputError("there are no training data: no topic has earlier turns and a manual rewrite of its own turn")
    random = np.random.default_rng(settings.seed)
    usable = [usable[i] for i in random.permutation(len(usable))][: settings.limit]
    conversations = sorted({conversation_of(topic) for topic in usable})
    if len(conversations) < 3:
        need = "at least three are needed: to learn from, to choose the threshold on, and to measure with"
        raise InputError(f"the topics belong to {len(conversations)} conversation{'s' * (len(conversations) > 1)}; {need}")
    count = min(len(conversations) - 1, max(2, round(settings.held_out * len(conversations))))
    chosen = [conversations[i] for i in random.permutation(len(conversations))[:count]]
    side = dict.fromkeys(chosen[: count // 2], 1) | dict.fromkeys(chosen[count // 2 :], 2)
    sides = TopicSplit([], [], [])
    for topic in usable:
        sides[side.get(conversation_of(topic), 0)].append(topic)
    return sides


def rate(part: float, steps: int) -> float:
    """Return the factor of the learning rate before a step: it rises during WARM_UP, then falls to 0.

    Args:
        part: Finished share of the training.
        steps: Number of steps.
    """
    return max(0.0, min((part + 1 / steps) / WARM_UP, (1 - part) / (1 - WARM_UP), 1.0))


def _choose_threshold(folder: Path, sides: TopicSplit, settings: TermSettings) -> tuple[float, TermScores, TermScores]:
    """Return the threshold with the best F1 on the validation topics, and its scores on validation and held-out topics."""
    stage = QuReTeC(folder, settings.answers, max_length=settings.max_length, precision="float32")
    labels = Labels(settings.analyzer)

    def scores(side: list[Topic], thresholds: Sequence[float]) -> dict[float, TermScores]:
        topics = Topics(side)
        probabilities = stage.probabilities(topics)
        if not np.isfinite([value for words in probabilities.values() for _, value in words]).all():
            raise ParameterError(
                f"with lr={settings.lr:g} and weight={settings.weight:g} the numbers overflow: use smaller ones"
            )
        return {t: term_scores(probabilities, topics, t, settings.answers, analyzer=labels) for t in thresholds}

    by_threshold = scores(sides.validation, [round(0.05 * i, 2) for i in range(2, 19)])
    best = max(by_threshold, key=lambda threshold: (by_threshold[threshold].f1, -abs(threshold - THRESHOLD)))
    return best, by_threshold[best], scores(sides.held_out, [best])[best]


IGNORED = -100  # label of tokens that the loss ignores


class TermModel:
    """Token classifier in float32 on the CPU, made from the encoder in a folder; the seed is that of the new head."""

    def __init__(self, folder: Path, settings: TermSettings) -> None:
        import torch
        import transformers

        self._settings = settings
        labels = {0: "O", 1: RELEVANT}
        transformers.set_seed(settings.seed)
        with model_errors(f"the base {folder} cannot be read as an encoder"), without_warnings():
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, **NO_CODE)
            self.network: Any = transformers.AutoModelForTokenClassification.from_pretrained(
                folder,
                **NO_CODE,
                id2label=labels,
                label2id={name: number for number, name in labels.items()},
                hidden_dropout_prob=settings.dropout,
                dtype=torch.float32,
            )
        self.collator = transformers.DataCollatorForTokenClassification(self.tokenizer, label_pad_token_id=IGNORED)
        self._pieces = Pieces(self.tokenizer, positions_of(self.network.config))

    def rows(self, topics: Sequence[Topic]) -> Rows:
        """Return the topics as token ids, labelled 1 (relevant) or 0 at the first subword of each word of the history.

        Other tokens have the label IGNORED.
        """
        answers, labels = self._settings.answers, Labels(self._settings.analyzer)
        marks = [labels(topic, answers) for topic in topics]
        histories = [history_of(topic, answers) for topic in topics]
        turns = [words_of(utterance(topic)) for topic in topics]
        rows: list[dict[str, Any]] = []
        inputs = self._pieces.inputs(histories, turns, self._settings.max_length)
        for encoded, marked in zip(inputs, marks, strict=True):
            row = {"input_ids": encoded.ids, "labels": [IGNORED] * len(encoded.ids)}
            for start, mark in zip(encoded.starts, marked[encoded.dropped :], strict=True):
                row["labels"][start] = int(mark)
            rows.append(row)
        return Rows(rows, [len(row["input_ids"]) for row in rows])

    def loss(self, outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        """Return the cross-entropy of a batch, with relevant words weighted."""
        import torch

        logits = outputs.logits.float()
        weights = torch.tensor([1.0, self._settings.weight], device=logits.device)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), weight=weights, ignore_index=IGNORED)

    def save(self, folder: Path, threshold: float | None = None) -> None:
        """Write the model to a folder, with the threshold of relevant terms if known."""
        if threshold is not None:
            self.network.config.term_threshold = threshold
        with quiet():
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def restore(self, folder: Path) -> None:
        """Load weights from a folder."""
        import torch
        import transformers

        with without_warnings():
            loaded = transformers.AutoModelForTokenClassification.from_pretrained(folder, **NO_CODE, dtype=torch.float32)
        self.network.load_state_dict(loaded.state_dict())
