"""Values of selected documents in a column, over the segments of an index."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np

from ...core.arrays import Int64s, Ints
from ...core.dates import forms_of, units_of
from ...core.errors import ParameterError
from ...core.hints import nearest
from ...core.where import REFUSED
from ...storage.caches import Cached, LazyAttribute
from ..segment import located
from .filters import Columned
from .values import Values, absent, join_values

SAMPLE = 200  # values that are looked at to find a column's form of dates
DIRECTED = re.compile(r"(?P<sign>[-+]?)(?P<name>.+?)(?:[:,. ]+(?P<order>asc|desc)(?:ending)?)?", re.IGNORECASE)
NOUNS = {"keyword": "text", "keywords": "lists of text", "boolean": "truth values", "date": "dates"}


def column_type(state: Columned, column: str, user: str, allowed: Collection[str]) -> str:
    """Return the type of a column that `user`, such as a stage, reads; for an index without documents an allowed type.

    Raises:
        ParameterError: There is no such column, or its type is not among those allowed.
    """
    if not isinstance(column, str):
        raise ParameterError(f"{user}: a column is named by a text, not {column!r}")
    kind = state.schema.types.get(column)
    if kind is None and not state.leaves:  # without documents no column is known
        return next(iter(allowed))
    if kind in REFUSED:
        raise ParameterError(f"{user}: '{column}' {REFUSED[kind]}, so it is no column")
    if kind is None:
        hint = _direction(column, state.schema.columns) or nearest(column, state.schema.columns)
        hint = hint if state.schema.columns else "the index has no columns"
        raise ParameterError(f"{user}: there is no column '{column}'; {hint}")
    if kind not in allowed:
        nouns = dict.fromkeys(NOUNS.get(name, "numbers") for name in allowed)
        raise ParameterError(
            f"{user}: the column '{column}' holds {NOUNS.get(kind, 'numbers')}; give one of {' or '.join(nouns)}"
        )
    return kind


def _direction(column: str, columns: Collection[str]) -> str:
    """How to write a column with a direction, such as `-price` or `price:desc`; "" for other texts."""
    if (directed := DIRECTED.fullmatch(column)) is None or directed["name"] not in columns:
        return ""
    descends = directed["sign"] == "-" or (directed["order"] or "").lower() == "desc"
    return f"did you mean '{directed['name']}'{', with descending' if descends else ''}?"


def column_values(state: Columned, column: str, docs: Ints) -> Values:
    """Return the values in a column of the documents with these ordinals, in any order."""
    kind = state.schema.types.get(column, "integer")  # an index without documents has no columns
    parts, indices = [], []
    for number, rows, leaf_docs in located(state.leaves, docs):
        columns = state.leaves[number].segment.columns
        columns.require(state.schema.types)
        parts.append(columns.values(column, kind).of(leaf_docs))
        indices.append(np.asarray(rows))
    return join_values(parts).of(np.argsort(np.concatenate(indices), kind="stable")) if parts else absent(kind, 0)


def date_forms(state: Columned) -> dict[str, list[str]]:
    """Return the columns of texts or whole numbers that look like dates, each with the forms that a sample of its values has.

    The forms are those of `--columns NAME=date:FORM`, "" for dates that need none.
    """
    forms = {}
    for name, kind in state.schema.columns.items():
        if kind not in ("keyword", "integer"):
            continue
        sample: list[Any] = []
        for leaf in state.leaves:
            values = leaf.segment.columns.values(name, kind)
            if values.table is not None:
                sample += [values.table[number] for number in _spread(len(values.table))]
            else:
                present = values.values[values.present]
                sample += present[_spread(len(present))].tolist()
        column_forms = forms_of(list(map(str, sample))) if kind == "keyword" else units_of(name, sample)
        if column_forms:
            forms[name] = column_forms
    return forms


def _spread(count: int) -> Int64s:
    """Return some of the numbers below `count`, from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(SAMPLE, count), dtype=np.int64))


def greatest_value(state: Columned, column: str) -> Any:
    """Return the greatest number or date of all documents in a column; None if none has a value."""

    def greatest() -> Any:
        values = column_values(state, column, np.arange(len(state)))
        present = values.values[values.present]
        return present.max().item() if len(present) else None

    return _GREATEST.of(state).get(column, greatest)


_GREATEST: LazyAttribute[Columned, Cached[str, object]] = LazyAttribute("greatest", lambda state: Cached())
