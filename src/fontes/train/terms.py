"""Training a term classifier for QuReTeC on conversations with manual rewrites, as CANARD's."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import InputError, ParameterError, Topic, Topics
from ..neural.models.compute import candidates
from ..neural.models.hub import fingerprint, library, located, quiet, readable
from ..rewrite.quretec import RELEVANT, THRESHOLD, Input, Pieces, QuReTeC, positions_of, without_warnings
from ..rewrite.terms import Labels, TermScores, history_of, term_scores, words_of
from ..rewrite.turns import utterance

BASE = "sentence-transformers/all-MiniLM-L6-v2"
CARD = "term_classifier.json"
IGNORED = -100  # a token that has no label
WARM_UP = 0.1  # the share of the training in which the learning rate rises
POOL = 64  # batches that are made of one part of the shuffled topics, sorted by length
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class TermSettings:
    """How a term classifier is trained.

    epochs       passes over the topics
    minutes      stop after so many, with what was learned by then; None: no limit
    batch        topics of a step
    lr           the greatest learning rate of AdamW: it rises over the first tenth and falls to 0 at the end
    dropout      of the hidden layers, while training
    max_length   tokens of an input
    answers      of how many turns before the current one the answers belong to the history
    weight       how much a relevant word counts in the loss against another
    held_out     the share of conversations kept out, to find the threshold and measure
    limit        at most so many topics, the first after the shuffle; None: all
    analyzer     whose stems and stop words say which words are relevant
    precision    of the products of matrices: "float32", "bfloat16", or "auto": bfloat16 where the processor computes in it
    seed         of the order, the part held out and the dropout
    """

    epochs: int = 3
    minutes: float | None = None
    batch: int = 16
    lr: float = 1.5e-4
    dropout: float = 0.1
    max_length: int = 256
    answers: int = 0
    weight: float = 1.0
    held_out: float = 0.05
    limit: int | None = None
    analyzer: str = "english"
    precision: str = "auto"
    seed: int = 0

    def check(self) -> None:
        """Raises ParameterError for a setting that makes no sense."""
        wrong = [
            f"{name} is above 0, not {getattr(self, name)!r}"
            for name in ("epochs", "minutes", "batch", "lr", "weight", "limit")
            if getattr(self, name) is not None and not getattr(self, name) > 0
        ]
        if not 0 <= self.dropout < 1 or not 0 < self.held_out < 1:
            wrong.append("dropout is from 0 up and held_out above 0, both below 1")
        if self.max_length < 8 or self.answers < 0:
            wrong.append("max_length is 8 or more and answers 0 or more")
        wrong += [f"{name} is finite, not {value}" for name in ("lr", "weight") if (value := getattr(self, name)) == math.inf]
        if not 0 <= self.seed < 2**32:
            wrong.append(f"seed is a whole number from 0 to {2**32 - 1}, not {self.seed}")
        if self.precision not in PRECISIONS:
            wrong.append(f"precision is {' or '.join(PRECISIONS)}, not {self.precision!r}")
        if wrong:
            raise ParameterError("; ".join(wrong))


@dataclass(frozen=True)
class TermProgress:
    """Where a training stands: steps done of those planned, the mean loss of the last ones, seconds since it began."""

    step: int
    steps: int
    loss: float
    seconds: float
    part: float  # of the training that is done, by steps or by minutes


@dataclass(frozen=True)
class TermTraining:
    """What was trained on what; beside the model as term_classifier.json.

    topics       that were read; `trained` of them have a history and were learned from, `held` were kept out for `scores`
    epochs       how often each was read; below the number asked for where the minutes were over
    losses       the mean loss of each tenth of the steps
    threshold    the probability with the best F1 on the part held out, which QuReTeC uses
    scores       the terms of the part held out
    """

    base: str
    fingerprint: str  # of weights, configuration and vocabulary, without this file
    settings: TermSettings
    topics: int
    trained: int
    held: int
    steps: int
    epochs: float
    seconds: float
    losses: tuple[float, ...]
    threshold: float
    scores: TermScores

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {**asdict(self), "scores": self.scores.to_dict()}


@dataclass(frozen=True)
class Example:
    """One topic to learn from: its tokens, and a label for each, IGNORED save at the first subword of a history's words."""

    ids: list[int]
    labels: list[int]


