"""Conversion of ISO dates in metadata to microseconds since 1970, and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = ((day.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) for day in (datetime.min, datetime.max))


def date_of(text: str) -> int | None:
    """Parse an ISO date or datetime to microseconds since 1970 (nanoseconds are cut), UTC by default; None for other text."""
    if not DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)
    return since if FIRST <= since <= LAST else None


def date_text(microseconds: int) -> str:
    """Format microseconds since 1970 as a date, with the time unless it is midnight."""
    moment = EPOCH + timedelta(microseconds=microseconds)
    return moment.date().isoformat() if moment.time() == EPOCH.time() else moment.isoformat().replace("+00:00", "Z")
