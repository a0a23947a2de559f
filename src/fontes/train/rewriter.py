"""Training a T5 that rewrites turns of conversations, on manual rewrites such as CANARD's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np
from pydantic import Field

from ..core.errors import InputError, ParameterError
from ..core.values import Topics
from ..core.work import ProgressCallback
from ..neural.models.base import token_ids
from ..neural.models.hub import find_model, seq2seq
from ..rewrite.canardt5 import KIND, context_ids, context_parts
from ..rewrite.turns import conversation_of
from ..storage.hashes import hash_json
from ..tuning.folds import split_by
from .runner.running import Rows, Training, begin, run
from .runner.settings import FitSettings
from .seq2seq import Seq2SeqModel

BASE = "google-t5/t5-base"


def train_rewriter(
    topics: object,
    output: str | Path,
    base: str | Path = BASE,
    settings: RewriterSettings | None = None,
    validation: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Training:
    """Train a T5 on manual rewrites and write it to the folder `output`, which `CanardT5(output)` loads.

    The input of the model is the context that `CanardT5.context` returns; the target is the manual rewrite of the turn, also
    for first turns. Turns of one conversation, `<conversation>_<turn>`, are on one side.

    The same seed, torch, processor and thread count give the same model in float32, also after an interruption: training
    resumes from its last checkpoint. Uses a GPU if there is one.

    Args:
        topics: Anything `Topics.of` takes, or the path of a file. Topics without a manual rewrite of their own turn are left
            out.
        output: Folder to create, complete when it appears. During the training, checkpoints are in OUTPUT.training.
        base: Start, a T5 or another encoder-decoder: a folder, or a name on the Hugging Face hub.
        settings: Training settings; None: the defaults.
        validation: Topics of other conversations; None: held-out conversations.
        overwrite: Whether to replace a trained model.
        progress: Called about once a second.

    Raises:
        InputError: There are no rewrites, a conversation is on both sides, or `output`, base or the working folder is unusable.
        ParameterError: The loss is no longer a number.
        MissingExtraError: A library of the extra `train` is missing.
    """
    settings = settings or RewriterSettings()
    target = begin(output, overwrite, "training a rewriter")
    validation_topics = None if validation is None else Topics.read(validation)
    training_pairs, validation_pairs = conversation_split(Topics.read(topics), validation_topics, settings)

    model = RewriterModel(find_model(base, KIND), settings)
    fit = model.fit(
        str(base),
        train=model.rows(training_pairs),
        validation=model.rows(validation_pairs),
        identity={"topics": hash_of(training_pairs), "validation": hash_of(validation_pairs)},
        facts={
            "conversations": len(conversations(training_pairs)),
            "conversations_validated": len(conversations(validation_pairs)),
        },
    )
    return run(fit, settings, target, overwrite, progress)


class RewriterSettings(FitSettings):
    """Training settings of a T5 that rewrites turns.

    Contexts of 512 tokens and rewrites of 64 are the settings of chatty-goose, by the authors of castorini/t5-base-canard (Lin
    et al. 2020); the other defaults are our own.

    Attributes:
        epochs: Passes over the turns.
        batch: Turns per step.
        lr: Peak learning rate.
        max_length: Maximum tokens of a context; the oldest parts are dropped first. None: 512.
        target_length: Maximum tokens of a rewrite; the rest is cut.
        answers: Previous turns whose answers are in the context, as in `CanardT5`.
        statements: Whether the context begins with the statements about the user (TREC iKAT), as in `CanardT5`.
        held_out: Share of conversations held out, if none are given for validation; below 1.
        limit: Maximum training turns, drawn by the seed; None: all.
        best: State to keep: the least validation "loss", or the "last".
    """

    epochs: int = Field(default=3, gt=0)
    batch: int = Field(default=32, gt=0)
    lr: float = Field(default=3e-4, gt=0, allow_inf_nan=False)
    held_out: float = Field(default=0.05, ge=0, lt=1)
    target_length: int = Field(default=64, ge=2)
    answers: int = Field(default=3, ge=0)
    statements: bool = False
    limit: int | None = Field(default=None, gt=0)

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        if self.by_measure:
            raise ParameterError(f"best must be 'loss' or 'last' for a rewriter, not '{self.best}'")


@dataclass(frozen=True)
class RewritePair:
    """A turn with its manual rewrite; `context` has the parts that the model reads, with the turn last."""

    conversation: str
    context: tuple[str, ...]
    rewrite: str


def rewrite_pairs(topics: Topics, answers: int, statements: bool = False) -> list[RewritePair]:
    """Return the turns with a manual rewrite, and the context of each; see `context_parts`."""
    pairs = []
    for topic in topics.values():
        rewrite = topic.turns[-1].manual.strip() if topic.turns else ""
        if rewrite and (context := context_parts(topic, answers, statements)):
            pairs.append(RewritePair(conversation_of(topic), context, rewrite))
    return pairs


def conversation_split(
    topics: Topics, validation: Topics | None, settings: RewriterSettings
) -> tuple[list[RewritePair], list[RewritePair]]:
    """Return the training and validation turns, each conversation on one side; raise InputError if that is impossible."""
    pairs = rewrite_pairs(topics, settings.answers, settings.statements)
    if not pairs:
        raise InputError("there are no training data: no topic has a manual rewrite of its own turn")
    random = np.random.default_rng(settings.seed)
    validation_pairs: list[RewritePair] = []
    if validation is not None:
        validation_pairs = rewrite_pairs(validation, settings.answers, settings.statements)
        if not validation_pairs:
            raise InputError("there are no validation data: no topic has a manual rewrite of its own turn")
        if shared := sorted(conversations(pairs) & conversations(validation_pairs)):
            names = ", ".join(f"'{name}'" for name in shared)
            raise InputError(f"training and validation conversations must differ; remove from one of the two: {names}")
    elif settings.held_out:
        pairs, validation_pairs = split_by(attrgetter("conversation"), pairs, settings.held_out, random)
        if not validation_pairs:
            raise InputError("the topics belong to one conversation; at least two are needed to hold one out, or held_out=0")
    if settings.limit is not None and settings.limit < len(pairs):
        pairs = [pairs[i] for i in sorted(random.permutation(len(pairs))[: settings.limit].tolist())]
    return pairs, validation_pairs


def conversations(pairs: Sequence[RewritePair]) -> set[str]:
    """Return the ids of the conversations."""
    return {pair.conversation for pair in pairs}


def hash_of(pairs: Sequence[RewritePair]) -> str:
    """Return the hash of contexts and rewrites in order."""
    return hash_json([[list(pair.context), pair.rewrite] for pair in pairs])


MAX_CONTEXT = 512  # default maximum of tokens in a context


class RewriterModel(Seq2SeqModel):
    """Encoder-decoder in float32 on the CPU, made from the base in a folder."""

    def __init__(self, folder: Path, settings: RewriterSettings) -> None:
        super().__init__(folder, *seq2seq(folder, KIND), KIND, settings)
        self._settings = settings

    def rows(self, pairs: Sequence[RewritePair]) -> Rows:
        """Return the turns as rows: token ids of the context, and token ids of the rewrite as labels."""
        inputs = context_ids(self.tokenizer, [pair.context for pair in pairs], self._settings.max_length or MAX_CONTEXT)
        return self.rows_of(inputs, token_ids(self.tokenizer, [pair.rewrite for pair in pairs], self._settings.target_length))
