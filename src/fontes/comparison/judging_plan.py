"""Number of topics that people must judge, in addition to labels by a machine, to settle which of two systems is better."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core import ParameterError
from ..measures.measure import Measure
from ..plots.tables import EMPTY_CELL, ResultTable, TableReport, json_values
from .report import Report
from .report_text import interval_text, p_text
from .testing import Comparison


@dataclass(frozen=True)
class PlannedPair:
    """Topics to judge for one pair of systems, by one measure.

    Args:
        comparison: The test with the present judgments.
        topics: Number of further topics to judge; 0 for a settled pair; None if all labelled topics do not suffice.
        labels: Number of judgments that these topics need.
    """

    comparison: Comparison
    topics: int | None
    labels: int | None


@dataclass(frozen=True, eq=False)
class JudgingPlan(TableReport):
    """Result of `plan_judging`: `print` shows it, `save` writes it.

    Args:
        pairs: A row for each comparison of the report, by measure and then by the topics that it needs, the fewest first.
        judged: Topics that people judged.
        labelled: Topics that the machine labelled.
        depth: Mean number of judgments of a topic.
        alpha: Greatest significant p of one test, corrected for the others.
        power: Probability that the test finds the difference.
        coverage: Coverage of the intervals.
    """

    TITLE = "Topics to judge"
    LABEL = "tab:plan"
    COLUMNS = ("measure", "system", "against", "difference", "low", "high", "corrected", "topics", "labels")

    pairs: tuple[PlannedPair, ...]
    judged: int
    labelled: int
    depth: float
    alpha: float
    power: float
    coverage: float

    def pair(self, system: str, against: str, measure: Measure) -> PlannedPair:
        """Return the row of a pair; KeyError if it was not compared in this direction."""
        for pair in self.pairs:
            if (pair.comparison.system, pair.comparison.against, pair.comparison.measure) == (system, against, measure):
                return pair
        raise KeyError((system, against, str(measure)))

    def _rows(self) -> list[dict[str, object]]:
        columns = self.COLUMNS[:-2]
        return [
            {**{name: getattr(pair.comparison, name) for name in columns}, "topics": pair.topics, "labels": pair.labels}
            for pair in self.pairs
        ]

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON, with None for NaN."""
        figures = {name: getattr(self, name) for name in ("judged", "labelled", "depth", "alpha", "power", "coverage")}
        return {**figures, "pairs": json_values(self._plain_rows())}

    def _tables(self) -> list[ResultTable]:
        rows = []
        for pair in self.pairs:
            c = pair.comparison
            many = f"more than {self.labelled - self.judged}"
            topics = "settled" if pair.topics == 0 else many if pair.topics is None else str(pair.topics)
            names, figures = (str(c.measure), c.system, c.against), (f"{c.difference:+.4f}", interval_text(c))
            rows.append((*names, *figures, p_text(c.corrected), topics, f"{pair.labels:,}" if pair.labels else EMPTY_CELL))
        interval = f"{100 * self.coverage:g}% interval"
        header = ("measure", "system", "against", "difference", interval, "corrected p", "topics to judge", "judgments")
        return [ResultTable.of(header, rows, 3, caption="Topics that people must judge to settle which system is better.")]

    def _notes(self) -> list[str]:
        unjudged = self.labelled - self.judged
        return [
            f"{self.judged} topics judged by people, {unjudged} only by the machine; {self.depth:.1f} judgments a topic",
            f"assumed: the true difference is the one measured, values vary as so far, the topics are drawn at random; "
            f"{100 * self.power:g}% power, p ≤ {self.alpha:.4g} in each test",
        ]


def plan_judging(report: Report, power: float = 0.8) -> JudgingPlan:
    """Plan how many more topics people must judge to settle the comparisons of a report.

    A pair is settled when its test is significant. See `PredictionPowered.topics_for` for the calculation and its assumptions.
    Unless the correction is "none", alpha is divided by the number of tests of a measure (Bonferroni), so that the numbers of
    topics are upper bounds for the other corrections.

    Args:
        report: A comparison with machine labels.
        power: Probability of finding the difference, between 0 and 1.

    Raises:
        ParameterError: The report has no machine labels or fewer than two systems, or `power` is out of range.
    """
    if isinstance(power, bool) or not isinstance(power, (int, float)) or not 0 < power < 1:
        raise ParameterError(f"the power must lie between 0 and 1, as in 0.8, not {power!r}")
    if (estimates := report.differences()) is None:
        raise ParameterError("a plan needs a comparison of two systems or more with machine labels: compare(…, machine=labels)")
    tests = len(report.comparisons) // len(report.measures)
    alpha = report.testing.alpha / (1 if report.testing.applied_correction == "none" else tests)
    depth = sum(map(len, report.qrels.values())) / len(report.qrels)
    pairs = []
    for c, needed in zip(report.comparisons, estimates.topics_for(alpha, power).tolist(), strict=True):
        topics = 0 if c.significant else None if math.isnan(needed) else max(1, int(needed) - estimates.human)
        pairs.append(PlannedPair(c, topics, None if topics is None else math.ceil(topics * depth)))
    position = {measure: i for i, measure in enumerate(report.measures)}
    pairs.sort(key=lambda pair: (position[pair.comparison.measure], math.inf if pair.topics is None else pair.topics))
    return JudgingPlan(tuple(pairs), estimates.human, estimates.machine, depth, alpha, power, 1 - report.testing.alpha)
