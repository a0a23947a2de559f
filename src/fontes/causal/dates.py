"""Dates that texts state, and the order of causes and effects in time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import NamedTuple

from ..core.checks import check_key
from ..core.dates import date_of_cell
from ..core.errors import ParameterError
from ..core.values import Doc, Topic

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = rf"(?P<month>{'|'.join(f'{month[:3]}(?:{month[3:]})?' if month[3:] else month for month in MONTHS)}|sept)\.?"
_YEAR = r"(?P<year>1[5-9]\d\d|20\d\d)"
STATED = tuple(
    re.compile(rf"\b{pattern}\b", re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}\s*,?\s*(?:of )?{_YEAR}",
        rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s*,?\s*{_YEAR}",
        rf"{_MONTH}\s*,?\s*(?:of )?{_YEAR}",
        rf"(?:in|of|since|during|by|from|until|year|early|late|mid) {_YEAR}",
    )
)
MONTH_OR_YEAR = re.compile(rf"{_YEAR}(?:-(?P<number>\d\d))?")  # of metadata
FROM_TEXT = "stated"  # as `before`: the first date that a topic states


class Period(NamedTuple):
    """A day, month or year.

    Attributes:
        first: Its first day.
        after: The day after it.
    """

    first: date
    after: date

    @property
    def limit(self) -> date:
        """The day before which causes of what happened then are dated: a day itself, of a month or year the day after it."""
        return self.first if (self.after - self.first).days == 1 else self.after


def stated_periods(text: str) -> Iterator[Period]:
    """Yield the days, months and years that an English text states, in the order of the text.

    "13 January 2017", "January 13, 2017" and "2017-01-13" are days, "January 2017" a month; a year follows a word such as "in"
    or "since". Days without a year ("on Monday", "on 3 May") are not read.
    """
    matches = [match for pattern in STATED for match in pattern.finditer(text)]
    end = 0
    for match in sorted(matches, key=lambda match: (match.start(), -match.end())):
        if match.start() >= end and (period := _period(match.groupdict())) is not None:
            end = match.end()
            yield period


def period_of(value: object) -> Period | None:
    """Return the day, month or year of metadata, such as "2017-01-13", "13 January 2017", "2017-01" or 2017; else None."""
    text = str(value).strip()
    if (microseconds := date_of_cell(text)) is not None:
        first = date(1970, 1, 1) + timedelta(microseconds=microseconds)
        return Period(first, min(first, date.max - timedelta(days=1)) + timedelta(days=1))
    match = MONTH_OR_YEAR.fullmatch(text)
    return None if match is None else _period(match.groupdict())


def check_before(before: str | None) -> None:
    """Raise ParameterError for text that is neither a date nor a name."""
    if before is not None and not (period_of(before) or before.replace("-", "_").isidentifier()):
        forms = f"a date such as '2017-01-13' or '2017', a key of the topics' metadata such as 'date', or '{FROM_TEXT}'"
        raise ParameterError(f"before is {forms}, not {before!r}")


def check_event_key(user: str, before: str | None, topics: Iterable[Topic]) -> None:
    """Raise ParameterError if topics have metadata, but none has the key of `before`: it would not matter unnoticed."""
    if before is None or before == FROM_TEXT or period_of(before):
        return
    try:
        check_key(f"{user}: before: no topic", before, filter(None, (topic.metadata for topic in topics)))
    except ParameterError as error:
        end = "" if str(error).endswith("?") else "."
        raise ParameterError(f"{error}{end} before='{FROM_TEXT}' takes the first date that a topic states") from None


def check_column(user: str, column: str, docs: Iterable[Doc], columns: Iterable[str]) -> None:
    """Raise ParameterError if no document has a metadata column, nor the index, or if none has a date in it.

    Args:
        user: Start of the message, the name of a stage.
        column: The column.
        docs: Documents of a run.
        columns: Columns of the index.
    """
    every = list(docs)
    check_key(f"{user}: column: no document of the run", column, (doc.metadata for doc in every), columns)
    stated = [doc for doc in every if doc.metadata.get(column) is not None]
    if stated and not any(period_of(doc.metadata[column]) for doc in stated):
        example = f"'{stated[0].id}' has {stated[0].metadata[column]!r}"
        raise ParameterError(
            f"{user}: column: no document of the run has a date, such as '2017-01-13', in '{column}'; {example}"
        )


def limit_of(topic: Topic, before: str) -> date | None:
    """Return the day before which the causes of a topic's event are dated, or None if no date is known.

    Args:
        topic: The topic.
        before: The day, month or year of the event; or the key of the topic's metadata that has it. If the topic lacks the key,
            or with "stated", it is the first date that its description, text or narrative states.

    Of a month or year it is the day after it.
    """
    if (period := period_of(before) or period_of(topic.metadata.get(before))) is not None:
        return period.limit
    texts = (topic.description, topic.text, topic.narrative)
    period = next((period for text in texts for period in stated_periods(text)), None)
    return None if period is None else period.limit


def is_before(doc: Doc, limit: date, column: str) -> bool:
    """Whether the metadata `column` of a document has a day, or a whole month or year, before the limit."""
    period = period_of(doc.metadata.get(column))
    return period is not None and period.after <= limit


def _period(parts: dict[str, str | None]) -> Period | None:
    year, day = int(parts["year"] or 0), int(parts.get("day") or 0)
    name = (parts.get("month") or "").lower()
    month = int(parts.get("number") or 0) or next((n for n, m in enumerate(MONTHS, 1) if name and m.startswith(name[:3])), 0)
    try:
        if day:
            first = date(year, month, day)
            return Period(first, first + timedelta(days=1))
        if month:
            return Period(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1))
        return Period(date(year, 1, 1), date(year + 1, 1, 1))
    except ValueError:
        return None
