"""Sides of a recipe: topics and judgments out of values, files and collections, divided without leaks."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..core import InputError, ParameterError, Qrels, Topic, Topics
from ..datasets import dataset, named, qrels_of, splits_of, topics_of
from ..train import Side
from .learning import RecipeTraining

Splits = str | Sequence[str] | None


def topics_from(source: object, beside: object, split: Splits) -> Topics:
    """Return the topics of a value, a file or collection, or a tuple of names; of one or more splits.

    If `beside`, the judgments, have splits and the topics are a file, the split applies to the judgments.
    """
    names = _names(source)
    if names is None:
        return Topics.read(source)
    topics: dict[str, Topic] = {}
    for name, one in _each(names, _names(beside) or (), split):
        for topic in topics_of(name, split=one).values():
            if topics.setdefault(topic.id, topic).text != topic.text:
                raise InputError(f"{name}: topic '{topic.id}' has another text there than before; give topics ids that differ")
    return Topics(topics.values())


def qrels_from(source: object, beside: object, split: Splits) -> Qrels | None:
    """Return the judgments, as `topics_from` does; None for None."""
    names = _names(source)
    if names is None:
        return None if source is None else Qrels.of(source)
    return Qrels(row for name, one in _each(names, _names(beside) or (), split) for row in qrels_of(name, split=one).rows())


def side_from(source: object, option: str, topics: object, qrels: object) -> Qrels | None:
    """Return the judgments of a side, "train" or "dev": of a file, a split of what `topics` or `qrels` name, or a value."""
    if not isinstance(source, str):
        return None if source is None else Qrels.of(source)
    collections = [name for name in (*(_names(qrels) or ()), *(_names(topics) or ())) if _has_splits(name)]
    splits = [split for name in collections[:1] for split in dataset(name.removeprefix("sample:").removeprefix("irds:")).splits]
    if source in splits:
        return qrels_of(collections[0], split=source)
    if named(source) or Path(source).exists():
        return qrels_of(source)
    there = f"{collections[0]} has the splits {', '.join(splits)}" if splits else "neither topics nor qrels name a collection"
    raise InputError(f"{option} is a file of judgments or a split, and '{source}' is no file; {there}")


def with_topics_of(topics: Topics, sides: Sequence[Qrels | None], source: object) -> Topics:
    """Return the topics, followed by those judged in `sides` that only other splits of `source` have."""
    lacking = {topic_id for side in sides if side for topic_id in side} - set(topics)
    more: dict[str, Topic] = {}
    for name in _names(source) or ():
        if lacking and _has_splits(name):
            whole = named(name)
            each = [whole.topics(split) for split in whole.splits] if whole else [topics_of(name)]
            more |= {topic.id: topic for one in each for topic in one.values() if topic.id in lacking}
    return Topics([*topics.values(), *more.values()])


def _names(source: object) -> tuple[str, ...] | None:
    """Names of files and collections; None if the source is something else."""
    if isinstance(source, str):
        return (source,)
    if isinstance(source, tuple) and source and all(isinstance(one, str) for one in source):
        return source
    return None


def _each(names: Sequence[str], beside: Sequence[str], split: Splits) -> Iterator[tuple[str, str | None]]:
    """Yield each name with each of its splits; a file has none if anything else has."""
    for one in (split,) if split is None or isinstance(split, str) else split:
        yield from zip(names, splits_of((*names, *beside), one), strict=False)


def _has_splits(name: str) -> bool:
    return named(name) is not None or Path(name).is_dir()


def parted(topics: Topics, qrels: Qrels, share: float, seed: int) -> tuple[Side, Side]:
    """Return the judged topics in two parts, the second a share of them drawn by the seed."""
    ids = sorted(topic_id for topic_id in topics if topic_id in qrels)
    order = np.random.default_rng(seed).permutation(len(ids))
    drawn = {ids[i] for i in order[: round(share * len(ids))].tolist()}
    return side_of(topics, qrels, set(ids) - drawn), side_of(topics, qrels, drawn)


def side_of(topics: Topics, qrels: Qrels, ids: Container[str]) -> Side:
    """Return the judged ones of the given topics, and their judgments."""
    those = Topics(topic for topic in topics.values() if topic.id in ids and topic.id in qrels)
    return Side(those, Qrels(row for row in qrels.rows() if row[0] in those))


def distinct(topics: Topics, qrels: Qrels) -> Side:
    """Return the judged topics, the first of those with equal text, with the judgments of all of them.

    Raises:
        InputError: Two of them judge a document differently.
    """
    first: dict[str, str] = {}
    judged = [topic for topic in topics.values() if topic.id in qrels]
    same = {topic.id: first.setdefault(topic.text, topic.id) for topic in judged}
    rows = (((same[topic], group, doc, grade)) for topic, group, doc, grade in qrels.rows() if topic in same)
    return Side(Topics(topic for topic in judged if same[topic.id] == topic.id), Qrels(rows))


LEAKS = ("error", "drop")
LEARN, CHOOSE, MEASURE = "to learn from", "to choose with", "to measure with"
SHOWN = 60  # characters of a text


def check_leaks(leaks: str) -> None:
    """Raise ParameterError for an invalid value of `leaks`."""
    if leaks not in LEAKS:
        raise ParameterError(f"leaks must be {' or '.join(LEAKS)}, not '{leaks}'")


def without_leaks(learning: RecipeTraining, measured: Topics, read: Callable[[Topics], Topics], drop: bool) -> RecipeTraining:
    """Return the sides without topics whose text is on a later side, in the order train, dev, test.

    Texts are compared as models read them, ignoring surrounding white space.

    Args:
        learning: Training and dev sides.
        measured: Topics to measure with.
        read: Function that gives topics as models read them.
        drop: Whether such topics are left out and noted; otherwise they are an error.

    Raises:
        InputError: Texts on two sides, all listed; or no training topic is left.
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
    if not topics:
        return []
    as_read = read(topics)
    return [(topic, as_read[topic.id].text.strip() or topic.text.strip()) for topic in topics.values()]


def _shown(topic: Topic) -> str:
    text = " ".join(topic.text.split())
    return f'"{text[:SHOWN]}{"…" if len(text) > SHOWN else ""}"'


def measured_apart(topics: Topics, qrels: Qrels | None, others: set[str]) -> tuple[Topics, Qrels | None]:
    """Return the topics to search: the measured ones; without judgments, those that nothing is learned from."""
    if qrels is not None:
        return topics.judged(qrels), qrels
    return Topics(topic for topic in topics.values() if topic.id not in others), None


def check_apart(sides: dict[str, object]) -> None:
    """Raise InputError for a topic that is on two sides."""
    uses: dict[str, str] = {}
    for use, ids in sides.items():
        for topic_id in ids:  # type: ignore[attr-defined]
            if topic_id in uses:
                raise InputError(f"topic '{topic_id}' is one to {uses[topic_id]} and to {use}; a topic has one use")
            uses[topic_id] = use
