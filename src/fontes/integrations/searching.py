"""Search as frameworks ask for it: hits with their documents, a filter for each call, and what a socket may be made from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core import Doc, Hit, ParameterError, PipelineError, Run, Stage, Topics
from ..core.checks import check_whole
from ..core.stage import filtered

COMPARED = ("==", "!=", ">", ">=", "<", "<=")


@dataclass(frozen=True)
class Search:
    """Searches of a stage, by which frameworks may copy a retriever without copying its index.

    Args:
        stage: From topics to a run.
    """

    stage: Stage[Topics, Run]

    @classmethod
    def of(cls, value: Any) -> Search:
        """Return the search of a stage, or of an index by BM25.

        Raises:
            PipelineError: The value is neither, or the stage does not go from topics to a run.
        """
        stage = value.bm25() if hasattr(value, "bm25") else value
        if not isinstance(stage, Stage):
            raise PipelineError(f"a retriever is made from a stage or an index, not from {type(value).__name__}")
        stage.require(Topics, Run, "a retriever")
        return cls(stage)

    def __call__(self, query: Any, k: int, where: str | None = None) -> list[tuple[Hit, Doc]]:
        """Return the best k documents for a text, each with its hit.

        Raises:
            ParameterError: The query is no text, k is below 1, or the filter is wrong.
            InputError: The index holds no texts.
        """
        if not isinstance(query, str):
            raise ParameterError(f"a query is a text, not a {type(query).__name__}")
        run: Run = (filtered(self.stage, where) % check_whole("the number of documents, k,", k))(query)
        ranking = run["1"]
        return list(zip(ranking, run.documents_for("a retriever").docs(ranking.ids), strict=True))

    async def later(self, query: Any, k: int, where: str | None = None) -> list[tuple[Hit, Doc]]:
        """Search in a thread, so that the event loop goes on; returns and raises as a call does."""
        return await asyncio.to_thread(self, query, k, where)

    def __deepcopy__(self, memo: object) -> Search:
        return self


def metadata_of(doc: Doc, **more: Any) -> dict[str, Any]:
    """Return the metadata of a document with its title, if it has one, and `more`, which goes before its own."""
    return {**doc.metadata, **({"title": doc.title} if doc.title else {}), **more}


def comparison(column: str, sign: str, value: Any) -> str:
    """Return a comparison as the text of a filter that is true or false, as in frameworks, where a document has no value.

    Args:
        column: The name of a column.
        sign: ==, !=, >, >=, <, <=, in, not in; "contains" for a list that holds the value.
        value: A text, a number, a truth value or None; for in and not in a list of them.

    Raises:
        ParameterError: The sign is unknown, or the value does not go with it.
    """
    name = f"metadata[{column!r}]"
    if sign in ("in", "not in"):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ParameterError(f"filter of '{column}': {sign} takes a list of values, not {value!r}")
        inside = f"({name} is not None and {name} in {tuple(value)!r})" if value else f"({name} is None and {name} is not None)"
        return inside if sign == "in" else f"(not {inside})"
    if sign == "contains":
        return f"({name} is not None and {value!r} in {name})"
    if sign not in COMPARED:
        raise ParameterError(
            f"filter of '{column}': there is no operator '{sign}' here; there are {', '.join(COMPARED)}, in, not in"
        )
    if value is None:
        if sign not in ("==", "!="):
            raise ParameterError(f"filter of '{column}': {sign} takes a value, not None")
        return f"({name} is {'not ' * (sign == '!=')}None)"
    equal = f"({name} is not None and {name} {'==' if sign == '!=' else sign} {value!r})"
    return f"(not {equal})" if sign == "!=" else equal
