"""Tables: documents, topics and judgments under a header, and MS MARCO's documents and topics of two columns without one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

from ..core import Doc, InputError, Qrels, Topic
from ..core.names import DOC_ID, DOC_TEXT, DOC_TITLE, JUDGED, TOPIC_ID, TOPIC_TEXT, find
from ..core.table import Table
from .format import File, Format
from .records import USUAL, Fields, doc_from
from .rows import First, Line, below, lines_of, rows_of

MS_MARCO = {2: ("id", "text"), 3: ("id", "title", "text"), 4: ("id", "url", "title", "text")}  # columns without a header
DOCUMENTS = (DOC_ID, DOC_TITLE + DOC_TEXT)  # the names in tables of documents: of ids, and others
ASKED = (TOPIC_ID + JUDGED, TOPIC_TEXT)  # the same of topics and judgments


class Csv(Format, name="csv"):
    """Documents, topics or judgments in a table with a header, with commas, semicolons or tabs.

    Quoted cells may hold commas and line ends. The header names an id (id, docno, doc_id, cord_uid, …) and a text (text,
    contents, abstract or body), and perhaps a title; the other columns are metadata. One of topics names an id (qid,
    query_id, post_id, …) and a text (query, text, question, tweet_text, …); where it also names a document (doc_id, cord_uid,
    …), and perhaps a grade, it is judgments too. Topics of two columns, id and text, need no header.
    """

    endings = (".csv",)
    named_fields = True
    delimiters = ",;\t"

    def sniff(self, kind: str, file: File) -> float:
        if file.folder or not file.start:  # tables in a folder of texts are texts
            return 0.0
        names = DOCUMENTS if kind == "corpus" else ASKED
        header = First.of(1, file.start.splitlines()[0], self.delimiters, *names).is_header
        if kind == "qrels":
            return 0.6 if header else 0.0
        if kind == "topics" and file.start.startswith(("{", "[", "<")):  # whatever its name, it is something else
            return 0.0
        return super().sniff(kind, file) or (0.3 if header else 0.0)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        first, lines = self._opened(file, fields.id, fields.title + fields.text)
        return _documents(file.name, first, lines, fields)

    def read_topics(self, file: File) -> Iterator[Topic]:
        first, lines = self._opened(file, *ASKED)
        if first.is_header:
            return (Topic(*parts) for parts in _table(file.name, first, lines).topics())
        if len(first.cells) > 2:
            header = first.delimiter.join(("qid", "query", "doc_id"))
            problem = f"{len(first.cells)} columns and no header that says which is which"
            remedy = f"write one above, such as {header!r}, or leave the id and the text alone"
            raise InputError.at(file.name, first.number, f"{problem}; {remedy}")
        return _pairs(file.name, first, lines)

    def read_qrels(self, file: File) -> Qrels:
        first, lines = self._opened(file, *ASKED)
        if not first.is_header:
            raise InputError.at(file.name, first.number, "no header that names a topic and a document, such as qid and doc_id")
        table = _table(file.name, first, lines)
        try:
            return Qrels(table.judgments())
        except InputError as error:
            raise error if str(error).startswith(file.name) else InputError(f"{table.where}: {error}") from None

    def _opened(self, file: File, ids: Collection[str], others: Collection[str]) -> tuple[First, Iterator[Line]]:
        """What the first line says, and all lines."""
        lines = lines_of(file)
        number, line = next(lines, (1, ""))
        return First.of(number, line, self.delimiters, ids, others), chain([(number, line)] if line else [], lines)


class Tsv(Csv, name="tsv"):
    """Documents, topics or judgments in a table with tabs: with a header as "csv", or without one.

    Documents without a header have MS MARCO's columns: id, text; or id, title, text; or id, url, title, body. Topics without a
    header are an id and a text. Quotation marks mean nothing there.
    """

    endings = (".tsv",)
    delimiters = "\t"

    def sniff(self, kind: str, file: File) -> float:
        sure = super().sniff(kind, file)
        possible = kind != "qrels" and not file.folder and "\t" in file.start
        return sure or (0.2 if possible else 0.0)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        first, lines = self._opened(file, fields.id, fields.title + fields.text)
        if fields.chosen or first.is_header:
            return _documents(file.name, first, lines, fields)
        return _ms_marco(file.name, first, lines)


def _documents(name: str, first: First, lines: Iterator[Line], fields: Fields) -> Iterator[Doc]:
    header, rows = below(name, rows_of(name, lines, first.delimiter))
    for column in (one for part in sorted(fields.chosen) for one in getattr(fields, part)):
        if find(header, (column,)) is None:
            raise InputError.at(name, first.number, f"there is no column '{column}'; the columns are {', '.join(header)}")
    for number, cells in rows:
        row = {column: cell for column, cell in zip(header, cells, strict=True) if column}
        yield doc_from(row, fields, name, number)


def _ms_marco(name: str, first: First, lines: Iterator[Line]) -> Iterator[Doc]:
    """Documents without a header, whose cells are taken as they are."""
    width = len(first.cells)
    columns = MS_MARCO.get(width, ())
    for number, line in lines:
        if not columns:
            problem = f"{width} columns and no header that names an id and a text"
            raise InputError.at(name, number, f"{problem}; without a header there are 2 (id, text), 3 or 4")
        cells = line.rstrip("\r\n").split("\t")
        if len(cells) != width:
            raise InputError.at(name, number, f"{len(cells)} columns where the first line has {width}")
        yield doc_from(dict(zip(columns, cells, strict=True)), USUAL, name, number)


def _pairs(name: str, first: First, lines: Iterator[Line]) -> Iterator[Topic]:
    """Topics without a header."""
    tabs = first.delimiter == "\t"
    rows = ((n, line.rstrip("\r\n").split("\t")) for n, line in lines) if tabs else rows_of(name, lines, first.delimiter)
    for number, cells in rows:
        if len(cells) != 2 or not cells[0].strip():
            between = "a tab" if tabs else f"'{first.delimiter}'"
            raise InputError.at(name, number, f"not an id and a text with {between} between them")
        yield Topic(cells[0].strip(), cells[1].strip())


def _table(name: str, first: First, lines: Iterator[Line]) -> Table:
    return Table(name, *below(name, rows_of(name, lines, first.delimiter)))
