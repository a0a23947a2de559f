"""Comments of qrels and runs: lines that begin with "#", which trec_eval 10 skips, too."""

from __future__ import annotations

import io
import re
from typing import IO

from ..storage.compression import BUFFER, ChunkStream
from ..storage.files import BOM, MAX_PIECE
from .decoding import BINARY, warn

COMMENT = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)
OPENINGS = (b"#", b" ", b"\t")  # beginnings of lines that may be comments
NUMBERS = {3: 2, 4: 3, 5: 2, 6: 4}  # index of the grade, rank or score, by number of columns
DELIMITERS = (b",", b";", b"|")  # of tables; one of them is in the first word of a header
ID_END = re.compile(rb"[\s,;|]")
SCORE = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def without_comments(file: IO[bytes], name: str) -> IO[bytes]:
    """Return a file of text with its comments made blank, so that lines keep their numbers; binary files are left alone.

    A line whose first word is longer than "#" and that has the columns of the lines before, with a number where they have one,
    is a row of an id that begins with "#", with a warning.
    """
    start: bytes = file.peek(BUFFER)  # type: ignore[attr-defined]
    if start.startswith(BINARY):
        return file
    return io.BufferedReader(_WithoutComments(file, name), BUFFER)


class _WithoutComments(ChunkStream):
    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._first = b""  # the first row
        self._line, self._ended_line, self._has_warned = 1, True, False

    def next_chunk(self) -> bytes:
        lines = self._file.read(BUFFER)
        if not lines.endswith(b"\n"):
            lines += self._file.readline(MAX_PIECE)
        lines = lines.removeprefix(BOM) if self._line == 1 else lines
        self._first = self._first or _first_row(lines)
        # What follows a line longer than `MAX_PIECE` begins within it.
        start = 0 if self._ended_line else lines.find(b"\n") + 1 or len(lines)
        first, self._line = self._line, self._line + lines.count(b"\n")
        self._ended_line = lines.endswith(b"\n")
        # Most ids with "#" do not begin a line, which is quick to see.
        if b"#" not in lines or not (lines.startswith(OPENINGS) or any(b"\n" + opening in lines for opening in OPENINGS)):
            return lines
        return lines[:start] + COMMENT.sub(lambda match: self._row_or_blank(match, first), lines[start:])

    def _row_or_blank(self, match: re.Match[bytes], first: int) -> bytes:
        if not self._is_row(match[0]):
            return b"\r" if match[0].endswith(b"\r") else b""
        if not self._has_warned:
            self._has_warned = True
            line = first + match.string.count(b"\n", 0, match.start())
            topic = ID_END.split(match[0].strip(), maxsplit=1)[0].decode(errors="replace")
            warn(f"{self._name}, line {line}: read as a row of topic '{topic}'; trec_eval 10 takes it for a comment")
        return match[0]

    def _is_row(self, line: bytes) -> bool:
        """Whether a line that begins with "#" has the columns of the first row, and a number where it may have one."""
        first_word = (self._first.split() or [b""])[0]
        delimiter = next((delimiter for delimiter in DELIMITERS if delimiter in first_word), None)
        cells = [cell.strip(b' \t\r"') for cell in line.split(delimiter)]
        if cells[0] == b"#" or len(cells) != len((self._first or line).split(delimiter)):
            return False
        if delimiter is not None:
            return len(cells[0].split()) == 1 and any(map(SCORE.fullmatch, cells[1:]))
        number = NUMBERS.get(len(cells))
        return number is not None and SCORE.fullmatch(cells[number]) is not None


def _first_row(lines: bytes) -> bytes:
    """Return the first line that is neither blank nor begins with "#"; b"" for none."""
    return next((line for line in lines.splitlines() if not line.isspace() and line and line.lstrip()[:1] != b"#"), b"")