def train_terms(
    topics: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: TermSettings | None = None,
    overwrite: bool = False,
    progress: Callable[[TermProgress], None] | None = None,
) -> TermTraining:
    """Trains a term classifier and writes it to the folder `output`, from which `QuReTeC(output)` loads it.

    topics      with turns and manual rewrites; those without earlier turns, or a rewrite of their own, teach nothing. All
                topics of one conversation, `<conversation>_<turn>`, are learned from or held out together
    output      the folder to make; it appears when all is done, so a killed training leaves nothing there
    base        the encoder to start from: a folder, or a name on the Hugging Face hub
    overwrite   whether a term classifier that is there is replaced
    progress    is called about once a second

    The same seed, torch, processor and number of threads give the same model, unless minutes cut it short. Raises InputError
    for topics without rewrites or histories, for an `output` that is there or cannot be written, and for a base that is not
    there or no encoder.
    """
    settings = settings or TermSettings()
    settings.check()
    target = Path(output)
    _check_place(target, overwrite)
    start = time.perf_counter()
    given = Topics.of(topics)
    learned, held = _parts(given, settings)
    folder = located(base, "encoder")
    trainer = _Trainer(folder, settings, start)
    examples = trainer.examples(learned)
    losses = trainer.train(examples, progress)
    with _making(target) as made:
        trainer.save(made, THRESHOLD, target)
        threshold, scores = _held_out(made, held, settings)
        trainer.save(made, threshold, target)
        training = TermTraining(
            base=str(base),
            fingerprint=fingerprint(made),
            settings=settings,
            topics=len(given),
            trained=len(learned),
            held=len(held),
            steps=len(losses),
            epochs=round(len(losses) / math.ceil(len(examples) / settings.batch), 3),
            seconds=round(time.perf_counter() - start, 1),
            losses=_tenths(losses),
            threshold=threshold,
            scores=scores,
        )
        (made / CARD).write_text(json.dumps(training.to_dict(), indent=2) + "\n", encoding="utf-8")
        _put(made, target)
    return training


def _check_place(target: Path, overwrite: bool) -> None:
    """Raises InputError where the model could not be written, which is better known before the training."""
    if target.exists() and not overwrite:
        raise InputError(f"{target} is there already; give another folder, or overwrite it")
    if target.exists() and not (target / CARD).is_file():
        raise InputError(f"{target} is no term classifier (it has no {CARD}), so it is not overwritten; give another folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{target.parent} cannot be made: {error.strerror}") from None
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{target.parent} cannot be written to")


@contextmanager
def _making(target: Path) -> Iterator[Path]:
    """A folder beside `target` to write to, which is removed in the end. Raises InputError where it cannot be written."""
    made = None
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        yield made
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def _put(made: Path, target: Path) -> None:
    """Moves a folder that is complete to its place; one that is there goes last."""
    made.chmod(0o755)
    for path in made.iterdir():
        path.chmod(0o644)  # safetensors writes for the owner alone
    old = made.with_suffix(".old")
    if target.exists():
        target.rename(old)
    made.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _parts(topics: Topics, settings: TermSettings) -> tuple[list[Topic], list[Topic]]:
    """The topics to learn from and those held out: those with history and rewrite, by conversation, in a shuffled order."""
    rewritten = [topic for topic in topics.values() if topic.turns and topic.turns[-1].manual.strip()]
    usable = [topic for topic in rewritten if history_of(topic, settings.answers)]
    if not usable:
        raise InputError("there is nothing to learn: no topic has earlier turns and a manual rewrite of its own turn")
    random = np.random.default_rng(settings.seed)
    usable = [usable[at] for at in random.permutation(len(usable))][: settings.limit]
    names = sorted({_conversation(topic) for topic in usable})
    if len(names) < 2:
        raise InputError("there is nothing to hold out: all topics are of one conversation")
    count = min(len(names) - 1, max(1, round(settings.held_out * len(names))))
    chosen = {names[at] for at in random.permutation(len(names))[:count]}
    held = [topic for topic in usable if _conversation(topic) in chosen]
    return [topic for topic in usable if _conversation(topic) not in chosen], held


def _conversation(topic: Topic) -> str:
    return topic.id.rpartition("_")[0] or topic.id


