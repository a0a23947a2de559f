"""Comparison of systems over several collections: their means over the collections, with intervals, tests and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape

import numpy as np

from ..core import ParameterError
from ..core.arrays import Float64s
from ..measures.measure import Measure
from ..measures.names import parse
from ..plots.tables import EMPTY_CELL, ResultCell, ResultTable, TableReport, json_values, latex_text
from . import report_text
from .report import Report
from .statistics import DIGITS, corrected
from .testing import Comparison, MeanDifference, Tested, Testing, beaten_by, correction_text


@dataclass(frozen=True)
class Published:
    """Published figures of another system, shown below the systems of a suite; they are not tested.

    Args:
        name: The name of the system in the table.
        measure: The measure.
        values: The figures by collection.
        source: Where they were published.
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
        published: Published figures to show below.

    Raises:
        ParameterError: There is no report, the reports differ in systems, measures or baseline, or a measure is a count.
    """

    TITLE = "Comparison over collections"
    LABEL = "tab:suite"

    reports: Mapping[str, Report]
    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        if not self.reports:
            raise ParameterError("there is no report; a comparison over collections needs one or more")
        for name, report in self.reports.items():
            if (tuple(report.systems), report.measures) != (self.systems, self.measures):
                raise ParameterError(f"the report '{name}' has other systems or measures than '{next(iter(self.reports))}'")
            if report.baseline != self._first_report.baseline:
                raise ParameterError(f"the report '{name}' has another baseline than '{next(iter(self.reports))}'")
            if any(system.evaluation.machine is not None for system in report.systems.values()):
                raise ParameterError(f"the report '{name}' uses machine labels, which means over collections do not take")
        if count := next((measure for measure in self.measures if measure.summed), None):
            raise ParameterError(f"{count} is a count, which has no mean over collections")

    @property
    def _first_report(self) -> Report:
        return next(iter(self.reports.values()))

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(self._first_report.systems)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures."""
        return self._first_report.measures

    @property
    def testing(self) -> Testing:
        """The tests within the collections; their correction and alpha apply to the means over collections, too."""
        return self._first_report.testing

    def mean(self, system: str, measure: str | Measure) -> float:
        """Return the mean over the collections, which all have the same weight, however many topics they have."""
        return float(np.mean([report.mean(system, measure) for report in self.reports.values()]))

    def interval(self, system: str, measure: str | Measure) -> tuple[float, float]:
        """Return the 1 - alpha interval of `mean`, by the same t distribution as `MeanComparison`."""
        column, parsed = self.systems.index(system), parse(measure)
        strata = [report.values[parsed][:, column] for report in self.reports.values()]
        _, low, high, *_ = _stratified(strata, self.testing.alpha)
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
        """The tests, for each measure of the same pairs of systems as in the reports of the collections."""
        return tuple(comparison for measure in self.measures for comparison in self._comparisons(measure))

    @property
    def _correction(self) -> str:
        return "holm" if self.testing.test == "tukey" else self.testing.correction

    def _comparisons(self, measure: Measure) -> Iterator[MeanComparison]:
        pairs = [(c.system, c.against) for c in self._first_report.comparisons if c.measure == measure]
        grouped: dict[tuple[str, str], list[Comparison]] = {pair: [] for pair in pairs}
        for report in self.reports.values():
            for comparison in report.comparisons:
                if comparison.measure == measure:
                    grouped[comparison.system, comparison.against].append(comparison)
        values = [report.values[measure] for report in self.reports.values()]
        tests = []
        for system, against in grouped:
            i, j = self.systems.index(system), self.systems.index(against)
            tests.append(_stratified([array[:, i] - array[:, j] for array in values], self.testing.alpha))
        corrected_ps = corrected(np.array([test[-1] for test in tests]), self._correction).tolist()
        for (pair, by_collection), test, p in zip(grouped.items(), tests, corrected_ps, strict=True):
            better, worse = (sum(c.significant and sign * c.difference > 0 for c in by_collection) for sign in (1, -1))
            yield MeanComparison(measure, *pair, *test, p, better, worse, p <= self.testing.alpha)

    def rows(self) -> list[dict[str, object]]:
        """Return a row per measure, system and collection, and a row for the mean over the collections.

        Only the rows of means have a `rank`, and only published figures a `source`.
        """
        rows = []
        for measure in self.measures:
            for name in self.systems:
                for collection, report in self.reports.items():
                    low, high = report.intervals[measure][name]
                    rows.append(_row(measure, name, collection, report.mean(name, measure), low, high))
                ends = self.interval(name, measure)
                rows.append(_row(measure, name, "", self.mean(name, measure), *ends, self.rank(name, measure)))
            for figures in self.published:
                if figures.measure == measure:
                    rows += [
                        _row(measure, figures.name, collection, value, source=figures.source)
                        for collection, value in figures.values.items()
                    ]
        return rows

    _rows = rows

    def to_dict(self) -> dict[str, object]:
        """Return all figures as JSON values, with None for NaN; in the row of a mean, the collection is ""."""
        return {
            "topics": {name: len(report.topics) for name, report in self.reports.items()},
            "baseline": self._first_report.baseline,
            **asdict(self.testing),
            "rows": json_values(self._plain_rows()),
            "comparisons": [
                json_values({**vars(comparison), "measure": str(comparison.measure)}) for comparison in self.comparisons
            ],
        }

    def to_html(self, pages: Mapping[str, str] | None = None) -> str:
        """Return a page with the tables and notes.

        Args:
            pages: Addresses of the pages of the collections, by name; each gets a tab in the page.
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
        tables = [self._means_table(measure) for measure in self.measures]
        return [*tables, self._tests_table()] if self.comparisons else tables

    def _means_table(self, measure: Measure) -> ResultTable:
        letters = report_text.letters_of(self._first_report)
        columns = [report_text.values_of(report, measure, letters) for report in self.reports.values()]
        significant = [c for c in self.comparisons if c.measure == measure and c.significant]
        means = [self.mean(name, measure) for name in self.systems]
        best = max(round(mean, 4) for mean in means)
        rows: list[tuple[str | ResultCell, ...]] = []
        for i, name in enumerate(self.systems):
            beaten = beaten_by(name, significant)
            beaten_letters = tuple(letters[other] for other in self.systems if other in beaten)
            is_best = round(means[i], 4) == best and len(self.systems) > 1
            low, high = self.interval(name, measure)
            interval = EMPTY_CELL if math.isnan(low) else f"{low:.4f} to {high:.4f}"
            names = (letters[name], report_text.marked_baseline(self._first_report, name))
            mean = ResultCell(f"{means[i]:.4f}", beaten_letters, is_best)
            rows.append((*names, *(column[i] for column in columns), mean, interval, f"{self.rank(name, measure):.2f}"))
        rows += [self._published_row(figures) for figures in self.published if figures.measure == measure]
        header = ("", str(measure), *self.reports, "mean", report_text.interval_header(self.testing), "rank")
        caption = f"{latex_text(str(measure))} by collection, and the mean over collections."
        if self.comparisons:
            caption += rf" Superscripts: significantly better than these systems ($p \le {self.testing.alpha:g}$)."
        return ResultTable.of(header, rows, 2, caption=caption)

    def _published_row(self, figures: Published) -> tuple[str, ...]:
        values = [figures.values.get(name) for name in self.reports]
        cells = [EMPTY_CELL if value is None else f"{value:.4f}" for value in values]
        mean = EMPTY_CELL if None in values else f"{np.mean([value for value in values if value is not None]):.4f}"
        return ("", f"{figures.name} (published)", *cells, mean, EMPTY_CELL, EMPTY_CELL)

    def _tests_table(self) -> ResultTable:
        rows = []
        for c in self.comparisons:
            figures = (f"{c.difference:+.4f}", report_text.interval_text(c), report_text.p_text(c.p))
            p = ResultCell(report_text.p_text(c.corrected), best=c.significant)
            rows.append((str(c.measure), c.system, c.against, *figures, p, f"{c.better}", f"{c.worse}"))
        interval = report_text.interval_header(self.testing)
        header = ("measure", "system", "against", "mean difference", interval, "p", "corrected", "better in", "worse in")
        caption = "Differences of the means over collections (t-test of the stratified mean difference)."
        return ResultTable.of(header, rows, 3, caption=caption)

    def _notes(self) -> list[str]:
        topics = ", ".join(f"{name} {len(report.topics):,}" for name, report in self.reports.items())
        lines = [f"judged topics: {topics}; each collection counts the same in the mean"]
        if self.comparisons:
            lines.append(f"superscripts: significantly better than the systems with these letters (p ≤ {self.testing.alpha:g})")
            lines.append(f"within a collection: {self.testing}")
            correction = correction_text(self._correction)
            lines.append(f"means: t-test of the stratified mean difference, {correction}; better in, worse in: collections")
        lines += [f"{figures.name} (published): {figures.source}" for figures in self.published if figures.source]
        return list(dict.fromkeys(lines))

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
) -> dict[str, object]:
    figures = {"mean": mean, "low": low, "high": high, "rank": rank}
    return {"measure": measure, "system": system, "collection": collection, **figures, "source": source}


def _stratified(strata: Sequence[Float64s], alpha: float) -> tuple[float, float, float, float, float, float]:
    """Return the mean over strata, the ends of its interval, t, degrees of freedom and p, from the values of each stratum."""
    from scipy.special import stdtr, stdtrit

    strata = [np.round(values, DIGITS) for values in strata]
    mean = float(np.mean([values.mean() for values in strata]))
    if any(len(values) < 2 for values in strata):
        return mean, math.nan, math.nan, math.nan, math.nan, math.nan
    variances = np.array([values.var(ddof=1) / len(values) for values in strata])  # of the means
    total = float(variances.sum())
    if total == 0:  # no difference varies
        return mean, mean, mean, (math.copysign(math.inf, mean) if mean else 0.0), math.nan, 0.0 if mean else 1.0
    freedom = total**2 / float((variances**2 / (np.array(list(map(len, strata))) - 1)).sum())
    error = math.sqrt(total) / len(strata)
    t, margin = mean / error, float(stdtrit(freedom, 1 - alpha / 2)) * error
    return mean, mean - margin, mean + margin, t, freedom, float(2 * stdtr(freedom, -abs(t)))
