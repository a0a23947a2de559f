"""Search for the retrievers of frameworks: hits with their documents, and filters from conditions on metadata."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from ..core import Doc, Hit, ParameterError, PipelineError, Run, Stage, Topics
from ..core.checks import check_whole
from ..core.part import state_of, walk
from ..core.searches import filtered, is_retriever
from ..core.where import TYPES, condition
from ..index import Index, State
from ..lexical import BM25

COMPARISONS = ("==", "!=", ">", ">=", "<", "<=")


@dataclass(frozen=True)
class IndexSearch:
    """The search of a retriever. Its deep copy is itself: frameworks copy retrievers, which must not copy an index.

    Args:
        stage: A stage from topics to a run.
    """

    stage: Stage[Topics, Run]

    @classmethod
    def of(cls, value: object) -> IndexSearch:
        """Return the search of a stage, or of the BM25 of an index.

        Raises:
            PipelineError: The value is not a stage from topics to a run, or an index.
        """
        stage = BM25(value) if isinstance(value, Index | State) else value
        if not isinstance(stage, Stage):
            raise PipelineError(f"a retriever is made from a stage or an index, not from {type(value).__name__}")
        stage.require(Topics, Run, "a retriever")
        return cls(stage)

    @property
    def types(self) -> dict[str, str] | None:
        """The types of the metadata of the indexes that are searched, by name; None if these are without documents.

        Raises:
            ParameterError: Nothing in the stage searches an index.
        """
        states = [state_of(part.params()["index"]) for part in walk(self.stage) if is_retriever(part)]
        if not states:
            raise ParameterError(f"filters: there is nothing in {self.stage!r} that searches an index")
        types = {name: kind for state in states for name, kind in state.schema.types.items()}
        return types if types or any(state.leaves for state in states) else None

    def __call__(self, query: object, k: int, where: str | None = None) -> list[tuple[Hit, Doc]]:
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

    async def later(self, query: object, k: int, where: str | None = None) -> list[tuple[Hit, Doc]]:
        """Search in a thread, which leaves the event loop free; arguments, result and errors are those of a call."""
        return await asyncio.to_thread(self, query, k, where)

    def __deepcopy__(self, memo: object) -> IndexSearch:
        return self


def metadata_of(doc: Doc, **further: object) -> dict[str, object]:
    """Return the document's metadata, its title under "title" if it has one, and `further` values, which replace its own."""
    metadata = dict(doc.metadata)
    if doc.title:
        metadata["title"] = doc.title
    return metadata | further


def comparison(column: str, sign: str, value: object, types: Mapping[str, str]) -> str | bool:
    """Return a comparison as the text of a filter, or whether it is true of all documents or of none.

    A comparison with a missing value is false and its negation true, as in the frameworks. In other filters neither is true.

    Args:
        column: The name of a column.
        sign: ==, !=, >, >=, <, <=, in, not in; or "contains", for a column of lists.
        value: A text, a number, a truth value, a datetime or None; for in and not in, a list of these.
        types: The type of each column by name.

    Raises:
        ParameterError: The column or the sign is unknown, or does not take this value.
    """
    name, origin = f"metadata[{column!r}]", f"filter of '{column}'"
    missing, present = f"({name} is None)", f"({name} is not None)"
    condition(missing, types, origin)  # raises for an unknown column
    if sign in ("in", "not in"):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ParameterError(f"{origin}: {sign} takes a list of values, not {value!r}")
        values = [_literal(item, column, types) for item in value if item is not None]
        member = joined("or", [missing] * (len(values) < len(value)) + [f"({name} in ({', '.join(values)},))"] * bool(values))
        if isinstance(member, bool):
            return member if sign == "in" else not member
        condition(member, types, origin)
        member = f"({present} and {member})" if len(values) == len(value) else member
        return member if sign == "in" else negated(member)
    if sign != "contains" and sign not in COMPARISONS:
        raise ParameterError(f"{origin}: there is no operator '{sign}' here; there are {', '.join(COMPARISONS)}, in, not in")
    if value is None and sign in ("==", "!="):
        return missing if sign == "==" else present
    if value is None:
        raise ParameterError(f"{origin}: {sign} takes a value, not None")
    literal = _literal(value, column, types)
    test = f"{literal} in {name}" if sign == "contains" else f"{name} {'==' if sign == '!=' else sign} {literal}"
    condition(test, types, origin)
    return f"(not ({present} and {test}))" if sign == "!=" else f"({present} and {test})"


def joined(conjunction: str, conditions: Sequence[str | bool]) -> str | bool:
    """Return conditions joined by "and" or "or"; none at all are true of every document by "and", of none by "or"."""
    decisive = conjunction == "or"
    if decisive in conditions:
        return decisive
    texts = [text for text in conditions if isinstance(text, str)]
    return f"({f' {conjunction} '.join(texts)})" if texts else not decisive


def negated(inner: str | bool) -> str | bool:
    """Return the negation of a condition."""
    return not inner if isinstance(inner, bool) else f"(not {inner})"


def where_text(whole: str | bool, types: Mapping[str, str]) -> str | None:
    """Return a condition as the text of a filter; None if it is true of all documents.

    Raises:
        ParameterError: It is too long or nested too deeply, or there is no column for a filter that no document passes.
    """
    columns = [name for name, kind in types.items() if kind in TYPES]
    if whole is False and not columns:
        raise ParameterError("filters: no document passes them, which cannot be said of an index without columns")
    text = f"metadata[{columns[0]!r}] is None and metadata[{columns[0]!r}] is not None" if whole is False else whole
    if text is True:
        return None
    condition(str(text), types, "filters")
    return str(text)


def _literal(value: object, column: str, types: Mapping[str, str]) -> str:
    """Return a value as a literal of a filter; raise ParameterError for one that no column of this type can have."""
    value, origin = value.item() if isinstance(value, np.generic) else value, f"filter of '{column}'"
    if isinstance(value, date):
        if (kind := types[column]) != "date":
            raise ParameterError(f"{origin}: a date is compared with columns of dates, and '{column}' is of type {kind}")
        return repr(value.isoformat())
    if not isinstance(value, (str, int, float, list, tuple)) or (isinstance(value, float) and not math.isfinite(value)):
        raise ParameterError(
            f"{origin}: a column is compared with a text, a finite number, a truth value or a date, not {value!r}"
        )
    return str.__repr__(value) if isinstance(value, str) else repr(value)
