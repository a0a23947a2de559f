"""Payloads: numbers of each posting besides its frequency, built with the postings and stored in files of their own.

A payload component packs the numbers of a batch's postings; runs carry the bytes. The payload of a posting is a row; see
`payload_kernels`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..core.arrays import Bytes, Int32s, Int64s, Ints
from ..core.strings import offsets_of
from ..storage.arrays import ByteWriter, NumberWriter
from .component import Building, Component, Writer
from .payload_kernels import group_by_posting

if TYPE_CHECKING:
    from .batches import Batch

T = TypeVar("T")
Rows = tuple[Bytes, Ints]  # concatenated rows, and the bytes of each row or of each term's rows


@dataclass(frozen=True)
class Occurrences:
    """Analysed documents: their tokens and postings.

    Args:
        numbers: Term of each token.
        bounds: Offset of the tokens of each field of each document, and the end of the last.
        positions: Position of each token in its field; empty unless requested.
        spans: (documents, fields): tokens of each field, with dropped ones; empty unless requested.
        terms: Term of each posting.
        counts: Frequency of each posting.
        term_bounds: Offset of the postings of each document, and the end of the last.
        fields: Number of fields.
        slots: Scratch, int32, one number per term.
    """

    numbers: Int32s
    bounds: Int64s
    positions: Int32s
    spans: Int64s
    terms: Int32s
    counts: Int32s
    term_bounds: Int64s
    fields: int
    slots: Int32s

    @cached_property
    def lengths(self) -> Int64s:
        """(documents, fields): terms of each field."""
        return np.diff(self.bounds).reshape(-1, self.fields)

    def by_posting(self, values: Int32s) -> Int32s:
        """Return values of tokens in the order of postings, then of tokens."""
        out = np.empty(len(self.numbers), dtype=np.int32)
        bounds = np.ascontiguousarray(self.bounds[:: self.fields])
        group_by_posting(self.numbers, bounds, values, self.terms, self.counts, self.term_bounds, self.slots, out)
        return out


class Payload(Component[T]):
    """A component of numbers that postings carry."""

    @abstractmethod
    def packed(self, occurrences: Occurrences) -> Rows:
        """Return the rows of a batch's postings, in the order of the postings, and the bytes of each."""

    @abstractmethod
    def of_documents(self, occurrences: Occurrences) -> Ints:
        """Return the data of each document: (documents, fields)."""

    @abstractmethod
    def payload_writer(self, folder: Path, fields: int) -> PayloadWriter:
        """Return the writer of a segment's files."""

    def writer(self, building: Building) -> Writer:
        return _WithPostings()


class _WithPostings(Writer):
    """Writes nothing: the writer of postings analyses each document once, and writes the payloads, too."""

    def write(self, batch: Batch, first: int) -> None:
        pass

    def close(self) -> dict[str, int]:
        return {}


class PayloadWriter:
    """Writer of NAME.rows, NAME.bounds and a component's data of documents and of terms.

    Args:
        folder: Folder of the files.
        name: Name of the component.
        of_documents: Name of the data of documents.
        of_terms: Names of the data of terms, each with the number of columns; None for one-dimensional data.
        tables: Computes the data of consecutive terms from their rows, the offsets of each term's rows, and df.
        fields: Number of fields.
        memory: Maximum memory of a posting while it is written, in bytes besides its row.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        of_documents: str,
        of_terms: dict[str, int | None],
        tables: Callable[[Bytes, Int64s, Int64s], Sequence[Ints]],
        fields: int,
        memory: int,
    ) -> None:
        self.memory = memory
        self._rows, self._bounds = ByteWriter(folder, f"{name}.rows"), NumberWriter(folder, f"{name}.bounds")
        self._documents = NumberWriter(folder, f"{name}.{of_documents}", fields)
        self._tables = [NumberWriter(folder, f"{name}.{table}", width) for table, width in of_terms.items()]
        self._compute = tables
        self._bounds.write(np.zeros(1, dtype=np.int64))

    def documents(self, numbers: Ints) -> None:
        """Append data of documents."""
        self._documents.write(numbers)

    def tables(self, rows: Rows, df: Int64s) -> Sequence[Ints]:
        """Return the data of consecutive terms, for `write`; may be called in any thread."""
        data, sizes = rows
        return self._compute(data, offsets_of(sizes), df)

    def write(self, rows: Rows, tables: Sequence[Ints]) -> None:
        """Append the rows of terms."""
        data, sizes = rows
        self._bounds.write(self._rows.length + np.cumsum(sizes))
        self._rows.write(data)
        for writer, table in zip(self._tables, tables, strict=True):
            writer.write(table)

    def close(self) -> None:
        """Complete the files."""
        for file in self._files():
            file.close()

    def abandon(self) -> None:
        """Close unfinished files."""
        for file in self._files():
            file.abandon()

    def _files(self) -> tuple[ByteWriter | NumberWriter, ...]:
        return self._rows, self._bounds, self._documents, *self._tables
