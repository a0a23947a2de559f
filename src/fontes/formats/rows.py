"""Rows of tables in files: commas, semicolons or tabs, quoted cells, and lines that end in LF, CRLF or CR."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Collection, Iterator
from itertools import chain
from typing import NamedTuple

from ..core import InputError
from ..core.names import plain
from ..storage.files import check_length
from .format import File

CR = re.compile(r"(?<=\r)(?!\n)")
QUOTING = "a cell with quotation marks or line ends stands in quotation marks, and inside them each is written twice"

Line = tuple[int, str]
Row = tuple[int, list[str]]


class First(NamedTuple):
    """What the first line of a table says.

    Attributes:
        number: Its number.
        delimiter: What stands between cells.
        cells: Its cells, without white space and quotation marks around them.
        is_header: Whether these are names of several columns.
    """

    number: int
    delimiter: str
    cells: list[str]
    is_header: bool

    @classmethod
    def of(cls, number: int, line: str, delimiters: str, ids: Collection[str], others: Collection[str]) -> First:
        """A header names an id, or has two other names that are known; the delimiter is the one that gives most such names.

        Args:
            number: The number of the line.
            line: The line.
            delimiters: What may stand between cells, the likelier first.
            ids: Names of columns with ids.
            others: Names of other columns.
        """
        known = {plain(name) for name in (*ids, *others)}
        split = {d: [cell.strip(' \t\r\n"') for cell in line.split(d)] for d in delimiters}
        count = {d: sum(plain(cell) in known for cell in cells) for d, cells in split.items()}
        best = max(delimiters, key=lambda d: (count[d], len(split[d])))
        named = any(plain(cell) in map(plain, ids) or plain(cell).endswith("_id") for cell in split[best])
        return cls(number, best, split[best], len(split[best]) > 1 and (named or count[best] > 1))


def lines_of(file: File) -> Iterator[Line]:
    """(number, line with its end) of the lines that are not blank.

    Where the first line has a CR inside, as in a file of an old Macintosh, CR ends lines too; elsewhere it is a character.
    """
    number = 0
    by_cr: bool | None = None
    for line in file.decoded():
        by_cr = "\r" in line.rstrip("\r\n") if by_cr is None else by_cr
        for piece in CR.split(line) if by_cr else (line,):
            number += 1
            if piece and not piece.isspace():
                yield number, piece


def rows_of(name: str, lines: Iterator[Line], delimiter: str) -> Iterator[Row]:
    """(line where it begins, cells) of each row with a cell that is not blank.

    Between tabs a cell that is not quoted as it should be is taken as it is, if it ends in its line.

    Args:
        name: The name of the file.
        lines: What `lines_of` gives.
        delimiter: What stands between cells.

    Raises:
        InputError: A quoted cell does not end, or goes on after its end, or is too long.
    """
    csv.field_size_limit(sys.maxsize)  # the module's own limit is 131,072 characters, less than many documents have
    for number, line in lines:
        cells = line.rstrip("\r\n").split(delimiter)
        if '"' in line:
            rows = csv.reader(_bounded(name, number, chain([(number, line)], lines)), delimiter=delimiter, strict=True)
            try:
                cells = next(rows)
            except csv.Error as error:
                if delimiter != "\t" or rows.line_num > 1:
                    raise InputError.at(name, number, f"the row that begins here is broken ({error}); {QUOTING}") from None
        if any(cell and not cell.isspace() for cell in cells):
            yield number, cells


def _bounded(name: str, number: int, lines: Iterator[Line]) -> Iterator[str]:
    """The lines of the row that begins in line `number`. Raises InputError where they are too long."""
    size = 0
    for _, line in lines:
        size += len(line)
        check_length(size, name, "row that begins here", number)
        yield line


def below(name: str, rows: Iterator[Row]) -> tuple[list[str], Iterator[Row]]:
    """The names of the columns, which the first row holds, and the rows below it, each of which has as many cells.

    Raises:
        InputError: A name occurs twice, or, while iterating, a row has another number of cells.
    """
    number, first = next(rows, (1, []))
    header = [cell.strip() for cell in first]
    twice = next((cell for i, cell in enumerate(header) if cell and cell in header[:i]), None)
    if twice is not None:
        raise InputError.at(name, number, f"the header names a column twice: '{twice}' in {', '.join(header)}")

    def checked() -> Iterator[Row]:
        for number, cells in rows:
            if len(cells) != len(header):
                raise InputError.at(name, number, f"{len(cells)} columns where the header has {len(header)}")
            yield number, cells

    return header, checked()
