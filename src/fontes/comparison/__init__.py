"""What a comparison of systems gives: statistics and reports."""

from .report import Comparison, Report, System

__all__ = ["Comparison", "Report", "System"]
