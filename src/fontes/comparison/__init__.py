"""Comparison of runs: statistics of their differences, and reports in several formats."""

from .report import Candidates, Report, System, SystemRun, report_of
from .report_page import plot_measures
from .testing import Comparison, Testing

__all__ = ["Candidates", "Comparison", "Report", "System", "SystemRun", "Testing", "plot_measures", "report_of"]
