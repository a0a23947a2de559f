"""Training a term classifier for QuReTeC on conversations with manual rewrites, such as CANARD's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from ..core.errors import InputError, ParameterError
from ..core.values import Topic, Topics
from ..core.work import ProgressCallback
from ..neural.models.hub import NO_CODE, find_model, model_errors, quiet, without_warnings
from ..rewrite.quretec import RELEVANT, THRESHOLD, Pieces, QuReTeC, positions_of
from ..rewrite.terms import Labels, TermScores, history_of, term_scores, words_of
from ..rewrite.turns import conversation_of, utterance
from ..storage.hashes import hash_json
from ..tuning.folds import drawn
from .runner.running import Fit, Rows, Training, begin, run
from .runner.settings import FitSettings

if TYPE_CHECKING:
    import transformers
    from torch import Tensor

BASE = "sentence-transformers/all-MiniLM-L6-v2"
KIND = "term classifier"


class TermSettings(FitSettings):
    """Training settings of a term classifier.

    Attributes:
        epochs: Passes over the topics.
        minutes: Time limit, after which training ends early; None: no limit.
        batch: Topics per step.
        lr: Peak learning rate of AdamW, after warm-up.
        dropout: Dropout of the hidden layers; from 0 to below 1.
        max_length: Maximum tokens of an input, at least 8.
        answers: Previous turns whose answers belong to the history.
        weight: Weight of a relevant word in the loss; any other word has 1.
        held_out: Share of conversations held out, half for the threshold and half to measure; between 0 and 1.
        limit: Maximum topics, the first after the shuffle; None: all.
        analyzer: Analyzer whose stems and stop words define relevant words.
        best: State to keep: the "last".
    """

    epochs: int = Field(default=3, gt=0)
    minutes: float | None = Field(default=None, gt=0)
    lr: float = Field(default=1.5e-4, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.01, ge=0, lt=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_length: int = Field(default=256, ge=8)
    answers: int = Field(default=0, ge=0)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    held_out: float = Field(default=0.05, gt=0, lt=1)
    limit: int | None = Field(default=None, gt=0)
    analyzer: str = "english"
    best: Literal["last"] = "last"

    def rate(self, part: float, steps: int) -> float:
        """Return the factor of the learning rate before a step: it rises during the warm-up, then falls to 0.

        Args:
            part: Finished share of the training, of its steps or of its time.
            steps: Number of steps.
        """
        warm_up = self.warm_up if self.warm_up < 1 else min(self.warm_up / steps, 1.0)
        rising = (part + 1 / steps) / warm_up if warm_up else 1.0
        return max(0.0, min(rising, (1 - part) / (1 - warm_up) if warm_up < 1 else 1.0, 1.0))


def train_terms(
    topics: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: TermSettings | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Training:
    """Train a term classifier and write it to the folder `output`, which `QuReTeC(output)` loads.

    The threshold that QuReTeC uses is the probability with the best F1 on some of the held-out topics. The facts of the result
    have this `threshold`, the scores on these topics (`chosen`, which are optimistic), and the `scores` on the other ones.

    The same seed, torch, processor and thread count give the same model, unless `minutes` cut it short, also after an
    interruption: training resumes from its last checkpoint. Uses a GPU if there is one.

    Args:
        topics: Anything `Topics.read` takes, with turns and manual rewrites; topics without earlier turns or a rewrite are not
            used. Topics of one conversation, `<conversation>_<turn>`, are on one side.
        output: Folder to create, complete when it appears. During the training, checkpoints are in OUTPUT.training.
        base: Starting encoder: a folder, or a name on the Hugging Face hub.
        settings: Training settings; None: the defaults.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.

    Raises:
        InputError: There are no rewrites or histories, or `output`, base or the working folder is unusable.
        ParameterError: Numbers overflow at this learning rate and weight.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or TermSettings()
    target = begin(output, overwrite)
    topics = Topics.read(topics)
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
        finish=partial(_choose_threshold, model, sides, settings),
        collator=model.collator,
        identity={"topics": hash_json(rows.rows)},
        rate=settings.rate,
        factors={"weight": settings.weight},
        minutes=settings.minutes,
        facts={"topics": len(topics), "topics_validated": len(sides.validation), "topics_held_out": len(sides.held_out)},
    )
    return run(fit, settings, target, overwrite, progress)


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
    conversations = {conversation_of(topic) for topic in usable}
    if len(conversations) < 3:
        need = "at least three are needed: to learn from, to choose the threshold on, and to measure with"
        raise InputError(f"the topics belong to {len(conversations)} conversation{'s' * (len(conversations) > 1)}; {need}")
    chosen = drawn(conversations, settings.held_out, random, least=2)
    side = dict.fromkeys(chosen[: len(chosen) // 2], 1) | dict.fromkeys(chosen[len(chosen) // 2 :], 2)
    sides = TopicSplit([], [], [])
    for topic in usable:
        sides[side.get(conversation_of(topic), 0)].append(topic)
    return sides


def _choose_threshold(model: TermModel, sides: TopicSplit, settings: TermSettings, folder: Path) -> dict[str, object]:
    """Save the threshold with the best F1 on the validation topics; return it with its scores, for the card."""
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
    model.save(folder, best)
    held_out = scores(sides.held_out, [best])[best]
    return {"threshold": best, "chosen": by_threshold[best].to_dict(), "scores": held_out.to_dict()}


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
            self.tokenizer: transformers.PreTrainedTokenizerBase = transformers.AutoTokenizer.from_pretrained(folder, **NO_CODE)
            self.network: transformers.PreTrainedModel = transformers.AutoModelForTokenClassification.from_pretrained(
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
        rows: list[dict[str, list[int]]] = []
        inputs = self._pieces.inputs(histories, turns, self._settings.max_length)
        for encoded, marked in zip(inputs, marks, strict=True):
            row = {"input_ids": encoded.ids, "labels": [IGNORED] * len(encoded.ids)}
            for start, mark in zip(encoded.starts, marked[encoded.dropped :], strict=True):
                row["labels"][start] = int(mark)
            rows.append(row)
        return Rows(rows, [len(row["input_ids"]) for row in rows])

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: object = None) -> Tensor:
        """Return the cross-entropy of a batch, with relevant words weighted."""
        import torch

        logits = outputs.logits.float()
        weights = torch.tensor([1.0, self._settings.weight], device=logits.device)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), weight=weights, ignore_index=IGNORED)

    def save(self, folder: Path, threshold: float = THRESHOLD) -> None:
        """Write the model to a folder, with the threshold of relevant terms."""
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
