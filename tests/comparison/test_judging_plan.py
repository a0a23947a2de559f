"""Comparisons with machine labels, and plans of how many more topics people must judge."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.machine_labels import Labelled, labelled

import fontes as ft
from fontes.app.judging.store import JudgmentStore
from fontes.comparison import Report, Testing, compare_runs, plan_judging
from fontes.core import Qrels
from fontes.measures.prediction_powered import PredictionPowered


def report(data: Labelled, **other: Any) -> Report:
    return compare_runs(data.runs, data.people, ["nDCG@5", "AP"], machine=data.machine, **other)


def test_differences_are_corrected_by_the_differences_of_the_judged_topics() -> None:
    data = labelled()
    result, one = report(data), report(data).comparison("poor", "good", "AP")
    values = [
        np.array([ft.evaluate(run, qrels, "AP").array("AP") for run in data.runs.values()])
        for qrels in (data.people, data.machine)
    ]
    expected = PredictionPowered.of(*((v[1] - v[0])[:, None] for v in values), np.arange(30))  # type: ignore[misc]
    assert one.difference == pytest.approx(expected.mean.item())
    assert (one.low, one.high) == pytest.approx([end.item() for end in expected.interval()])
    assert (one.statistic, one.p) == pytest.approx([figure.item() for figure in expected.test()])
    assert one.wins + one.ties + one.losses == 30
    for name, run in data.runs.items():
        alone = ft.evaluate(run, data.people, ["nDCG@5"], machine=data.machine)
        assert result.mean(name, "nDCG@5") == alone["nDCG@5"]
        assert result.intervals[ft.nDCG @ 5][name] == pytest.approx(alone.interval("nDCG@5"))


def test_every_form_of_a_report_says_where_its_means_are_from() -> None:
    data = labelled()
    result = report(data)
    line = "machine labels of 80 topics, corrected by the 30 that people judged"
    for form in (str(result), result.to_markdown(), result.to_html(), result.to_latex()):
        assert line in form
    assert "bootstrap" not in result.to_html() + str(result)
    plain = json.loads(result.to_json())
    assert (plain["topics"], plain["machine_topics"], plain["resamples"]) == (30, 80, None)
    assert "machine_topics" not in compare_runs(data.runs, data.people, "AP").to_dict()


def test_the_correction_for_several_tests_is_that_of_other_reports() -> None:
    data = labelled()
    systems = {**data.runs, "same": data.runs["good"]}
    testing = Testing(correction="bonferroni", allow_empty=True)
    tested = compare_runs(systems, data.people, "AP", machine=data.machine, testing=testing).comparisons
    for one in tested:
        assert one.corrected == pytest.approx(min(1, 3 * one.p))
    tie = next(one for one in tested if {one.system, one.against} == {"same", "good"})
    assert (tie.difference, tie.low, tie.high, tie.p, tie.significant) == (0, 0, 0, 1, False)


def test_systems_that_differ_on_topics_of_the_machine_alone_are_not_settled() -> None:
    data = labelled()
    other = {topic: data.runs["good"][topic] if topic in data.people else {} for topic in data.machine}
    one = compare_runs({"good": data.runs["good"], "other": other}, data.people, "AP", machine=data.machine).comparisons[0]
    assert math.isnan(one.low)
    assert math.isnan(one.p)
    assert not one.significant


def test_stages_of_compare_run_on_all_labelled_topics(tmp_path: Path) -> None:
    docs = [{"id": f"d{number}", "text": f"spring {'hot ' * (number % 3)} water{number}"} for number in range(30)]
    index = ft.Index.build(docs, tmp_path / "c.index")
    topics = {f"q{number}": f"hot water{number}" for number in range(30)}
    truth = {topic: {f"d{topic[1:]}": 1} for topic in topics}
    people = {topic: truth[topic] for topic in list(topics)[:20]}
    systems = {"bm25": index.bm25(), "tfidf": index.tfidf()}
    result = ft.compare(systems, topics, people, "AP", machine=truth, cache=False)
    assert len(result.systems["bm25"].run) == 30
    assert (len(result.topics), result.systems["bm25"].evaluation.machine.topics) == (20, 30)


def test_a_plan_says_how_many_topics_settle_which_pair() -> None:
    data = labelled(topics=400, wrong=0.1)
    random = np.random.default_rng(2)
    runs = dict(data.runs)
    runs["near"] = {t: {d: score + random.normal(0, 0.45) for d, score in of.items()} for t, of in runs["good"].items()}
    result = compare_runs(runs, data.people, "AP", machine=data.machine, baseline="good")
    plan = plan_judging(result)
    estimates = result.differences()
    assert estimates is not None
    needed = estimates.topics_for(0.025, 0.8)
    for row in plan.pairs:
        place = result.comparisons.index(row.comparison)
        if row.comparison.significant:
            assert row.topics == 0
        elif row.topics is not None:
            assert row.topics == needed[place] - 30
            assert row.labels == row.topics * 10  # 10 documents a topic
    assert plan.pair("poor", "good", ft.AP).topics == 0
    assert (plan.judged, plan.labelled, plan.depth, plan.alpha) == (30, 400, 10, 0.025)
    assert "settled" in str(plan)
    assert "assumed: the true difference is the one measured" in str(plan)
    assert "| topics to judge |" in plan.to_markdown().replace("---: ", "")
    assert plan.to_csv().splitlines()[0] == "measure,system,against,difference,low,high,corrected,topics,labels"
    assert r"\caption{Topics that people must judge to settle which system is better.}" in plan.to_latex()
    rows = plan.to_columns()
    assert list(rows) == list(plan.COLUMNS)
    assert rows["system"] == [pair.comparison.system for pair in plan.pairs]
    assert rows["difference"] == [pair.comparison.difference for pair in plan.pairs]
    assert len(json.loads(json.dumps(plan.to_dict(), allow_nan=False))["pairs"]) == 2


@pytest.fixture
def files(tmp_path: Path) -> Path:
    data = labelled()
    for name, grades in (("people", data.people), ("machine", data.machine)):
        ft.formats.write_qrels(Qrels.of(grades), tmp_path / f"{name}.qrels")
    for name, run in data.runs.items():
        ft.formats.write_run(ft.Run.of(run), tmp_path / f"{name}.run")
    return tmp_path


def test_the_commands_take_the_labels_from_files(files: Path, fontes: Any) -> None:
    data = labelled()
    runs, machine = [files / "good.run", files / "poor.run"], ("--machine", files / "machine.qrels", "-m", "nDCG@5,AP")
    code, out, _ = fontes("compare", files / "people.qrels", *runs, *machine)
    assert (code, out.strip()) == (0, str(report(data)).strip())
    pair = ("--run", runs[0], "--run", runs[1])
    code, out, _ = fontes("judge", "--plan", "--judgments", files / "people.qrels", *machine, *pair)
    assert (code, out.strip()) == (0, str(plan_judging(report(data))))
    code, _, errors = fontes("judge", "--plan", "--judgments", files / "people.qrels", *pair)
    assert code != 0
    assert "a plan needs --machine LABELS and two runs or more" in errors


def test_a_plan_reads_a_file_of_judgments_and_the_judge_that_is_a_machine(files: Path, fontes: Any) -> None:
    data = labelled()
    with JudgmentStore(files / "j.sqlite") as store:
        for name in ("anna", "model"):
            store.add_judge(name)
        store.add_topics(ft.Topics.of(dict.fromkeys(data.machine, "text")))
        store.add_pools(data.machine, "index", "bm25()", 10)
        grades = [
            (judge, topic, doc, grade)
            for judge, labels in (("anna", data.people), ("model", data.machine))
            for topic, of_topic in labels.items()
            for doc, grade in of_topic.items()
        ]
        with store.change() as db:
            db.executemany(
                "INSERT INTO judgments (judge, topic, document, grade, seconds, time) VALUES (?, ?, ?, ?, 1, '')", grades
            )
        store.judge("anna", "q30", "d0", 1)  # a topic that is not judged to the end
    pair = ("--run", files / "good.run", "--run", files / "poor.run", "-m", "nDCG@5,AP")
    code, out, _ = fontes("judge", "--plan", "--judgments", files / "j.sqlite", "--machine", "model", *pair)
    assert (code, out.strip()) == (0, str(plan_judging(report(data))))
