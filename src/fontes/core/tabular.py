"""Values with rows as DataFrames and Arrow tables, and the rows of such frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

from .errors import InputError, MissingExtraError

CHUNK_ROWS = 1000  # rows of an Arrow table as Python values at once


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
        return _library("pandas", "pandas", "to_pandas()").DataFrame(self.to_columns())

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame, with the columns of `to_columns`.

        Raises:
            MissingExtraError: polars is not installed.
        """
        columns = {  # polars would take an array of strings for Python objects
            name: column.tolist() if getattr(getattr(column, "dtype", None), "hasobject", False) else column
            for name, column in self.to_columns().items()
        }
        return _library("polars", "polars", "to_polars()").DataFrame(columns, strict=False)

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table`, with the columns of `to_columns`.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        return _library("pyarrow", "parquet", "to_arrow()").table(self.to_columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows to DuckDB, pyarrow and others, by Arrow's PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def is_frame(value: object) -> bool:
    """Whether a value is a table: of pandas, polars, Arrow, DuckDB, a dataset of Hugging Face, or one that exports Arrow.

    Raises:
        InputError: It is all splits of a dataset of Hugging Face, or a lazy frame.
    """
    if isinstance(value, dict) and type(value).__name__ in ("DatasetDict", "IterableDatasetDict"):
        raise InputError(f"a dataset of several splits; choose one of them: dataset['{next(iter(value), 'train')}']")
    if isinstance(value, Tabular):
        return False
    if type(value).__name__ == "LazyFrame":
        raise InputError("a LazyFrame has no rows yet; frame.collect() gives a DataFrame")
    return hasattr(value, "columns") or hasattr(value, "__arrow_c_stream__") or _is_of_datasets(value)


def rows_of(frame: Any) -> tuple[list[str], Iterator[Sequence[Any]]]:
    """Return the names of a frame's columns, and its rows.

    Raises:
        InputError: The frame cannot be read.
        MissingExtraError: It exports Arrow, and pyarrow is not installed.
    """
    if type(frame).__module__.partition(".")[0] == "polars" and hasattr(frame, "iter_rows"):
        return list(frame.columns), frame.iter_rows()
    if hasattr(frame, "itertuples"):
        return list(frame.columns), frame.itertuples(index=False, name=None)
    kind = type(frame).__name__
    if _is_of_datasets(frame):
        batches = iter(frame.with_format("arrow").iter(CHUNK_ROWS))
        first = next(batches, None)
        names = list(frame.column_names or ()) if first is None else first.schema.names
        return names, _cells(batches if first is None else chain([first], batches))
    if not hasattr(frame, "__arrow_c_stream__"):
        raise InputError(f"the rows of a {kind} cannot be read; give a DataFrame of pandas or polars, or an Arrow table")
    reader = _library("pyarrow", "parquet", f"reading a {kind}").RecordBatchReader.from_stream(frame)
    return reader.schema.names, _cells(iter(reader))


def columns_of(rows: list[dict[str, Any]], names: list[str]) -> dict[str, list[Any]]:
    """Return rows as columns; a row may lack a name."""
    return {name: [row.get(name) for row in rows] for name in names}


def _library(name: str, extra: str, purpose: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError.of(name, extra, purpose) from error


def _is_of_datasets(value: object) -> bool:
    return hasattr(value, "with_format") and hasattr(value, "column_names")


def _cells(batches: Iterator[Any]) -> Iterator[Sequence[Any]]:
    for batch in batches:
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            yield from zip(*(column.to_pylist() for column in batch.slice(start, CHUNK_ROWS).columns), strict=True)
