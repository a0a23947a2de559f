"""The values of the measures: against trec_eval where it has them, else against a plain computation."""

import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from support.examples import up_to

from fontes.core import Qrels
from fontes.measures import AP, RBP, RR, Complete, IPrec, Judged, NumRel, P, R, SetF, SetP, SetR, Success, evaluate, nDCG, parse

TREC_NAMES = (
    *("map", "map_cut_1", "map_cut_3", "map_cut_7", "ndcg", "ndcg_cut_1", "ndcg_cut_3", "ndcg_cut_7"),
    *("P_1", "P_3", "P_7", "P_20", "recall_1", "recall_3", "recall_20", "success_1", "success_3"),
    *("recip_rank", "Rprec", "bpref", "num_ret", "num_rel", "num_rel_ret", "set_P", "set_recall", "set_F"),
    *("iprec_at_recall_0.00", "iprec_at_recall_0.10", "iprec_at_recall_0.25"),
    *("iprec_at_recall_0.50", "iprec_at_recall_0.70", "iprec_at_recall_1.00"),
)

DOCS = [*(f"d{i}" for i in range(1, 13)), "D1", "é", "z", "日本", "d10x"]
SCORES = st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.0 + 1e-9, 1 / 3, 0.1, -1.0, -1.5, 1e30, 16777216.0, 16777217.0]) | st.floats(
    -10, 10, width=32
)


@st.composite
def experiments(draw):
    """A run and qrels over a few topics: ties, grades from -2 to 3, unjudged documents, topics without results."""
    topics = [str(i) for i in range(1, draw(st.integers(1, 4)) + 1)]
    judged = st.dictionaries(st.sampled_from(DOCS), st.integers(-2, 3), min_size=1, max_size=14)
    # trec_eval reads uninitialised memory where all grades of a topic are negative.
    judged = judged.filter(lambda grades: max(grades.values()) >= 0)
    rankings = st.dictionaries(st.sampled_from(DOCS), SCORES, max_size=14)
    qrels = {t: draw(judged) for t in topics}
    run = {t: draw(rankings) for t in draw(st.lists(st.sampled_from([*topics, "unjudged"]), unique=True))}
    judged = {doc_id for grades in qrels.values() for doc_id in grades}
    retrieved = {doc_id for ranking in run.values() for doc_id in ranking}
    assume(not retrieved or (set(run) & set(qrels) and retrieved & judged))  # else they do not belong together
    return run, qrels


def ranked(run, qrels, topic):
    """The grades of the documents of a topic, best first; None for one that is not judged."""
    by_score = sorted(run.get(topic, {}).items(), key=lambda item: (float(np.float32(item[1])), item[0].encode()), reverse=True)
    return [qrels[topic].get(doc_id) for doc_id, _ in by_score]


def agrees(run, qrels, measure, plain):
    """Whether the values of a measure are those of `plain(ranked grades, all grades)` for each topic."""
    evaluation = evaluate(run, qrels, measure)
    expected = {t: plain(ranked(run, qrels, t), list(qrels[t].values())) for t in qrels}
    assert evaluation.per_topic(measure) == pytest.approx(expected, abs=1e-12)
    assert evaluation[measure] == pytest.approx(sum(expected.values()) / len(expected))


def is_relevant(grades, rel):
    return [g is not None and g >= rel for g in grades]


@settings(max_examples=up_to(100), deadline=None)
@given(experiments(), st.integers(1, 3))
def test_measures_have_the_values_and_means_of_trec_eval(experiment, rel):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = experiment
    asked = {re.sub(r"_(?=\d)", ".", name) for name in TREC_NAMES}
    expected = pytrec_eval.RelevanceEvaluator(qrels, asked, relevance_level=rel).evaluate({t: r for t, r in run.items() if r})
    measures = {name: m if m.name in ("nDCG", "NumRet") else m(rel=rel) for name, m in ((n, parse(n)) for n in TREC_NAMES)}
    evaluation = evaluate(run, qrels, measures.values())
    for name, measure in measures.items():
        # What pytrec_eval leaves out has no results: 0, save for the number of relevant documents, which is known.
        absent = {t: float(name == "num_rel") * sum(g >= rel for g in qrels[t].values()) for t in qrels}
        values = {t: expected[t][name] if t in expected else absent[t] for t in qrels}
        assert evaluation.per_topic(measure) == pytest.approx(values, abs=1e-6), name
        total = math.fsum(values.values())
        assert evaluation[measure] == pytest.approx(total if name.startswith("num") else total / len(qrels), abs=1e-6), name


@settings(max_examples=up_to(100), deadline=None)
@given(experiments(), st.integers(1, 3), st.integers(1, 15))
def test_reciprocal_rank_at_k_looks_no_further_than_k(experiment, rel, k):
    def plain(grades, _):
        return next((1 / i for i, r in enumerate(is_relevant(grades[:k], rel), 1) if r), 0.0)

    agrees(*experiment, RR(rel=rel) @ k, plain)


@settings(max_examples=up_to(100), deadline=None)
@given(experiments(), st.none() | st.integers(1, 15))
def test_exponential_ndcg_gains_two_to_the_grade_minus_one(experiment, k):
    def dcg(grades):
        return sum((2 ** max(g or 0, 0) - 1) / math.log2(i + 1) for i, g in enumerate(grades[:k], 1))

    def plain(grades, judged):
        ideal = dcg(sorted(judged, reverse=True))
        return dcg(grades) / ideal if ideal else 0.0

    agrees(*experiment, nDCG(dcg="exp-log2") @ k if k else nDCG(dcg="exp-log2"), plain)


