"""Division of topics: groups of related topics, and random parts and folds that do not divide a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from ..core import InputError, ParameterError, Qrels, Topic, Topics

Groups: TypeAlias = str | Mapping[str, str] | Callable[[Topic], object] | None
T = TypeVar("T")


def units_of(topics: Topics, qrels: Qrels, groups: Groups) -> list[list[str]]:
    """Return groups of topic ids that must stay in one fold, independent of the order of the topics.

    Args:
        topics: The topics.
        qrels: Their judgments, needed only for "document".
        groups: None: each topic alone. "document": topics connected by shared relevant documents (grade 1 or more).
            "conversation": topics with equal ids before the last "_". Or a mapping from topic id, or a function from topic,
            to a group name.

    Raises:
        ParameterError: `groups` is another string, or "document" without judgments.
        InputError: The mapping lacks a topic.
    """
    ids = sorted(topics)
    if groups is None:
        return [[topic_id] for topic_id in ids]
    if groups == "document":
        if not qrels:
            raise ParameterError("groups='document' needs judgments, which say what documents topics share; give qrels")
        links = ([(topic_id, doc_id) for doc_id, grade in qrels.get(topic_id, {}).items() if grade >= 1] for topic_id in ids)
        return connected(ids, links)
    if groups == "conversation":
        return _grouped({topic_id: topic_id.rpartition("_")[0] or topic_id for topic_id in ids})
    if isinstance(groups, Mapping):
        for topic_id in ids:
            if topic_id not in groups:
                raise InputError(f"topic '{topic_id}' has no group in the mapping of groups")
        return _grouped({topic_id: groups[topic_id] for topic_id in ids})
    if callable(groups):
        return _grouped({topic_id: groups(topics[topic_id]) for topic_id in ids})
    raise ParameterError(f"groups must be 'document', 'conversation', a mapping or a function, not {groups!r}")


def drawn(names: Iterable[str], share: float, seed: int | np.random.Generator, least: int = 1) -> list[str]:
    """Draw a share of distinct names, independent of their order and number; at least one name is left.

    Args:
        names: Names of topics or of groups.
        share: Share to draw, from 0 to 1.
        seed: Seed, or the generator that draws.
        least: Least number to draw.
    """
    distinct = sorted(set(names))
    count = max(0, min(len(distinct) - 1, max(least, round(share * len(distinct)))))
    return drawn_units([[name] for name in distinct], count, seed)


def drawn_units(units: Sequence[Sequence[str]], size: int, seed: int | np.random.Generator) -> list[str]:
    """Return names of units in random order, as long as each fits; `size` is the greatest number of names."""
    names: list[str] = []
    for i in np.random.default_rng(seed).permutation(len(units)).tolist():
        if len(names) + len(units[i]) <= size:
            names += units[i]
    return names


def split_by(
    key: Callable[[T], str], items: Sequence[T], share: float, seed: int | np.random.Generator, least: int = 1
) -> tuple[list[T], list[T]]:
    """Return items in two parts, both in order, the second with all items of a random share of the keys.

    Args:
        key: The name of an item's topic or group.
        items: The items.
        share: As for `drawn`.
        seed: As for `drawn`.
        least: As for `drawn`.
    """
    held_out = set(drawn(map(key, items), share, seed, least))
    return [item for item in items if key(item) not in held_out], [item for item in items if key(item) in held_out]


def folds_of(units: list[list[str]], folds: int, seed: int) -> dict[str, int]:
    """Assign units of topics to folds: shuffled, larger units first, each to the smallest fold so far.

    Returns:
        Topic id to fold number, from 0.

    Raises:
        ParameterError: There are fewer than two folds, or more folds than units.
    """
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise ParameterError(f"folds must be a whole number from 2 up, not {folds!r}")
    if folds > len(units):
        raise ParameterError(f"{folds} folds cannot be made of {len(units)} topics or groups of topics; give fewer folds")
    order = np.random.default_rng(seed).permutation(len(units)).tolist()
    sizes = [0] * folds
    fold_of = {}
    for unit in sorted((units[i] for i in order), key=len, reverse=True):
        fold = sizes.index(min(sizes))
        sizes[fold] += len(unit)
        fold_of.update(dict.fromkeys(unit, fold))
    return fold_of


def _grouped(names: Mapping[str, object]) -> list[list[str]]:
    """Return the topic ids with each group name, given the group name of each topic id."""
    units: dict[object, list[str]] = {}
    for topic_id, name in names.items():
        units.setdefault(name, []).append(topic_id)
    return list(units.values())


def connected(ids: list[str], links: Iterable[list[tuple[str, str]]]) -> list[list[str]]:
    """Return groups of ids that share names, transitively, from lists of (id, name)."""
    parent = {topic_id: topic_id for topic_id in ids}

    def root(topic_id: str) -> str:
        while parent[topic_id] != topic_id:
            parent[topic_id] = parent[parent[topic_id]]
            topic_id = parent[topic_id]
        return topic_id

    first: dict[str, str] = {}
    for pairs in links:
        for topic_id, name in pairs:
            a, b = root(topic_id), root(first.setdefault(name, topic_id))
            parent[max(a, b)] = min(a, b)
    return _grouped({topic_id: root(topic_id) for topic_id in ids})
