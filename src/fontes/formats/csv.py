"""Tables: documents of CSV and TSV with a header, MS MARCO's TSV without one, and topics of two columns."""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterator

from ..core import Doc, InputError, Topic
from ..storage.files import Source
from .format import File, Format
from .records import TOPIC_ID, TOPIC_TEXT, USUAL, Fields, doc_from

MS_MARCO = {2: ("id", "text"), 3: ("id", "title", "text"), 4: ("id", "url", "title", "text")}  # columns without a header


class Csv(Format, name="csv"):
    """Documents in a table with commas and a header; quoted cells may hold commas and line ends.

    The header names an id (id, _id, docno, doc_id or docid) and a text (text, contents, abstract or body), and perhaps a title;
    the other columns are metadata.
    """

    endings = (".csv",)
    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        return 0.0 if file.folder else super().sniff(kind, file)  # tables in a folder of texts are texts

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        return _table(file, file.decoded(), ",", fields)


class Tsv(Format, name="tsv"):
    """Documents or topics in a table with tabs.

    Documents have a header, as those of "csv", or MS MARCO's columns without one: id, text; or id, title, text; or id, url,
    title, body. Topics are an id and a text.
    """

    endings = (".tsv",)
    named_fields = True

    def sniff(self, kind: str, file: File) -> float:
        if file.folder:
            return 0.0
        if kind == "topics":  # whatever its name, a file that begins as JSON or with a tag is something else
            return 0.2 if "\t" in file.start or (file.start and super().sniff(kind, file)) else 0.0
        return super().sniff(kind, file) or (0.2 if "\t" in file.start else 0.0)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        """With a header if the first line names an id and a text, else as MS MARCO, whose cells are taken as they are."""
        lines = file.decoded()
        head = []
        for line in lines:
            head.append(line)
            if not line.isspace():
                break
        names = head[-1].rstrip("\r\n").split("\t") if head else []
        lines = itertools.chain(head, lines)
        if fields.chosen or (not set(fields.id).isdisjoint(names) and not set(fields.text).isdisjoint(names)):
            yield from _table(file, lines, "\t", fields)
            return
        columns = MS_MARCO.get(len(names))
        if any(names) and columns is None:
            problem = f"{len(names)} columns and no header that names an id and a text"
            raise InputError.at(file.name, len(head), f"{problem}; without a header there are 2 (id, text), 3 or 4")
        for number, line in enumerate(lines, 1):
            cells = line.rstrip("\r\n").split("\t")
            if columns and len(cells) == len(columns):
                yield doc_from(dict(zip(columns, cells, strict=True)), USUAL, file.name, number)
            elif not line.isspace():
                raise InputError.at(file.name, number, f"{len(cells)} columns where the first line has {len(names)}")

    def read_topics(self, file: File) -> Iterator[Topic]:
        for number, line in file.texts():
            topic_id, tab, query = line.partition("\t")
            if not tab or not topic_id.strip():
                raise InputError.at(file.name, number, "not an id and a text with a tab between them")
            if number == 1 and topic_id.lower() in (*TOPIC_ID, "query-id") and query.lower() in TOPIC_TEXT:
                continue
            yield Topic(topic_id.strip(), query.strip())


def _table(source: Source, lines: Iterator[str], delimiter: str, fields: Fields) -> Iterator[Doc]:
    csv.field_size_limit(sys.maxsize)  # the module's own limit is 131,072 characters, less than many documents have
    rows = csv.reader(lines, delimiter=delimiter)
    header: list[str] = next((row for row in rows if row), [])
    if len(set(header)) < len(header):
        raise InputError.at(source.name, 1, f"the header names a column twice: {', '.join(header)}")
    try:
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise InputError.at(source.name, rows.line_num, f"{len(row)} columns where the header has {len(header)}")
            yield doc_from(dict(zip(header, row, strict=True)), fields, source.name, rows.line_num)
    except csv.Error as error:
        raise InputError.at(source.name, rows.line_num, f"broken table ({error})") from None
