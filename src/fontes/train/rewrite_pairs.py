"""Turns with manual rewrites for the training of a rewriter, whole conversations on one side, and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from ..core.errors import InputError, ParameterError
from ..core.values import Topic, Topics
from ..rewrite.canardt5 import context_parts
from ..storage.hashes import hash_json
from .runner.settings import FitSettings


class RewriterSettings(FitSettings):
    """How a T5 that rewrites turns is trained.

    Contexts of 512 tokens and rewrites of 64 are those of chatty-goose, by the authors of castorini/t5-base-canard (Lin et al.
    2020); the other defaults are ours.

    Attributes:
        epochs: Passes over the turns.
        batch: Turns of a step.
        lr: The greatest learning rate.
        max_length: Tokens of a context; a longer one loses its oldest parts first. None: 512.
        target_length: Tokens of a rewrite; what is longer is cut.
        answers: Of how many turns before the current one the answers are in the context, as in `CanardT5`.
        held_out: The share of the conversations that is held out to validate with, where no validation is given; from 0, which
            holds none out, to below 1.
        limit: At most so many turns to learn from, drawn by the seed; None: all.
        best: Which state is kept: that of the least "loss" of those that were validated, or the "last".

    Raises:
        ParameterError: A setting makes no sense; each that does not is named.
    """

    epochs: int = Field(default=3, gt=0)
    batch: int = Field(default=32, gt=0)
    lr: float = Field(default=3e-4, gt=0, allow_inf_nan=False)
    held_out: float = Field(default=0.05, ge=0, lt=1)
    target_length: int = Field(default=64, ge=2)
    answers: int = Field(default=3, ge=0)
    limit: int | None = Field(default=None, gt=0)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.by_measure:
            raise ParameterError(f"best must be 'loss' or 'last' for a rewriter, not '{self.best}'")


@dataclass(frozen=True)
class RewritePair:
    """A turn with its rewrite.

    Args:
        conversation: The conversation's id.
        context: The parts that the model reads, the turn last.
        rewrite: The manual rewrite.
    """

    conversation: str
    context: tuple[str, ...]
    rewrite: str


def rewrite_pairs(topics: Topics, answers: int) -> list[RewritePair]:
    """The turns of topics that have a manual rewrite, in their order.

    Args:
        topics: The topics.
        answers: Of how many turns before the current one the answers are in the context.
    """
    pairs = []
    for topic in topics.values():
        rewrite = topic.turns[-1].manual.strip() if topic.turns else ""
        if rewrite and (context := context_parts(topic, answers)):
            pairs.append(RewritePair(_conversation(topic), context, rewrite))
    return pairs


def training_split(
    topics: Topics, validation: Topics | None, settings: RewriterSettings
) -> tuple[list[RewritePair], list[RewritePair]]:
    """The turns to learn from and to validate on, each conversation on one side.

    Raises:
        InputError: There is nothing to learn or to validate on, or a conversation is on both sides.
    """
    pairs = rewrite_pairs(topics, settings.answers)
    if not pairs:
        raise InputError("there is nothing to learn: no topic has a manual rewrite of its own turn")
    random = np.random.default_rng(settings.seed)
    validated: list[RewritePair] = []
    if validation is not None:
        validated = rewrite_pairs(validation, settings.answers)
        if not validated:
            raise InputError("there is nothing to validate on: no topic has a manual rewrite of its own turn")
        if both := sorted(conversations(pairs) & conversations(validated)):
            names = ", ".join(f"'{name}'" for name in both)
            raise InputError(f"conversations to learn from and to validate on must differ; take out of one of the two: {names}")
    elif settings.held_out:
        ids = sorted(conversations(pairs))
        if len(ids) < 2:
            raise InputError("the topics are of one conversation; two at least are needed to hold one out, or held_out=0")
        count = min(len(ids) - 1, max(1, round(settings.held_out * len(ids))))
        out = {ids[at] for at in random.permutation(len(ids))[:count].tolist()}
        validated = [pair for pair in pairs if pair.conversation in out]
        pairs = [pair for pair in pairs if pair.conversation not in out]
    if settings.limit is not None and settings.limit < len(pairs):
        pairs = [pairs[at] for at in sorted(random.permutation(len(pairs))[: settings.limit].tolist())]
    return pairs, validated


def _conversation(topic: Topic) -> str:
    return topic.id.rpartition("_")[0] or topic.id


def conversations(pairs: Sequence[RewritePair]) -> set[str]:
    """The ids of the conversations."""
    return {pair.conversation for pair in pairs}


def hash_of(pairs: Sequence[RewritePair]) -> str:
    """The hash of contexts and rewrites in their order."""
    return hash_json([[list(pair.context), pair.rewrite] for pair in pairs])
