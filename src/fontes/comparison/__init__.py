"""Runs side by side: statistics of their differences, and the report of them in many forms."""

from .curves import plot_measures
from .report import Candidates, Report, System, SystemRun, report_of
from .testing import Comparison, Testing

__all__ = ["Candidates", "Comparison", "Report", "System", "SystemRun", "Testing", "plot_measures", "report_of"]
