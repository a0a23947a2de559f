"""Values with rows as DataFrames of pandas and polars."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import MissingExtraError


class Tabular:
    """A value with rows, such as a `Run` or a report."""

    __slots__ = ()

    def to_columns(self) -> dict[str, Any]:
        """Return the columns by name: arrays or lists of one length."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame, with the columns of `to_columns`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return _library("pandas").DataFrame(self.to_columns())

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame, with the columns of `to_columns`.

        Raises:
            MissingExtraError: polars is not installed.
        """
        columns = {name: _typed(column) for name, column in self.to_columns().items()}
        return _library("polars").DataFrame(columns, strict=False)


def columns_of(rows: list[dict[str, Any]], names: list[str]) -> dict[str, list[Any]]:
    """Return rows as columns; a row may lack a name."""
    return {name: [row.get(name) for row in rows] for name in names}


def _typed(column: Any) -> Any:
    """Strings as a list: polars would take an array of Python objects for objects."""
    return column.tolist() if getattr(getattr(column, "dtype", None), "hasobject", False) else column


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError.of(name, name, f"to_{name}()") from error
