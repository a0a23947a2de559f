"""What a term classifier learns from: topics with a history and a manual rewrite, as tokens with labels, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError
from ..core.values import Topic, Topics
from ..rewrite.quretec import Input, Pieces
from ..rewrite.terms import Labels, history_of, words_of
from ..rewrite.turns import utterance
from .term_settings import TermSettings

IGNORED = -100  # a token that has no label
POOL = 64  # batches that are made of one part of the shuffled topics, sorted by length


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


def sides_of(topics: Topics, settings: TermSettings) -> tuple[list[Topic], list[Topic]]:
    """The topics to learn from and those held out: those with history and rewrite, by conversation, in a shuffled order.

    Raises:
        InputError: There is nothing to learn, or nothing to hold out.
    """
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
    held_out = [topic for topic in usable if _conversation(topic) in chosen]
    return [topic for topic in usable if _conversation(topic) not in chosen], held_out


def examples_of(topics: Sequence[Topic], pieces: Pieces, settings: TermSettings) -> list[Example]:
    """The topics as tokens with labels."""
    labels = Labels(settings.analyzer)
    marks = [labels(topic, settings.answers) for topic in topics]
    histories = [history_of(topic, settings.answers) for topic in topics]
    turns = [words_of(utterance(topic)) for topic in topics]
    inputs = pieces.inputs(histories, turns, settings.max_length)
    return [_example(one, marked) for one, marked in zip(inputs, marks, strict=True)]


def batches(examples: Sequence[Example], settings: TermSettings) -> Iterator[list[Example]]:
    """Batches of like length, in another order in each epoch."""
    random = np.random.default_rng(settings.seed + 1)
    size = settings.batch
    for _ in range(settings.epochs):
        order = random.permutation(len(examples))
        numbers = []
        for begin in range(0, len(order), POOL * size):
            pool = sorted(order[begin : begin + POOL * size], key=lambda at: len(examples[at].ids))
            numbers += [pool[at : at + size] for at in range(0, len(pool), size)]
        for at in random.permutation(len(numbers)):
            yield [examples[number] for number in numbers[at]]


def _conversation(topic: Topic) -> str:
    return topic.id.rpartition("_")[0] or topic.id


def _example(one: Input, marked: list[bool]) -> Example:
    labels = [IGNORED] * len(one.ids)
    for at, mark in zip(one.starts, marked[one.lost :], strict=True):
        labels[at] = int(mark)
    return Example(one.ids, labels)
