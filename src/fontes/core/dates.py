"""Dates in metadata: ISO dates as microseconds since 1970, and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = ((day.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) for day in (datetime.min, datetime.max))


def date_of(text: str) -> int | None:
    """An ISO date, or date and time, in microseconds since 1970, by UTC where no zone is written; None for other text."""
    if not DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)
    return since if FIRST <= since <= LAST else None


def date_text(microseconds: int) -> str:
    """The date, with its time where it is not midnight, of what `date_of` gives."""
    moment = EPOCH + timedelta(microseconds=microseconds)
    return moment.date().isoformat() if moment.time() == EPOCH.time() else moment.isoformat().replace("+00:00", "Z")
