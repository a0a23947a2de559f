"""Text tables: documents, topics and judgments with a header, and MS MARCO's documents and topics without one."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar, NamedTuple

from ..core import Doc, InputError, Qrels, Run, Topic, Topics
from ..core.table import Table
from ..core.tabular import DOC_ID, DOC_TEXT, DOC_TITLE, JUDGED, RANK, SCORE, TOPIC_ID, TOPIC_TEXT, compact, normalize, shape_of
from ..storage.files import check_length
from .bad_records import BadRecords
from .format import File, Format
from .records import DOC_FIELDS, Fields, as_cells, check_chosen, doc_from, located_in, remedy_of

MS_MARCO = {2: ("id", "text"), 3: ("id", "title", "text"), 4: ("id", "url", "title", "text")}  # columns without a header
DOC_COLUMNS = (DOC_ID, DOC_TITLE + DOC_TEXT)  # column names of documents: of ids, and of other parts
TOPIC_COLUMNS = (TOPIC_ID + JUDGED, TOPIC_TEXT)  # column names of topics and judgments: of ids, and of texts
RUN_COLUMNS = (TOPIC_ID + JUDGED, SCORE + RANK)  # column names of runs: of ids, and of scores or ranks
NAME = re.compile(r"(?=.{1,40}$)(?:[^\W\d_][\w.:/()%#-]*|#|№)(?: [\w.:/()%#&-]+){0,3}(?<![!?,;])|(?=.{1,40}$)_\w+")
DIGIT = re.compile(r"\d")
NUMBER = re.compile(r"[1-9]\d{0,3}")
LINE_ENDS = re.compile(r"[\r\n]+")
SPACE = " "  # any white space between the columns of judgments and runs
SAMPLE = 50  # lines read to detect a header
CR = re.compile(r"(?<=\r)(?!\n)")
BY_NUMBER = "choose the columns of the id and the text by number: --id 1 --text 2"
QUOTING = "a cell with quotation marks or line ends stands in quotation marks, and inside them each is written twice"

Line = tuple[int, str]
Row = tuple[int, list[str]]


class Csv(Format, name="csv"):
    """Documents, topics, judgments or a run in a table with a header, with commas, semicolons, tabs or bars ("|").

    Quoted cells may contain commas and line ends. For documents the header names an id (id, docno, doc_id, cord_uid, …), a text
    (text, contents, abstract or body) and optionally a title; other columns are metadata. For topics it names an id (qid,
    query_id, post_id, …) and a text (query, text, question, tweet_text, …); with a document (doc_id, cord_uid, …), and
    optionally a grade, the table also holds judgments, and with a score or rank a run; between these columns there may be any
    white space. Topics in two columns, id and text, need no header. If the first line looks like unknown column names, the
    error suggests options that assign them.
    """

    endings: ClassVar[tuple[str, ...]] = (".csv", ".psv")
    named_fields = True
    has_cells = True
    delimiters = ",;\t|"

    def sniff(self, kind: str, file: File) -> float:
        if file.folder or not file.start:  # files in a folder are text documents
            return 0.0
        if kind == "run":
            return 0.6 if self._results(file).is_run else 0.0
        names = DOC_COLUMNS if kind == "corpus" else TOPIC_COLUMNS
        header = FirstLine.of(1, file.start.splitlines()[0], self.delimiters, *names).is_header
        if kind == "qrels":
            return 0.6 if header or _spaced_table(file).is_judged else 0.0
        if kind == "topics" and file.start.startswith(("{", "[", "<")):  # JSON or XML, even if the name ends in .csv
            return 0.0
        return super().sniff(kind, file) or (0.3 if header else 0.0)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        first, lines = self._open(file, fields.id, fields.title + fields.text)
        return _headed_documents(file, first, lines, fields, self.sample(file))

    def sample(self, file: File) -> list[dict[str, str]]:
        first = FirstLine.of(1, _first_line(file), self.delimiters, *DOC_COLUMNS)
        rows = _sample_rows(first, file)
        return [_by_name(first.cells, cells) for cells in rows] if rows and len(first.cells) > 1 else []

    def read_topics(self, file: File) -> Iterator[Topic]:
        first, lines = self._open(file, *TOPIC_COLUMNS)
        fields = Fields.of_topics(file.reading.fields)
        if _is_by_number(first, fields):
            return (Topic(doc.id.strip(), doc.text.strip()) for doc in _numbered_documents(file, first, lines, fields))
        if first.is_header or fields.chosen:
            return (Topic(*parts) for parts in _topic_table(file.name, first, lines, fields).topics())
        if rows := _rows_below_names(first, file):
            raise _unknown_columns(file.name, first, rows, "topics")
        if len(first.cells) > 2:
            header = first.delimiter.join(("qid", "query", "doc_id"))
            problem = f"{len(first.cells)} columns and no header that names them"
            raise InputError.at(file.name, first.number, f"{problem}; {BY_NUMBER}, or add a header, such as {header!r}")
        return _topic_pairs(file.name, first, lines)

    def read_qrels(self, file: File) -> Qrels:
        first, lines = self._open(file, *TOPIC_COLUMNS)
        is_spaced = not first.is_header and _spaced_table(file).is_judged
        if not first.is_header and not is_spaced:
            raise InputError.at(file.name, first.number, "no header that names a topic and a document, such as qid and doc_id")
        chosen = Fields.of_topics(file.reading.fields)
        header, rows = _split_header(file.name, _rows_of(file.name, lines, SPACE if is_spaced else first.delimiter))
        table = Table(file.name, header, rows, topic_id=(*chosen.id, *TOPIC_ID))
        with located_in(table):
            return Qrels(table.judgments())

    def read_run(self, file: File, topics: Topics) -> Run:
        first, lines = self._open(file, *RUN_COLUMNS)
        is_spaced = not Table(file.name, first.cells, ()).is_run
        header, rows = _split_header(file.name, _rows_of(file.name, lines, SPACE if is_spaced else first.delimiter))
        table = Table(file.name, header, rows)
        with located_in(table):
            return Run.of(table.results(), topics)

    def _results(self, file: File) -> Table:
        """Return the header of a run, without rows."""
        table = Table(file.name, FirstLine.of(1, _first_line(file), self.delimiters, *RUN_COLUMNS).cells, ())
        return table if table.is_run else _spaced_table(file)

    def _open(self, file: File, ids: Collection[str], others: Collection[str]) -> tuple[FirstLine, Iterator[Line]]:
        """Return the properties of the first line, and all lines to read."""
        lines = _lines_of(file)
        if file.opening:
            return FirstLine.of(1, file.opening.decode(errors="replace"), self.delimiters, ids, others), lines
        file.head  # noqa: B018  (inspected later, and readable only before the rest)
        number, line = next(lines, (1, ""))
        return FirstLine.of(number, line, self.delimiters, ids, others), chain([(number, line)] if line else [], lines)


class Tsv(Csv, name="tsv"):
    """Documents, topics or judgments in a table with tabs: with a header as "csv", or without one.

    Without a header, documents have MS MARCO's columns: id, text; id, title, text; or id, url, title, body. Topics have an id
    and a text. Quotation marks have no special meaning there.
    """

    endings = (".tsv",)
    delimiters = "\t"

    def sniff(self, kind: str, file: File) -> float:
        confidence = super().sniff(kind, file)
        possible = kind in ("corpus", "topics") and not file.folder and "\t" in file.start
        return confidence or (0.2 if possible else 0.0)

    def read_corpus(self, file: File, fields: Fields) -> Iterator[Doc]:
        first, lines = self._open(file, fields.id, fields.title + fields.text)
        if fields.chosen or first.is_header:
            return _headed_documents(file, first, lines, fields, self.sample(file))
        if not file.opening and (rows := _rows_below_names(first, file)):
            raise _unknown_columns(file.name, first, rows, "corpus")
        return _ms_marco_documents(file, first, lines)

    def is_of_lines(self, file: File, fields: Fields) -> bool:
        names = (fields.id, fields.title + fields.text)
        by_cr = b"\r" in file.head.partition(b"\n")[0].rstrip(b"\r")
        leading = file.leading.decode(errors="replace")
        first = FirstLine.of(1, leading, self.delimiters, *names)
        return not (fields.chosen or by_cr or first.is_header or _rows_below_names(first, file))


def _first_line(file: File) -> str:
    return file.start.partition("\n")[0]


def _spaced_table(file: File) -> Table:
    """Return the first line as a header whose names stand between white space, without rows."""
    return Table(file.name, _first_line(file).split(), ())


def table_rows(file: File) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, cells by column name) of a comma-separated table with a header; InputError if malformed."""
    header, rows = _split_header(file.name, _rows_of(file.name, _lines_of(file), ","))
    for number, cells in rows:
        yield number, dict(zip(header, cells, strict=True))


