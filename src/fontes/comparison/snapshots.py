"""Comparison of systems over snapshots of a collection: how each changes over time, relative to a pivot system."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import InputError, ParameterError
from ..measures.measure import Measure
from ..measures.names import DEFAULT
from ..plots.tables import EMPTY_CELL, ResultCell, ResultTable, TableReport, json_values, latex_text
from . import report_text
from .report import Report, compare_runs
from .testing import Comparison, Testing

FIGURES = ("result_delta", "relative_improvement", "delta_relative_improvement", "effect_ratio")
COLUMNS = ("RD", "RI", "ΔRI", "ER")
FORMULAS = (
    "RD: Result Delta, the share of the reference's mean that is lost (negative: gained)",
    "RI: relative improvement over the pivot; ΔRI: that of the reference minus that of the snapshot (0: as in the reference)",
    "ER: effect ratio, the difference from the pivot as a multiple of that of the reference (1: as in the reference)",
    "p: of the system against the pivot on the topics of the snapshot",
)


@dataclass(frozen=True, eq=False)
class SnapshotReport(TableReport):
    """Result of `compare_snapshots`: a `Report` per snapshot, and how the systems changed since the reference.

    Args:
        reports: The report of each snapshot, in order of time, each with the pivot as its baseline.
        pivot: The system that the others are compared with.
        reference: The snapshot that the others are compared with.
    """

    TITLE = "Comparison over snapshots"
    LABEL = "tab:snapshots"

    reports: Mapping[str, Report]
    pivot: str
    reference: str

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(self.reports[self.reference].systems)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures."""
        return self.reports[self.reference].measures

    def mean(self, system: str, snapshot: str, measure: str | Measure) -> float:
        """Return the mean of a system over the judged topics of a snapshot."""
        return self.reports[snapshot].mean(system, measure)

    def result_delta(self, system: str, snapshot: str, measure: str | Measure) -> float:
        """Return (M_0 - M_t) / M_0: the relative change of the mean from the reference 0 to the snapshot t.

        Positive if the system got worse. It compares different topics, documents and judgments, so it mixes the change of the
        system with the change of the task; ΔRI and the effect ratio remove the change of the pivot. NaN if M_0 is 0. As
        computed by the organisers of LongEval (Keller, Breuer and Schaer 2024).
        """
        before, now = (self.mean(system, name, measure) for name in (self.reference, snapshot))
        return _ratio(before - now, before)

    def relative_improvement(self, system: str, snapshot: str, measure: str | Measure) -> float:
        """Return RI = (M(system) - M(pivot)) / M(pivot) in a snapshot; NaN if the pivot's mean is 0."""
        pivot = self.mean(self.pivot, snapshot, measure)
        return _ratio(self.mean(system, snapshot, measure) - pivot, pivot)

    def delta_relative_improvement(self, system: str, snapshot: str, measure: str | Measure) -> float:
        """Return ΔRI = RI_0 - RI_t (Breuer et al. 2020): 0 if the improvement persists, positive if it shrinks."""
        before, now = (self.relative_improvement(system, name, measure) for name in (self.reference, snapshot))
        return before - now

    def effect_ratio(self, system: str, snapshot: str, measure: str | Measure) -> float:
        """Return ER (Breuer et al. 2020): the mean difference from the pivot in the snapshot, divided by it in the reference.

        1 if the effect persists, between 0 and 1 if it is smaller, above 1 if larger, negative if it is reversed. NaN for the
        pivot, and for a system whose mean equals the pivot's in the reference.
        """
        before, now = (
            self.mean(system, name, measure) - self.mean(self.pivot, name, measure) for name in (self.reference, snapshot)
        )
        return _ratio(now, before)

    def comparison(self, system: str, snapshot: str, measure: str | Measure) -> Comparison:
        """Return the test of a system against the pivot in a snapshot."""
        return self.reports[snapshot].comparison(system, self.pivot, measure)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per measure, snapshot and system; NaN where a figure is not defined."""
        names = [(snapshot, system) for snapshot in self.reports for system in self.systems]
        return [self._row(measure, *pair) for measure in self.measures for pair in names]

    _rows = rows

    def to_dict(self) -> dict[str, object]:
        """Return all figures as JSON values, with None for NaN."""
        topics = {name: len(report.topics) for name, report in self.reports.items()}
        facts = {"pivot": self.pivot, "reference": self.reference, "topics": topics}
        return {**facts, "rows": json_values(self._plain_rows())}

    def _row(self, measure: Measure, snapshot: str, system: str) -> dict[str, Any]:
        # Figures that are 0 or 1 by definition, for the reference and the pivot, are left out.
        is_later, is_other = snapshot != self.reference, system != self.pivot
        included = (is_later, is_other, is_other and is_later, is_other and is_later)
        figures = {
            name: getattr(self, name)(system, snapshot, measure) if is_included else math.nan
            for name, is_included in zip(FIGURES, included, strict=True)
        }
        p = self.comparison(system, snapshot, measure).corrected if is_other else math.nan
        mean = self.mean(system, snapshot, measure)
        return {"measure": measure, "snapshot": snapshot, "system": system, "mean": mean, **figures, "p": p}

    def _tables(self) -> Sequence[ResultTable]:
        return [self._table(measure) for measure in self.measures]

    def _table(self, measure: Measure) -> ResultTable:
        rows = []
        for row in self.rows():
            if row["measure"] != measure:
                continue
            name = f"{row['system']} (pivot)" if row["system"] == self.pivot else row["system"]
            figures = [EMPTY_CELL if math.isnan(row[key]) else f"{row[key]:+.4f}" for key in FIGURES]
            p = ResultCell(report_text.p_text(row["p"]), best=row["p"] <= self._testing().alpha)
            rows.append((row["snapshot"], name, f"{row['mean']:.4f}", *figures, p))
        text, pivot, reference = map(latex_text, (str(measure), self.pivot, self.reference))
        caption = (
            f"{text} over time. RD: Result Delta to {reference}; RI: relative improvement over the pivot {pivot}; "
            rf"$\Delta$RI and ER (effect ratio) compare it with {reference}; $p$: {self._testing()}."
        )
        return ResultTable.of(("snapshot", "system", str(measure), *COLUMNS, "p"), rows, 2, caption=caption)

    def _testing(self) -> Testing:
        return self.reports[self.reference].testing

    def _notes(self) -> list[str]:
        topics = ", ".join(f"{name} {len(report.topics):,}" for name, report in self.reports.items())
        settings = f"reference {self.reference}, pivot {self.pivot}; judged topics: {topics}"
        return [settings, *FORMULAS[:-1], f"{FORMULAS[-1]} ({self._testing()})"]

    def __repr__(self) -> str:
        return f"SnapshotReport({', '.join(self.reports)}: {', '.join(self.systems)})"


def compare_snapshots(
    snapshots: Mapping[str, tuple[Mapping[str, object], object]],
    pivot: str,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    reference: str | None = None,
    testing: Testing | None = None,
) -> SnapshotReport:
    """Compare systems over snapshots of a collection, each with its own topics, documents and judgments.

    Args:
        snapshots: By name, in order of time: the runs by system (anything that `Run.of` accepts) and the judgments (anything
            that `Qrels.of` accepts). Each snapshot has the same systems.
        pivot: The system that does not change, such as BM25.
        measures: As for `evaluate`.
        reference: The snapshot that the others are compared with; by default the first.
        testing: Tests of each system against the pivot in each snapshot; by default the t-test with Holm's correction.

    Raises:
        ParameterError: There are fewer than two snapshots or two systems, or the pivot, the reference or a measure is unknown.
        InputError: A snapshot lacks a system, or a run or judgments cannot be read.
    """
    if len(snapshots) < 2:
        raise ParameterError(f"a comparison over time needs two snapshots or more, not {len(snapshots)}")
    first = next(iter(snapshots))
    reference = first if reference is None else reference
    if reference not in snapshots:
        raise ParameterError(f"the reference '{reference}' is none of the snapshots; there are {', '.join(snapshots)}")
    systems = list(snapshots[reference][0])
    if pivot not in systems:
        raise ParameterError(f"the pivot '{pivot}' is none of the systems; there are {', '.join(systems) or 'none'}")
    if len(systems) < 2:
        raise ParameterError(f"there is no system beside the pivot '{pivot}'; give the runs of another")
    for name, (runs, _) in snapshots.items():
        if lacking := [system for system in systems if system not in runs]:
            raise InputError(f"snapshot '{name}' has no run of {', '.join(lacking)}; each snapshot needs a run of each system")
        if additional := [system for system in runs if system not in systems]:
            raise InputError(
                f"snapshot '{reference}' has no run of {', '.join(additional)}, and '{name}' has; give it, or leave it out"
            )
    reports = {}
    for name, (runs, qrels) in snapshots.items():
        try:
            reports[name] = compare_runs({s: runs[s] for s in systems}, qrels, measures, baseline=pivot, testing=testing)
        except InputError as error:
            raise InputError(f"snapshot '{name}': {error}") from None
    return SnapshotReport(reports, pivot, reference)


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan
