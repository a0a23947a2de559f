"""Binary tables: the first sheet of an Excel workbook, and Parquet."""

from __future__ import annotations

import os
import zipfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from ..core import Doc, InputError, MissingExtraError, Qrels, Run, Topic, Topics
from ..core.table import Table
from ..core.tabular import TOPIC_ID
from ..storage.compression import check_unpacked_size
from ..storage.files import MAX_PIECE
from .csv import columns_by_choice
from .format import File, Format
from .frames import cell_value
from .records import Fields, check_chosen, doc_from, located_in

ROWS = 1000  # rows of a Parquet file in memory at once
MAX_SHARED_BYTES = 16 * MAX_PIECE  # bytes of a workbook's shared texts, all in memory
Row = tuple[int, Sequence[object]]


class Sheet(Format):
    """Base class of binary tables. Columns are named as in "csv"; cells keep their types."""

    named_fields = True
    magic: bytes

    def sniff(self, kind: str, file: File) -> float:
        return super().sniff(kind, file) or 0.9 if self.is_ours(file) else 0.0

    def is_ours(self, file: File) -> bool:
        """Whether a file has the format's signature."""
        return file.head.startswith(self.magic)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        with self._table(file) as (header, rows):
            columns = columns_by_choice(header, fields)
            check_chosen(file.name, 1, columns, fields)
            sample: list[dict[str, object]] = []
            for number, cells in rows:
                sample = sample or [
                    {name or str(n): cell for n, (name, cell) in enumerate(zip(header, cells, strict=False), 1)}
                ]
                row = {name: cell for name, cell in zip(columns, cells, strict=False) if not (name is None or cell is None)}
                if row:
                    for part in (name for part_keys in fields.keys(tuple(columns)).values() for name in part_keys):
                        row.setdefault(part, None)
                    yield from file.docs(
                        [(number, row)], lambda number, row: doc_from(row, fields, file.name, number, "row"), sample
                    )

    def read_topics(self, file: File) -> Iterator[Topic]:
        fields = Fields.of_topics(file.reading.fields)
        with self._table(file) as (header, rows):
            columns = [column or "" for column in columns_by_choice(header, fields)]
            check_chosen(file.name, 1, columns, fields)
            table = Table(file.name, columns, rows, "row", fields.id, fields.text)
            yield from (Topic(*parts) for parts in table.topics())

    def read_qrels(self, file: File) -> Qrels:
        with self._table(file) as (header, rows):
            chosen = Fields.of_topics(file.reading.fields)
            table = Table(file.name, header, rows, "row", (*chosen.id, *TOPIC_ID))
            with located_in(table):
                return Qrels(table.judgments())

    @contextmanager
    def _table(self, file: File) -> Iterator[tuple[list[str], Iterator[Row]]]:
        """Yield the column names and an iterator of (row number, cells); in Parquet, row 1 is the first row of cells."""
        with file.seekable() as stored:
            header, rows = self._open(stored, file.name)
            repeated = next((name for number, name in enumerate(header) if name and name in header[:number]), None)
            if repeated is not None:
                raise InputError(f"{file.name}: a column is named twice: '{repeated}' in {', '.join(header)}")
            yield header, rows

    @abstractmethod
    def _open(self, stored: IO[bytes], name: str) -> tuple[list[str], Iterator[Row]]:
        """Return the column names and the rows below them."""


