"""Relevance judgments: read from TREC and BEIR files, written as TREC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..core import InputError, Qrels
from ..storage.files import Source, reading, write

COLUMNS = {3: "topic, document, grade", 4: "topic, group, document, grade"}
HEADER = ("query-id", "query_id", "qid", "topic")


def read_qrels(path: str | Path) -> Qrels:
    """The judgments of a file; .gz is unpacked, "-" is standard input.

    Reads TREC (topic, group, document, grade), and BEIR (query-id, corpus-id, score) with or without its header. The
    columns are separated by tabs where that gives as many columns, else by any white space; the first line decides how
    many there are. The group, TREC's second column, is kept. Grades are integers.

    Raises InputError that names file and line for a wrong number of columns, a grade that is no integer and a document that
    has two grades for one topic, and for a file without judgments.
    """
    with reading(path) as source:
        rows = _Rows(source)
        try:
            qrels = Qrels(rows)
        except InputError as error:
            # Qrels takes the rows one by one: the line read last is the one at fault.
            raise error if rows.wrong else InputError.at(source.name, rows.line, str(error)) from None
    if not qrels:
        raise InputError(f"{path}: holds no judgments")
    return qrels


def write_qrels(qrels: object, path: str | Path) -> None:
    """Writes judgments (all that `Qrels.of` accepts) as TREC qrels.

    Raises InputError for an id with white space, which the form cannot hold, and where writing fails.
    """
    rows = Qrels.of(qrels).rows()
    write(path, (f"{one_word(t, 'topic')} {g} {one_word(d, 'document')} {grade}\n".encode() for t, g, d, grade in rows))


def one_word(value: str, what: str) -> str:
    """`value`, if it is one word. Raises InputError for an id that is empty or has white space inside."""
    if value.split() != [value]:
        raise InputError(f"the {what} id '{value}' has white space in it or is empty; a TREC file cannot hold it")
    return value


class _Rows:
    """The rows of a file of judgments, and the line that was read last."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.line = 0
        self.wrong = False

    def __iter__(self) -> Iterator[tuple[str, str, str, int]]:
        width = 0
        for number, text in self.source.texts():
            self.line = number
            cells = text.split("\t")
            if len(cells) != (width or len(cells)) or len(cells) not in COLUMNS:
                cells = text.split()
            if not width:
                width = len(cells)
                if width == 3 and cells[0].lower() in HEADER and not _is_integer(cells[2]):
                    continue
            if width not in COLUMNS or len(cells) != width:
                raise self._error(f"{len(cells)} columns, not {COLUMNS.get(width, ' or '.join(COLUMNS.values()))}")
            if not _is_integer(cells[-1]):
                raise self._error(f"the grade '{cells[-1]}' is not an integer")
            topic, doc = cells[0].strip(), cells[-2].strip()
            yield topic, cells[1].strip() if width == 4 else "0", doc, int(cells[-1])

    def _error(self, problem: str) -> InputError:
        self.wrong = True
        return InputError.at(self.source.name, self.line, problem)


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
