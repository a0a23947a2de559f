"""Values with rows as DataFrames and Arrow tables, the columns of such frames, and the names of columns."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import chain
from numbers import Integral
from typing import Any, TypeGuard

import numpy as np

from .errors import InputError, MissingExtraError

BLANK = re.compile(r"\s")
NOUNS = {"frame": "DataFrame", "series": "Series"}
UNNAMED_INDEX = "__index_level_"  # begin of the names that pandas gives to an index without a name in Arrow and Parquet
CHUNK_ROWS = 1000  # rows of an Arrow table as Python values at once
DOC_ID = ("_id", "id", "pid", "docno", "doc_id", "docid", "cord_uid")
"""Names of ids; that of a passage (`pid`) before those of a document, which its passages share."""
DOC_TITLE = ("title",)
DOC_TEXT = ("text", "contents", "abstract", "body")
TOPIC_ID = (
    "_id",
    "qid",
    "q_id",
    "query_id",
    "topic_id",
    "question_id",
    "post_id",
    "tweet_id",
    "claim_id",
    "id",
    "number",
    "num",
    "topic",
)
TOPIC_TEXT = ("text", "query", "title", "question", "tweet_text", "tweet_content", "post_text", "claim", "contents", "raw")
JUDGED = ("pid", "docno", "doc_id", "docid", "cord_uid", "corpus_id", "document_id", "id")
"""The document id in a table that also has topic ids, to which "_id" belongs."""
GRADE = ("relevance", "grade", "label", "rel", "score")
SCORE = ("score", "sim")
RANK = ("rank",)
SHAPES = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")


class Tabular:
    """A value with rows, such as a `Run` or a report."""

    __slots__ = ()

    def to_columns(self) -> Mapping[str, Any]:
        """Return the columns by name: arrays or lists of one length."""
        raise NotImplementedError

    def to_pandas(self, **options: object) -> Any:
        """Return the rows as a pandas DataFrame, with the columns of `to_columns`, which has the same options.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return _library("pandas", "pandas", "to_pandas()").DataFrame(self.to_columns(**options))

    def to_polars(self, **options: object) -> Any:
        """Return the rows as a polars DataFrame, with the columns of `to_columns`, which has the same options.

        Raises:
            MissingExtraError: polars is not installed.
        """
        columns = {  # polars would take an array of strings for Python objects
            name: column.tolist() if getattr(getattr(column, "dtype", None), "hasobject", False) else column
            for name, column in self.to_columns(**options).items()
        }
        return _library("polars", "polars", "to_polars()").DataFrame(columns, strict=False)

    def to_arrow(self, **options: object) -> Any:
        """Return the rows as a `pyarrow.Table`, with the columns of `to_columns`, which has the same options.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        return _library("pyarrow", "parquet", "to_arrow()").table(self.to_columns(**options))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows to DuckDB, pyarrow and others, by Arrow's PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def is_frame(value: object) -> bool:
    """Whether a value is a table: of pandas, polars, Arrow, DuckDB, a dataset of Hugging Face, or one that exports Arrow.

    Raises:
        InputError: It is all splits of a dataset of Hugging Face, a lazy frame, or a series.
    """
    if isinstance(value, dict) and type(value).__name__ in ("DatasetDict", "IterableDatasetDict"):
        raise InputError(f"a dataset of several splits; choose one of them: dataset['{next(iter(value), 'train')}']")
    if isinstance(value, Tabular):
        return False
    if type(value).__name__ == "LazyFrame":
        raise InputError("a LazyFrame has no rows yet; frame.collect() gives a DataFrame")
    if hasattr(value, "columns") or _is_of_datasets(value):
        return True
    if _is_series(value):
        remedy = "give a table (pandas: series.rename('score').reset_index())"
        raise InputError(f"a {type(value).__name__} has no columns; {remedy}")
    return hasattr(value, "__arrow_c_stream__")


def check_no_record(values: Mapping[Any, object], ids: Sequence[str], texts: Sequence[str], what: str) -> None:
    """Raise InputError if a mapping from id to text looks like a single record, or a table, by its keys.

    Args:
        values: The mapping.
        ids: Names of ids in records.
        texts: Names of texts in records.
        what: The values, such as "documents".
    """
    keys = [next((name for name in names if name in values), None) for names in (ids, texts)]
    if None not in keys:
        problem = f"a mapping of {what} is from id to text, and this one has the keys '{keys[0]}' and '{keys[1]}'"
        raise InputError(f"{problem}; give a list of dicts, [{{…}}], or, of columns, a DataFrame")


def listed(value: Any) -> Any:
    """Return an array or a series of numpy, pandas, polars or Arrow as a list, and any other value unchanged.

    A Series of pandas, which has an index, gives pairs of label and value; a set, which has no order, is sorted.

    Raises:
        InputError: The labels of a Series are neither strings nor whole numbers, or one occurs twice.
    """
    if hasattr(value, "to_frame") and hasattr(value, "index") and hasattr(value, "tolist"):
        return list(zip(_labels(value.index, "series", "reset_index(drop=True)"), value.tolist(), strict=True))
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if _is_series(value):
        return value.to_list() if hasattr(value, "to_list") else value.to_pylist()
    return value


@dataclass(frozen=True)
class Frame:
    """A table of another library, which is read in chunks of columns.

    Args:
        names: The names of the columns.
        chunks: For some rows at a time, the columns as lists.
        numbering: How to add a column of ids to such a table, for messages; "" if there is no short way.
    """

    names: list[str]
    chunks: Iterator[list[list[object]]]
    numbering: str = ""

    @classmethod
    def of(cls, frame: Any, ids: Sequence[str] = (), texts: Sequence[str] = (), first: int = 0) -> Frame:
        """Open a table.

        Named levels of pandas' index are columns.

        Args:
            frame: A value for which `is_frame` is true.
            ids: Names of a column of ids. If there is none, but one of `texts`, the labels of pandas' index are added under the
                first of these names. Whole numbers without a name, or else the numbers of the rows, are added only if no
                column may be meant as ids.
            texts: Names of a column of texts.
            first: Number of the first row.

        Raises:
            InputError: The frame cannot be read, a column is named twice, or its index is no index of ids.
            MissingExtraError: It exports Arrow, and pyarrow is not installed.
        """
        numbering = ""
        labels: Sequence[object] | None = None
        chunks: Iterator[list[list[object]]]
        if type(frame).__module__.partition(".")[0] == "polars" and hasattr(frame, "iter_slices"):
            names, numbering = list(frame.columns), f"frame.with_row_index({ids[0]!r})" if ids else ""
            chunks = ([column.to_list() for column in part.get_columns()] for part in frame.iter_slices(CHUNK_ROWS))
        elif hasattr(frame, "itertuples"):
            frame, labels = _indexed(frame, ids, texts)
            names, numbering = list(frame.columns), f"frame.reset_index(names={ids[0]!r})" if ids else ""
            columns = [_values_of(frame.iloc[:, number]) for number in range(frame.shape[1])]
            starts = range(0, len(frame), CHUNK_ROWS)
            chunks = ([column[at : at + CHUNK_ROWS].tolist() for column in columns] for at in starts)
        else:
            names, chunks = _of_arrow(frame, ids, texts)
        names = list(map(str, names))
        if twice := next((name for number, name in enumerate(names) if name in names[:number]), None):
            raise InputError(f"the DataFrame: a column is named twice: '{twice}' in {', '.join(names)}")
        if labels is None and _lacks_ids(names, ids, texts) and (head := next(chunks, None)) is not None:
            chunks = chain([head], chunks)
            others = ((name, column) for name, column in zip(names, head, strict=True) if not find([name], (*texts, "title")))
            if not any(_may_be_ids(name, column) for name, column in others):
                labels = _numbers(frame, first)
        if labels is not None:
            names, chunks = [*names, ids[0]], _with_labels(chunks, labels)
        return cls(names, chunks, numbering)

    def rows(self) -> Iterator[Sequence[object]]:
        """Yield the rows."""
        for columns in self.chunks:
            yield from zip(*columns, strict=True)


def columns_of(rows: Sequence[Mapping[str, object]], names: list[str]) -> dict[str, list[object]]:
    """Return rows as columns; a row may lack a name."""
    return {name: [row.get(name) for row in rows] for name in names}


def _library(name: str, extra: str, purpose: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError.of(name, extra, purpose) from error


def _is_series(value: object) -> bool:
    """Whether a value is a series of pandas or polars, or an array of Arrow."""
    return hasattr(value, "to_frame") or (hasattr(value, "to_pylist") and hasattr(value, "type"))


def _is_of_datasets(value: object) -> bool:
    return hasattr(value, "with_format") and hasattr(value, "column_names")


def _lacks_ids(names: Collection[str], ids: Sequence[str], texts: Sequence[str]) -> bool:
    return bool(ids) and find(names, ids) is None and find(names, texts) is not None


def _may_be_ids(name: str, column: list[Any]) -> bool:
    """Whether a column may be meant as ids: words that all differ, or such whole numbers with a name such as "paper_id"."""
    kinds = set(map(type, column))
    are_numbers = kinds == {int} and normalize(name).endswith(("id", "no", "key", "number"))
    return (are_numbers or (kinds == {str} and not any(map(BLANK.search, column)))) and len(set(column)) == len(column)


def _numbers(frame: object, first: int) -> Sequence[object]:
    """Return the whole numbers of pandas' index, or else the numbers of the rows."""
    index = getattr(frame, "index", None)
    if getattr(index, "inferred_type", "") == "integer" and index.nlevels == 1:  # type: ignore[union-attr]
        return _labels(index, "frame", "reset_index(drop=True)")
    return range(first, sys.maxsize)


