"""Comparison of runs: statistics of their differences, and reports in several formats."""

from .curves import plot_measures
from .report import Candidates, Report, System, SystemRun, report_of
from .testing import Comparison, Testing

__all__ = ["Candidates", "Comparison", "Report", "System", "SystemRun", "Testing", "plot_measures", "report_of"]
