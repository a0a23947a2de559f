"""Training of calibrations: what maps learn, how topics are divided, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Fontes
from support.ranked import documents, judgments, topics
from support.simulated import simulated

from fontes.calibration import Calibration, reliability
from fontes.calibration.maps import features_of
from fontes.core import Qrels, Run, Topic, Topics, Turn
from fontes.formats import write_qrels, write_run, write_topics
from fontes.index import Index
from fontes.train import CalibrationSettings, train_calibration, validate_calibration
from fontes.train.calibration import fit_curve, fit_log_odds


@pytest.mark.parametrize("kind", ["isotonic", "beta", "logistic"])
def test_each_map_finds_the_probabilities_that_drew_the_judgments(kind: str) -> None:
    run, qrels = simulated(500, 1)
    training = train_calibration(run, qrels, settings=CalibrationSettings(map=kind, near=1.0))
    new, judged = simulated(500, 2)
    true = 1 / (1 + np.exp(3 - new.scores.astype(np.float64)))
    probabilities = training.model.probabilities(new)
    assert float(np.abs(probabilities - true).mean()) < 0.03
    assert reliability(new.with_scores(probabilities), judged).ece < 0.03
    assert training.chosen == kind
    assert training.losses == {}
    assert (training.topics, training.learned) == (500, 250)
    assert 0.6 * 250 < training.units < 250  # topics without relevant documents promise nothing


def test_the_map_with_the_least_held_out_loss_is_chosen_by_the_byte(tmp_path: Path) -> None:
    run, qrels = simulated(120, 3)
    one = train_calibration(run, qrels, tmp_path / "one", CalibrationSettings(near=1.0))
    train_calibration(run, qrels, tmp_path / "two", CalibrationSettings(near=1.0))
    assert one.chosen == min(one.losses, key=lambda kind: one.losses[kind])
    assert set(one.losses) == {"isotonic", "beta", "logistic"}
    files = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1]
    assert json.dumps(one.to_dict())
    card = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    assert "They hold for topics that are drawn as these were, over the same collection and pipeline" in card


def test_a_map_falls_along_a_ranking_even_where_judgments_rise(index_free_run: tuple[Run, Qrels]) -> None:
    run, qrels = index_free_run
    features = features_of(run)
    labels = np.array([bool(qrels[t].get(hit.id, 0)) for t, ranking in run.items() for hit in ranking])
    linear = fit_log_odds(features, labels)
    assert linear.weights[1] <= 0
    assert linear.weights[2] <= 0
    for kind in ("isotonic", "beta", "logistic"):
        probabilities = fit_curve(linear, features, labels, kind).probabilities(linear.log_odds(features))
        for start, end in zip(run.bounds, run.bounds[1:], strict=False):
            assert (np.diff(probabilities[start:end]) <= 1e-12).all()


@pytest.fixture
def index_free_run() -> tuple[Run, Qrels]:
    """Rankings whose last documents are relevant."""
    run, _ = simulated(40, 4)
    return run, Qrels((t, "0", hit.id, int(hit.rank > 9)) for t, ranking in run.items() for hit in ranking)


def test_the_curve_of_isotonic_regression_is_that_of_scikit_learn() -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    run, qrels = simulated(40, 5)
    features = features_of(run)
    labels = np.array([bool(qrels[t].get(hit.id, 0)) for t, ranking in run.items() for hit in ranking])
    linear = fit_log_odds(features, labels)
    log_odds, curve = linear.log_odds(features), fit_curve(linear, features, labels, "isotonic")
    expected = isotonic.IsotonicRegression(out_of_bounds="clip").fit(log_odds, labels)
    points = np.linspace(log_odds.min() - 1, log_odds.max() + 1, 500)
    assert curve.probabilities(points) == pytest.approx(np.clip(expected.predict(points), 1e-6, 1 - 1e-6), abs=1e-6)


def test_the_weights_are_those_of_logistic_regression_where_no_limit_binds() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    run, qrels = simulated(400, 6)
    features = features_of(run)
    labels = np.array([bool(qrels[t].get(hit.id, 0)) for t, ranking in run.items() for hit in ranking])
    fitted = fit_log_odds(features, labels)
    free = fitted.weights[[1, 2]] < -1e-6
    columns = [0, *(np.array([1, 2])[free]).tolist(), 3]
    scale = features[:, columns].std(axis=0)
    model = linear_model.LogisticRegression(C=1 / (1e-3 * len(labels)), tol=1e-10, max_iter=10_000)
    model.fit((features[:, columns] - features[:, columns].mean(axis=0)) / scale, labels)
    assert fitted.weights[columns] == pytest.approx(model.coef_[0] / scale, abs=2e-3)


def test_turns_evidence_sets_and_duplicates_count_as_one_unit() -> None:
    run, qrels = simulated(60, 7)
    turns = Topics(
        Topic(f"{n // 3}_{n % 3}", topic.text, turns=(Turn(topic.text),)) for n, topic in enumerate(run.topics.values())
    )
    names = dict(zip(run.topics, turns, strict=True))
    conversations = Run.of({names[t]: ranking for t, ranking in run.to_dict().items()}, turns)
    judged = Qrels((names[t], "0", d, 1) for t, grades in qrels.items() for d in run[t].ids[:1])
    assert train_calibration(conversations, judged, settings=CalibrationSettings(near=1.0, map="beta")).units == 10
    alone = CalibrationSettings(near=1.0, map="beta", group=None)
    assert train_calibration(conversations, judged, settings=alone).units == 30
    shared = Qrels((t, "1", doc, 1) for n, t in enumerate(run) for doc in (run[t].ids[0], f"shared{n // 2}"))
    assert train_calibration(run, shared, settings=CalibrationSettings(near=1.0, map="beta")).units == 15


def test_the_order_of_judgments_does_not_change_the_calibration(tmp_path: Path) -> None:
    run, qrels = simulated(40, 3)
    for name, rows in ("one", list(qrels.rows())), ("other", list(qrels.rows())[::-1]):
        train_calibration(run, Qrels(rows), tmp_path / name, CalibrationSettings(map="logistic", near=1.0))
    assert Calibration.load(tmp_path / "one").digest == Calibration.load(tmp_path / "other").digest


def test_nested_validation_never_asks_a_calibration_about_topics_that_it_knows() -> None:
    run, qrels = simulated(150, 9)
    validation = validate_calibration(run, qrels, CalibrationSettings(near=1.0), folds=3)
    assert validation.run.rows == run.rows
    assert (validation.run.codes == run.codes).all()
    assert len(validation.chosen) == 3
    assert validation.reliability.ece == pytest.approx(reliability(validation.run, qrels).ece)
    assert validation.reliability.ece < 0.05
    assert "expected calibration error" in str(validation)


def test_the_command_trains_and_says_what_can_be_promised(tmp_path: Path, fontes: Fontes) -> None:
    Index.build(documents(), tmp_path / "springs.index")
    write_topics(topics(), tmp_path / "topics.jsonl")
    write_qrels(judgments(topics()), tmp_path / "qrels.txt")
    files = ("--topics", tmp_path / "topics.jsonl", "--qrels", tmp_path / "qrels.txt")
    options = ("--pipeline", "bm25() % 40", "--map", "logistic", "--near", "1.0", "--share", "0.3")
    command = ("train", "calibration", tmp_path / "springs.index", *files, *options)
    code, output, errors = fontes(*command, "-o", tmp_path / "c", "--nested", 2)
    assert code == 0, errors
    assert "logistic map from 7 of 24 topics" in output
    assert "  cut(recall=…)  up to 0." in output
    assert "nested cross-validation (maps logistic, logistic): expected calibration error" in output
    assert f'>> calibrated("{tmp_path / "c"}") >> cut(recall=0.9)' in output
    assert Calibration.load(tmp_path / "c").facts["system"] == "bm25(k1=0.9, b=0.4) % 40"
    code, output, _ = fontes(*command, "-o", tmp_path / "c", "--overwrite", "--json")
    assert json.loads(output)["promises"]["recall"] > 0
    code, _, errors = fontes(*command, "-o", tmp_path / "c")
    assert code != 0
    assert "exists already" in errors
    write_run(Index.open(tmp_path / "springs.index").bm25()(topics()), tmp_path / "x.run")
    of_run = (*command[:3], *files, *options[2:], "--run", tmp_path / "x.run", "-o", tmp_path / "of-run")
    assert f'use it as … >> calibrated("{tmp_path / "of-run"}") >> cut(' in fontes(*of_run)[1]
    pipeline = f'bm25() % 40 >> calibrated("{tmp_path / "c"}") >> cut(recall=0.5)'
    code, output, errors = fontes("search", tmp_path / "springs.index", "spring oasis", "--pipeline", pipeline)
    assert code == 0, errors
