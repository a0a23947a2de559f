"""Comparison of runs: statistics of their differences, and reports in several formats."""

from .failures import Failure, Failures, LowRanked
from .judging_plan import JudgingPlan, PlannedPair, plan_judging
from .measure_curves import plot_measures
from .report import Candidates, Report, System, SystemRun, compare_runs, failures
from .snapshots import SnapshotReport, compare_snapshots
from .suite import MeanComparison, Published, SuiteReport
from .testing import Comparison, Testing

__all__ = [
    "Candidates",
    "Comparison",
    "Failure",
    "Failures",
    "JudgingPlan",
    "LowRanked",
    "MeanComparison",
    "PlannedPair",
    "Published",
    "Report",
    "SnapshotReport",
    "SuiteReport",
    "System",
    "SystemRun",
    "Testing",
    "compare_runs",
    "compare_snapshots",
    "failures",
    "plan_judging",
    "plot_measures",
]
