"""Tuning: what is tried, what is chosen, and that nothing is reported on topics that chose it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from support.each import each

import fontes as ft
from fontes.lexical import impacts


@dataclass(frozen=True)
class Memorised(ft.Stage[ft.Topics, ft.Run]):
    """Is right for the topic `place` only, and counts how often it runs."""

    calls: ClassVar[list[int]] = []
    place: int = 0

    def apply(self, topics: ft.Topics, /) -> ft.Run:
        self.calls.append(self.place)
        return ft.Run.of({t: {"good" if t == f"t{self.place}" else "bad": 1.0} for t in topics})


MEMORISED = ft.Topics.of({f"t{i}": "x" for i in range(12)}), ft.Qrels.of({f"t{i}": {"good": 1} for i in range(12)})


@dataclass(frozen=True)
class Noisy(ft.Stage[ft.Topics, ft.Run]):
    """Ranks four documents by waves of `x`, so that its measure rises and falls with it, for each topic otherwise."""

    x: float = 0.5

    def apply(self, topics: ft.Topics, /) -> ft.Run:
        waves = {t: {f"d{j}": float(np.sin((j + 3) * self.x * 9 + len(t) * 7 + int(t))) for j in range(4)} for t in topics}
        return ft.Run.of(waves)


def test_a_trial_has_the_values_that_evaluate_gives(collection):
    index, topics, qrels = collection
    found = ft.tune(index.bm25(), {"k1": [0.5, 2.0], "b": [0.0, 1.0]}, topics, qrels, "AP")
    assert [trial.params for trial in found.trials] == [{"k1": k1, "b": b} for k1 in (0.5, 2.0) for b in (0.0, 1.0)]
    for trial in found.trials:
        assert trial.values.tolist() == ft.evaluate(index.bm25(**trial.params)(topics), qrels, "AP").array("AP").tolist()
    assert found.params["b"] == 1.0  # the judgments prefer short documents
    assert found.stage == index.bm25(**found.params)


@pytest.mark.parametrize("method", ["grid", "random", "tpe"])
def test_a_setting_that_knows_single_topics_is_worth_nothing_when_they_are_held_out(method):
    space = {"place": list(range(12))}
    trials = None if method == "grid" else 30
    found = ft.tune(Memorised(), space, *MEMORISED, "RR", 4, method=method, trials=trials)
    assert found.best.score == pytest.approx(1 / 12)
    assert found.score == 0
    assert found.interval == (0, 0)


@pytest.mark.parametrize("method", ["grid", "random", pytest.param("tpe", marks=pytest.mark.slow)])
def test_what_is_chosen_for_a_fold_does_not_depend_on_its_own_judgments(method):
    topics = ft.Topics.of({str(i): "x" for i in range(20)})
    rng = np.random.default_rng(1)
    grades = {str(i): {f"d{rng.integers(4)}": 1} for i in range(20)}
    how = {"method": method, "trials": None if method == "grid" else 25, "seed": 5}
    space = {"x": (0.0, 3.0, 0.05) if method == "grid" else (0.0, 3.0)}
    first = ft.tune(Noisy(), space, topics, grades, "RR", **how)
    for fold in range(5):
        ids = [first.topic_ids[i] for i in first.folds[fold].topics]
        changed = grades | {i: {f"d{(int(next(iter(grades[i]))[1]) + 2) % 4}": 1} for i in ids}
        again = ft.tune(Noisy(), space, topics, changed, "RR", **how)
        assert again.folds[fold].choice == first.folds[fold].choice
        assert again.folds[fold].chosen == first.folds[fold].chosen
        assert not np.array_equal(again.folds[fold].values, first.folds[fold].values)


def test_each_setting_is_run_once_whatever_the_number_of_folds():
    Memorised.calls.clear()
    start = time.perf_counter()
    found = ft.tune(Memorised(), {"place": [3, 4, 3]}, *MEMORISED, "RR", 6)
    assert 0 < found.seconds < time.perf_counter() - start
    assert sorted(Memorised.calls) == [0, 3, 4]  # the stage as given, and two settings


def test_the_result_does_not_depend_on_the_order_of_topics_and_judgments(collection):
    index, topics, qrels = collection
    how = {"space": {"b": (0, 1, 0.25)}, "measure": "nDCG@5"}
    one = ft.tune(index.bm25(), topics=topics, qrels=qrels, **how)
    back = dict(reversed(qrels.to_dict().items()))
    other = ft.tune(index.bm25(), topics=list(topics.values())[::-1], qrels=back, **how)
    assert [f.choice for f in one.folds] == [f.choice for f in other.folds]
    assert one.topic_ids == other.topic_ids
    assert one.score == other.score
    assert one.interval == other.interval


def test_held_out_values_are_those_of_each_folds_own_choice(collection):
    index, topics, qrels = collection
    found = ft.tune(index.bm25(), {"b": (0.0, 1.0, 0.1)}, topics, qrels, "nDCG@5", 4)
    of = {trial.params["b"]: trial.values for trial in found.trials}
    assert sorted(i for fold in found.folds for i in fold.topics) == list(range(20))
    for fold in found.folds:
        rest = np.setdiff1d(np.arange(20), fold.topics)
        assert of[fold.choice["b"]][rest].mean() == max(values[rest].mean() for values in of.values()) == fold.chosen
        assert found.values[fold.topics].tolist() == of[fold.choice["b"]][fold.topics].tolist()
    given = ft.evaluate(index.bm25()(topics), qrels, "nDCG@5").array("nDCG@5")
    assert found.difference == pytest.approx((found.values - given).mean())
    assert found.default == {"b": 0.4}


def test_a_name_stands_for_that_parameter_of_every_stage_that_has_it(collection):
    index, topics, qrels = collection
    stage = index.bm25() >> index.rm3(fb_docs=3) >> index.bm25()
    found = ft.tune(stage, {"bm25__k1": [0.3, 1.7], "b": [1.0], "fb_terms": [2, 4]}, topics, qrels, "nDCG@5")
    p = found.params
    bm25 = index.bm25(k1=p["bm25__k1"], b=1.0)
    assert found.stage == bm25 >> index.rm3(fb_docs=3, fb_terms=p["fb_terms"]) >> bm25
    assert found.default == {"bm25__k1": 0.9, "b": 0.4, "fb_terms": 10}
    assert found.best.score == ft.evaluate(found.stage(topics), qrels, "nDCG@5")["nDCG@5"]


def test_a_text_says_what_is_tuned_and_within_which_values(collection):
    index, topics, qrels = collection
    text = "bm25(k1=tune(0.5, 1.5, 0.5), b=tune([0.2, 0.8])) % 50 >> rm3(fb_docs=3) >> bm25(k1=tune([0.4]))"
    found = ft.tune(text, None, topics, qrels, "nDCG@5", index=index)
    assert [tuple(t.params.values()) for t in found.trials] == [(k1, b, 0.4) for k1 in (0.5, 1.0, 1.5) for b in (0.2, 0.8)]
    assert found.default == {"bm25__k1": 0.9, "bm25__b": 0.4, "bm25_2__k1": 0.9}
    p = found.params
    first = index.bm25(k1=p["bm25__k1"], b=p["bm25__b"]) % 50
    assert found.stage == first >> index.rm3(fb_docs=3) >> index.bm25(k1=0.4)
    assert found.best.score == ft.evaluate(found.stage(topics), qrels, "nDCG@5")["nDCG@5"]


def test_a_grid_over_a_range_without_a_step_takes_that_of_the_parameters_class(collection):
    index, topics, qrels = collection
    text = "bm25(b=tune(0.3, 0.9))"
    found = ft.tune(text, None, topics, qrels, "nDCG@5", index=index)
    assert [t.params for t in found.trials] == [{"bm25__b": b} for b in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)]
    by_stage = ft.tune(index.bm25(), {"b": (0.3, 0.9)}, topics, qrels, "nDCG@5")
    assert [t.values.tolist() for t in by_stage.trials] == [t.values.tolist() for t in found.trials]


def test_the_space_of_a_text_may_be_changed_and_its_index_be_one_of_several(collection):
    index, topics, qrels = collection
    text = 'bm25(b=tune(), index="other")'
    found = ft.tune(text, {"bm25__b": [0.1, 0.2]}, topics, qrels, index={"first": None, "other": index})
    assert [t.params for t in found.trials] == [{"bm25__b": 0.1}, {"bm25__b": 0.2}]


def test_without_a_space_the_usual_parameters_of_the_lexical_models_are_tuned(collection):
    index, topics, qrels = collection

    def tuned(stage):
        return list(ft.tune(stage, None, topics, qrels, "nDCG@5", method="random", trials=1).space)

    assert tuned(index.bm25() >> index.rm3() >> index.bm25(variant="plus")) == ["k1", "b", "k3"]
    assert tuned(index.ql()) == ["mu"]
    assert tuned(index.ql(smoothing="jelinek-mercer")) == ["lambda_"]
    assert tuned(index.bm25() + index.ql()) == ["k1", "b", "k3", "mu"]


def test_weights_of_a_fusion_are_chosen_from_a_list_and_its_stages_run_once(collection, monkeypatch):
    index, topics, qrels = collection
    seen = []
    monkeypatch.setattr(
        ft.lexical.BM25, "apply", lambda self, *given, real=ft.lexical.BM25.apply: seen.append(self.b) or real(self, *given)
    )
    stage = ft.fuse(index.bm25(b=0.0), index.bm25(b=1.0), method="wsum")
    space = {"weights": [(1.0, 0.0), (0.5, 0.5), (0.0, 1.0)]}
    found = ft.tune(stage, space, topics, qrels, "nDCG@5")
    assert sorted(seen) == [0.0, 1.0]
    for trial in found.trials:
        run = stage.with_(**trial.params)(topics)
        assert trial.values.tolist() == ft.evaluate(run, qrels, "nDCG@5").array("nDCG@5").tolist()
    means = [float(trial.values.mean()) for trial in found.trials]
    assert found.params["weights"] == space["weights"][means.index(max(means))]
    assert f"final: weights={found.params['weights']}" in str(found).splitlines()
    shown = "the mean over all topics for 3 settings, what 5 folds chose, and the final setting."
    assert found.plot("weights").caption == f"nDCG@5 of 20 topics against weights: {shown}"


def test_a_function_may_make_the_stage(collection):
    index, topics, qrels = collection
    short, long = index.bm25(b=1.0), index.bm25(b=0.0)
    found = ft.tune(lambda w=0.5: w * short + (1 - w) * long, {"w": (0, 1, 0.25)}, topics, qrels, "nDCG@5")
    assert [trial.params["w"] for trial in found.trials] == [0, 0.25, 0.5, 0.75, 1]
    assert found.default == {"w": 0.5}
    w = found.params["w"]
    assert found.best.score == ft.evaluate((w * short + (1 - w) * long)(topics), qrels, "nDCG@5")["nDCG@5"]
    without = ft.tune(lambda b: index.bm25(b=b), {"b": [0.0, 1.0]}, topics, qrels, "nDCG@5")
    assert without.default is None
    assert without.difference is None
    assert "as given" not in str(without)


@each(("measure", "depth"), [("nDCG@3", 3), ("AP", 1000), ("IPrec@0.1", 1000), ("SetF", 1000), ("R@20", 20)])
def test_only_as_many_documents_are_searched_as_the_measure_looks_at(collection, monkeypatch, measure, depth):
    index, topics, qrels = collection
    seen = []
    monkeypatch.setattr(
        ft.lexical.BM25, "apply", lambda self, *given, real=ft.lexical.BM25.apply: seen.append(self.k) or real(self, *given)
    )
    ft.tune(index.bm25() >> index.rm3() >> index.bm25(), {"fb_docs": [5]}, topics, qrels, measure)
    assert seen == [1000, depth, depth]  # the first search feeds the feedback: whole, and once


def test_ranges_lists_and_steps(collection):
    index, topics, qrels = collection

    def tried(space, **how):
        return [t.params for t in ft.tune(index.bm25() >> index.rm3(), space, topics, qrels, "nDCG@5", **how).trials]

    def values(name, given, **how):
        stage = index.bm25() >> index.rm3() >> index.bm25()
        return [t.params[name] for t in ft.tune(stage, {name: given}, topics, qrels, "nDCG@5", **how).trials]

    assert values("k1", (0.1, 0.7, 0.2)) == [0.1, 0.3, 0.5, 0.7]
    assert values("b", (0, 1, 0.5)) == [0.0, 0.5, 1.0]
    assert values("k3", [None, 2]) == [None, 2]
    assert values("fb_terms", np.array([3, 5])) == [3, 5]
    drawn = values("fb_terms", (3, 6), method="random", trials=30)
    assert sorted(drawn) == [3, 4, 5, 6]
    assert all(type(v) is int for v in drawn)
    drawn = values("b", (0, 1), method="random", trials=8)
    assert len(set(drawn)) == 8
    assert all(0 < v < 1 for v in drawn)
    drawn = values("b", (0, 1), method="tpe", trials=4)
    assert len(set(drawn)) == 24  # a study a fold, and one on all topics


def test_the_same_seed_gives_the_same_trials_and_another_seed_others(collection):
    index, topics, qrels = collection
    for method in "random", "tpe":
        how = {"method": method, "trials": 4, "folds": 2}
        runs = [ft.tune(index.bm25(), {"b": (0, 1)}, topics, qrels, "nDCG@5", seed=seed, **how) for seed in (1, 1, 2)]
        tried = [[t.params["b"] for t in run.trials] for run in runs]
        assert tried[0] == tried[1] != tried[2]


def test_settings_that_are_equally_good_leave_the_present_values(collection):
    index, topics, qrels = collection
    measure = "P@1000"  # which no order changes
    assert ft.tune(index.bm25(), {"b": [0.1, 0.4, 0.7]}, topics, qrels, measure).params == {"b": 0.4}
    assert ft.tune(index.bm25(), {"b": [0.2, 0.7]}, topics, qrels, measure).params == {"b": 0.2}


def test_judged_topics_that_are_not_given_are_not_measured(collection):
    index, topics, qrels = collection
    more = qrels.to_dict() | {"x": {"d01": 1}}
    given, wider = (ft.tune(index.bm25(), {"b": [0.1, 0.7]}, topics, judgments) for judgments in (qrels, more))
    assert wider.topic_ids == given.topic_ids
    assert wider.score == given.score


def test_settings_without_a_judged_document_score_0(collection):
    index, topics, _ = collection
    # Of the best document alone, no topic has the judged one.
    worst = {t: {index.bm25(k=60)(topics)[t].ids[-1]: 1} for t in topics}
    found = ft.tune(index.bm25(), {"b": [0.4, 0.5]}, topics, worst, "P@1")
    assert [trial.score for trial in found.trials] == [0, 0]
    assert found.score == 0


def test_topics_without_judgments_are_not_searched(collection):
    index, topics, qrels = collection
    more = [*topics.values(), ft.Topic("unjudged", "moss")]
    found = ft.tune(index.bm25(), {"b": [0.1, 0.9]}, more, qrels)
    assert found.topic_ids == tuple(qrels)


def test_an_optimum_on_the_edge_of_the_space_is_noted(collection):
    index, topics, qrels = collection

    def notes(space, **how):
        return ft.tune(index.bm25(), space, topics, qrels, "nDCG@5", **how).warnings

    assert notes({"b": (0.0, 0.5, 0.1)}) == ("b=0.5 is at the upper end of the space; larger values may do better",)
    assert notes({"b": (0.9, 1.0, 0.1), "k1": [1.0]}) == ("b=1 is the last value that b can have",)
    assert notes({"k1": [1.0]}) == ()
    lower = "x=0.1 is at the lower end of the space; smaller values may do better"
    upper = "x=0.1 is at the upper end of the space; larger values may do better"
    for values, sentences in (([0.2, 0.1], (lower,)), ([0.05, 0.1], (upper,)), ([0.05, 0.1, 0.2], ())):
        found = ft.tune(Noisy(), {"x": values}, *_waves({"d3": 1}), "RR")
        assert [trial.score for trial in found.trials] == pytest.approx([_reciprocal_rank_of_d3(x) for x in values])
        assert found.params == {"x": 0.1}
        assert found.warnings == sentences
    flat = ft.tune(Memorised(), {"place": [20, 21, 22]}, *MEMORISED, "RR")
    assert flat.warnings == ()  # all are equally good, not the first alone


def _waves(grades):
    return ft.Topics.of({str(i): "x" for i in range(8)}), ft.Qrels.of({str(i): grades for i in range(8)})


def _reciprocal_rank_of_d3(x):
    """The mean of RR in the waves of `Noisy`, whose scores differ by far more than float32 can round away."""
    waves = np.sin(np.add.outer(7 + np.arange(8), (np.arange(4) + 3) * x * 9))
    return float((1 / (1 + (waves > waves[:, 3:]).sum(axis=1))).mean())


def test_topics_of_one_conversation_or_document_are_held_out_together(collection):
    index, topics, qrels = collection
    found = ft.tune(index.bm25(), {"b": [0.2, 0.8]}, topics, qrels, "nDCG@5", groups="conversation")
    assert len(set(found.units.tolist())) == 5
    for fold in found.folds:
        assert len({found.topic_ids[i].split("_")[0] for i in fold.topics}) == 1
    assert "20 topics in 5 groups" in str(found)
    # c1_0 and c3_0 have nothing in common but c4_3, which comes after both.
    shared = qrels.to_dict() | {"c1_0": {"d01": 1}, "c3_0": {"d02": 1}, "c4_3": {"d02": 1, "d01": 1}}
    shared |= {i: {f"of {i}": 1} for i in shared if i not in ("c1_0", "c3_0", "c4_3")}
    found = ft.tune(index.bm25(), {"b": [0.2, 0.8]}, topics, shared, "nDCG@5", groups="document")
    assert [fold for fold in found.folds if {"c1_0", "c3_0", "c4_3"} <= {found.topic_ids[i] for i in fold.topics}]
    assert "20 topics in 18 groups" in str(found)


def test_settings_of_k1_and_b_share_the_bounds_of_the_index(collection, monkeypatch):
    index, topics, qrels = collection
    monkeypatch.setattr(impacts, "bound_terms", lambda *a: pytest.fail("bounds are computed"))
    ft.tune(ft.Index.open(index.path).bm25(), {"k1": [0.31, 0.32], "k3": [None, 0, 2, 8]}, topics, qrels)


def test_the_report_reads_well_and_goes_into_json(collection):
    index, topics, qrels = collection
    found = ft.tune(index.bm25(), None, topics, qrels, "nDCG@5", method="random", trials=6)
    assert set(found.space) == {"k1", "b", "k3"}
    lines = str(found).splitlines()
    assert lines[0].startswith("nDCG@5 of 20 topics, 5 folds; random, 6 settings, ")
    assert any(line.startswith("held out    0.") for line in lines)
    assert any(line.startswith("final: k1=") for line in lines)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["score"] == found.score
    assert len(plain["trials"]) == len(found.trials)
    assert len(plain["folds"]) == 5
    assert "trials" not in found.to_dict(trials=False)
    assert repr(found).startswith("Tuning(nDCG@5 0.")


@pytest.mark.parametrize("how", [{}, pytest.param({"method": "random", "trials": 12}, marks=pytest.mark.slow)])
def test_the_surface_is_drawn_over_one_and_two_parameters(collection, tmp_path, how):
    index, topics, qrels = collection
    found = ft.tune(index.bm25(), {"k1": (0.5, 2.0, 0.5), "k3": [None, 2], "b": (0, 1, 0.5)}, topics, qrels, **how)
    for number, names in enumerate((None, "k1", ("b", "k1"), ["k3", "b"])):
        plot = found.plot(names)
        plot.save(tmp_path / f"{number}.svg")
        assert "nDCG@10 of 20 topics" in plot.caption
        assert (tmp_path / f"{number}.svg").stat().st_size > 5000
    assert "the best over b" in found.plot().caption


@pytest.mark.slow
def test_on_cranfield_the_held_out_score_lies_below_that_of_the_best_setting(shared, tmp_path):
    folder = shared / "cranfield"
    index = ft.Index.build(folder / "corpus.jsonl", tmp_path / "c.index")
    space = {"k1": [0.6, 0.9, 1.5, 2.4], "b": [0.4, 0.8]}
    found = ft.tune(index.bm25(), space, folder / "queries.jsonl", folder / "qrels/test.tsv")
    assert found.baseline_values is not None
    assert found.baseline_values.mean() == pytest.approx(0.3654, abs=0.002)  # Lucene's figure, with its rounded lengths
    assert found.score <= found.best.score
    assert found.difference_interval is not None
    assert found.difference_interval[0] < found.difference < found.difference_interval[1]
