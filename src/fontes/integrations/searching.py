"""Search for the retrievers of frameworks: hits with their documents, and filters from conditions on metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core import Doc, Hit, ParameterError, PipelineError, Run, Stage, Topics
from ..core.checks import check_whole
from ..core.stage import filtered
from ..index import Index, State
from ..lexical import BM25

COMPARISONS = ("==", "!=", ">", ">=", "<", "<=")


@dataclass(frozen=True)
class Search:
    """The search of a retriever. Its deep copy is itself: frameworks copy retrievers, which must not copy an index.

    Args:
        stage: A stage from topics to a run.
    """

    stage: Stage[Topics, Run]

    @classmethod
    def of(cls, value: Any) -> Search:
        """Return the search of a stage, or of the BM25 of an index.

        Raises:
            PipelineError: The value is not a stage from topics to a run, or an index.
        """
        stage = BM25(value) if isinstance(value, Index | State) else value
        if not isinstance(stage, Stage):
            raise PipelineError(f"a retriever is made from a stage or an index, not from {type(value).__name__}")
        stage.require(Topics, Run, "a retriever")
        return cls(stage)

    def __call__(self, query: Any, k: int, where: str | None = None) -> list[tuple[Hit, Doc]]:
        """Return the best k documents for a text, each with its hit.

        Raises:
            ParameterError: The query is not a text, k is below 1, or the filter is invalid.
            InputError: The index has no texts.
        """
        if not isinstance(query, str):
            raise ParameterError(f"a query is a text, not a {type(query).__name__}")
        run: Run = (filtered(self.stage, where) % check_whole("the number of documents, k,", k))(query)
        ranking = run["1"]
        return list(zip(ranking, run.documents_for("a retriever").docs(ranking.ids), strict=True))

    async def later(self, query: Any, k: int, where: str | None = None) -> list[tuple[Hit, Doc]]:
        """Search in a thread, which leaves the event loop free; arguments, result and errors are those of a call."""
        return await asyncio.to_thread(self, query, k, where)

    def __deepcopy__(self, memo: object) -> Search:
        return self


def metadata_of(doc: Doc, **further: Any) -> dict[str, Any]:
    """Return the document's metadata, its title under "title" if it has one, and `further` values, which replace its own."""
    metadata = dict(doc.metadata)
    if doc.title:
        metadata["title"] = doc.title
    return metadata | further


def comparison(column: str, sign: str, value: Any) -> str:
    """Return a comparison as the text of a filter.

    A comparison with a missing value is false and its negation true, as in the frameworks. In other filters neither is true.

    Args:
        column: The name of a column.
        sign: ==, !=, >, >=, <, <=, in, not in; or "contains", for a column of lists.
        value: A text, a number, a truth value or None; for in and not in, a list of these.

    Raises:
        ParameterError: The sign is unknown, or does not take this value.
    """
    name = f"metadata[{column!r}]"
    if sign in ("in", "not in"):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ParameterError(f"filter of '{column}': {sign} takes a list of values, not {value!r}")
        nothing = f"({name} is None and {name} is not None)"  # filters have no empty list
        member = f"({name} is not None and {name} in {tuple(value)!r})" if value else nothing
        return member if sign == "in" else f"(not {member})"
    if sign == "contains":
        return f"({name} is not None and {value!r} in {name})"
    if sign not in COMPARISONS:
        raise ParameterError(
            f"filter of '{column}': there is no operator '{sign}' here; there are {', '.join(COMPARISONS)}, in, not in"
        )
    if value is None:
        if sign not in ("==", "!="):
            raise ParameterError(f"filter of '{column}': {sign} takes a value, not None")
        return f"({name} is None)" if sign == "==" else f"({name} is not None)"
    if sign == "!=":
        return f"(not ({name} is not None and {name} == {value!r}))"
    return f"({name} is not None and {name} {sign} {value!r})"