def _labels(index: Any, what: str, remedy: str) -> list[str]:
    """Return the labels of a pandas index as ids."""
    labels = [label if isinstance(label, str) else _whole(label) for label in index.tolist()]
    if None in labels:
        label = index[labels.index(None)]
        problem = f"holds {label}, neither a string nor a whole number"
    elif not index.is_unique:
        problem = f"holds '{index[index.duplicated()][0]}' twice"
    else:
        return labels  # type: ignore[return-value]
    raise InputError(f"the index of the {NOUNS[what]}, which is taken for ids, {problem}; {what}.{remedy} numbers the rows")


def _whole(label: object) -> str | None:
    return str(int(label)) if isinstance(label, Integral) and not isinstance(label, bool) else None


def _indexed(frame: Any, ids: Sequence[str], texts: Sequence[str]) -> tuple[Any, list[str] | None]:
    """Return a pandas frame with the named levels of its index as columns, and the labels that are its ids, if they are.

    Labels with a name are ids if they are strings or whole numbers. Others may be, unless they are whole numbers.
    """
    index, columns = frame.index, list(map(str, frame.columns))
    named = [name for name in index.names if name is not None and str(name) not in columns]
    if index.nlevels == 1 and _lacks_ids([*columns, *map(str, named)], ids, texts):
        kind = index.inferred_type
        if kind in ("string", "integer", "categorical") if index.name is not None else kind != "integer":
            return frame, _labels(index, "frame", "reset_index()" if named else "reset_index(drop=True)")
    return (frame.reset_index(level=named) if named else frame), None