def _headed_documents(
    file: File, first: FirstLine, lines: Iterator[Line], fields: Fields, sample: Sequence[Mapping[str, str]]
) -> Iterator[Doc]:
    """Yield documents of a table with a header, or with columns chosen by number."""
    if _is_by_number(first, fields):
        return _numbered_documents(file, first, lines, fields)
    header, rows = _split_header(file.name, _rows_of(file.name, lines, first.delimiter), file.reading.bad)
    chosen = columns_by_choice(header, fields)
    check_chosen(file.name, first.number, chosen, fields)

    def doc_of(number: int, cells: list[str]) -> Doc:
        row = {column: cell for column, cell in zip(chosen, cells, strict=True) if column is not None}
        return as_cells(doc_from(row, fields, file.name, number))

    return file.docs(rows, doc_of, sample)


def _ms_marco_documents(file: File, first: FirstLine, lines: Iterator[Line]) -> Iterator[Doc]:
    width = len(first.cells)
    columns = MS_MARCO.get(width, ())

    def doc_of(number: int, line: str) -> Doc:
        cells = line.rstrip("\r\n").split("\t")
        if len(cells) != width:
            raise InputError.at(file.name, number, f"{len(cells)} columns where the first line has {width}")
        doc = doc_from(dict(zip(columns, cells, strict=True)), DOC_FIELDS, file.name, number)
        return as_cells(doc) if width == max(MS_MARCO) else doc

    if not columns:
        problem = f"{width} columns and no header that names an id and a text"
        raise InputError.at(file.name, first.number, f"{problem}; without a header there are 2 (id, text), 3 or 4")
    return file.docs(lines, doc_of)


