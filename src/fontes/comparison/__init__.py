"""Runs side by side: statistics of their differences, and the report of them in many forms."""

from .report import Candidates, Report, System
from .reporting import SystemRun, report_of
from .testing import Comparison, Testing

__all__ = ["Candidates", "Comparison", "Report", "System", "SystemRun", "Testing", "report_of"]
