"""Topics and judgments of a recipe from values, files and collections, several of them merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core import InputError, Qrels, Topic, Topics
from ..datasets import dataset, named, qrels_of, splits_of, topics_of

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
