"""Sides of a recipe: topics and judgments out of values, files and collections, divided without leaks."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core import InputError, ParameterError, Qrels, Topic, Topics
from ..datasets import dataset, named, qrels_of, splits_of, topics_of
from ..experiments.problems import Problems
from ..train import Side
from .learning import NO_SIDE, RecipeTraining

Splits = str | Sequence[str] | None
Sources = tuple[Topics, Qrels | None, Qrels | None, Qrels | None]
"""Topics, their judgments, and judgments to learn from and to choose with."""


def read_sides(problems: Problems, topics: object, qrels: object, split: Splits, train: object, dev: object) -> Sources | None:
    """Read the arguments of `Recipe.run`; return None if one of them cannot be read, and collect the problem.

    If the judgments have splits and the topics are a file, the split applies to the judgments.
    """
    if not any(isinstance(one, (str, tuple)) for one in (topics, qrels)):
        splits_of((), None if split is None else str(split))
    of_topics, of_qrels = _names(topics), _names(qrels)
    values: list[Any] = []
    with problems.collected():
        values.append(_topics_from(_each(of_topics, of_qrels, split)) if of_topics else Topics.read(topics))
    with problems.collected():
        pieces = (qrels_of(name, split=one) for name, one in _each(of_qrels, of_topics, split))
        values.append(Qrels(row for piece in pieces for row in piece.rows()) if of_qrels else _qrels(qrels))
    for option, source in (("train", train), ("dev", dev)):
        with problems.collected():
            values.append(_side(source, option, [*of_qrels, *of_topics]) if isinstance(source, str) else _qrels(source))
    if len(values) < 4:
        return None
    lacking = {topic_id for side in values[2:] if side for topic_id in side} - set(values[0])
    more = {topic.id: topic for topic in _topics_of_other_splits(of_topics, lacking)}
    return Topics([*values[0].values(), *more.values()]), values[1], values[2], values[3]


def _topics_from(pieces: Iterable[tuple[str, str | None]]) -> Topics:
    topics: dict[str, Topic] = {}
    for name, split in pieces:
        for topic in topics_of(name, split=split).values():
            if topics.setdefault(topic.id, topic).text != topic.text:
                raise InputError(f"{name}: topic '{topic.id}' has a different text there; give the topics different ids")
    return Topics(topics.values())


def _qrels(source: object) -> Qrels | None:
    return None if source is None else Qrels.of(source)


def _side(source: str, option: str, names: Sequence[str]) -> Qrels:
    """Judgments of a side, "train" or "dev": of a file, or a split of the first collection that is named."""
    collections = [name for name in names if _has_splits(name)]
    splits = [split for name in collections[:1] for split in dataset(name.removeprefix("sample:").removeprefix("irds:")).splits]
    if source in splits:
        return qrels_of(collections[0], split=source)
    if named(source) or Path(source).exists():
        return qrels_of(source)
    contents = (
        f"{collections[0]} has the splits {', '.join(splits)}" if splits else "neither topics nor qrels name a collection"
    )
    raise InputError(f"{option} is a file of judgments or a split, and '{source}' is not a file; {contents}")


def _topics_of_other_splits(names: Iterable[str], lacking: set[str]) -> Iterator[Topic]:
    """Yield the lacking topics from all splits."""
    for name in names if lacking else ():
        if _has_splits(name):
            whole = named(name)
            for one in [whole.topics(split) for split in whole.splits] if whole else [topics_of(name)]:
                yield from (topic for topic in one.values() if topic.id in lacking)


def _names(source: object) -> tuple[str, ...]:
    """Names of files and collections; none if the source is something else."""
    names = source if isinstance(source, tuple) else (source,)
    return names if all(isinstance(name, str) for name in names) else ()


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

    Raises InputError if two of them judge a document differently.
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

    Texts are compared as models read them (`read`), ignoring surrounding white space. With `drop` such topics are left out and
    noted; otherwise an InputError lists them.
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
        last = "remove each from one of the two sides, or leave all of them out with leaks='drop' (--leaks drop)"
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


def divided_apart(
    topics: Topics, qrels: Qrels | None, train: Qrels | None, dev: Qrels | None
) -> tuple[Topics, Qrels | None, RecipeTraining]:
    """Return the topics to search and the sides that judgments name; without qrels, the topics on no other side.

    Raises InputError for a topic on two sides.
    """
    uses: dict[str, str] = {}
    for use, side in (("measure with", qrels), ("learn from", train), ("choose with", dev)):
        for topic_id in side or ():
            if topic_id in uses:
                raise InputError(f"topic '{topic_id}' is one to {uses[topic_id]} and to {use}; a topic has one use")
            uses[topic_id] = use
    searched = Topics(topic for topic in topics.values() if topic.id not in uses) if qrels is None else topics.judged(qrels)
    learned, chosen = (NO_SIDE if one is None else side_of(topics, one, one) for one in (train, dev))
    return searched, qrels, RecipeTraining(learned, chosen)
