"""What a term classifier learns from: topics with a history and a manual rewrite, as tokens with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.errors import InputError
from ...core.values import Topic, Topics
from ...rewrite.quretec import Input, Pieces
from ...rewrite.terms import Labels, history_of, words_of
from ...rewrite.turns import utterance
from .settings import TermSettings

IGNORED = -100  # a token that has no label


@dataclass(frozen=True)
class Example:
    """One topic to learn from.

    Args:
        ids: Its tokens.
        labels: A label for each token: IGNORED save at the first subword of a history's words, which has 1 where the word is
            relevant, else 0.
    """

    ids: list[int]
    labels: list[int]


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
    names = sorted({_conversation(topic) for topic in usable})
    if len(names) < 3:
        need = "three at least are needed: to learn from, to choose the threshold on, and to measure with"
        raise InputError(f"the topics are of {len(names)} conversation{'s' * (len(names) > 1)}; {need}")
    count = min(len(names) - 1, max(2, round(settings.held_out * len(names))))
    chosen = [names[at] for at in random.permutation(len(names))[:count]]
    side = dict.fromkeys(chosen[: count // 2], 1) | dict.fromkeys(chosen[count // 2 :], 2)
    sides = TopicSplit([], [], [])
    for topic in usable:
        sides[side.get(_conversation(topic), 0)].append(topic)
    return sides


def examples_of(topics: Sequence[Topic], pieces: Pieces, settings: TermSettings) -> list[Example]:
    """The topics as tokens with labels."""
    labels = Labels(settings.analyzer)
    marks = [labels(topic, settings.answers) for topic in topics]
    histories = [history_of(topic, settings.answers) for topic in topics]
    turns = [words_of(utterance(topic)) for topic in topics]
    inputs = pieces.inputs(histories, turns, settings.max_length)
    return [_example(one, marked) for one, marked in zip(inputs, marks, strict=True)]


def _conversation(topic: Topic) -> str:
    return topic.id.rpartition("_")[0] or topic.id


def _example(one: Input, marked: list[bool]) -> Example:
    labels = [IGNORED] * len(one.ids)
    for at, mark in zip(one.starts, marked[one.lost :], strict=True):
        labels[at] = int(mark)
    return Example(one.ids, labels)
