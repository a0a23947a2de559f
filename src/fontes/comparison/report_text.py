"""Tables and notes of a comparison."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..measures.evaluation import Evaluation, few_errors, machine_notes
from ..measures.measure import Measure
from ..plots.tables import EMPTY_CELL, LETTERS, ResultCell, ResultTable, latex_text
from .list_lengths import length_notes
from .testing import RESAMPLES, MeanDifference, Testing, equal_runs

if TYPE_CHECKING:
    from .report import Report

MAX_COMPARISONS = 60  # in the printed table of tests; larger tables are for programs


def means_table(report: Report) -> ResultTable:
    """Return a table with a row of means per system, and secondary columns: judged, candidates and seconds."""
    letters = letters_of(report)
    systems = report.systems.values()
    columns: list[tuple[str, list[ResultCell], bool]] = []  # header, cells, and whether the column is secondary
    shown: set[Measure] = set()
    for measure in report.measures:
        columns.append((str(measure), values_of(report, measure, letters), False))
        judged = report.judged.get(measure)
        if judged is not None and judged not in shown:
            shown.add(judged)
            columns.append((str(judged), [ResultCell(f"{s.evaluation[judged]:.3f}") for s in systems], True))
    if any(s.candidates for s in systems):
        cells = [
            ResultCell(f"{s.candidates.recall:.4f} @{s.candidates.depth}" if s.candidates else EMPTY_CELL) for s in systems
        ]
        columns.append(("candidates", cells, True))
    if any(s.seconds is not None for s in systems):
        cells = [ResultCell(EMPTY_CELL if s.seconds is None else f"{s.seconds:.2g} s") for s in systems]
        columns.append(("a topic", cells, True))
    rows = zip(*(cells for _, cells, _ in columns), strict=True)
    names = [(letters[name], marked_baseline(report, name)) for name in report.systems]
    return ResultTable.of(
        ("", "system", *(header for header, _, _ in columns)),
        ((*name_cells, *row) for name_cells, row in zip(names, rows, strict=True)),
        2,
        secondary=frozenset(i for i, (_, _, is_secondary) in enumerate(columns, 2) if is_secondary),
        caption=_caption(report),
    )


def marked_baseline(report: Report, name: str) -> str:
    """Return the name of a system, with a note if it is the baseline."""
    return f"{name} (baseline)" if name == report.baseline else name


def tests_table(report: Report, *, letters: bool) -> ResultTable:
    """Return a table with a row per comparison; `letters` stand for the names of the systems if true."""
    letter_of = letters_of(report)
    is_corrected = report.testing.applied_correction != "none"
    rows: list[tuple[str | ResultCell, ...]] = []
    for c in report.comparisons:
        systems = (f"{letter_of[c.system]} – {letter_of[c.against]}",) if letters else (c.system, c.against)
        p = (*((p_text(c.p),) if is_corrected else ()), ResultCell(p_text(c.corrected), best=c.significant))
        figures = (f"{c.difference:+.4f}", interval_text(c), *p, _signed(c.d_z), _signed(c.hedges_g))
        rows.append((str(c.measure), *systems, *figures, f"{c.wins}/{c.ties}/{c.losses}"))
    header = (
        *("measure", *(("systems",) if letters else ("system", "against")), "difference"),
        *(interval_header(report.testing), "p", *(("corrected",) if is_corrected else ()), "d_z", "g", "W/T/L"),
    )
    return ResultTable.of(header, rows, 2 if letters else 3, summary=f"{len(report.comparisons):,} tests")


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
    lines += length_notes(runs, report.measures)
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