class Xlsx(Sheet, name="xlsx"):
    """Documents, topics or judgments in the first sheet of an Excel workbook, under a header as in "csv"."""

    endings = (".xlsx", ".xlsm")
    magic = b"PK\x03\x04"

    def is_ours(self, file: File) -> bool:
        parts = any(name in file.head for name in (b"xl/", b"docProps/", b"[Content_Types].xml"))
        return super().is_ours(file) and (file.plain.endswith(self.endings) or (parts and b"word/" not in file.head))

    def _open(self, stored: IO[bytes], name: str) -> tuple[list[str], Iterator[Row]]:
        try:
            import openpyxl
        except ImportError as error:
            raise MissingExtraError.of("openpyxl", "xlsx", f"{name}: reading an Excel workbook") from error
        with _reading(name, "workbook"):
            with zipfile.ZipFile(stored) as archive:
                sizes = {member.filename: member.file_size for member in archive.infolist()}
            if sizes.get("xl/sharedStrings.xml", 0) > MAX_SHARED_BYTES:
                raise InputError(
                    f"{name}: the workbook has more than {MAX_SHARED_BYTES:,} bytes of text; save the sheet as CSV"
                )
            # a cell with text of its own is read whole
            check_unpacked_size(name, stored.seek(0, os.SEEK_END), sum(sizes.values()), "save the sheet as CSV")
            sheets = openpyxl.load_workbook(stored, read_only=True, data_only=True).worksheets
            rows = enumerate(sheets[0].iter_rows(values_only=True), 1) if sheets else iter(())
            header: Row = next(((n, cells) for n, cells in rows if any(cell is not None for cell in cells)), (0, ()))
        if not header[1]:
            raise InputError(f"{name}: the first sheet of the workbook is empty")
        names = ["" if cell is None else str(cell).strip() for cell in header[1]]
        return names, _rows(name, "workbook", rows, names)


class Parquet(Sheet, name="parquet"):
    """Documents, topics, judgments or a run in a Parquet file, with columns named as in "csv"."""

    endings = (".parquet", ".pq")
    magic = b"PAR1"

    def _open(self, stored: IO[bytes], name: str) -> tuple[list[str], Iterator[Row]]:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtraError.of("pyarrow", "parquet", f"{name}: reading Parquet") from error
        with _reading(name, "Parquet file"):
            schema = pyarrow.parquet.ParquetFile(stored).schema_arrow
            header = list(schema.names)
            # Equal texts of a column stay one in memory, as a file may be far smaller than its texts.
            texts = [field.name for field in schema if field.type in (pyarrow.string(), pyarrow.binary())]
            table = pyarrow.parquet.ParquetFile(stored, read_dictionary=texts)

        def rows() -> Iterator[Row]:
            number = 0
            for batch in table.iter_batches(ROWS):
                for cells in _cells(batch):
                    number += 1
                    yield number, cells

        return header, _rows(name, "Parquet file", rows(), header)

    def read_run(self, file: File, topics: Topics) -> Run:
        with self._table(file) as (header, rows):
            table = Table(file.name, header, rows, "row")
            with located_in(table):
                return Run.of(table.results(), topics)

    def write_run(self, run: Run, tag: str) -> Iterator[bytes]:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtraError.of("pyarrow", "parquet", "writing Parquet") from error
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(run.to_arrow(), sink)
        yield sink.getvalue().to_pybytes()


def _cells(batch: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a record batch, of at most `MAX_PIECE` bytes of text at once, or one by one."""
    import pyarrow.compute

    encoded = [column for column in batch.columns if hasattr(column, "dictionary")]
    texts = [column for column in encoded if column.type.value_type in (pyarrow.string(), pyarrow.binary())]
    lengths = (pyarrow.compute.binary_length(column.dictionary).take(column.indices) for column in texts)
    if batch.num_rows > 1 and sum(pyarrow.compute.sum(length).as_py() or 0 for length in lengths) > MAX_PIECE:
        middle = batch.num_rows // 2
        yield from _cells(batch.slice(0, middle))
        yield from _cells(batch.slice(middle))
    else:
        columns = (column.dictionary_decode() if hasattr(column, "dictionary") else column for column in batch.columns)
        yield from zip(*(column.to_pylist() for column in columns), strict=True)


def _rows(name: str, kind: str, rows: Iterator[Row], header: Sequence[str]) -> Iterator[Row]:
    """Yield non-blank rows with JSON values, one per column."""
    width = len(header)
    while True:
        with _reading(name, kind):
            row = next(rows, None)
        if row is None:
            return
        if any(cell is not None for cell in row[1]):
            cells: list[object] = []
            try:
                for cell in row[1][:width]:
                    cells.append(cell_value(cell))
            except InputError as error:
                raise InputError(f"{name}, row {row[0]}, column '{header[len(cells)]}': {error}") from None
            yield row[0], cells + [None] * (width - len(cells))


@contextmanager
def _reading(name: str, kind: str) -> Iterator[None]:
    """Convert a library's errors on a damaged file to InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        problem = str(error).strip() or type(error).__name__
        raise InputError(f"{name}: the {kind} cannot be read ({problem[:200]})") from None