@settings(max_examples=up_to(100), deadline=None)
@given(experiments(), st.integers(1, 3), st.none() | st.integers(1, 15), st.floats(0.01, 0.99))
def test_rank_biased_precision_weights_rank_i_with_p_to_the_i_minus_1(experiment, rel, k, p):
    def plain(grades, _):
        return sum((1 - p) * p ** (i - 1) for i, r in enumerate(is_relevant(grades[:k], rel), 1) if r)

    measure = RBP(rel=rel, p=p)
    agrees(*experiment, measure @ k if k else measure, plain)


@settings(max_examples=up_to(100), deadline=None)
@given(experiments(), st.integers(1, 15))
def test_judged_is_the_share_of_the_documents_retrieved_within_k_that_the_qrels_hold(experiment, k):
    def plain(grades, _):
        return sum(g is not None for g in grades[:k]) / len(grades[:k]) if grades else 0.0

    agrees(*experiment, Judged @ k, plain)


@settings(max_examples=up_to(100), deadline=None)
@given(experiments(), st.integers(1, 3), st.integers(1, 15), st.floats(0.1, 5))
def test_set_measures_at_k_divide_by_what_was_retrieved_within_k(experiment, rel, k, beta):
    def precision(grades, _):
        return sum(is_relevant(grades[:k], rel)) / len(grades[:k]) if grades else 0.0

    def recall(grades, judged):
        wanted = sum(is_relevant(judged, rel))
        return sum(is_relevant(grades[:k], rel)) / wanted if wanted else 0.0

    def f(grades, judged):
        p, r = precision(grades, judged), recall(grades, judged)
        return (1 + beta**2) * p * r / (beta**2 * p + r) if p else 0.0

    agrees(*experiment, SetP(rel=rel) @ k, precision)
    agrees(*experiment, SetR(rel=rel) @ k, recall)
    agrees(*experiment, SetF(rel=rel, beta=beta) @ k, f)


@settings(max_examples=up_to(100), deadline=None)
@given(experiments(), st.integers(1, 2), st.integers(1, 8), st.data())
def test_complete_is_1_where_a_whole_evidence_set_is_within_k(experiment, rel, k, data):
    run, grades = experiment
    group = st.sampled_from(["0", "a", "b"])
    qrels = Qrels((t, data.draw(group), d, g) for t in grades for d, g in grades[t].items())
    evaluation = evaluate(run, qrels, Complete(rel=rel) @ k)
    for t, value in evaluation.per_topic(Complete(rel=rel) @ k).items():
        order = sorted(run.get(t, {}), key=lambda d: (float(np.float32(run[t][d])), d.encode()), reverse=True)
        assert value == any(members <= set(order[:k]) for members in qrels.groups(t, rel))


@settings(max_examples=up_to(50), deadline=None)
@given(experiments(), st.integers(1, 8))
def test_complete_is_success_where_there_are_no_groups(experiment, k):
    evaluation = evaluate(*experiment, [Complete @ k, Success @ k])
    assert evaluation.per_topic(Complete @ k) == evaluation.per_topic(Success @ k)


@settings(max_examples=up_to(50), deadline=None)
@given(experiments())
def test_all_averaged_measures_lie_between_0_and_1(experiment):
    measures = [AP, AP @ 3, nDCG, nDCG(dcg="exp-log2") @ 3, P @ 3, R, RR, RBP, IPrec @ 0.5, SetF, Judged @ 3, parse("bpref")]
    evaluation = evaluate(*experiment, measures)
    assert all(0 <= v <= 1 for m in evaluation for v in evaluation.array(m))


def test_a_topic_whose_grades_are_all_negative_scores_0():
    evaluation = evaluate({"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": -1, "b": -2}}, ["ndcg", "ndcg_cut_5", "bpref", "map", "R"])
    assert set(evaluation.values()) == {0.0}


def test_a_document_with_a_negative_grade_counts_for_bpref_as_not_judged():
    run = {"1": {"bad": 3.0, "spam": 2.0, "good": 1.0}}
    assert evaluate(run, {"1": {"bad": 0, "good": 1}}, "bpref")["bpref"] == 0.0
    assert evaluate(run, {"1": {"bad": -1, "good": 1}}, "bpref")["bpref"] == 1.0


def test_scores_that_are_equal_as_float32_are_a_tie():
    run = {"1": {"a": 1.0 + 1e-9, "b": 1.0}}
    assert evaluate(run, {"1": {"b": 1}}, RR)[RR] == 1.0


def test_precision_divides_by_k_where_set_precision_divides_by_what_was_retrieved():
    evaluation = evaluate({"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": 1}}, [P @ 5, SetP @ 5])
    assert evaluation[P @ 5] == 1 / 5
    assert evaluation[SetP @ 5] == 1 / 2


def test_cutoffs_far_beyond_the_ranking_are_fine():
    evaluation = evaluate({"1": {"a": 1.0}}, {"1": {"a": 1, "b": 1}}, [R @ 10**9, nDCG @ 10**9, AP @ 10**9, NumRel])
    assert evaluation[R @ 10**9] == 0.5
    assert evaluation[NumRel] == 2
