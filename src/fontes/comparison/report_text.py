"""Reports as text, Markdown, LaTeX and notebook HTML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ..core.html import table as html_table
from ..measures.evaluation import Evaluation, few_errors, machine_notes
from ..measures.measure import Measure
from .testing import RESAMPLES, MeanDifference, Testing, equal_runs

if TYPE_CHECKING:
    from .report import Report

LETTERS = "abcdefghijklmnoprstuvwxyz"  # Unicode has no superscript q that fonts show
SUPERSCRIPTS = str.maketrans(LETTERS + "0123456789", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ⁰¹²³⁴⁵⁶⁷⁸⁹")
MAX_COMPARISONS = 60  # in the printed table of tests; larger tables are for programs
EMPTY_CELL = "–"
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


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


@dataclass(frozen=True)
class ResultTable:
    """Rows of cells under a header.

    Args:
        header: The column names.
        rows: The cells of each row.
        names: The number of leading columns that hold names; the others hold numbers.
        secondary: Columns shown with less emphasis.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[ResultCell, ...], ...]
    names: int
    secondary: frozenset[int] = frozenset()


def plain(report: Report) -> str:
    """Return the report as plain text."""
    return "".join(text for text, _ in _styled_texts(report))


def rich(report: Report) -> Any:
    """Return the report for a terminal, with the best values and significant tests in bold."""
    from rich.text import Text

    return Text.assemble(*_styled_texts(report))


def markdown(report: Report) -> str:
    """Return the report in Markdown."""
    parts = [markdown_table(means_table(report))]
    if report.comparisons:
        parts.append(markdown_table(tests_table(report, letters=False)))
    parts.append("\n".join(f"- {_escaped_markdown(note)}" for note in notes(report)))
    return "\n\n".join(parts) + "\n"


def latex(report: Report, label: str) -> str:
    """Return the means in LaTeX, without the secondary columns; `label` is the name for `\\ref`."""
    return latex_table(means_table(report, secondary=False), _caption(report), label)


def latex_table(table: ResultTable, caption: str, label: str, header: Sequence[str] | None = None) -> str:
    """Return a table in LaTeX with booktabs' rules.

    Args:
        table: The table.
        caption: The caption, in LaTeX.
        label: The name for `\\ref`.
        header: Column names in LaTeX; None uses the names of the table.
    """
    rows = [" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in table.rows]
    names = map(latex_text, table.header) if header is None else header
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{{'l' * table.names}{'r' * (len(table.header) - table.names)}}}",
        r"\toprule",
        " & ".join(names) + r" \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def plain_table(table: ResultTable) -> str:
    """Return a table as plain text."""
    return "".join(text for text, _ in _aligned(table))


def notebook(report: Report) -> str:
    """Return the report in HTML for a notebook, with the tests folded in."""
    lines = "".join(f"<li>{escape(note)}</li>" for note in notes(report))
    means = f"{html_of(means_table(report))}<ul>{lines}</ul>"
    if not report.comparisons:
        return means
    tests = html_of(tests_table(report, letters=False))
    return f"{means}<details><summary>{len(report.comparisons):,} tests</summary>{tests}</details>"


def means_table(report: Report, secondary: bool = True) -> ResultTable:
    """Return a table with a row of means per system; `secondary` adds the columns judged, candidates and seconds."""
    letters = letters_of(report)
    systems = report.systems.values()
    columns: list[tuple[str, list[ResultCell], bool]] = []  # header, cells, and whether the column is secondary
    shown: set[Measure] = set()
    for measure in report.measures:
        columns.append((str(measure), values_of(report, measure, letters), False))
        judged = report.judged.get(measure)
        if secondary and judged is not None and judged not in shown:
            shown.add(judged)
            columns.append((str(judged), [ResultCell(f"{s.evaluation[judged]:.3f}") for s in systems], True))
    if secondary and any(s.candidates for s in systems):
        cells = [
            ResultCell(f"{s.candidates.recall:.4f} @{s.candidates.depth}" if s.candidates else EMPTY_CELL) for s in systems
        ]
        columns.append(("candidates", cells, True))
    if secondary and any(s.seconds is not None for s in systems):
        cells = [ResultCell(EMPTY_CELL if s.seconds is None else f"{s.seconds:.2g} s") for s in systems]
        columns.append(("a topic", cells, True))
    rows = zip(*(cells for _, cells, _ in columns), strict=True)
    names = [(ResultCell(letters[name]), ResultCell(marked_baseline(report, name))) for name in report.systems]
    return ResultTable(
        ("", "system", *(header for header, _, _ in columns)),
        tuple((*name_cells, *row) for name_cells, row in zip(names, rows, strict=True)),
        2,
        frozenset(i for i, (_, _, is_secondary) in enumerate(columns, 2) if is_secondary),
    )


def marked_baseline(report: Report, name: str) -> str:
    """Return the name of a system, with a note if it is the baseline."""
    return f"{name} (baseline)" if name == report.baseline else name


