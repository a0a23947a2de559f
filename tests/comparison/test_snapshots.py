"""Snapshots: LongEval's measures against their formulas, the report's forms, and the command."""

import csv
import io
import json
import math

import pytest

import fontes as ft
from fontes.comparison import Testing, compare_snapshots

QRELS = {
    "june": {"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}, "4": {"d": 1}},
    "july": {"1": {"a": 1}, "5": {"b": 1}, "6": {"c": 1}},
}
RANKS = {  # of the one relevant document, for each topic in order
    "june": {"bm25": (1, 2, 4, 4), "new": (1, 1, 2, 4), "same": (1, 2, 4, 4)},
    "july": {"bm25": (2, 4, 4), "new": (1, 4, 4), "same": (2, 4, 1)},
}


def run(snapshot, system):
    rankings = {}
    for (topic, grades), rank in zip(QRELS[snapshot].items(), RANKS[snapshot][system], strict=True):
        relevant = next(iter(grades))
        ids = [f"x{i}" for i in range(5)]
        ids[rank - 1] = relevant
        rankings[topic] = {doc: 10.0 - i for i, doc in enumerate(ids)}
    return ft.Run.of(rankings)


def mean(snapshot, system):
    values = [1 / rank for rank in RANKS[snapshot][system]]
    return sum(values) / len(values)


@pytest.fixture
def snapshots():
    return {name: ({system: run(name, system) for system in RANKS[name]}, QRELS[name]) for name in QRELS}


@pytest.fixture
def report(snapshots):
    return compare_snapshots(snapshots, "bm25", "RR", testing=Testing(allow_empty=True))


@pytest.mark.parametrize("system", ["new", "same"])
def test_the_figures_are_those_of_the_formulas(report, system):
    m0, mt, p0, pt = mean("june", system), mean("july", system), mean("june", "bm25"), mean("july", "bm25")
    assert report.result_delta(system, "july", "RR") == pytest.approx((m0 - mt) / m0)
    improvement = (m0 - p0) / p0, (mt - pt) / pt
    assert report.relative_improvement(system, "july", "RR") == pytest.approx(improvement[1])
    assert report.delta_relative_improvement(system, "july", "RR") == pytest.approx(improvement[0] - improvement[1])
    if system == "new":
        assert report.effect_ratio(system, "july", "RR") == pytest.approx((mt - pt) / (m0 - p0))


def test_an_effect_of_nothing_has_no_ratio(report):
    assert math.isnan(report.effect_ratio("same", "july", "RR"))
    assert report.effect_ratio("same", "june", "RR") != report.effect_ratio("new", "june", "RR") == 1
    rows = {(row["snapshot"], row["system"]): row for row in json.loads(report.to_json())["rows"]}
    assert rows["july", "same"]["effect_ratio"] is None
    assert rows["june", "new"]["result_delta"] is None


def test_another_snapshot_can_be_the_reference(snapshots, report):
    turned = compare_snapshots(snapshots, "bm25", "RR", reference="july", testing=Testing(allow_empty=True))
    assert turned.effect_ratio("new", "june", "RR") == pytest.approx(1 / report.effect_ratio("new", "july", "RR"))


def test_each_snapshot_is_tested_on_its_own_topics(report):
    own = ft.compare(
        {"bm25": run("july", "bm25"), "new": run("july", "new"), "same": run("july", "same")},
        None,
        QRELS["july"],
        "RR",
        baseline="bm25",
        allow_empty=True,
    )
    assert report.comparison("new", "july", "RR") == own.comparison("new", "bm25", "RR")


def test_every_form_has_every_figure(report, tmp_path):
    figure = f"{report.effect_ratio('new', 'july', 'RR'):+.4f}"
    for form in ("md", "tex", "html"):
        report.save(tmp_path / f"r.{form}")
        assert figure in (tmp_path / f"r.{form}").read_text()
    assert figure in str(report)
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert float(rows[4]["effect_ratio"]) == pytest.approx(report.effect_ratio("new", "july", "RR"))


def test_the_command_reads_folders_of_runs(fontes, tmp_path):
    for name in QRELS:
        (tmp_path / name / "runs").mkdir(parents=True)
        ft.write_qrels(QRELS[name], tmp_path / name / "qrels.txt")
        for system in ("bm25", "new"):
            ft.write_run(run(name, system), tmp_path / name / "runs" / f"{system}.run")
    code, output, _ = fontes("snapshots", tmp_path / "june", tmp_path / "july", "-m", "RR", "--json")
    assert code == 0
    rows = {(row["snapshot"], row["system"]): row for row in json.loads(output)["rows"]}
    assert rows["july", "new"]["result_delta"] == pytest.approx(1 - mean("july", "new") / mean("june", "new"))
    code, _, error = fontes("snapshots", tmp_path / "june", tmp_path / "july", "--qrels", "x")
    assert code == 1
    assert "give it once for each" in error
    code, _, error = fontes("snapshots", tmp_path / "june", tmp_path / "june")
    assert (code, error) == (1, "fontes: a folder is named twice; name each snapshot once, in order of time\n")
    code, _, error = fontes("snapshots", tmp_path / "june", tmp_path / "august")
    assert code == 1
    assert error.count("\n") == 1
    assert "august: there is no such folder" in error
