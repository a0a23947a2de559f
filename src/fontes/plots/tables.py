"""Tables of results as text, Markdown, LaTeX, HTML and CSV, and the base of all reports that consist of tables and notes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from ..core import ParameterError
from ..core.html import table as html_table
from ..core.tabular import Tabular, columns_of
from ..formats.json_text import json_text
from ..measures.measure import Measure
from ..storage.files import plain_name, write

LETTERS = "abcdefghijklmnoprstuvwxyz"  # Unicode has no superscript q that fonts show
SUPERSCRIPTS = str.maketrans(LETTERS + "0123456789", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ⁰¹²³⁴⁵⁶⁷⁸⁹")
EMPTY_CELL = "–"
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "Δ": r"$\Delta$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
SUFFIXES = {".md": "to_markdown", ".tex": "to_latex", ".csv": "to_csv", ".json": "to_json", ".html": "to_html"}
STYLE = """body{font-family:system-ui,sans-serif;margin:2em;color:#1c2733;background:#fff}
table{border-collapse:collapse;margin:1em 0}
td,th{padding:3px 12px;text-align:right;font-variant-numeric:tabular-nums}
thead th{border-bottom:2px solid #0b7a75}
tbody tr:nth-child(even){background:#8881}
li{margin:.2em 0}
@media(prefers-color-scheme:dark){body{color:#e3e8ec;background:#15191d}}"""


@dataclass(frozen=True)
class ResultCell:
    """A table cell: its text, the letters of significantly worse systems, and whether it is bold."""

    text: str
    letters: tuple[str, ...] = ()
    best: bool = False

    @property
    def raised(self) -> str:
        """Letters as superscripts."""
        return "".join(self.letters).translate(SUPERSCRIPTS)

    @property
    def superscript(self) -> str:
        """Letters in HTML."""
        return f"<sup>{' '.join(map(escape, self.letters))}</sup>" if self.letters else ""


@dataclass(frozen=True)
class ResultTable:
    """Rows of cells under a header.

    Args:
        header: The column names.
        rows: The cells of each row.
        names: The number of leading columns that hold names; the others hold numbers.
        secondary: Columns shown with less emphasis; LaTeX leaves them out.
        texts: Further columns of texts, which are aligned left.
        caption: The caption, in LaTeX, which leaves out tables without one.
        summary: A line in whose place notebooks open the table; "" shows the table.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[ResultCell, ...], ...]
    names: int
    secondary: frozenset[int] = frozenset()
    texts: frozenset[int] = frozenset()
    caption: str = ""
    summary: str = ""

    @classmethod
    def of(cls, header: Iterable[str], rows: Iterable[Iterable[str | ResultCell]], names: int, **further: Any) -> ResultTable:
        """Return a table of texts and cells."""
        cells = (tuple(ResultCell(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
        return cls(tuple(header), tuple(cells), names, **further)

    def _has_texts(self, column: int) -> bool:
        return column < self.names or column in self.texts

    def styled(self) -> Iterator[tuple[str, str]]:
        """Yield the lines as texts with styles of rich; superscripts stand to the right of the digits."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.header)
        raised = [max((len(cell.raised) for cell in column), default=0) for column in columns]
        widths = [max(len(h), *(len(c.text) for c in column), 0) for h, column in zip(self.header, columns, strict=True)]
        for row in (tuple(map(ResultCell, self.header)), *self.rows):
            line: list[tuple[str, str]] = []
            for i, cell in enumerate(row):
                space = " " * (widths[i] - len(cell.text))
                style = "bold" if cell.best else "dim" if i in self.secondary else ""
                gap = "  " if i else ""
                line += [(gap + ("" if self._has_texts(i) else space), ""), (cell.text, style)]
                line.append((cell.raised.ljust(raised[i]) + (space if self._has_texts(i) else ""), ""))
            while line and not line[-1][0].strip():
                line.pop()
            yield from line[:-1]
            yield line[-1][0].rstrip() + "\n", line[-1][1]

    def text(self) -> str:
        """Return the table as plain text."""
        return "".join(text for text, _ in self.styled())

    def markdown(self) -> str:
        """Return the table in Markdown."""
        rows = [[escaped_markdown(h) for h in self.header]]
        rows.append(["---" if self._has_texts(i) else "---:" for i in range(len(self.header))])
        for row in self.rows:
            texts = [escaped_markdown(cell.text) for cell in row]
            rows.append([(f"**{t}**" if cell.best else t) + cell.raised for t, cell in zip(texts, row, strict=True)])
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)

    def latex(self, label: str) -> str:
        """Return the table in LaTeX with booktabs' rules; `label` is the name for `\\ref`."""
        shown = [i for i in range(len(self.header)) if i not in self.secondary]
        return "\n".join(
            [
                "% needs \\usepackage{booktabs}",
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{self.caption}}}",
                rf"\label{{{label}}}",
                rf"\begin{{tabular}}{{{''.join('l' if self._has_texts(i) else 'r' for i in shown)}}}",
                r"\toprule",
                " & ".join(latex_text(self.header[i]) for i in shown) + r" \\",
                r"\midrule",
                *(" & ".join(_latex_cell(row[i]) for i in shown) + r" \\" for row in self.rows),
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def html(self) -> str:
        """Return the table in HTML."""

        def text(cell: ResultCell) -> str:
            return (f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)) + cell.superscript

        table = html_table(self.header, [list(map(text, row)) for row in self.rows], safe=True)
        return f"<details><summary>{escape(self.summary)}</summary>{table}</details>" if self.summary else table


class TableReport(Tabular):
    """A report of tables and notes: `print` shows it, `save` and `to_markdown` and so on give its other forms.

    Derived classes define `_tables`, `_notes`, `_rows` and `to_dict`.
    """

    TITLE: ClassVar[str] = "Report"
    LABEL: ClassVar[str] = "tab:report"
    NOUN: ClassVar[str] = "a report"
    FORMS: ClassVar[Mapping[str, str]] = SUFFIXES
    COLUMNS: ClassVar[Sequence[str]] = ()
    """The columns of `_rows`; those of the first row if empty."""

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values, with None for NaN."""
        raise NotImplementedError

    def _rows(self) -> Sequence[Mapping[str, object]]:
        """Return the figures in rows, with NaN where one is not defined."""
        raise NotImplementedError

    def _head(self) -> list[str]:
        """Return the lines above the tables."""
        return []

    def _tables(self) -> Sequence[ResultTable]:
        raise NotImplementedError

    def _notes(self) -> Sequence[str]:
        raise NotImplementedError

    def _printed(self) -> tuple[Sequence[ResultTable], Sequence[str]]:
        """Return the tables and notes of the text."""
        return self._tables(), self._notes()

    def _plain_rows(self) -> list[dict[str, object]]:
        """Return the rows with the measures as text."""
        return [{key: str(v) if isinstance(v, Measure) else v for key, v in row.items()} for row in self._rows()]

    def _columns(self, rows: Sequence[Mapping[str, object]]) -> list[str]:
        return list(self.COLUMNS or (rows[0] if rows else ()))

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of `to_csv`."""
        rows = self._plain_rows()
        return columns_of(rows, self._columns(rows))

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json_text(self.to_dict(), ensure_ascii=False, indent=1) + "\n"

    def to_csv(self) -> str:
        """Return CSV with a header and one line per row; empty where a figure is not defined."""
        rows, out = json_values(self._plain_rows()), io.StringIO()
        writer = csv.DictWriter(out, self._columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return the tables (the best values in bold) and notes in Markdown."""
        head, notes = self._head(), "\n".join(f"- {escaped_markdown(note)}" for note in self._notes())
        lead = escaped_markdown(head[0]) if len(head) == 1 else "\n".join(["```text", *head, "```"]) if head else ""
        parts = [lead, *(table.markdown() for table in self._tables()), notes]
        return "\n\n".join(filter(None, parts)) + "\n"

    def to_latex(self, *, label: str | None = None) -> str:
        """Return the tables for a paper, with booktabs' rules and captions.

        Args:
            label: The name for `\\ref`; with several tables, followed by their numbers.
        """
        tables, label = [table for table in self._tables() if table.caption], label or self.LABEL
        labels = [label] if len(tables) == 1 else [f"{label}-{number + 1}" for number in range(len(tables))]
        return "\n".join(table.latex(name) for table, name in zip(tables, labels, strict=True))

    def to_html(self) -> str:
        """Return a page with the tables and notes."""
        head = f'<meta charset="utf-8"><title>{escape(self.TITLE)}</title><style>{STYLE}</style>'
        return f'<!doctype html><html lang="en">{head}<h1>{escape(self.TITLE)}</h1>{self._repr_html_()}</html>\n'

    @classmethod
    def form_of(cls, path: str | Path, form: str | None = None) -> str:
        """Return the method that makes the text of a file, by the file's suffix or by a form such as "md".

        Raises:
            ParameterError: There is no such form.
        """
        suffix = Path(plain_name(path)).suffix if form is None else f".{form}"
        if suffix not in cls.FORMS:
            raise ParameterError(f"{path}: the name of {cls.NOUN} ends in one of {', '.join(cls.FORMS)}, which says its form")
        return cls.FORMS[suffix]

    def save(self, path: str | Path, form: str | None = None, **options: object) -> None:
        """Write the report to a file.

        Args:
            path: The file.
            form: A form such as "md", "csv", "json" or "html"; by default the file's suffix.
            **options: Arguments of the form's method, such as the label of `to_latex`.

        Raises:
            ParameterError: The form is unknown.
            InputError: The file cannot be written.
        """
        text: str = getattr(self, self.form_of(path, form))(**options)
        write(path, [text.encode()])

    def _repr_html_(self) -> str:
        head = f"<pre>{escape(chr(10).join(self._head()))}</pre>" if self._head() else ""
        notes = "".join(f"<li>{escape(note)}</li>" for note in self._notes() if note)
        tables = sorted(self._tables(), key=lambda table: bool(table.summary))
        html = [table.html() for table in tables]
        folded = sum(bool(table.summary) for table in tables)
        html.insert(len(html) - folded, f"<ul>{notes}</ul>" if notes else "")
        return head + "".join(html)

    def _styled(self) -> Iterator[tuple[str, str]]:
        """Yield the texts of the report, each with the name of its style in rich."""
        tables, notes = self._printed()
        if head := self._head():
            yield "\n".join([*head, "", ""]), ""
        for number, table in enumerate(tables):
            if number:
                yield "\n", ""
            yield from table.styled()
        yield "\n".join(["", *notes] if tables else notes), ""

    def __str__(self) -> str:
        return "".join(text for text, _ in self._styled()).rstrip("\n")

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text.assemble(*self._styled())


def json_values(value: object) -> Any:
    """Return a copy as JSON values, with None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: json_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def escaped_markdown(text: str) -> str:
    """Return a text with Markdown's special characters escaped."""
    for character in "\\|*_`<[":
        text = text.replace(character, "\\" + character)
    return text


def latex_text(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    escaped = "".join(LATEX.get(character, character) for character in " ".join(text.split()))
    return "{}" * escaped.startswith(("[", "*")) + escaped  # a bracket or star would belong to the line break before it


def _latex_cell(cell: ResultCell) -> str:
    text = latex_text(cell.text)
    formatted = rf"\textbf{{{text}}}" if cell.best else text
    # \rlap takes no room, so the digits of a column end below each other.
    return rf"{formatted}\rlap{{$^{{{''.join(cell.letters)}}}$}}" if cell.letters else formatted
