"""Weights learned by cross-validation: honest runs, and the best weights that a plain search finds."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from support.each import each

from fontes import Qrels, Run, evaluate, fuse, read_qrels, read_run
from fontes.tuning import Fold, LearnedWeights, fit_weights, weights


def made(topics: int = 40, systems: int = 3) -> tuple[list[Run], Qrels]:
    """Runs of which each later one knows less about what is relevant."""
    rng = np.random.default_rng(3)
    qrels = {f"q{t}": {f"d{d}": int(rng.integers(0, 3)) for d in rng.choice(60, 8, replace=False)} for t in range(topics)}
    runs = []
    for system in range(systems):
        run = {}
        for topic, grades in qrels.items():
            docs = rng.choice(60, 25, replace=False)
            run[topic] = {f"d{d}": grades.get(f"d{d}", 0) / (1 + system) + float(rng.normal()) for d in docs}
        runs.append(Run.of(run))
    return runs, Qrels.of(qrels)


RUNS, QRELS = made()


def topics_of(learned: LearnedWeights, fold: Fold) -> list[str]:
    return [learned.topic_ids[i] for i in fold.topics]


@each("method", ["wsum", "rrf", "isr", "borda"])
@each("measure", ["nDCG@10", "AP", "RR@5", "RR(judged_only=True)@5", "Judged@5", "Complete@5", "NumRelRet"])
def test_the_learned_weights_are_the_best_of_a_plain_search(method: str, measure: str) -> None:
    learned = fit_weights(RUNS, QRELS, measure, method=method, step=0.25)
    reached = {}
    for steps in itertools.product(range(5), repeat=3):
        if sum(steps) == 4:
            weights = tuple(s / 4 for s in steps)
            reached[weights] = evaluate(fuse(*RUNS, method=method, weights=weights), QRELS, measure)[measure]
    assert learned.trained == pytest.approx(max(reached.values()))
    equal = [weights for weights, value in reached.items() if value == pytest.approx(learned.trained, abs=1e-12)]
    assert learned.weights in equal
    # Of those that are equally good the ones of the fewest runs, and of these the most even: the smallest sum of squares.
    fewest = max(weights.count(0) for weights in equal)
    simplest = [weights for weights in equal if weights.count(0) == fewest]
    assert learned.weights in simplest
    assert sum(w * w for w in learned.weights) == min(sum(w * w for w in weights) for weights in simplest)


@pytest.mark.parametrize("measure", ["AP", "Judged@5"])
def test_topics_with_many_judgments_give_the_same(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = fit_weights(RUNS, QRELS, measure)
    monkeypatch.setattr(weights, "MAX_COMPARISONS", 0)
    assert fit_weights(RUNS, QRELS, measure).to_dict() == compared.to_dict()


def test_each_fold_is_fused_with_weights_that_were_learned_without_it() -> None:
    learned = fit_weights(RUNS, QRELS, "AP", folds=4, seed=5, step=0.2)
    assert sorted(t for fold in learned.folds for t in topics_of(learned, fold)) == sorted(QRELS)
    for fold in learned.folds:
        topics = topics_of(learned, fold)
        others = Qrels.of({t: grades for t, grades in QRELS.items() if t not in topics})
        assert fit_weights(RUNS, others, "AP", folds=2, step=0.2).weights == fold.choice
        alone = fuse(*RUNS, method="wsum", weights=fold.choice)
        for topic in topics:
            assert learned.run[topic].ids == alone[topic].ids
        own = Qrels.of({t: QRELS[t] for t in topics})
        assert fold.values.mean() == pytest.approx(evaluate(alone, own, "AP")["AP"])
        assert fold.chosen == pytest.approx(evaluate(alone, others, "AP")["AP"])


def test_the_score_is_that_of_the_run_of_held_out_topics() -> None:
    learned = fit_weights(RUNS, QRELS)
    assert learned.score == pytest.approx(evaluate(learned.run, QRELS, "nDCG@10")["nDCG@10"])
    assert sum(learned.weights) == pytest.approx(1)


def test_unjudged_documents_are_left_out_where_the_measure_says_so() -> None:
    measure = "RR(judged_only=True)"
    learned = fit_weights(RUNS, QRELS, measure)
    assert learned.score == pytest.approx(evaluate(learned.run, QRELS, measure)[measure])
    assert learned.score > fit_weights(RUNS, QRELS, "RR").score


def test_the_judgments_of_a_topic_do_not_touch_the_weights_it_is_fused_with() -> None:
    learned = fit_weights(RUNS, QRELS, folds=5)
    fold = learned.folds[0]
    topics = topics_of(learned, fold)
    turned = Qrels.of({t: {d: 2 - g if t in topics else g for d, g in grades.items()} for t, grades in QRELS.items()})
    again = fit_weights(RUNS, turned, folds=5)
    assert again.folds[0].choice == fold.choice
    assert [again.run[t].ids for t in topics] == [learned.run[t].ids for t in topics]


def test_the_order_of_topics_in_the_files_does_not_matter_and_the_seed_does() -> None:
    turned = Qrels.of({t: QRELS[t] for t in reversed(list(QRELS))})
    one, two = fit_weights(RUNS, QRELS), fit_weights(RUNS, turned)
    assert [set(topics_of(one, f)) for f in one.folds] == [set(topics_of(two, f)) for f in two.folds]
    assert [f.choice for f in one.folds] == [f.choice for f in two.folds]
    other = fit_weights(RUNS, QRELS, seed=1)
    assert [set(f.topics) for f in one.folds] != [set(f.topics) for f in other.folds]


def test_judged_topics_without_results_count_0_and_unjudged_ones_are_fused_as_well() -> None:
    judged = Qrels.of({**QRELS.to_dict(), "nowhere": {"d1": 1}})
    runs = [Run.of({**run.to_dict(), "unjudged": {"d1": 1.0, "d2": 0.5}}) for run in RUNS]
    learned = fit_weights(runs, judged)
    assert learned.score == pytest.approx(evaluate(learned.run, judged, "nDCG@10")["nDCG@10"])
    assert learned.run["unjudged"].ids == ["d1", "d2"]


def test_of_runs_as_good_alone_as_together_the_first_is_taken() -> None:
    same = {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(4)}
    learned = fit_weights([same, same], {t: {"a": 1} for t in same}, folds=2)
    assert learned.weights == (1.0, 0.0)
    wrong = {f"q{i}": {"b": 2.0, "a": 1.0} for i in range(4)}
    assert fit_weights([wrong, same], {t: {"a": 1} for t in same}, folds=2).weights == (0.0, 1.0)


def test_of_mixtures_that_are_equally_good_the_most_even_is_taken() -> None:
    first = {f"q{i}": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0} for i in range(4)}
    second = {f"q{i}": {"d": 3.0, "b": 2.0, "c": 1.0, "a": 0.0} for i in range(4)}
    learned = fit_weights([first, second], {t: {"b": 1} for t in first}, "RR", folds=2)
    assert learned.weights == (0.5, 0.5)


def test_the_search_over_many_runs_beats_equal_weights_and_single_runs() -> None:
    runs, qrels = made(topics=20, systems=7)
    learned = fit_weights(runs, qrels, "AP", folds=2)
    for i in range(7):
        alone = fuse(*runs, method="wsum", weights=[float(i == j) for j in range(7)])
        assert learned.trained >= evaluate(alone, qrels, "AP")["AP"] - 1e-9
    again = fuse(*runs, method="wsum", weights=learned.weights)
    assert learned.trained == pytest.approx(evaluate(again, qrels, "AP")["AP"])
    steps = [round(10 * w) for w in learned.weights]
    for i, j in itertools.permutations(range(7), 2):  # no step from one run to another does better
        if steps[i]:
            moved = [(s - (n == i) + (n == j)) / 10 for n, s in enumerate(steps)]
            assert evaluate(fuse(*runs, method="wsum", weights=moved), qrels, "AP")["AP"] <= learned.trained + 1e-9


@each(("step", "parts"), [(1, 1), (1.0, 1), (0.5, 2), (1 / 3, 3), (0.05, 20)])
def test_weights_are_multiples_of_the_step_and_add_up_to_1(step: float, parts: int) -> None:
    learned = fit_weights(RUNS[:2], QRELS, "AP", folds=2, step=step)
    reached = {(i / parts, 1 - i / parts): 0.0 for i in range(parts + 1)}
    for pair in reached:
        reached[pair] = evaluate(fuse(*RUNS[:2], method="wsum", weights=pair), QRELS, "AP")["AP"]
    assert learned.trained == pytest.approx(max(reached.values()))
    assert sum(learned.weights) == pytest.approx(1)
    assert [w * parts for w in learned.weights] == pytest.approx([round(w * parts) for w in learned.weights])


def test_topics_are_dealt_evenly_in_the_order_of_the_shuffle_of_their_ids() -> None:
    qrels = Qrels.of({t: QRELS[t] for t in list(QRELS)[:11]})
    learned = fit_weights(RUNS, qrels, "AP", folds=3, seed=7, step=0.5)
    order = np.array(sorted(qrels))[np.random.default_rng(7).permutation(11)]
    assert [set(topics_of(learned, fold)) for fold in learned.folds] == [set(order[fold::3].tolist()) for fold in range(3)]
    single = fit_weights(RUNS, qrels, "AP", folds=11, step=0.5)
    assert [len(fold.topics) for fold in single.folds] == [1] * 11


def test_of_many_runs_that_are_equally_good_the_first_is_taken_alone() -> None:
    same = {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(4)}
    learned = fit_weights([same] * 7, {t: {"a": 1} for t in same}, folds=2)
    assert learned.weights == (1.0, *[0.0] * 6)


@each("method", ["wsum", "rrf", "isr", "borda"])
def test_what_is_left_out_is_as_fuse_has_it(method: str) -> None:
    runs = [Run.of({**run.to_dict(), "unjudged": {"d1": 1.0 + i, "d2": 0.5, f"own{i}": 0.25}}) for i, run in enumerate(RUNS)]
    learned = fit_weights(runs, QRELS, method=method, step=0.5)
    fused = fuse(*runs, method=method, weights=learned.weights)["unjudged"]
    assert learned.run["unjudged"].ids == fused.ids
    assert learned.run["unjudged"].scores.tolist() == fused.scores.tolist()


def test_it_prints_the_held_out_score_and_the_weights_of_each_fold() -> None:
    learned = fit_weights(RUNS, QRELS, folds=2)
    lines = str(learned).splitlines()
    assert lines[0] == f"nDCG@10 {learned.score:.4f} on held-out topics"
    first = learned.folds[0]
    weights = ",".join(f"{w:g}" for w in first.choice)
    assert lines[2].split() == ["fold", "topics", "weights", "chosen", "at", "held", "out"]
    assert lines[3].split() == ["1", "20", weights, f"{first.chosen:.4f}", f"{first.values.mean():.4f}"]
    assert lines[6] == "all topics: weights " + ",".join(f"{w:g}" for w in learned.weights)
    assert learned.to_dict()["folds"][1]["weights"] == list(learned.folds[1].choice)


def test_on_real_runs_held_out_weights_beat_the_best_single_run(shared: Path) -> None:
    folder = shared / "checkthat25_4b"
    runs = [read_run(path) for path in sorted((folder / "runs").glob("dev.*"))]
    qrels = read_qrels(folder / "qrels" / "dev.tsv")
    learned = fit_weights(runs, qrels, "RR@5", step=0.2)
    best = max(evaluate(run, qrels, "RR@5")["RR@5"] for run in runs)
    assert round(best, 3) == 0.708
    assert learned.score > best + 0.02
