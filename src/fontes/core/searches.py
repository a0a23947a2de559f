"""Parameters of searches: k, offset and the limits of retrievers, filters and sorting."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from .arrays import Ints
from .checks import check_whole
from .errors import ParameterError, PipelineError
from .hints import nearest
from .part import Part, indexes_of, stages, walk
from .values import Topic, Topics
from .where import both

S = TypeVar("S", bound=Part)


def check_depth(k: object) -> int:
    """Return `k` as an int; raise ParameterError unless it is a whole number from 1 up."""
    return k if type(k) is int and k > 0 else check_whole("% keeps the best k documents: k", k)


def check_page(k: object, offset: object) -> int:
    """Return `k` + `offset`; raise ParameterError unless they are whole numbers from 1 and from 0 up."""
    if type(k) is int and k > 0 and type(offset) is int and offset >= 0:
        return k + offset
    return check_depth(k) + check_whole("offset", offset, 0)


def check_reach(stage: Part, k: int) -> None:
    """Raise ParameterError if all retrievers in a stage together give fewer than `k` documents because of a default limit.

    There is no error if the user has set the limits, or if the index has no further documents.
    """
    retrievers = list(_retrievers(stage))
    if sum(getattr(retriever, retriever.depth_field) for retriever in retrievers) >= k:
        return
    for retriever in retrievers:
        name, index = retriever.depth_field, getattr(retriever, "index", ())
        if retriever.has_default_depth and len(index) > getattr(retriever, name):
            raise ParameterError(
                f"k is {k:,}, and {retriever._label} gives {getattr(retriever, name):,} documents at most; set its {name}={k}"
            )


def _retrievers(part: Part) -> Iterator[Any]:
    """Yield the stages in a part that search; those inside a stage over runs only score its candidates."""
    if getattr(part, "takes", Topics) is Topics:
        if getattr(part, "depth_field", ""):
            yield part
        for inner in part.parts():
            yield from _retrievers(inner)


def at_most(count: int, up_to: int | None) -> int:
    """Return a count as `Stage.count` gives it."""
    return count if up_to is None else min(count, up_to + 1)


def matches_of_any(fusion: Part, stages: Sequence[Any], topic: Topic) -> Ints:
    """Return the ordinals of the documents that match one of some stages; `fusion` is their fusion, for messages.

    Raises:
        PipelineError: A stage has no matches, or the stages search several indexes.
    """
    if len(indexes_of(fusion)) > 1:
        raise PipelineError(f"{fusion._label} has no number of matches: its stages search several indexes")
    return np.unique(np.concatenate([stage.matches(topic) for stage in stages]))


def filtered(stage: S, where: str | None) -> S:
    """Return the stage with a filter on each of its retrievers, beside their own; the stage itself for None.

    Raises:
        ParameterError: The filter is wrong, or nothing in the stage searches an index.
    """
    if where is None:
        return stage

    def with_filter(part: Part) -> Part:
        if not is_retriever(part):
            return part
        filtered = part.with_(where=both(part.params()["where"], where))
        filtered.check()
        return filtered

    filtered = stage.map(with_filter)
    if filtered is stage:
        raise ParameterError(f"where: there is nothing in {stage!r} that searches an index")
    return filtered


def narrowed(stage: Any, where: str | None, sort: str | None, descending: bool) -> Any:
    """Return the stage with a filter, and sorted by a column; the stage itself without both.

    Raises:
        ParameterError: As `filtered`; or there is no such column.
    """
    if where is None and sort is None:
        return stage
    if sort is None:
        return filtered(stage, where)
    if "sort" in stage.params():  # a client, whose server sorts
        return filtered(stage, where).with_(sort=sort, descending=descending)
    indexes = [part.params()["index"] for part in walk(stage) if "index" in part.params()]
    if not indexes:
        raise ParameterError(f"sort: there is nothing in {stage!r} that searches an index")
    sorting: Any = stages["sort"]
    return filtered(stage, where) >> sorting(indexes[0], sort, descending)


def refuse_unknown(unknown: Collection[str]) -> NoReturn:
    """Raise ParameterError for unknown parameters of a search, with the one that is meant."""
    name, names = next(iter(unknown)), ("query", "k", "offset", "where", "sort", "descending", "facets")
    raise ParameterError(f"search has no parameter '{name}'; {nearest(name, names)}")


def is_retriever(part: Part) -> bool:
    """Whether a part takes a filter on what it returns; the condition of a boost is none."""
    return "where" in part.params() and getattr(part, "takes", Topics) is Topics
