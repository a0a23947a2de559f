"""What errors of comparisons say: the run, measure, setting or snapshot at fault, and what there is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error
from support.machine_labels import labelled

import fontes as ft
from fontes.comparison import (
    Report,
    SuiteReport,
    Testing,
    compare_runs,
    compare_snapshots,
    plan_judging,
    plot_measures,
    statistics,
)
from fontes.comparison.statistics import kappa
from fontes.core import FontesError, InputError, ParameterError

QRELS = {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}, "q3": {"d1": 0}}
GOOD = {"q1": {"d2": 3.0, "d1": 2.0}, "q2": {"d3": 1.0}}
BAD = {"q1": {"d9": 3.0, "d1": 2.0}, "q2": {"d8": 1.0, "d3": 0.5}, "q3": {"d1": 1.0}}
BOTH, THIRD = {"a": GOOD, "b": BAD}, {"q1": {"d1": 1.0}}
AGAIN = {topic: dict(reversed(ranking.items())) for topic, ranking in reversed(GOOD.items())} | {"q3": {}}
DATA = labelled()
SHORT = {topic: DATA.runs["poor"][topic] for topic in DATA.people}


def machine(**options: Any) -> Report:
    return compare_runs(DATA.runs, DATA.people, ["nDCG@5"], machine=DATA.machine, **options)


def suite(measures: str = "AP", baseline: str = "a", **other: str) -> SuiteReport:
    """A suite of two collections, the second of which has another measure or baseline."""
    first = compare_runs(BOTH, QRELS, measures, baseline=baseline)
    second = compare_runs(BOTH, QRELS, other.get("second", measures), baseline=other.get("against", baseline))
    return SuiteReport({"small": first, "large": second})


def snapshots(**changes: Any) -> object:
    return compare_snapshots({"june": (BOTH | {"c": THIRD}, QRELS), "july": (BOTH | {"c": THIRD}, QRELS)} | changes, "a", "RR")


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda: compare_runs({}, QRELS, "AP"), ParameterError, "no run", ""),
        (lambda: compare_runs({"a": GOOD}, QRELS, []), ParameterError, "no measure", ""),
        (lambda: compare_runs(BOTH, QRELS, "AP", baseline="c"), ParameterError, "'c'", "there are a, b"),
        (lambda: compare_runs({"a": GOOD}, {}, "AP"), InputError, "no judgments", ""),
        (
            lambda: compare_runs({"a": GOOD}, QRELS, "RR", topics=ft.Topics.of({"q9": "x"})),
            InputError,
            "topics … judgments",
            "",
        ),
        (lambda: compare_runs({"a": GOOD, "none": {"q1": {}}}, QRELS, "RR"), InputError, "run 'none'", "allow_empty=True"),
        (lambda: compare_runs({**BOTH, "again": AGAIN}, QRELS, "RR"), InputError, "'a' and 'again'", "allow_empty=True"),
        (lambda: compare_runs(BOTH, QRELS, "AP").failures("c"), ParameterError, "'c'", "there are a, b"),
        (lambda: compare_runs(BOTH, QRELS, "AP").to_html(depth=0), ParameterError, "depth … 0", "whole number"),
        (lambda: compare_runs(BOTH, QRELS, "AP").to_html(depth=True), ParameterError, "depth … True", "whole number"),
        (lambda: compare_runs(BOTH, QRELS, "AP").to_html(depth=2.5), ParameterError, "depth … 2.5", "whole number"),
        (lambda: compare_runs(BOTH, QRELS, "AP").to_html(snippet=-1), ParameterError, "snippet … -1", "whole number"),
        (lambda: ft.comparison.failures(GOOD, QRELS, measure="NumRet"), ParameterError, "NumRet", "count"),
        (lambda: ft.comparison.failures(GOOD, QRELS, n=0), ParameterError, "number of topics … 0", ""),
        (lambda: ft.comparison.failures(GOOD, QRELS, measure="nDCH"), ParameterError, "'nDCH'", "nDCG"),
        # ways to test
        *(
            (lambda a=a: Testing(alpha=a), ParameterError, f"alpha … {a!r}", "0 and 1")
            for a in (0, 1, -0.1, 1.5, True, "0.05", None)
        ),
        *((lambda s=s: Testing(seed=s), ParameterError, f"seed … {s!r}", "from 0 up") for s in (-1, 1.5, True, "1", None)),
        (lambda: Testing(test="z"), ParameterError, "'z'", "t, wilcoxon, fisher, tukey"),
        (lambda: Testing(correction="sidak"), ParameterError, "'sidak'", "holm, bonferroni, bh, none"),
        (lambda: Testing(test="tukey", correction="bh"), ParameterError, "Tukey … 'bh'", "leave"),
        (lambda: statistics.corrected([0.1], "sidak"), ParameterError, "'sidak'", "holm, bonferroni, bh and none"),
        (lambda: kappa([[1]], "cubic"), ParameterError, "'cubic'", ""),
        # labels of a machine
        (lambda: machine(testing=Testing("fisher")), ParameterError, "fisher", "the test is t"),
        (
            lambda: compare_runs({"short": SHORT, "a": DATA.runs["good"]}, DATA.people, "AP", machine=DATA.machine),
            InputError,
            "run 'short'",
            "",
        ),
        (lambda: plan_judging(compare_runs(DATA.runs, DATA.people, "AP")), ParameterError, "plan", "machine labels"),
        (lambda: plan_judging(machine(), power=1), ParameterError, "power … 1", "between 0 and 1"),
        # suites and snapshots
        (lambda: suite(second="RR"), ParameterError, "'large' … 'small'", ""),
        (lambda: suite(against="b"), ParameterError, "'large' … baseline … 'small'", ""),
        (lambda: suite("NumRet"), ParameterError, "NumRet", "count"),
        (lambda: SuiteReport({}), ParameterError, "no report", ""),
        (lambda: compare_snapshots({"june": (BOTH, QRELS)}, "a", "RR"), ParameterError, "not 1", "two snapshots"),
        (lambda: snapshots(july=({"a": GOOD, "c": THIRD}, QRELS)), InputError, "'july' … b", ""),
        (lambda: snapshots(june=({"a": GOOD, "c": THIRD}, QRELS)), InputError, "'june' … b … 'july'", ""),
        (lambda: snapshots(july=(BOTH | {"c": THIRD}, {"9": {"a": 1}})), InputError, "snapshot 'july': ", ""),
        (lambda: compare_snapshots({"june": (BOTH, QRELS), "july": (BOTH, QRELS)}, "c", "RR"), ParameterError, "'c'", "a, b"),
    ],
)
def test_a_comparison_names_what_is_at_fault(
    call: Callable[[], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(call, error, names, remedy)


@each(
    ("parameters", "error", "names", "remedy"),
    [
        ({"measures": "P@5"}, ParameterError, "P@5", "write P"),
        ({"measures": [ft.nDCG @ 10]}, ParameterError, "nDCG@10", "write nDCG"),
        ({"measures": "IPrec"}, ParameterError, "IPrec", "recall"),
        ({"measures": "NumRet"}, ParameterError, "NumRet", "no cutoff"),
        ({"measures": ""}, ParameterError, "no measure", ""),
        ({"k": 1}, ParameterError, "k", "from 1 to 2 or more"),
        ({"runs": {}}, ParameterError, "no run", ""),
        ({"runs": {"odd": {"q1": {"x": 1.0}}}}, InputError, "run 'odd'", ""),
    ],
)
def test_a_plot_of_measures_names_what_is_at_fault(
    parameters: dict[str, Any], error: type[FontesError], names: str, remedy: str
) -> None:
    pytest.importorskip("matplotlib")
    check_error(lambda: plot_measures(**{"runs": BOTH, "qrels": QRELS, **parameters}), error, names, remedy)


def test_an_index_of_other_documents_is_named_with_the_run(tmp_path: Path) -> None:
    other = ft.Index.build([("x", "other")], tmp_path / "other.index")
    report = ft.compare({"good": GOOD}, None, QRELS, "AP", cache=False)
    check_error(lambda: report.with_documents(other), InputError, "run 'good' … 'd2'")


def test_the_endings_of_files_of_a_report_are_named(tmp_path: Path) -> None:
    report: Any = snapshots()
    check_error(lambda: report.save(tmp_path / "r.doc"), ParameterError, "r.doc", "ends in one of")