def columns_by_choice(header: Sequence[str], fields: Fields) -> list[str | None]:
    """Return the names of columns, where one that the user chose by number has it as its name; None for others without a name.

    The empty name chooses the first column without a name.
    """
    chosen = {name for part in fields.chosen for name in getattr(fields, part)}
    names: list[str | None] = []
    for number, name in enumerate(header, 1):
        if str(number) in chosen and str(number) not in header:
            names.append(str(number))
        else:
            names.append(name if name or ("" in chosen and "" not in names) else None)
    return names


def _is_by_number(first: FirstLine, fields: Fields) -> bool:
    """Whether columns are chosen by number, for a table without a header; a line whose id is empty is a header."""
    names = [name for part in fields.chosen for name in getattr(fields, part)]
    if not names or first.is_header or not all(map(NUMBER.fullmatch, names)):
        return False
    if set(first.cells).issuperset(names):  # a first line such as "1<tab>text" has an id, no name
        return False
    column = int(fields.id[0]) if "id" in fields.chosen else 0
    return not 0 < column <= len(first.cells) or first.cells[column - 1] != ""


def _numbered_documents(file: File, first: FirstLine, lines: Iterator[Line], fields: Fields) -> Iterator[Doc]:
    """Yield documents by column numbers; other columns are dropped."""
    chosen = [column for part in sorted(fields.chosen) for column in getattr(fields, part)]

    def doc_of(number: int, cells: list[str]) -> Doc:
        if (missing := next((column for column in chosen if int(column) > len(cells)), None)) is not None:
            raise InputError.at(file.name, number, f"there is no column {missing}; the line has {len(cells)}")
        return doc_from({column: cells[int(column) - 1] for column in chosen}, fields, file.name, number)

    return file.docs(_headless_rows(file.name, first, lines), doc_of)


