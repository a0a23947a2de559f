"""Audits of a score: how much of it is ties, leaked training data, missing judgments or a convention of a tool."""

from .audit import audit
from .report import AuditReport, Finding

__all__ = ["AuditReport", "Finding", "audit"]
