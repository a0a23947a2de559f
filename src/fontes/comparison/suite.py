"""Comparison of systems over several collections: means over collections, their intervals and tests, and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import ParameterError
from ..measures.measure import Measure
from ..measures.names import parse
from . import report_text
from .report import Report, json_values
from .report_text import ResultCell, ResultTable
from .statistics import DIGITS, corrected
from .table_report import TableReport
from .testing import CORRECTIONS, Comparison, MeanDifference, Tested, Testing


@dataclass(frozen=True)
class Published:
    """Figures that somebody else printed, shown below the systems of a suite; they are not tested.

    Args:
        name: The system, as the table names it.
        measure: The measure.
        values: The figure by collection.
        source: Where they are printed.
    """

    name: str
    measure: Measure
    values: Mapping[str, float]
    source: str = ""


@dataclass(frozen=True)
class MeanComparison(MeanDifference):
    """Test of a system against another by the mean over the collections.

    The collections are fixed, and the topics of each are a sample: t is the mean of the collections' mean differences, divided
    by its standard error sqrt(sum(s² / n)) / C, where s² is the variance of the n differences of a collection (a stratified
    mean: Cochran 1977, chapter 5); its degrees of freedom are Satterthwaite's (1946). NaN if a collection has a single topic.

    Args:
        measure: The measure.
        system: The name of the system.
        against: The name of the other.
        difference: The mean over collections of system minus other.
        low: The lower end of its interval, which is not corrected.
        high: The upper end.
        t: The statistic.
        freedom: Its degrees of freedom.
        p: The two-sided p-value.
        corrected: The p-value after the correction over the comparisons of the measure.
        better: The number of collections in which `system` is significantly better.
        worse: The number of collections in which it is significantly worse.
        significant: Whether `corrected` is at most alpha.
    """

    t: float
    freedom: float
    p: float
    corrected: float
    better: int
    worse: int
    significant: bool


@dataclass(frozen=True, eq=False)
class SuiteReport(Tested[MeanComparison], TableReport):
    """Reports of the same systems on several collections, with means and tests over all of them.

    Args:
        reports: The report of each collection, all with the same systems, measures, baseline and tests.
        published: Figures of others to show beside.

    Raises:
        ParameterError: There is no report, the reports differ in systems or measures, or a measure is a count.
    """

    TITLE = "Comparison over collections"
    LABEL = "tab:suite"

    reports: Mapping[str, Report]
    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        if not self.reports:
            raise ParameterError("there is no report; a comparison over collections needs one or more")
        for name, report in self.reports.items():
            if (list(report.systems), report.measures) != (list(self._first.systems), self.measures):
                raise ParameterError(f"the report '{name}' has other systems or measures than '{next(iter(self.reports))}'")
            if any(system.evaluation.machine is not None for system in report.systems.values()):
                raise ParameterError(f"the report '{name}' uses machine labels, which means over collections do not take")
        if count := next((measure for measure in self.measures if measure.summed), None):
            raise ParameterError(f"{count} is a count, which has no mean over collections")

    @property
    def _first(self) -> Report:
        return next(iter(self.reports.values()))

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(self._first.systems)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures."""
        return self._first.measures

    @property
    def testing(self) -> Testing:
        """Tests within the collections; its correction and alpha are those of the means over collections, too."""
        return self._first.testing

    def mean(self, system: str, measure: str | Measure) -> float:
        """Return the mean over the collections: each counts the same, however many topics it has."""
        return float(np.mean([report.mean(system, measure) for report in self.reports.values()]))

    def interval(self, system: str, measure: str | Measure) -> tuple[float, float]:
        """Return the 1 - alpha interval of `mean`, by the same t distribution as `MeanComparison`."""
        place, parsed = self.systems.index(system), parse(measure)
        low, high = _stratified([report.values[parsed][:, place] for report in self.reports.values()], self.testing.alpha)[1:3]
        return low, high

    def rank(self, system: str, measure: str | Measure) -> float:
        """Return the mean rank over the collections, 1 for the best mean; equal means share their mean rank."""
        ranks = []
        for report in self.reports.values():
            means = [round(report.mean(name, measure), DIGITS) for name in self.systems]
            value = means[self.systems.index(system)]
            ranks.append(1 + sum(mean > value for mean in means) + (means.count(value) - 1) / 2)
        return float(np.mean(ranks))

    @cached_property
    def comparisons(self) -> tuple[MeanComparison, ...]:
        """The tests: the pairs of the collections' own reports, for each measure."""
        return tuple(comparison for measure in self.measures for comparison in self._comparisons(measure))

    @property
    def _correction(self) -> str:
        return "holm" if self.testing.test == "tukey" else self.testing.correction

    def _comparisons(self, measure: Measure) -> Iterator[MeanComparison]:
        pairs = [(c.system, c.against) for c in self._first.comparisons if c.measure == measure]
        grouped: dict[tuple[str, str], list[Comparison]] = {pair: [] for pair in pairs}
        for report in self.reports.values():
            for comparison in report.comparisons:
                if comparison.measure == measure:
                    grouped[comparison.system, comparison.against].append(comparison)
        tests = []
        for ours, theirs in grouped:
            i, j = self.systems.index(ours), self.systems.index(theirs)
            values = [report.values[measure] for report in self.reports.values()]
            tests.append(_stratified([of[:, i] - of[:, j] for of in values], self.testing.alpha))
        after = corrected(np.array([test[-1] for test in tests]), self._correction).tolist()
        for (pair, ones), test, p in zip(grouped.items(), tests, after, strict=True):
            better, worse = (sum(c.significant and sign * c.difference > 0 for c in ones) for sign in (1, -1))
            yield MeanComparison(measure, *pair, *test, p, better, worse, p <= self.testing.alpha)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per measure, system and collection, and one for the mean over the collections.

        `rank` is of the mean alone; published figures are rows with `source`.
        """
        rows = []
        for measure in self.measures:
            for name in self.systems:
                for collection, report in self.reports.items():
                    low, high = report.intervals[measure][name]
                    rows.append(_row(measure, name, collection, report.mean(name, measure), low, high))
                ends = self.interval(name, measure)
                rows.append(_row(measure, name, "", self.mean(name, measure), *ends, self.rank(name, measure)))
            for figure in self.published:
                if figure.measure == measure:
                    rows += [
                        _row(measure, figure.name, name, value, source=figure.source) for name, value in figure.values.items()
                    ]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values, with None for NaN; the row of the mean has the collection ""."""
        return {
            "topics": {name: len(report.topics) for name, report in self.reports.items()},
            "baseline": self._first.baseline,
            **asdict(self.testing),
            "rows": json_values([{**row, "measure": str(row["measure"])} for row in self.rows()]),
            "comparisons": [
                json_values({**vars(comparison), "measure": str(comparison.measure)}) for comparison in self.comparisons
            ],
        }

    def to_html(self, pages: Mapping[str, str] | None = None) -> str:
        """Return a page with the tables and notes.

        Args:
            pages: The address of each collection's own page; the page then has a tab for each.
        """
        page = super().to_html()
        if not pages:
            return page
        links = "".join(f'<a href="{escape(url)}" target="collection">{escape(name)}</a>' for name, url in pages.items())
        first = escape(next(iter(pages.values())))
        frame = f'<iframe name="collection" title="The chosen collection" src="{first}"></iframe>'
        tabs = f'<nav aria-label="Collections">{links}</nav>{frame}'
        return page.replace("</style>", f"\n{TABS}</style>", 1).replace("</html>", f"<h2>Collections</h2>{tabs}</html>", 1)

    def _tables(self) -> Sequence[ResultTable]:
        tables = [self._means(measure) for measure in self.measures]
        return [*tables, self._tests()] if self.comparisons else tables

    def _means(self, measure: Measure) -> ResultTable:
        labels = report_text.letters_of(self._first)
        columns = [report_text.values_of(report, measure, labels) for report in self.reports.values()]
        means = [self.mean(name, measure) for name in self.systems]
        best = max(round(mean, 4) for mean in means)
        rows = []
        for place, name in enumerate(self.systems):
            won = [c.against for c in self._tested(measure) if c.system == name and c.difference > 0]
            won += [c.system for c in self._tested(measure) if c.against == name and c.difference < 0]
            letters = tuple(labels[other] for other in self.systems if other in won)
            low, high = self.interval(name, measure)
            marked = f"{name} (baseline)" if name == self._first.baseline else name
            mean = ResultCell(f"{means[place]:.4f}", letters, round(means[place], 4) == best and len(self.systems) > 1)
            ends = report_text.NOTHING if math.isnan(low) else f"{low:.4f} to {high:.4f}"
            cells = [column[place] for column in columns]
            more = map(ResultCell, (ends, f"{self.rank(name, measure):.2f}"))
            rows.append((ResultCell(labels[name]), ResultCell(marked), *cells, mean, *more))
        rows += [self._published(figure) for figure in self.published if figure.measure == measure]
        interval = f"{100 * (1 - self.testing.alpha):g}% interval"
        return ResultTable(("", str(measure), *self.reports, "mean", interval, "rank"), tuple(rows), 2)

    def _published(self, figure: Published) -> tuple[ResultCell, ...]:
        known = [figure.values.get(name) for name in self.reports]
        cells = [report_text.NOTHING if value is None else f"{value:.4f}" for value in known]
        mean = report_text.NOTHING if None in known else f"{np.mean([value for value in known if value is not None]):.4f}"
        return tuple(
            map(ResultCell, ("", f"{figure.name} (published)", *cells, mean, report_text.NOTHING, report_text.NOTHING))
        )

    def _tested(self, measure: Measure) -> list[MeanComparison]:
        return [comparison for comparison in self.comparisons if comparison.measure == measure and comparison.significant]

    def _tests(self) -> ResultTable:
        rows = []
        for comparison in self.comparisons:
            interval = report_text.NOTHING if math.isnan(comparison.low) else f"{comparison.low:+.4f} to {comparison.high:+.4f}"
            p = ResultCell(report_text.p_text(comparison.corrected), best=comparison.significant)
            names = (
                str(comparison.measure),
                comparison.system,
                comparison.against,
                f"{comparison.difference:+.4f}",
                interval,
                report_text.p_text(comparison.p),
            )
            rows.append((*map(ResultCell, names), p, ResultCell(f"{comparison.better}"), ResultCell(f"{comparison.worse}")))
        interval = f"{100 * (1 - self.testing.alpha):g}% interval"
        header = ("measure", "system", "against", "mean difference", interval, "p", "corrected", "better in", "worse in")
        return ResultTable(header, tuple(rows), 3)

    def _notes(self) -> list[str]:
        topics = ", ".join(f"{name} {len(report.topics):,}" for name, report in self.reports.items())
        lines = [f"judged topics: {topics}; each collection counts the same in the mean"]
        if self.comparisons:
            lines.append(f"superscripts: significantly better than the systems with these letters (p ≤ {self.testing.alpha:g})")
            lines.append(f"within a collection: {self.testing}")
            correction = CORRECTIONS[self._correction]
            correction = correction if self._correction == "none" else f"{correction} over each measure"
            lines.append(f"means: t-test of the stratified mean difference, {correction}; better in, worse in: collections")
        lines += [f"{figure.name} (published): {figure.source}" for figure in self.published if figure.source]
        return list(dict.fromkeys(lines))

    def _latex(self, number: int, table: ResultTable) -> tuple[str, list[str]]:
        text = report_text.latex_text
        rest = rf"Superscripts: significantly better than these systems ($p \le {self.testing.alpha:g}$)."
        if number < len(self.measures):
            caption = f"{text(str(self.measures[number]))} by collection, and the mean over collections."
            caption = f"{caption} {rest}" if self.comparisons else caption
        else:
            caption = "Differences of the means over collections (t-test of the stratified mean difference)."
        return caption, [text(name) for name in table.header]

    def __repr__(self) -> str:
        return f"SuiteReport({', '.join(self.reports)}: {', '.join(self.systems)})"


