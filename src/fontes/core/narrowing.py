"""Stages with a filter on what they retrieve, or sorted by a column."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn, TypeVar

from .errors import ParameterError
from .hints import nearest
from .part import Part, stages, walk
from .values import Topics
from .where import both

S = TypeVar("S", bound=Part)


def filtered(stage: S, where: str | None) -> S:
    """Return the stage with a filter on each of its retrievers, beside their own; the stage itself for None.

    Raises:
        ParameterError: The filter is wrong, or nothing in the stage searches an index.
    """
    if where is None:
        return stage

    def with_filter(part: Any) -> Part:
        if not is_retriever(part):
            return part  # type: ignore[no-any-return]
        part = part.with_(where=both(part.where, where))
        part.check()
        return part  # type: ignore[no-any-return]

    filtered: Any = stage.map(with_filter)
    if filtered is stage:
        raise ParameterError(f"where: there is nothing in {stage!r} that searches an index")
    return filtered  # type: ignore[no-any-return]


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
