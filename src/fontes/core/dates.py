"""Conversion of dates in metadata to microseconds since 1970, and back: ISO's form, unambiguous ones, and named ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from .errors import ParameterError

DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = ((day.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) for day in (datetime.min, datetime.max))
UNAMBIGUOUS = (
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2}", re.ASCII), "%Y/%m/%d"),
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}", re.ASCII), "%d.%m.%Y"),
    (re.compile(r"\d{1,2}\. \d{1,2}\. \d{4}", re.ASCII), "%d. %m. %Y"),
    (re.compile(r"\d{1,2} [A-Z][a-z]{2} \d{4}"), "%d %b %Y"),
    (re.compile(r"\d{1,2} [A-Z][a-z]{3,8} \d{4}"), "%d %B %Y"),
    (re.compile(r"\d{1,2}-[A-Z][a-z]{2}-\d{4}"), "%d-%b-%Y"),
    (re.compile(r"[A-Z][a-z]{2} \d{1,2}, \d{4}"), "%b %d, %Y"),
    (re.compile(r"[A-Z][a-z]{3,8} \d{1,2}, \d{4}"), "%B %d, %Y"),
)
UNITS = {"seconds": 1_000_000, "milliseconds": 1000}  # forms of numbers since 1970
SPAN = (946_684_800_000_000, 4_102_444_800_000_000)  # the years in which a number is taken for a date, 2000 to 2099
MOMENT = re.compile(r"date|time|when|created|updated|modified|published|posted", re.IGNORECASE)  # names of columns of dates
_DAYS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d.%m.%y"),
    *("%d %b %Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d %Y", "%B %d, %Y", "%d/%b/%Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMS = (  # other forms that programs write
    *(day + time for day in _DAYS for time in _TIMES),
    "%a %b %d %H:%M:%S %z %Y",  # Twitter
    "%a, %d %b %Y %H:%M:%S %z",  # e-mail and RSS
    "%a, %d %b %Y %H:%M:%S %Z",
    "%Y-%m-%d %H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S %Z",
    "%A, %d %B %Y",
    "%A, %B %d, %Y",
    "%a, %d %b %Y",
    "%d/%b/%Y:%H:%M:%S %z",  # logs of web servers
    "%Y%m%d",
    "%Y%m%dT%H%M%S",
    "%Y%m%dT%H%M%S%z",
    "%Y%m%d%H%M%S",
)


def date_of(text: str) -> int | None:
    """Parse an ISO date or datetime to microseconds since 1970 (nanoseconds are cut), UTC by default; None for other text."""
    if not DATE.fullmatch(text):
        return None
    try:
        return _microseconds(datetime.fromisoformat(text))
    except ValueError:
        return None


def date_of_cell(cell: str) -> int | None:
    """Parse a date in ISO's form, or in an unambiguous one, to microseconds since 1970; None for other text.

    Forms with an ambiguous order of day and month, such as 05/06/2021, are not parsed.
    """
    if (iso := date_of(cell)) is not None:
        return iso
    for pattern, form in UNAMBIGUOUS:
        if pattern.fullmatch(cell) and (moment := date_in_form(cell, form)) is not None:
            return moment
    return None


@lru_cache(1 << 16)  # many documents have few dates, and parsing is slow
def date_in_form(text: str, form: str) -> int | None:
    """Parse a date of a form of `strptime`, or a number of `UNITS`, to microseconds since 1970; None for other text."""
    try:
        return _microseconds(_since(float(text), form) if form in UNITS else datetime.strptime(text, form))
    except (ValueError, OverflowError):
        return None


def check_form(column: str, form: str) -> None:
    """Raise ParameterError unless a form of dates, such as "%d/%m/%Y", is one that gives the year."""
    sample = datetime(2021, 11, 17, 13, 45, 59, tzinfo=UTC)
    try:
        if form in UNITS or datetime.strptime(sample.strftime(form), form).year == sample.year:
            return
    except (ValueError, re.error):
        pass
    raise ParameterError(
        f"column '{column}': '{form}' is no form of dates with a year; write it with Python's codes, as in date:%d/%m/%Y; or "
        "date:seconds or date:milliseconds for numbers since 1970"
    )


def forms_of(texts: Sequence[str]) -> list[str]:
    """Return the forms that all texts have: "" for what `date_of_cell` parses, or those of `FORMS`."""
    if not texts:
        return []
    if all(date_of_cell(text) is not None for text in texts):
        return [""]
    return [form for form in FORMS if all(date_in_form(text, form) is not None for text in texts)]


def units_of(name: str, numbers: Sequence[int]) -> list[str]:
    """Return the unit of `UNITS` by which all numbers of a column are dates of this century; none unless its name says so."""
    if not numbers or not MOMENT.search(name):
        return []
    return [unit for unit, factor in UNITS.items() if all(SPAN[0] <= number * factor < SPAN[1] for number in numbers)]


def is_date(text: str) -> bool:
    """Whether a text is a date in a known form; not digits alone, which texts order alike, nor 1.2.20, perhaps a version."""
    return not text.isdigit() and any(not form.startswith("%d.%m.%y") for form in forms_of([text]))


def date_text(microseconds: int) -> str:
    """Format microseconds since 1970 as a date, with the time unless it is midnight."""
    moment = EPOCH + timedelta(microseconds=microseconds)
    return moment.date().isoformat() if moment.time() == EPOCH.time() else moment.isoformat().replace("+00:00", "Z")


def _since(number: float, unit: str) -> datetime:
    return EPOCH + timedelta(microseconds=round(number * UNITS[unit]))


def _microseconds(moment: datetime) -> int | None:
    since = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)
    return since if FIRST <= since <= LAST else None