def _sample_rows(first: FirstLine, file: File) -> list[list[str]]:
    """Return the first rows below the first line that have as many cells."""
    lines = [line for line in LINE_ENDS.split(file.start, SAMPLE)[1:SAMPLE] if line and not line.isspace()]
    csv.field_size_limit(sys.maxsize)
    rows = [line.split("\t") for line in lines] if first.delimiter == "\t" else csv.reader(lines, delimiter=first.delimiter)
    return [[cell.strip(' \t"') for cell in row] for row in rows if len(row) == len(first.cells)]


def _by_name(names: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return cells by the name of their column, or its number if it has none."""
    return {name or str(number): cell for number, (name, cell) in enumerate(zip(names, cells, strict=True), 1)}


def _rows_below_names(first: FirstLine, file: File) -> list[dict[str, str]]:
    """Return the first rows by column name, if the first line looks like column names; else none.

    Names are short, distinct, and no values of their columns. Below them is a column of ids, or a column of texts. The name of
    the first column may be empty, as pandas writes the name of a DataFrame's index.
    """
    cells, rows_below = first.cells, _sample_rows(first, file)
    names = [cell for cell in cells if cell]
    has_index = len(cells) > 1 and not cells[0] and all(row[0] for row in rows_below)
    if len(names) < 2 - has_index or not rows_below or not all(NAME.fullmatch(name) for name in names):
        return []
    columns = dict(zip(cells, zip(*rows_below, strict=True), strict=True))
    repeated = any(name.casefold() in map(str.casefold, column) for name, column in columns.items() if name)
    if repeated or len({name.casefold() for name in names}) < len(names):
        return []
    # Ids have digits and no spaces, and the name of their column has no digits.
    ids = [list(filter(None, column)) for name, column in columns.items() if not DIGIT.search(name)]
    has_ids = any(column and all(" " not in cell and DIGIT.search(cell) for cell in column) for column in ids)
    same_ids = shape_of(cells[0]) in map(shape_of, columns[cells[0]]) and not cells[0].isalpha()
    # Texts have five words or more on average, and the name of their column has one or two.
    text_column = max(columns, key=lambda name: sum(map(len, columns[name])))
    words = sum(len(cell.split()) for cell in columns[text_column])
    has_texts = words >= 5 * len(rows_below) and len(text_column.split()) <= 2
    is_header = has_index or has_ids or (has_texts and not same_ids)
    return [_by_name(cells, row) for row in rows_below] if is_header else []


def _unknown_columns(name: str, first: FirstLine, rows: list[dict[str, str]], kind: str) -> InputError:
    columns = ", ".join(f"'{cell}'" for cell in first.cells)
    problem = f"{columns} look like names of columns, and not enough of them are known to tell the id and the text"
    item = {"corpus": "a document", "topics": "a topic"}[kind]
    remedy = remedy_of(name, {"id": (), "title": (), "text": ()}, rows, kind)
    by_number = f"; if the line is {item}, {BY_NUMBER}" if first.cells[0] else ""
    return InputError.at(name, first.number, f"{problem}{remedy}{by_number}")


def _topic_pairs(name: str, first: FirstLine, lines: Iterator[Line]) -> Iterator[Topic]:
    for number, cells in _headless_rows(name, first, lines):
        if len(cells) != 2 or not cells[0].strip():
            between = "a tab" if first.delimiter == "\t" else f"'{first.delimiter}'"
            problem = f"not an id and a text with {between} between them"
            remedy = f"; if more columns are to be left out, {BY_NUMBER}" if len(cells) > 2 else ""
            raise InputError.at(name, number, f"{problem}{remedy}")
        yield Topic(cells[0].strip(), cells[1].strip())


def _topic_table(name: str, first: FirstLine, lines: Iterator[Line], fields: Fields) -> Table:
    header, rows = _split_header(name, _rows_of(name, lines, first.delimiter))
    columns = [column or "" for column in columns_by_choice(header, fields)]
    check_chosen(name, first.number, columns, fields)
    return Table(name, columns, rows, topic_id=fields.id, topic_text=fields.text)


class FirstLine(NamedTuple):
    """Properties of a table's first line.

    Attributes:
        number: Line number.
        delimiter: Cell delimiter.
        cells: Cells, stripped of white space and quotation marks.
        is_header: Whether they name several columns.
    """

    number: int
    delimiter: str
    cells: list[str]
    is_header: bool

    @classmethod
    def of(cls, number: int, line: str, delimiters: str, ids: Collection[str], others: Collection[str]) -> FirstLine:
        """Detect the header and the delimiter: the one that yields most of the names in `ids` and `others`.

        A header names an id, or has two of the other names; a row such as "7", "renew an id" does neither. `delimiters` are in
        order of preference.
        """
        names = {spelling(name) for name in (*ids, *others) for spelling in (normalize, compact)}
        cells_by = {d: [cell.strip(' \t\r\n"') for cell in line.split(d)] for d in delimiters}
        matches = {d: sum(normalize(cell) in names for cell in cells) for d, cells in cells_by.items()}
        best = max(delimiters, key=lambda d: (matches[d], len(cells_by[d])))
        id_names = {spelling(name) for name in ids for spelling in (normalize, compact)}
        cells = cells_by[best]
        has_id = any(normalize(cell) in id_names or normalize(cell).endswith("_id") for cell in cells)
        is_header = matches[best] > 1 or (has_id and not cells[0].isdigit())
        return cls(number, best, cells, is_header and len(cells) > 1)


def _lines_of(file: File) -> Iterator[Line]:
    """Yield (number, line with its end) of lines that are not blank; CR ends lines if the first line has one inside."""
    number = 0
    by_cr: bool | None = False if file.opening else None
    for line in file.decoded():
        by_cr = "\r" in line.rstrip("\r\n") if by_cr is None else by_cr
        for piece in CR.split(line) if by_cr else (line,):
            number += 1
            if piece and not piece.isspace():
                yield number, piece


def _headless_rows(name: str, first: FirstLine, lines: Iterator[Line]) -> Iterator[Row]:
    """Yield (line number, cells) of a table without a header; between tabs, quotation marks have no special meaning."""
    if first.delimiter == "\t":
        return ((number, line.rstrip("\r\n").split("\t")) for number, line in lines)
    return _rows_of(name, lines, first.delimiter)


def _rows_of(name: str, lines: Iterator[Line], delimiter: str) -> Iterator[Row]:
    """Yield (number of the first line, cells) of rows that are not blank; between tabs, bad quoting in a line is tolerated."""
    csv.field_size_limit(sys.maxsize)  # the default of 131,072 characters is too small for many documents
    if delimiter == SPACE:
        yield from ((number, line.split()) for number, line in lines)
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
    """Yield the lines of the row that begins at line `number`; InputError if too long."""
    size = 0
    for _, line in lines:
        size += len(line)
        check_length(size, name, "row that begins here", number)
        yield line


def _split_header(name: str, rows: Iterator[Row], bad: BadRecords | None = None) -> tuple[list[str], Iterator[Row]]:
    """Return the column names from the first row, and the rows below it; InputError if malformed, unless `bad` allows it."""
    number, first = next(rows, (1, []))
    header = [cell.strip() for cell in first]
    repeated = next((cell for i, cell in enumerate(header) if cell and cell in header[:i]), None)
    if repeated is not None:
        raise InputError.at(name, number, f"the header names a column twice: '{repeated}' in {', '.join(header)}")

    def checked() -> Iterator[Row]:
        for number, cells in rows:
            if len(cells) == len(header):
                yield number, cells
            else:
                error = InputError.at(name, number, f"{len(cells)} columns where the header has {len(header)}")
                (bad or BadRecords()).skip(error)

    return header, checked()
