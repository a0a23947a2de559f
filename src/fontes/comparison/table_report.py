"""Base of reports that consist of a table per measure and notes, in all forms of a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any, ClassVar

from ..core.tabular import Tabular, columns_of
from . import report_text
from .report import Saveable
from .report_text import ResultTable

STYLE = """body{font-family:system-ui,sans-serif;margin:2em;color:#1c2733;background:#fff}
table{border-collapse:collapse;margin:1em 0}
td,th{padding:3px 12px;text-align:right;font-variant-numeric:tabular-nums}
thead th{border-bottom:2px solid #0b7a75}
tbody tr:nth-child(even){background:#8881}
li{margin:.2em 0}
@media(prefers-color-scheme:dark){body{color:#e3e8ec;background:#15191d}}"""


class TableReport(Tabular, Saveable):
    """A report whose forms are made of its rows, tables and notes; derived classes define these three and `to_dict`."""

    TITLE: ClassVar[str]
    LABEL: ClassVar[str]

    def rows(self) -> list[dict[str, Any]]:
        """Return all figures in rows, with NaN where a figure is not defined."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values, with None for NaN; `rows` has the rows."""
        raise NotImplementedError

    def _tables(self) -> Sequence[ResultTable]:
        raise NotImplementedError

    def _notes(self) -> list[str]:
        raise NotImplementedError

    def _latex_header(self, position: int, table: ResultTable) -> tuple[str, list[str]]:
        """Return the caption of a table, by its position in `_tables`, and the names of its columns, in LaTeX."""
        raise NotImplementedError

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of `rows`, with the measures as text."""
        rows = [{**row, "measure": str(row["measure"])} for row in self.rows()]
        return columns_of(rows, list(rows[0]))

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def to_csv(self) -> str:
        """Return CSV with one line per row."""
        rows = self.to_dict()["rows"]
        return report_text.csv_text(rows, list(rows[0]))

    def to_markdown(self) -> str:
        """Return the tables and notes in Markdown."""
        tables = [report_text.markdown_table(table) for table in self._tables()]
        return "\n\n".join([*tables, "\n".join(f"- {note}" for note in self._notes())]) + "\n"

    def to_latex(self, *, label: str | None = None) -> str:
        """Return the tables for a paper, with booktabs' rules.

        Args:
            label: The name for `\\ref`; with several tables, followed by their numbers.
        """
        tables, label = self._tables(), label or self.LABEL
        texts = []
        for position, table in enumerate(tables):
            caption, header = self._latex_header(position, table)
            table_label = label if len(tables) == 1 else f"{label}-{position + 1}"
            texts.append(report_text.latex_table(table, caption, table_label, header))
        return "\n".join(texts)

    def to_html(self) -> str:
        """Return a page with the tables and notes."""
        head = f'<meta charset="utf-8"><title>{escape(self.TITLE)}</title><style>{STYLE}</style>'
        return f'<!doctype html><html lang="en">{head}<h1>{escape(self.TITLE)}</h1>{self._repr_html_()}</html>\n'

    def _repr_html_(self) -> str:
        tables = "".join(map(report_text.html_of, self._tables()))
        return f"{tables}<ul>{''.join(f'<li>{escape(note)}</li>' for note in self._notes())}</ul>"

    def __str__(self) -> str:
        return "\n".join([*map(report_text.plain_table, self._tables()), *self._notes()])