class _Trainer:
    """The model while it learns."""

    def __init__(self, folder: Path, settings: TermSettings, start: float) -> None:
        self.settings = settings
        self.start = start
        self.torch = library("torch", "training")
        transformers = library("transformers", "training")
        transformers.set_seed(settings.seed)
        labels = {0: "O", 1: RELEVANT}
        with readable(f"the base {folder} cannot be read as an encoder"), without_warnings():
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            self.module = transformers.AutoModelForTokenClassification.from_pretrained(
                folder,
                id2label=labels,
                label2id={name: number for number, name in labels.items()},
                hidden_dropout_prob=settings.dropout,
                dtype=self.torch.float32,
            )
        self.half = settings.precision == "bfloat16" or (settings.precision == "auto" and "bfloat16" in candidates("cpu"))
        self.pieces = Pieces(self.tokenizer, positions_of(self.module.config))

    def examples(self, topics: Sequence[Topic]) -> list[Example]:
        settings, labels = self.settings, Labels(self.settings.analyzer)
        marks = [labels(topic, settings.answers) for topic in topics]
        histories = [history_of(topic, settings.answers) for topic in topics]
        turns = [words_of(utterance(topic)) for topic in topics]
        inputs = self.pieces.inputs(histories, turns, settings.max_length)
        return [_example(one, marked) for one, marked in zip(inputs, marks, strict=True)]

    def train(self, examples: list[Example], progress: Callable[[TermProgress], None] | None) -> list[float]:
        """Trains until the epochs or the minutes are over; the loss of each step."""
        torch, settings, begun = self.torch, self.settings, time.perf_counter()
        optimizer = torch.optim.AdamW(_groups(self.module), lr=settings.lr, fused=True)
        weights = torch.tensor([1.0, settings.weight])
        steps = settings.epochs * math.ceil(len(examples) / settings.batch)
        losses: list[float] = []
        told = begun
        self.module.train()
        for batch in _batches(examples, settings):
            passed = time.perf_counter() - begun
            part = max(len(losses) / steps, passed / (60 * settings.minutes) if settings.minutes else 0.0)
            if losses and part >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * max(0.0, min((part + 1 / steps) / WARM_UP, (1 - part) / (1 - WARM_UP), 1.0))
            losses.append(self._step(batch, optimizer, weights))
            _check_finite(settings, losses[-1:])
            if progress is not None and time.perf_counter() - told > 1:
                told = time.perf_counter()
                recent = float(np.mean(losses[-50:]))
                progress(TermProgress(len(losses), steps, recent, told - self.start, part))
        self.module.eval()
        return losses

    def _step(self, batch: list[Example], optimizer: Any, weights: Any) -> float:
        torch = self.torch
        longest = max(len(one.ids) for one in batch)
        pad = int(self.tokenizer.pad_token_id or 0)
        ids = torch.tensor([one.ids + [pad] * (longest - len(one.ids)) for one in batch])
        mask = torch.tensor([[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in batch])
        labels = torch.tensor([one.labels + [IGNORED] * (longest - len(one.labels)) for one in batch])
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            logits = self.module(input_ids=ids, attention_mask=mask).logits
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), weight=weights, ignore_index=IGNORED
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    def save(self, folder: Path, threshold: float, target: Path) -> None:
        """Writes the model to `folder`, which errors call `target`."""
        self.module.config.term_threshold = threshold
        with readable(f"{target} cannot be written"), quiet():
            self.module.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def _example(one: Input, marked: list[bool]) -> Example:
    labels = [IGNORED] * len(one.ids)
    for at, mark in zip(one.starts, marked[one.lost :], strict=True):
        labels[at] = int(mark)
    return Example(one.ids, labels)


def _batches(examples: Sequence[Example], settings: TermSettings) -> Iterator[list[Example]]:
    """Batches of like length, in another order in each epoch."""
    random = np.random.default_rng(settings.seed + 1)
    size = settings.batch
    for _ in range(settings.epochs):
        order = random.permutation(len(examples))
        batches = []
        for begin in range(0, len(order), POOL * size):
            pool = sorted(order[begin : begin + POOL * size], key=lambda at: len(examples[at].ids))
            batches += [pool[at : at + size] for at in range(0, len(pool), size)]
        for at in random.permutation(len(batches)):
            yield [examples[number] for number in batches[at]]


def _groups(module: Any) -> list[dict[str, Any]]:
    """The parameters in two groups: biases and norms are not decayed."""
    plain: list[Any] = []
    decayed: list[Any] = []
    for name, parameter in module.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]


def _held_out(folder: Path, held: list[Topic], settings: TermSettings) -> tuple[float, TermScores]:
    """The threshold with the best F1 on the part held out, and what it scores there."""
    topics = Topics(held)
    stage = QuReTeC(folder, settings.answers, max_length=settings.max_length, precision="float32", device="cpu")
    found, labels = stage.probabilities(topics), Labels(settings.analyzer)
    _check_finite(settings, [value for words in found.values() for _, value in words])
    tried = [round(0.05 * at, 2) for at in range(2, 19)]
    scores = {at: term_scores(found, topics, at, settings.answers, analyzer=labels) for at in tried}
    best = max(tried, key=lambda at: (scores[at].f1, -abs(at - THRESHOLD)))
    return best, scores[best]


def _check_finite(settings: TermSettings, values: Sequence[float]) -> None:
    """Raises ParameterError where a loss or a probability is no number any more."""
    if not np.isfinite(values).all():
        raise ParameterError(f"with lr={settings.lr:g} and weight={settings.weight:g} the numbers overflow: take less")


def _tenths(losses: list[float]) -> tuple[float, ...]:
    return tuple(round(float(np.mean(part)), 4) for part in np.array_split(losses, min(10, len(losses))))