TABS = """nav{display:flex;flex-wrap:wrap;gap:.3em}
nav a{padding:.3em .9em;border:1px solid #0b7a75;border-radius:6px 6px 0 0;color:inherit;text-decoration:none}
nav a:hover,nav a:focus{background:#0b7a7533}
iframe{width:100%;height:85vh;border:1px solid #0b7a75;background:#fff}"""


def _row(
    measure: Measure,
    system: str,
    collection: str,
    mean: float,
    low: float = math.nan,
    high: float = math.nan,
    rank: float = math.nan,
    source: str = "",
) -> dict[str, Any]:
    figures = {"mean": mean, "low": low, "high": high, "rank": rank}
    return {"measure": measure, "system": system, "collection": collection, **figures, "source": source}


def _stratified(strata: Sequence[NDArray[np.float64]], alpha: float) -> tuple[float, float, float, float, float, float]:
    """Return mean, interval, t, degrees of freedom and p of the mean over strata, each given by its values."""
    from scipy.special import stdtr, stdtrit

    values = [np.round(of, DIGITS) for of in strata]
    mean = float(np.mean([of.mean() for of in values]))
    if any(len(of) < 2 for of in values):
        return mean, math.nan, math.nan, math.nan, math.nan, math.nan
    variances = np.array([of.var(ddof=1) / len(of) for of in values])
    total = float(variances.sum())
    if total == 0:  # no difference varies
        return mean, mean, mean, (math.copysign(math.inf, mean) if mean else 0.0), math.nan, 0.0 if mean else 1.0
    freedom = total**2 / float((variances**2 / (np.array(list(map(len, values))) - 1)).sum())
    error = math.sqrt(total) / len(values)
    t, reach = mean / error, float(stdtrit(freedom, 1 - alpha / 2)) * error
    return mean, mean - reach, mean + reach, t, freedom, float(2 * stdtr(freedom, -abs(t)))
