"""Leakage between the sides of a recipe: topics to learn from or to choose with whose text is on a later side too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..core import InputError, ParameterError, Topic, Topics
from ..train import Side
from .learning import RecipeTraining, side_of

LEAKS = ("error", "drop")
LEARN, CHOOSE, MEASURE = "to learn from", "to choose with", "to measure with"
SHOWN = 60  # characters of a text


def check_leaks(leaks: str) -> None:
    """Raises ParameterError for what is no way to treat leakage."""
    if leaks not in LEAKS:
        raise ParameterError(f"leaks must be {' or '.join(LEAKS)}, not '{leaks}'")


def without_leaks(learning: RecipeTraining, measured: Topics, read: Callable[[Topics], Topics], drop: bool) -> RecipeTraining:
    """The sides of a recipe without the topics whose text is on a later side: to learn from, to choose with, to measure with.

    Texts are compared as models read them, without white space at their ends.

    Args:
        learning: What is learned from and chosen with.
        measured: The topics to measure with.
        read: Gives topics as models read them.
        drop: Whether such topics are left out, which is noted; otherwise they are an error.

    Raises:
        InputError: A text is on two sides, with all such topics; or no topic to learn from is left.
    """
    if not learning.train.topics and not learning.dev.topics:
        return learning
    used: dict[str, tuple[Topic, str]] = {}
    pairs: dict[str, list[tuple[Topic, Topic, str]]] = {}
    for topics, side in ((measured, MEASURE), (learning.dev.topics, CHOOSE), (learning.train.topics, LEARN)):
        texts = _texts(topics, read)
        pairs[side] = [(topic, *used[text]) for topic, text in texts if text in used]
        for topic, text in texts:  # afterwards: topics of one side may share a text
            used.setdefault(text, (topic, side))
    if not any(pairs.values()):
        return learning
    if not drop:
        lines = [
            f"  topic '{topic.id}' ({side}) has the text of topic '{other.id}' ({where}): {_shown(topic)}"
            for side in (LEARN, CHOOSE)
            for topic, other, where in pairs[side]
        ]
        head = "a topic has" if len(lines) == 1 else f"{len(lines):,} topics have"
        last = "take each out of one of the two sides, or leave all of them out with leaks='drop' (--leaks drop)"
        raise InputError.of_lines([f"{head} a text that is on two sides:", *lines, last])
    sides = {}
    for name, side, later in (("train", LEARN, "chosen or measured with"), ("dev", CHOOSE, "measured with")):
        before: Side = getattr(learning, name)
        out = {topic.id for topic, _, _ in pairs[side]}
        sides[name] = side_of(*before, set(before.topics) - out)
        if out:
            learning.notes.append({"role": side, "without": f"{len(out):,} of {len(before.topics):,}, whose text is {later}"})
    if learning.train.topics and not sides["train"].topics:
        raise InputError("no topic to learn from is left: the text of each is chosen or measured with; give others")
    return replace(learning, train=sides["train"], dev=sides["dev"])


def _texts(topics: Topics, read: Callable[[Topics], Topics]) -> list[tuple[Topic, str]]:
    """Each topic with its text as models read it."""
    if not topics:
        return []
    as_read = read(topics)
    return [(topic, as_read[topic.id].text.strip() or topic.text.strip()) for topic in topics.values()]


def _shown(topic: Topic) -> str:
    text = " ".join(topic.text.split())
    return f'"{text[:SHOWN]}{"…" if len(text) > SHOWN else ""}"'