def tests_table(report: Report, *, letters: bool) -> ResultTable:
    """Return a table with a row per comparison; `letters` stand for the names of the systems if true."""
    letter_of = letters_of(report)
    is_corrected = report.testing.applied_correction != "none"
    rows = []
    for c in report.comparisons:
        systems = (f"{letter_of[c.system]} – {letter_of[c.against]}",) if letters else (c.system, c.against)
        cells = [
            *map(ResultCell, (str(c.measure), *systems, f"{c.difference:+.4f}", interval_text(c))),
            *((ResultCell(p_text(c.p)),) if is_corrected else ()),
            ResultCell(p_text(c.corrected), best=c.significant),
            *map(ResultCell, (_signed(c.d_z), _signed(c.hedges_g), f"{c.wins}/{c.ties}/{c.losses}")),
        ]
        rows.append(tuple(cells))
    header = (
        *("measure", *(("systems",) if letters else ("system", "against")), "difference"),
        *(interval_header(report.testing), "p", *(("corrected",) if is_corrected else ()), "d_z", "g", "W/T/L"),
    )
    return ResultTable(header, tuple(rows), 2 if letters else 3)


def superscript(cell: ResultCell) -> str:
    """Return the letters of a cell in HTML."""
    return f"<sup>{' '.join(map(escape, cell.letters))}</sup>" if cell.letters else ""


def notes(report: Report) -> list[str]:
    """Return the notes under the tables: tests, topics, and anything unusual."""
    lines = []
    if report.comparisons:
        testing = f"{report.testing}, p ≤ {report.testing.alpha:g}"
        if report.baseline is None:
            lines.append(f"superscripts: significantly better than the systems with these letters ({testing})")
        else:
            against = f"the baseline {letters_of(report)[report.baseline]} ({report.baseline})"
            lines.append(f"tests: each system against {against}, over {_topic_count(len(report.topics))} ({testing})")
            lines.append("superscripts: significantly better than the system with this letter")
        lines += filter(None, [disagreements(report)])
    lines += _machine_notes(report)
    topics, irrelevant = _topic_count(len(report.topics)).replace("topic", "judged topic"), first_evaluation(report).irrelevant
    lines.append(f"{topics}; {irrelevant} without a relevant document count 0" if irrelevant else topics)
    if report.not_given:
        lines.append(f"{_topic_count(report.not_given)} with judgments not given, and not measured")
    runs = {name: system.run for name, system in report.systems.items()}
    lines += [f"{_enumerated(names)}: the same rows" for names in equal_runs(runs)]
    systems_by_note: dict[str, list[str]] = {}
    for name, system in report.systems.items():
        counts = (system.evaluation.missing, "without results count 0"), (system.evaluation.unjudged, "of the run not judged")
        for note in [f"{_topic_count(count)} {reason}" for count, reason in counts if count]:
            systems_by_note.setdefault(note, []).append(name)
    for note, names in systems_by_note.items():
        lines.append(f"{'each system' if len(names) == len(report.systems) else ', '.join(names)}: {note}")
    return lines


def disagreements(report: Report) -> str:
    """Return a note on difference intervals that contradict their p, or an empty string."""
    conflicting = [c for c in report.comparisons if not math.isnan(c.low) and (c.low > 0 or c.high < 0) != c.significant]
    if not conflicting:
        return ""
    pairs = [f"{c.system} – {c.against} by {c.measure}" for c in conflicting[:3]]
    if len(conflicting) > 3:
        pairs.append(f"{len(conflicting) - 3:,} more")
    interval = f"by bootstrap (BCa, {RESAMPLES:,} samples), " if first_evaluation(report).machine is None else ""
    return (
        f"interval and p disagree on {_enumerated(pairs)}: the interval is {interval}not corrected; the p by {report.testing}"
    )


def first_evaluation(report: Report) -> Evaluation:
    """Return the evaluation of the first system; all evaluations have the same topics, qrels and machine labels."""
    return next(iter(report.systems.values())).evaluation


def _machine_notes(report: Report) -> list[str]:
    """Return the notes on machine labels; none without such labels."""
    first = first_evaluation(report)
    if first.machine is None:
        return []
    notes = [f"means, differences, intervals, p: {'; '.join(machine_notes(first))}"]
    if (differences := report.differences()) is None:
        return notes
    doubtful = [c for c, doubt in zip(report.comparisons, differences.doubtful, strict=True) if doubt]
    notes.append("each difference has its own weight of the machine labels, and so is not that of the means")
    note = f"d_z, g, W/T/L and Judged: of the {first.topics} topics that people judged"
    return [*notes, note, *few_errors([f"{c.system} – {c.against} by {c.measure}" for c in doubtful])]


