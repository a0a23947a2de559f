"""Sides of a recipe: topics and judgments from values, files and collections, divided without leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..core import InputError, ParameterError, Qrels, Topic, Topics
from ..datasets import dataset, named, splits_of
from ..experiments.problems import Problems
from ..train import Side
from .learning import NO_SIDE, RecipeTraining

Splits = str | Sequence[str] | None
Sources = tuple[Topics, Qrels | None, Qrels | None, Qrels | None]
"""Topics, their judgments, and judgments to learn from and to choose with."""


def read_sides(
    problems: Problems, topics: object, qrels: object, split: Splits, train: object, dev: object, groups: bool = False
) -> Sources | None:
    """Read the arguments of `Recipe.run`; return None if one of them cannot be read, and collect the problem.

    If the judgments have splits and the topics are a file, the split applies to the judgments. `groups` says whether the second
    column of TREC files names evidence sets.
    """
    if not any(isinstance(source, (str, tuple)) for source in (topics, qrels)):
        splits_of((), None if split is None else str(split))  # raises if there is a split
    topic_names, qrels_names = _names(topics), _names(qrels)
    values: list[Any] = []
    for read, source, names, others in (
        (Topics.read, topics, topic_names, qrels_names),
        (partial(_qrels, groups=groups), qrels, qrels_names, topic_names),
    ):
        with problems.collected():
            pieces: Any = [read(name, piece) for name, piece in _names_with_splits(names, others, split)]
            values.append(read(pieces if names else source))
    for option, source in (("train", train), ("dev", dev)):
        with problems.collected():
            all_names = [*qrels_names, *topic_names]
            side = _read_side(source, option, all_names, groups) if isinstance(source, str) else _qrels(source, groups=groups)
            values.append(side)
    if len(values) < 4:
        return None
    read_topics, *sides = values
    lacking = {topic_id for side in sides[1:] if side for topic_id in side} - set(read_topics)
    further = {topic.id: topic for topic in _topics_of_other_splits(topic_names, lacking)}
    return Topics([*read_topics.values(), *further.values()]), sides[0], sides[1], sides[2]


def _qrels(source: object, split: str | None = None, *, groups: bool = False) -> Qrels | None:
    return None if source is None else Qrels.of(source, split, groups)


def _read_side(source: str, option: str, names: Sequence[str], groups: bool) -> Qrels:
    """Return the judgments of a side, "train" or "dev": of a file, or of a split of the first collection among `names`."""
    collections = [name for name in names if _has_splits(name)]
    splits = [split for name in collections[:1] for split in dataset(name.removeprefix("sample:").removeprefix("irds:")).splits]
    if source in splits:
        return Qrels.of(collections[0], split=source, groups=groups)
    if named(source) or Path(source).exists():
        return Qrels.of(source, groups=groups)
    contents = (
        f"{collections[0]} has the splits {', '.join(splits)}" if splits else "neither topics nor qrels name a collection"
    )
    raise InputError(f"{option} is a file of judgments or a split, and '{source}' is not a file; {contents}")


def _topics_of_other_splits(names: Iterable[str], lacking: set[str]) -> Iterator[Topic]:
    """Yield the lacking topics from all splits."""
    for name in names if lacking else ():
        if _has_splits(name):
            collection = named(name)
            for topics in [collection.topics(split) for split in collection.splits] if collection else [Topics.read(name)]:
                yield from (topic for topic in topics.values() if topic.id in lacking)


def _names(source: object) -> tuple[str, ...]:
    """Return the names of files and collections; none if the source is anything else."""
    names = source if isinstance(source, tuple) else (source,)
    return names if all(isinstance(name, str) for name in names) else ()


def _names_with_splits(names: Sequence[str], other_names: Sequence[str], split: Splits) -> Iterator[tuple[str, str | None]]:
    """Yield each name with each of the splits; a file has no split if any other source has."""
    for split_name in (split,) if split is None or isinstance(split, str) else split:
        yield from zip(names, splits_of((*names, *other_names), split_name), strict=False)


def _has_splits(name: str) -> bool:
    return named(name) is not None or Path(name).is_dir()


def merge_duplicates(topics: Topics, qrels: Qrels) -> Side:
    """Return the judged topics without duplicate texts; the first topic with a text gets the judgments of all of them.

    Raises InputError if two topics with equal text judge a document differently.
    """
    id_by_text: dict[str, str] = {}
    judged = [topic for topic in topics.values() if topic.id in qrels]
    first_ids = {topic.id: id_by_text.setdefault(topic.text, topic.id) for topic in judged}
    rows = ((first_ids[topic], group, doc, grade) for topic, group, doc, grade in qrels.rows() if topic in first_ids)
    return Side(Topics(topic for topic in judged if first_ids[topic.id] == topic.id), Qrels(rows))


LEAKS = ("error", "drop")
LEARN, CHOOSE, MEASURE = "to learn from", "to choose with", "to measure with"
MAX_SHOWN = 60  # characters of a text in an error


def check_leaks(leaks: str) -> None:
    """Raise ParameterError for an invalid value of `leaks`."""
    if leaks not in LEAKS:
        raise ParameterError(f"leaks must be {' or '.join(LEAKS)}, not '{leaks}'")


def drop_leaked(learning: RecipeTraining, measured: Topics, read: Callable[[Topics], Topics], drop: bool) -> RecipeTraining:
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
        for topic, text in texts:  # a loop of its own, because topics of one side may share a text
            used.setdefault(text, (topic, side))
    if not any(pairs.values()):
        return learning
    if not drop:
        lines = [
            f"  topic '{topic.id}' ({side}) has the text of topic '{other.id}' ({where}): {_excerpt(topic)}"
            for side in (LEARN, CHOOSE)
            for topic, other, where in pairs[side]
        ]
        head = "a topic has" if len(lines) == 1 else f"{len(lines):,} topics have"
        last = "remove each from one of the two sides, or leave all of them out with leaks='drop' (--leaks drop)"
        raise InputError.of_lines([f"{head} a text that is on two sides:", *lines, last])
    sides = {}
    for name, side, later in (("train", LEARN, "chosen or measured with"), ("dev", CHOOSE, "measured with")):
        previous: Side = getattr(learning, name)
        leaked = {topic.id for topic, _, _ in pairs[side]}
        sides[name] = previous.only(set(previous.topics) - leaked)
        if leaked:
            count = f"{len(leaked):,} of {len(previous.topics):,}"
            learning.notes.append({"role": side, "without": f"{count}, whose text is {later}"})
    if learning.train.topics and not sides["train"].topics:
        raise InputError("no topic to learn from is left: the text of each is chosen or measured with; give others")
    return replace(learning, train=sides["train"], dev=sides["dev"])


def _texts(topics: Topics, read: Callable[[Topics], Topics]) -> list[tuple[Topic, str]]:
    if not topics:
        return []
    as_read = read(topics)
    return [(topic, as_read[topic.id].text.strip() or topic.text.strip()) for topic in topics.values()]


def _excerpt(topic: Topic) -> str:
    text = " ".join(topic.text.split())
    return f'"{text[:MAX_SHOWN]}{"…" if len(text) > MAX_SHOWN else ""}"'


def split_disjoint(
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
    train_side = NO_SIDE if train is None else Side(topics, train).only(train)
    dev_side = NO_SIDE if dev is None else Side(topics, dev).only(dev)
    return searched, qrels, RecipeTraining(train_side, dev_side)
