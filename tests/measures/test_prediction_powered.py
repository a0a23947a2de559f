"""Means from judgments by people and labels by a machine, beside plain loops, ppi_py's formula and the truth."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.machine_labels import labelled

import fontes as ft
from fontes.core import Qrels
from fontes.measures import evaluate
from fontes.measures.prediction_powered import PredictionPowered


def drawn(n: int, total: int, columns: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    machine = random.random((total, columns))
    rows = random.permutation(total)[:n]
    return 0.7 * machine[rows] + random.normal(0, 0.2, (n, columns)), machine, rows


def test_an_estimate_is_the_tuned_one_of_ppi_plus_plus() -> None:
    human, machine, rows = drawn(25, 90)
    of_both, rest = machine[rows], np.delete(machine, rows, axis=0)
    result = PredictionPowered.of(human, machine, rows)
    for column in range(3):
        h, m, u = human[:, column], of_both[:, column], rest[:, column]
        # ppi_py takes unlabelled topics apart from labelled ones: its best weight is cov / ((1 + n / N) var).
        weight = np.cov(h, m)[0, 1] / ((1 + 25 / 65) * np.var(m, ddof=1))
        assert result.mean[column] == pytest.approx(h.mean() + weight * (u.mean() - m.mean()))


def test_the_error_is_that_of_a_jackknife_over_all_topics() -> None:
    human, machine, rows = drawn(25, 90)
    result = PredictionPowered.of(human, machine, rows)

    def estimate(h: Any, m: Any, every: Any) -> float:
        return float(h.mean() + np.cov(h, m)[0, 1] / np.var(m, ddof=1) * (every.mean() - m.mean()))

    h, m, every = human[:, 0], machine[rows, 0], machine[:, 0]
    mean = estimate(h, m, every)
    ours = [estimate(np.delete(h, i), np.delete(m, i), np.delete(every, rows[i])) - mean for i in range(25)]
    theirs = [h.mean() + result.weight[0] * (np.delete(every, i).mean() - m.mean()) - mean for i in set(range(90)) - {*rows}]
    variance = np.sum(np.square(ours)) * 24 / 25 + np.sum(np.square(theirs)) * 89 / 90
    assert result.error[0] == pytest.approx(np.sqrt(variance))


def test_where_people_judged_all_topics_the_mean_is_theirs() -> None:
    human, machine, rows = drawn(40, 40)
    result = PredictionPowered.of(human, machine, rows)
    assert result.mean == pytest.approx(human.mean(axis=0))
    assert result.error == pytest.approx(human.std(axis=0, ddof=1) / np.sqrt(40))
    assert not result.doubtful.any()


def test_a_machine_that_says_nothing_leaves_the_judgments_of_people() -> None:
    human, machine, rows = drawn(30, 60)
    result = PredictionPowered.of(human, np.zeros_like(machine), rows)
    assert result.weight.tolist() == [0, 0, 0]
    assert result.mean == pytest.approx(human.mean(axis=0))
    assert result.error == pytest.approx(human.std(axis=0, ddof=1) / np.sqrt(30))


def test_equal_values_have_a_point_and_p_of_1() -> None:
    zeros, rows = np.zeros((25, 1)), np.arange(25)
    tie = PredictionPowered.of(zeros, np.zeros((60, 1)), rows)
    assert (tie.mean.item(), tie.error.item(), tie.test()[1].item()) == (0, 0, 1)
    unknown = PredictionPowered.of(zeros, np.arange(60.0)[:, None], rows)
    assert np.isnan(unknown.interval()[0]).all()
    assert np.isnan(unknown.test()[1]).all()
    assert np.isnan(unknown.topics_for(0.05, 0.8)).all()


def test_few_large_errors_leave_few_degrees_of_freedom() -> None:
    random = np.random.default_rng(0)
    machine = random.random((80, 1))
    human = machine[:30].copy()
    human[:2] += 1
    few = PredictionPowered.of(human, machine, np.arange(30))
    many = PredictionPowered.of(machine[:30] + random.normal(0, 0.3, (30, 1)), machine, np.arange(30))
    assert few.freedom.item() < many.freedom.item() <= 28


def test_errors_in_one_direction_move_the_interval_to_their_side() -> None:
    random = np.random.default_rng(0)
    machine = random.random((80, 2))
    human = machine[:20].copy()
    human[:3] += [1, -1]
    result = PredictionPowered.of(human, machine, np.arange(20))
    low, high = result.interval()
    assert result.skew.tolist() == [0.2, -0.2]
    assert high[0] - result.mean[0] > 1.2 * (result.mean[0] - low[0])
    assert result.mean[1] - low[1] > 1.2 * (high[1] - result.mean[1])
    assert result.errors.tolist() == [3, 3]
    assert result.doubtful.all()


def test_a_mean_lies_at_the_end_of_an_interval_where_its_p_is_alpha() -> None:
    human, machine, rows = drawn(25, 90)
    result = PredictionPowered.of(human, machine, rows)
    for alpha in (0.05, 0.2):
        for end in result.interval(alpha):
            moved = PredictionPowered.of(human - end, machine, rows)
            assert moved.test()[1] == pytest.approx(alpha)
    even = np.concatenate([np.ones((12, 1)), -np.ones((12, 1))])
    flat = PredictionPowered.of(even + 2, np.zeros((60, 1)), np.arange(24))
    assert flat.skew.item() == pytest.approx(0)
    low, high = flat.interval()
    assert flat.mean - low == pytest.approx(high - flat.mean)


def test_topics_for_a_difference_find_it_with_the_power() -> None:
    random = np.random.default_rng(0)
    size, shown = 0.1, []
    for _ in range(20):  # plans from 30 topics, with the difference as it is
        machine = random.normal(size, 0.3, (400, 1))
        plan = PredictionPowered.of(machine[:30] + random.normal(0, 0.3, (30, 1)), machine, np.arange(30))
        shown.append(PredictionPowered(np.array([size]), *list(vars(plan).values())[1:]).topics_for(0.05, 0.8).item())
    k = int(np.nanmedian(shown))
    assert 60 < k < 150
    found = 0
    for _ in range(400):
        machine = random.normal(size, 0.3, (400, 1))
        result = PredictionPowered.of(machine[:k] + random.normal(0, 0.3, (k, 1)), machine, np.arange(k))
        found += result.test()[1].item() <= 0.05
    assert 0.72 <= found / 400 <= 0.9


def test_evaluate_corrects_the_means_and_has_their_intervals() -> None:
    data = labelled()
    result = evaluate(data.runs["good"], data.people, ["nDCG@5", "AP"], machine=data.machine)
    alone, of_machine = (evaluate(data.runs["good"], qrels, ["nDCG@5", "AP"]) for qrels in (data.people, data.machine))
    truth = evaluate(data.runs["good"], data.truth, ["nDCG@5", "AP"])
    for measure in ("nDCG@5", "AP"):
        low, high = result.interval(measure)
        assert low < result[measure] < high
        assert low < truth[measure] < high
        assert result.array(measure).tolist() == alone.array(measure).tolist()
        assert result.machine is not None
        assert result.machine[measure] == of_machine[measure]
        estimate = result.estimate([measure])
        gap = of_machine[measure] - np.mean([of_machine.per_topic(measure)[topic] for topic in data.people])
        assert result[measure] == pytest.approx(alone[measure] + estimate.weight.item() * gap)
    low, high = result.interval("AP", alpha=0.2)
    assert result.interval("AP")[0] < low < high < result.interval("AP")[1]
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["intervals"]["AP"] == list(result.interval("AP"))
    assert plain["machine"]["topics"] == 80
    low, high = result.interval("AP")
    assert f"AP      {result['AP']:.4f}  {low:.4f} to {high:.4f}\n" in str(result)
    assert "\n95% intervals; machine labels of 80 topics, corrected by the 30 that people judged; 2 without a" in str(result)
    assert "<td" in result._repr_html_()


def test_the_order_of_topics_does_not_matter() -> None:
    data = labelled()
    other = {topic: data.machine[topic] for topic in reversed(data.machine)}
    results = [evaluate(data.runs["good"], data.people, "AP", machine=labels) for labels in (data.machine, other)]
    assert results[0].interval("AP") == pytest.approx(results[1].interval("AP"))


def test_topics_that_people_alone_judged_and_other_grades_are_said() -> None:
    data = labelled(human=25)
    machine = {topic: {doc: 3 * grade for doc, grade in grades.items()} for topic, grades in data.machine.items()}
    people = data.people | {"other": {"d1": 1}}
    result = evaluate(data.runs["good"], people, "AP", machine=machine)
    assert result.topics == 25
    assert "1 topic judged by people without machine labels left out" in str(result)
    assert "grades of the judgments of people to 1 and the machine's labels to 3: the correction holds" in str(result)
    assert result["AP"] == evaluate(data.runs["good"], data.people, "AP", machine=data.machine)["AP"]


def test_a_machine_that_errs_on_few_topics_is_said() -> None:
    data = labelled(wrong=0)
    data.machine["q3"]["d1"] = 1 - data.machine["q3"]["d1"]
    result = evaluate(data.runs["good"], data.people, "nDCG@10", machine=data.machine)
    assert "nDCG@10: machine and people differ on fewer than 5 topics; the interval may be too narrow" in str(result)


def test_a_value_that_people_find_equal_everywhere_has_no_interval() -> None:
    data = labelled()
    people = {topic: dict.fromkeys(grades, 1) for topic, grades in data.people.items()}
    result = evaluate(data.runs["good"], people, "P@1", machine=data.machine)
    assert str(result).startswith("P@1  1.0000  –\n")
    assert result.to_dict()["intervals"] == {"P@1": None}


def test_the_command_prints_corrected_means(tmp_path: Path, fontes: Any) -> None:
    data = labelled()
    for name, grades in (("people", data.people), ("machine", data.machine)):
        ft.formats.write_qrels(Qrels.of(grades), tmp_path / f"{name}.qrels")
    ft.formats.write_run(ft.Run.of(data.runs["good"]), tmp_path / "good.run")
    command = ("eval", tmp_path / "people.qrels", tmp_path / "good.run", "AP", "--machine", tmp_path / "machine.qrels")
    expected = evaluate(data.runs["good"], data.people, "AP", machine=data.machine)
    code, out, _ = fontes(*command)
    assert (code, out.strip()) == (0, str(expected))
    code, out, _ = fontes(*command, "--json")
    assert json.loads(out)["intervals"]["AP"] == pytest.approx(expected.to_dict()["intervals"]["AP"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cast2021", "cranfield", "scifact"])
def test_intervals_cover_the_truth_and_labels_as_truth_do_not(name: str, shared: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    bench = importlib.import_module("machine_labels")
    folder = shared / name
    split = next(path for path in (folder / "qrels").glob("test*.tsv"))
    qrels = ft.read_qrels(split)
    runs, random = bench.runs_of(folder, qrels), np.random.default_rng(5)
    human = bench.values(runs, qrels, "nDCG@10")
    lowest = []
    for machine in bench.MACHINES.values():
        labels = bench.labelled(qrels, runs, machine, random)
        for judged in (20, 40):
            shares = bench.coverage(human, bench.values(runs, labels, "nDCG@10"), judged, 1000, random)
            assert ((shares["corrected"] > 0.92) & (shares["corrected"] < 0.98)).all(), (machine, shares)
        lowest.append(shares["as truth"].min())
    assert min(lowest) < 0.5