def _enumerated(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def values_of(report: Report, measure: Measure, letters: dict[str, str]) -> list[ResultCell]:
    """Return the mean of each system, with the letters of the systems that it is significantly better than."""
    best = report.best(measure)
    return [
        ResultCell(
            f"{report.mean(name, measure):.{0 if measure.summed else 4}f}",
            tuple(letters[other] for other in report.beaten(name, measure)),
            name in best,
        )
        for name in report.systems
    ]


def letters_of(report: Report) -> dict[str, str]:
    """Return the letter of each system: a, b, …; a2, b2, … from the second round on."""
    rounds = {name: divmod(position, len(LETTERS)) for position, name in enumerate(report.systems)}
    return {name: LETTERS[letter] + (str(number + 1) if number else "") for name, (number, letter) in rounds.items()}


def _topic_count(count: int) -> str:
    return f"{count} topic{'' if count == 1 else 's'}"


def p_text(p: float) -> str:
    """Return a p value as printed."""
    if math.isnan(p):
        return EMPTY_CELL
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def interval_text(comparison: MeanDifference) -> str:
    """Return the interval of a difference as printed."""
    return EMPTY_CELL if math.isnan(comparison.low) else f"{comparison.low:+.4f} to {comparison.high:+.4f}"


def interval_header(testing: Testing) -> str:
    """Return the header of a column of intervals."""
    return f"{100 * (1 - testing.alpha):g}% interval"


def _signed(effect: float) -> str:
    return f"{effect:+.2f}" if math.isfinite(effect) else EMPTY_CELL


def _styled_texts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the texts of a report, each with the name of its style in rich."""
    yield from _aligned(means_table(report))
    lines = notes(report)
    if len(report.comparisons) > MAX_COMPARISONS:
        lines.append(f"{len(report.comparisons)} tests, too many to print; the other forms list them")
    elif report.comparisons:
        yield "\n", ""
        yield from _aligned(tests_table(report, letters=True))
    yield "\n" + "\n".join(lines), ""


def _aligned(table: ResultTable) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table as styled texts; superscripts stand to the right of the digits."""
    columns = list(zip(*table.rows, strict=True))
    raised = [max(len(cell.raised) for cell in column) for column in columns]
    widths = [max(len(h), *(len(c.text) for c in column)) for h, column in zip(table.header, columns, strict=True)]
    for row in (tuple(map(ResultCell, table.header)), *table.rows):
        line: list[tuple[str, str]] = []
        for i, cell in enumerate(row):
            space = " " * (widths[i] - len(cell.text))
            style = "bold" if cell.best else "dim" if i in table.secondary else ""
            gap = "  " if i else ""
            line += [(gap + (space if i >= table.names else ""), ""), (cell.text, style)]
            line.append((cell.raised.ljust(raised[i]) + (space if i < table.names else ""), ""))
        while line and not line[-1][0].strip():
            line.pop()
        yield from line[:-1]
        yield line[-1][0].rstrip() + "\n", line[-1][1]


def markdown_table(table: ResultTable) -> str:
    """Return a table in Markdown."""
    rule = ["---"] * table.names + ["---:"] * (len(table.header) - table.names)
    rows = [[_escaped_markdown(h) for h in table.header], rule]
    for row in table.rows:
        texts = [_escaped_markdown(cell.text) for cell in row]
        rows.append([(f"**{t}**" if cell.best else t) + cell.raised for t, cell in zip(texts, row, strict=True)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _escaped_markdown(text: str) -> str:
    for character in "\\|*_`<[":
        text = text.replace(character, "\\" + character)
    return text


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows in CSV, with a header; None is an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def html_of(table: ResultTable) -> str:
    """Return a table in HTML."""

    def text(cell: ResultCell) -> str:
        return (f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)) + superscript(cell)

    return html_table(table.header, [list(map(text, row)) for row in table.rows], safe=True)


def _latex_cell(cell: ResultCell) -> str:
    text = latex_text(cell.text)
    formatted = rf"\textbf{{{text}}}" if cell.best else text
    # \rlap takes no room, so the digits of a column end below each other.
    return rf"{formatted}\rlap{{$^{{{''.join(cell.letters)}}}$}}" if cell.letters else formatted


def _caption(report: Report) -> str:
    topics = f"Means over {_topic_count(len(report.topics))}"
    if (machine := first_evaluation(report).machine) is not None:
        labelled = _topic_count(machine.topics)
        topics = f"Means by machine labels of {labelled}, corrected by the {len(report.topics)} that people judged"
    if not report.comparisons:
        return topics + "."
    testing = rf"{latex_text(str(report.testing))}, $p \le {report.testing.alpha:g}$"
    if report.baseline is None:
        return rf"{topics}. Superscripts: significantly better than that system (all pairs; {testing})."
    return (
        rf"{topics}. Each system was tested against the baseline {latex_text(report.baseline)} ({testing}); "
        "superscripts: significantly better than that system."
    )


def latex_text(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return "".join(LATEX.get(character, character) for character in " ".join(text.split()))