def _values_of(series: Any) -> Any:
    """Return the array of a pandas series; slices of it are quicker than those of a frame."""
    if not isinstance(series.dtype, np.dtype):
        return series.array
    return series.to_numpy(f"{series.dtype.kind}8[us]" if series.dtype.kind in "mM" else None)  # without nanoseconds


def _of_arrow(frame: Any, ids: Sequence[str], texts: Sequence[str]) -> tuple[list[str], Iterator[list[list[object]]]]:
    """Return the names and chunks of a dataset of Hugging Face, or of what exports Arrow."""
    kind = type(frame).__name__
    batches: Iterator[Any]
    if _is_of_datasets(frame):
        batches = iter(frame.with_format("arrow").iter(CHUNK_ROWS))
        first = next(batches, None)
        if first is None:
            return list(frame.column_names or ()), iter(())
        schema, batches = first.schema, chain([first], batches)
    elif hasattr(frame, "__arrow_c_stream__"):
        batches = _library("pyarrow", "parquet", f"reading a {kind}").RecordBatchReader.from_stream(frame)
        schema = batches.schema  # type: ignore[attr-defined]
    else:
        raise InputError(f"rows of the type {kind} cannot be read; give a DataFrame of pandas or polars, or an Arrow table")
    names = list(schema.names)
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
    if len(index) == 1 and _lacks_ids(names, ids, texts):  # as `_indexed` takes the index of pandas
        names[names.index(index[0])] = ids[0]
    read = [number for number, name in enumerate(names) if not name.startswith(UNNAMED_INDEX)]
    return [names[number] for number in read], _chunks(batches, read)


def _chunks(batches: Iterator[Any], read: Sequence[int]) -> Iterator[list[list[object]]]:
    for batch in batches:
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            part = batch.slice(start, CHUNK_ROWS)
            yield [part.column(number).to_pylist() for number in read]


def _with_labels(chunks: Iterator[list[list[object]]], labels: Sequence[object]) -> Iterator[list[list[object]]]:
    at = 0
    for columns in chunks:
        count = len(columns[0])
        yield [*columns, list(labels[at : at + count])]
        at += count


def records_of(value: object) -> list[dict[str, object]]:
    """Return the rows of a table as dicts, from a list of dicts or of named tuples with more than three fields; else []."""
    rows: list[Any] = list(value) if isinstance(value, (list, tuple)) else []
    if all(isinstance(row, dict) for row in rows):
        return rows
    return [row._asdict() for row in rows] if all(len(getattr(row, "_fields", ())) > 3 for row in rows) else []


def are_all(values: object, kind: type) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list of several values of a kind or of paths, to be merged."""
    return isinstance(values, (list, tuple)) and len(values) > 0 and all(isinstance(v, (kind, os.PathLike)) for v in values)


@lru_cache(1000, typed=True)
def normalize(name: object) -> str:
    """Normalize a name: ignore case, "_", "-" and spaces between words."""
    return str(name).strip().casefold().replace("-", "_").replace(" ", "_")


@lru_cache(1000, typed=True)
def compact(name: object) -> str:
    """Normalize a name, without "_": `queryId` as `query_id`."""
    return normalize(name).replace("_", "")


def find(present: Collection[object], sought: Sequence[str]) -> Any:
    """Return the first of `sought` among the `present` names, in its present spelling, or None."""
    for name in sought:
        if name in present:
            return name
    for spelling in (normalize, compact):
        spelled = {spelling(name): name for name in reversed(list(present))}
        for name in sought:
            if spelling(name) in spelled and not (spelling is compact and name == "_id"):
                return spelled[spelling(name)]
    return None


def shape_of(name: str) -> str:
    """Replace each run of letters by "a" and of digits by "0", so that ids of one collection have few shapes."""
    return SHAPES[1].sub("0", SHAPES[0].sub("a", name))


def join_with_or(names: Sequence[str]) -> str:
    """Join names as in "a, b or c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
