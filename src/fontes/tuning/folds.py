"""Groups of related topics, and folds that keep each group whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from ..core import InputError, ParameterError, Qrels, Topic, Topics

Groups: TypeAlias = str | Mapping[str, str] | Callable[[Topic], object] | None


def units_of(topics: Topics, qrels: Qrels, groups: Groups) -> list[list[str]]:
    """Return groups of topic ids that must stay in one fold, independent of the order of the topics.

    Args:
        topics: The topics.
        qrels: Their judgments, needed only for "document".
        groups: None: each topic alone. "document": topics connected by shared relevant documents (grade 1 or more).
            "conversation": topics with equal ids before the last "_". Or a mapping from topic id, or a function from topic,
            to a group name.

    Raises:
        ParameterError: `groups` is another word, or "document" without judgments.
        InputError: The mapping lacks a topic.
    """
    ids = sorted(topics)
    if groups is None:
        return [[i] for i in ids]
    if groups == "document":
        if not qrels:
            raise ParameterError("groups='document' needs judgments, which say what documents topics share; give qrels")
        return connected(ids, ([(i, d) for d, grade in qrels.get(i, {}).items() if grade >= 1] for i in ids))
    if groups == "conversation":
        return _named({i: i.rpartition("_")[0] or i for i in ids})
    if isinstance(groups, Mapping):
        for i in ids:
            if i not in groups:
                raise InputError(f"topic '{i}' has no group in the mapping of groups")
        return _named({i: groups[i] for i in ids})
    if callable(groups):
        return _named({i: groups(topics[i]) for i in ids})
    raise ParameterError(f"groups must be 'document', 'conversation', a mapping or a function, not {groups!r}")


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


def _named(names: Mapping[str, object]) -> list[list[str]]:
    units: dict[object, list[str]] = {}
    for topic_id, name in names.items():
        units.setdefault(name, []).append(topic_id)
    return list(units.values())


def connected(ids: list[str], links: Iterable[list[tuple[str, str]]]) -> list[list[str]]:
    """Return groups of ids that share names, transitively, from lists of (id, name)."""
    parent = {i: i for i in ids}

    def root(i: str) -> str:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[str, str] = {}
    for pairs in links:
        for topic_id, doc_id in pairs:
            a, b = root(topic_id), root(first.setdefault(doc_id, topic_id))
            parent[max(a, b)] = min(a, b)
    return _named({i: root(i) for i in ids})
