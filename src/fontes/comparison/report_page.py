"""A report as one page of HTML: the tables are made here, the rest by the page's own script from data inside the page."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from .report_page_data import PageData
from .report_text import Cell, Table, means_table, notes, superscript, tests_table

if TYPE_CHECKING:
    from .report import Report


def html(report: Report, depth: int = 10, snippet: int = 200) -> str:
    """The page with the best `depth` documents of each ranking and `snippet` characters of each; see `Report.to_html`."""
    from importlib.metadata import version

    data = PageData.of(report, depth, snippet)
    style, script = _part("page.css"), _part("page.js")
    links = {"means": "Means", "tests": "Tests", "curves": "Curves", "topics": "Topic by topic", "rankings": "Rankings"}
    if not report.comparisons:
        del links["tests"]
    page = Template(_part("page.html")).substitute(
        title=escape(_title(report)),
        lead=escape(_lead(report)),
        links="".join(f'<a href="#{place}">{name}</a>' for place, name in links.items()),
        means=_means(report),
        notes="".join(
            f"<li>{escape(note)}</li>" for note in [f"small figures: {_covered(report)} of the means", *notes(report)]
        ),
        systems=_systems(report),
        tests=_tests(report),
        left_out="".join(f'<p class="notes">{escape(note)}</p>' for note in data.left_out),
        version=escape(version("fontes")),
        data=_json(data.values),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    # What is half a character (a lone surrogate, which JSON can smuggle into texts) cannot be written to a file.
    return page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _part(name: str) -> str:
    """One of the files that the page is made of."""
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """For the policy of the page, which lets nothing run but its own script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(values: object) -> str:
    """JSON for a script element: a "<" inside could end the element."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _title(report: Report) -> str:
    """The title of the page."""
    names = " and ".join(report.systems)
    return names if len(report.systems) < 3 and len(names) < 60 else f"Comparison of {len(report.systems)} systems"


def _lead(report: Report) -> str:
    """The line under the title: topics, measures, baseline and tests."""
    topics = len(report.topics)
    parts = [f"{topics:,} topic{'' if topics == 1 else 's'}", ", ".join(map(str, report.measures))]
    if report.baseline is not None:
        parts.append(f"tested against {report.baseline}")
    if report.comparisons:
        parts.append(str(report.testing))
    return " · ".join(parts)


def _means(report: Report) -> str:
    """The table of means; below each mean its interval."""
    table = means_table(report)
    by_name = {str(measure): measure for measure in report.measures}
    below: dict[tuple[int, int], str] = {}
    for column, header in enumerate(table.header):
        measure = None if column in table.beside else by_name.get(header)
        if measure is None or measure.summed:  # intervals are those of means, and counts are summed
            continue
        for row, name in enumerate(report.systems):
            low, high = report.intervals[measure][name]
            if math.isfinite(low) and math.isfinite(high):
                below[row, column] = f"{low:.4f}–{high:.4f}"
    return _table(table, "means-table", below)


def _covered(report: Report) -> str:
    """What the intervals are, in words."""
    return f"{100 * (1 - report.testing.alpha):g}% bootstrap intervals"


def _tests(report: Report) -> str:
    """The section of tests; empty where there are none."""
    if not report.comparisons:
        return ""
    table = tests_table(report, letters=False)
    names = list(dict.fromkeys(str(c.measure) for c in report.comparisons))
    choice = '<option value="">all</option>' + "".join(f"<option>{escape(name)}</option>" for name in names)
    note = (
        f"Differences are means of system minus against, with {_covered(report)}. "
        "d_z and g are effect sizes; W/T/L counts topics won, tied and lost."
    )
    return (
        '<section id="tests">\n<h2>Tests</h2>\n'
        f'<p class="interaction"><label>Measure <select id="tested">{choice}</select></label></p>\n'
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Table of tests">'
        f'{_table(table, "tests-table", {})}</div>\n<p class="notes">{note}</p>\n</section>'
    )


def _systems(report: Report) -> str:
    """What is known of each system."""
    lines = []
    for name, system in report.systems.items():
        facts = [system.description] if system.description and system.description != name else []
        facts.append(f"{system.run.rows:,} documents for {len(system.run):,} topics")
        if system.candidates is not None:
            facts.append(f"reranks {system.candidates.depth:,} candidates a topic, of recall {system.candidates.recall:.4f}")
        if system.seconds is not None:
            facts.append(f"{system.seconds:.2g} s a topic{', measured earlier' if system.cached else ''}")
        lines.append(f"<dt>{escape(name)}</dt><dd>{escape('; '.join(facts))}</dd>")
    return f"<dl>{''.join(lines)}</dl>"


def _table(table: Table, place: str, below: dict[tuple[int, int], str]) -> str:
    """A sortable table. `below` are small figures by row and column."""
    heads = []
    for column, header in enumerate(table.header):
        text = column < table.names
        name = escape(header) or '<span aria-label="letter">#</span>'
        kind = ' class="text"' if text else ""
        heads.append(f'<th scope="col" aria-sort="none"{kind}><button type="button">{name}</button></th>')
    rows = []
    for row, cells in enumerate(table.rows):
        inside = [_cell(cell, column, table, below.get((row, column), "")) for column, cell in enumerate(cells)]
        rows.append(f"<tr>{''.join(inside)}</tr>")
    return (
        f'<table id="{place}" class="sortable"><thead><tr>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _cell(cell: Cell, column: int, table: Table, below: str) -> str:
    """A cell of a table; `below` is a small figure under its value."""
    marks = ["text" if column < table.names else "", "name" if 0 < column < table.names else ""]
    marks += ["beside" if column in table.beside else "", "best" if cell.best else ""]
    kind = " ".join(filter(None, marks))
    text = escape(cell.text if column < table.names else cell.text.replace("-", "−"))
    text = f"<b>{text}</b>" if cell.best else text
    if "name" in marks:
        text = f"<span>{text}</span>"
    raised = superscript(cell)
    small = f"<small>{escape(below)}</small>" if below else ""
    return f'<td class="{kind}">{text}{raised}{small}</td>' if kind else f"<td>{text}{raised}{small}</td>"
