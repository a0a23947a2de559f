"""`Boost`: scores raised by a date, a number or a condition."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ..core.arrays import AnyArray, Bools, Float64s
from ..core.dates import date_of, date_text
from ..core.errors import InputError, ParameterError
from ..core.parameters import tuned
from ..core.run import MAX_SCORE, Run
from ..core.values import Explanation
from ..index.columns import column_type, column_values, filter_of, greatest_value
from ..index.columns.facets import ORDERED
from .candidates import Reordering, score_before

if TYPE_CHECKING:
    from ..index import Index

DURATION = re.compile(r"(\d+(?:\.\d+)?) ?([hdwy])")
UNIT_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "y": 365.0}
DAY = 86_400_000_000  # microseconds, the unit of date columns


@dataclass(frozen=True)
class Boost(Reordering, name="boost"):
    """Raises scores by a date, a number or a condition: `bm25() >> boost("date", half_life="180d")`.

    The new score is score + by · f, or with `multiply` score · (1 + by · f), where f is

        2^(-age / half_life)   boost("date", half_life="180d"): 1 for a document as new as `origin`, 1/2 a half-life earlier
        value                  boost("popularity")
        ln(1 + value)          boost("popularity", log=True)
        1 or 0                 boost(where="lang == 'cs'", by=1.2): whether the condition holds

    A document without a value has f = 0; a document newer than `origin` has the age 0. The stage reorders the documents of its
    input, by default 1,000 of each topic; it adds no document, however new.

    The decay is the exponential prior of Li and Croft, "Time-based language models" (CIKM 2003), with a half-life as its rate.

    Args:
        index: The index that holds the column.
        column: A column of dates or numbers. None with `where`.
        half_life: Age at which the boost is halved: "12h", "180d", "26w", "2y", or a number, in days for dates and in the unit
            of the column for numbers. None: boost by the value itself.
        origin: Date or number at which age is 0. None: the greatest value of the index, never the clock; provenance records
            it under "origins".
        log: Use ln(1 + value), for numbers that grow without bound, such as counts.
        where: A filter condition, in place of a column.
        by: Factor of the boost.
        multiply: Multiply the scores; they must not be negative.

    Raises:
        ParameterError: The column is unknown or holds neither dates nor numbers, or parameters exclude each other.
        InputError: When called: a document is not in the index, a value is negative with `log` or `multiply`, a score is
            negative with `multiply`, or a new score is beyond float32.
    """

    index: Index = field(repr=False)
    column: str | None = field(default=None, metadata={"leading": True})
    half_life: float | str | None = tuned(None, [7.0, 30.0, 90.0, 180.0, 365.0, 730.0])
    origin: float | str | None = None
    log: bool = False
    where: str | None = None
    by: float = tuned(1.0, [0.1, 0.3, 1.0, 3.0, 10.0])
    multiply: bool = False

    def check(self) -> None:
        if (self.column is None) == (self.where is None):
            raise ParameterError(
                'boost takes a column or a condition: boost("date", half_life="180d") or boost(where="…", by=1.2)'
            )
        if not _is_number(self.by) or (self.multiply and self.by < 0):
            raise ParameterError(f"boost: by is a number{' from 0 up' if self.multiply else ''}, not {self.by!r}")
        if self.where is not None:
            if self.half_life is not None or self.origin is not None or self.log:
                raise ParameterError("boost: half_life, origin and log go with a column, not with where")
            filter_of(self.index, self.where)  # raises for an invalid condition
            return
        if self.origin is not None and self.half_life is None:
            raise ParameterError("boost: origin goes with half_life")
        if self.half_life is not None and self.log:
            raise ParameterError("boost: half_life and log exclude each other")
        kind = column_type(self.index, str(self.column), "boost", ORDERED)
        if not self.index.leaves:
            return
        if kind == "date" and self.half_life is None:
            raise ParameterError(f'boost: dates need a half_life, such as boost("{self.column}", half_life="180d")')
        if self.half_life is not None:
            self._scaled_half_life(kind)
        self._origin  # noqa: B018  # raises for an invalid origin

    def apply(self, run: Run, /) -> Run:
        self.check()
        if self.multiply and run.rows and run.scores.min() < 0:
            row = int(np.argmax(run.scores < 0))
            raise self._error(run, row, f"the score {run.scores[row]:g} is negative; leave multiply out")
        boosts, _ = self._boosts(run)
        provenance = dict(run.provenance)
        if self.half_life is not None:
            provenance["origins"] = {**provenance.get("origins", {}), repr(self): self._origin_text}
        return run.with_scores(self._boosted(run, boosts), provenance)

    def explained(self, run: Run, row: int) -> Explanation:
        boosts, values = self._boosts(run)
        boost = Explanation(float(boosts[row]), self._describe(values[row]))
        label = f"{self!r}: score {'times 1 + boost' if self.multiply else 'plus boost'}"
        return Explanation(float(np.float32(self._boosted(run, boosts)[row])), label, (score_before(run, row), boost))

    @np.errstate(over="ignore", invalid="ignore")
    def _boosted(self, run: Run, boosts: Float64s) -> Float64s:
        """Return the new scores; raise InputError for one beyond float32, which names document and column."""
        scores = run.scores.astype(np.float64)
        boosted: Float64s = scores * (1 + boosts) if self.multiply else scores + boosts
        beyond = np.isfinite(scores) & ~(np.abs(boosted) <= MAX_SCORE)
        if beyond.any():
            row = int(np.argmax(beyond))
            cause = f"its {self.column}" if self.where is None else f"by={self.by:g}"
            remedy = "log=True or a smaller by" if self.where is None and self.half_life is None else "a smaller by"
            raise self._error(run, row, f"{cause} makes the score {boosted[row]:g}, beyond {MAX_SCORE:g}; use {remedy}")
        return boosted

    @np.errstate(over="ignore", invalid="ignore")
    def _boosts(self, run: Run) -> tuple[Float64s, AnyArray]:
        """Return by · f of each row; and the value of each row, NaN if missing, or whether the condition holds."""
        docs = self.ordinals(run)
        if self.where is not None:
            condition = filter_of(self.index, self.where)
            holds: Bools = np.zeros(len(docs), dtype=np.bool_) if condition is None else condition.mask[docs]
            return self.by * holds.astype(np.float64), holds
        stored = column_values(self.index, str(self.column), docs)
        values = np.where(stored.present, stored.values.astype(np.float64), np.nan)
        allows_negative = self.half_life is not None or not (self.log or self.multiply)
        invalid = np.isinf(values) if allows_negative else np.isinf(values) | (values < 0)
        if invalid.any():
            row = int(np.argmax(invalid))
            needs = "finite values" if allows_negative else f"values from 0 up with {'log' if self.log else 'multiply'}=True"
            raise self._error(run, row, f"its {self.column} is {values[row]:g}; boost takes {needs}")
        if self.half_life is not None:
            ages = np.maximum(float(self._origin or 0) - values, 0.0)
            f = np.exp2(-ages / self._scaled_half_life(stored.kind))
        else:
            f = np.log1p(values) if self.log else values
        return np.where(stored.present, self.by * f, 0.0), values

    def _describe(self, value: Any) -> str:
        """Describe how the boost of a document follows from its value."""
        if self.where is not None:
            return f"{self.where} {'holds' if value else 'does not hold'}: {self.by:g} · {int(value)}"
        if np.isnan(value):
            return f"the document has no {self.column}: no boost"
        shown = date_text(int(value)) if self._kind == "date" else f"{value:g}"
        if self.half_life is not None:
            age = max(float(self._origin or 0) - float(value), 0.0) / (DAY if self._kind == "date" else 1)
            days = " days" if self._kind == "date" else ""
            return f"{self.by:g} · 2^(-age / {self.half_life}): {self.column} {shown}, {age:g}{days} before {self._origin_text}"
        return f"{self.by:g} · {'ln(1 + value)' if self.log else 'value'}: {self.column} {shown}"

    @property
    def _kind(self) -> str:
        """Type of the column."""
        return self.index.schema.types[str(self.column)]

    def _scaled_half_life(self, kind: str) -> float:
        """Return the half-life in the unit of the column's values."""
        unit, value = 1.0, self.half_life
        if isinstance(value, str) and kind == "date" and (match := DURATION.fullmatch(value)):
            unit, value = UNIT_DAYS[match[2]], float(match[1])
        if not _is_number(value) or value <= 0:
            forms = 'a text such as "180d" (h, d, w or y) or a number of days' if kind == "date" else "a number"
            raise ParameterError(f"boost: half_life is {forms} above 0, not {self.half_life!r}")
        return float(value) * unit * (DAY if kind == "date" else 1)

    @cached_property
    def _origin(self) -> float | None:
        """Value at which age is 0, in the unit of the column; None without a half-life, or if no document has a value."""
        if self.half_life is None:
            return None
        if self.origin is None:
            greatest: float | None = greatest_value(self.index, str(self.column))
            return greatest
        if self._kind != "date" and _is_number(self.origin):
            return float(self.origin)
        date = date_of(self.origin) if self._kind == "date" and isinstance(self.origin, str) else None
        if date is None:
            form = 'a date such as "2024-05-17"' if self._kind == "date" else "a number"
            raise ParameterError(f"boost: origin is {form}, not {self.origin!r}")
        return date

    @property
    def _origin_text(self) -> str | float | None:
        """The origin as provenance and explanations show it: the text of a date, or a number."""
        return date_text(int(self._origin)) if self._kind == "date" and self._origin is not None else self._origin

    def _error(self, run: Run, row: int, problem: str) -> InputError:
        topic = list(run.topics)[int(run.topic_numbers[row])]
        return InputError(f"topic '{topic}', document '{run.ids[int(run.codes[row])]}': {problem}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
