"""Facets: counts of documents by their values in a column, or by bins of a histogram."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import AnyArray, Float64s, Int64s, Ints
from ...core.checks import check_whole
from ...core.dates import FIRST, LAST, date_text
from ...core.errors import ParameterError
from ...core.hints import nearest
from .filters import Columned

ORDERED = ("date", "float", "integer")  # types of columns that have histograms
SAMPLE = 10_000  # documents sampled to judge a column
UNIQUE = 0.9  # ratio of distinct values to all values above which a column identifies documents
PICTURE = re.compile(r"\.(avif|gif|jpe?g|png|webp)([?#].*)?$", re.IGNORECASE)
PICTURE_NAME = re.compile(r"(?i:image|img|picture|photo|thumb(nail)?|poster|cover)s?([_-]?(?i:url|uri|link|src))?$")
DAY = 86_400_000_000  # microseconds
# Widths of the bins of dates: units of numpy, and their number.
STEPS = [("D", 1), ("M", 1), ("M", 3), *(("Y", digit * 10**power) for power in range(5) for digit in (1, 2, 5))]


def facets_of(state: Columned, docs: Ints, columns: Sequence[str], bins: int | None = None) -> dict[str, dict[Any, int]]:
    """Count documents by their values.

    Args:
        state: State of an index.
        docs: Ordinals of the documents.
        columns: Names of columns.
        bins: Maximum number of equal-width bins for numbers and dates; None: count each value.

    Returns:
        For each column the number of documents by value, the most frequent first, ties in ascending order. A document counts
        once for each keyword of a list, and not at all without a value. A bin is a pair of its first and last value, in
        ascending order; the last value of a bin of floats belongs to the next bin.

    Raises:
        ParameterError: There is no such column, or `bins` is below 1.
    """
    types = state.schema.columns
    for name in columns:
        if name not in types:
            raise ParameterError(f"there is no column '{name}'; {nearest(name, types)}")
    if bins is not None:
        check_whole("bins", bins, 1)
    docs = np.sort(docs)
    totals: dict[str, Counter[object]] = {}
    numbers: dict[str, list[AnyArray]] = {}
    for name in columns:
        if bins is not None and types[name] in ORDERED:
            numbers[name] = []
        else:
            totals[name] = Counter()
    for leaf in state.leaves:
        first, last = np.searchsorted(docs, [leaf.first, leaf.first + leaf.documents])
        leaf_docs = leaf.live[docs[first:last] - leaf.first]
        segment_columns = leaf.segment.columns
        for name, total in totals.items():
            total.update(segment_columns.counts(name, leaf_docs))
        for name, parts in numbers.items():
            values = segment_columns.values(name, types[name]).of(leaf_docs)
            parts.append(values.values[values.present])
    return {
        name: _histogram(np.concatenate(numbers[name]), types[name], bins or 1)
        if name in numbers
        else dict(sorted(totals[name].items(), key=lambda item: (-item[1], item[0])))
        for name in columns
    }


class FacetColumns(NamedTuple):
    """Columns by what a page does with them.

    Attributes:
        facets: Columns suitable as facets, numbers and dates first.
        links: Columns of http(s) addresses.
        pictures: Those of the links that are addresses of pictures.
    """

    facets: list[str]
    links: list[str]
    pictures: list[str]


def facet_columns(state: Columned) -> FacetColumns:
    """Return the columns by what a page does with them.

    A column of whole numbers or keywords that identifies documents, such as titles, is no facet. Large indexes are sampled.
    """
    documents = sum(leaf.documents for leaf in state.leaves)
    docs = np.unique(np.linspace(0, documents - 1, min(SAMPLE, documents), dtype=np.int64))
    ordered: list[str] = []
    unordered: list[str] = []
    links: list[str] = []
    pictures: list[str] = []
    for name, kind in state.schema.columns.items():
        counts = facets_of(state, docs, (name,))[name]
        if kind in ("keyword", "keywords") and counts and all(is_link(value) for value in counts):
            links.append(name)
            if all(PICTURE.search(value) for value in counts) or PICTURE_NAME.search(name):
                pictures.append(name)
        if counts and (kind in ("boolean", "date", "float") or len(counts) <= UNIQUE * sum(counts.values())):
            (ordered if kind in ORDERED else unordered).append(name)
    return FacetColumns(ordered + unordered, links, pictures)


def is_link(value: str) -> bool:
    """Whether a value is an http(s) address."""
    return value.lower().startswith(("http://", "https://")) and not any(character.isspace() for character in value)


def _histogram(
    values: AnyArray, kind: str, bins: int
) -> dict[tuple[str, str], int] | dict[tuple[float, float], int] | dict[tuple[int, int], int]:
    """Count values by the first and last value of bins whose width is a round number."""
    if kind == "float":
        values = values[np.isfinite(values)]
    if not len(values):
        return {}
    if kind == "date":
        return _dates(values.astype(np.int64), bins)
    return _floats(values, bins) if kind == "float" else _integers(values.astype(np.int64), bins)


def _integers(values: Int64s, bins: int) -> dict[tuple[int, int], int]:
    low, high = int(values.min()), int(values.max())
    step = next(step for step in _round_numbers(0) if high // step - low // step < bins)
    counts = _counted(values // step)
    return {(number * step, (number + 1) * step - 1): frequency for number, frequency in counts}


def _floats(values: Float64s, bins: int) -> dict[tuple[float, float], int]:
    low, high = float(values.min()), float(values.max())
    if low == high or bins == 1 or not math.isfinite(high - low):
        return {(low, high): len(values)}
    power = math.floor(math.log10((high - low) / bins))
    for step in _round_numbers(power):
        first, last = math.floor(low / step), math.floor(high / step)
        if last - first < bins:
            break
    edges = [round(number * step, max(0, -power)) for number in range(first, last + 2)]
    counts = np.bincount(np.searchsorted(edges, values, side="right") - 1, minlength=len(edges) - 1)
    return {
        (edges[number], edges[number + 1]): int(frequency) for number, frequency in enumerate(counts.tolist()[: len(edges) - 1])
    }


def _dates(values: Int64s, bins: int) -> dict[tuple[str, str], int]:
    times = bool(np.any(values % DAY))
    moments = values.astype("M8[us]")
    ends = np.array([values.min(), values.max()]).astype("M8[us]")
    unit, step = next((unit, step) for unit, step in STEPS if np.ptp(_since(ends, unit) // step) < bins or step == 10_000)

    def start(number: int) -> int:
        years = 1970 if unit == "Y" else 0
        return int(np.array(number * step - years).astype(f"M8[{unit}]").astype("M8[us]").astype(np.int64))

    return {
        (
            date_text(max(FIRST, start(number))),
            date_text(min(LAST, start(number + 1) - 1) if times else min(LAST, start(number + 1) - 1) // DAY * DAY),
        ): frequency
        for number, frequency in _counted(_since(moments, unit) // step)
    }


def _since(moments: NDArray[np.datetime64], unit: str) -> Int64s:
    """Days or months since 1970, or years of the calendar."""
    return moments.astype(f"M8[{unit}]").astype(np.int64) + (1970 if unit == "Y" else 0)


def _counted(numbers: Int64s) -> list[tuple[int, int]]:
    """Count each number from the minimum to the maximum."""
    low = int(numbers.min())
    return list(enumerate(np.bincount(numbers - low).tolist(), low))


def _round_numbers(power: int) -> Iterator[Any]:
    """Yield 1, 2 and 5 times the powers of ten from 10 ** `power` on."""
    return (digit * (10**exponent if power >= 0 else 10.0**exponent) for exponent in count(power) for digit in (1, 2, 5))
