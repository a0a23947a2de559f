"""`evaluate` and the `Evaluation` that it gives."""

import json
import re

import numpy as np
import pytest
from support.each import each

from fontes.core import Qrels, Run, Strings, Topic, Topics
from fontes.formats import read_qrels, read_run, write_qrels, write_run
from fontes.measures import AP, RR, NumRelRet, P, R, evaluate, nDCG, parse

RUN = {"1": {"a": 3.0, "b": 2.0}, "2": {"c": 1.0}, "extra": {"a": 1.0}}
QRELS = {"1": {"a": 1, "b": 0}, "2": {"d": 1}, "3": {"a": 1}, "4": {"a": 0}}


def test_means_are_over_all_judged_topics():
    evaluation = evaluate(RUN, QRELS, [AP, P @ 1])
    assert evaluation.topics == 4
    assert evaluation[AP] == evaluation["AP"] == evaluation["map"] == 1 / 4
    assert evaluation.per_topic(AP) == {"1": 1.0, "2": 0.0, "3": 0.0, "4": 0.0}


def test_topics_that_are_missing_unjudged_or_without_relevant_documents_are_counted():
    evaluation = evaluate(RUN, QRELS, AP)
    assert (evaluation.missing, evaluation.unjudged, evaluation.irrelevant) == (2, 1, 1)


def test_a_topic_with_an_empty_ranking_is_missing():
    assert evaluate({"1": {}}, {"1": {"a": 1}}, AP).missing == 1


def test_counts_are_added_up_and_not_averaged():
    evaluation = evaluate(RUN, QRELS, ["NumRet", "NumRel", "NumRelRet"])
    assert evaluation.to_dict()["measures"] == {"NumRet": 3.0, "NumRel": 3.0, "NumRelRet": 1.0}


def test_an_evaluation_is_a_mapping_from_measure_to_mean():
    evaluation = evaluate(RUN, QRELS, ["AP", RR @ 10, "AP", "map"])
    assert list(evaluation) == [AP, RR @ 10]
    assert dict(evaluation) == {AP: 0.25, RR @ 10: 0.25}
    assert AP in evaluation
    assert "MRR@10" in evaluation
    assert "nDCG" not in evaluation
    assert "nonsense" not in evaluation
    assert 7 not in evaluation
    with pytest.raises(KeyError):
        evaluation[nDCG]
    with pytest.raises(KeyError):
        evaluation.per_topic("nDCG@10")


def test_the_array_of_a_measure_is_in_the_order_of_the_qrels_and_read_only():
    evaluation = evaluate(RUN, {t: QRELS[t] for t in ("3", "1", "2")}, RR)
    assert evaluation.topic_ids == ("3", "1", "2")
    assert evaluation.array("RR").tolist() == [0.0, 1.0, 0.0]
    assert evaluation.array("RR").dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        evaluation.array("RR")[0] = 1


def test_the_order_of_the_topics_in_the_run_does_not_matter():
    backwards = dict(reversed(RUN.items()))
    assert evaluate(backwards, QRELS, [AP, R]) == evaluate(RUN, QRELS, [AP, R])


def test_measures_are_objects_or_names_one_or_many():
    for measures in ["AP", AP, ["AP"], [AP], (m for m in [AP])]:
        assert dict(evaluate(RUN, QRELS, measures)) == {AP: 0.25}


def test_run_and_qrels_may_be_values_dicts_frames_or_paths(tmp_path):
    pd = pytest.importorskip("pandas")
    write_run(RUN, tmp_path / "some.run")
    write_qrels(QRELS, tmp_path / "some.qrels")
    run_frame = pd.DataFrame([(t, d, s) for t, r in RUN.items() for d, s in r.items()], columns=["qid", "docno", "score"])
    frame = pd.DataFrame([(t, d, g) for t, q in QRELS.items() for d, g in q.items()], columns=["qid", "docno", "label"])
    expected = evaluate(RUN, QRELS, [AP, nDCG @ 5]).to_dict(per_topic=True)
    for run in (Run.of(RUN), run_frame, tmp_path / "some.run", str(tmp_path / "some.run")):
        for qrels in (Qrels.of(QRELS), frame, tmp_path / "some.qrels", str(tmp_path / "some.qrels")):
            assert evaluate(run, qrels, [AP, nDCG @ 5]).to_dict(per_topic=True) == expected


def test_the_dict_is_json_and_has_the_topics_only_when_asked():
    evaluation = evaluate(RUN, QRELS, [AP, P(rel=2) @ 5])
    assert json.loads(json.dumps(evaluation.to_dict())) == {
        "topics": 4,
        "missing": 2,
        "unjudged": 1,
        "irrelevant": 1,
        "measures": {"AP": 0.25, "P(rel=2)@5": 0.0},
    }
    assert evaluation.to_dict(per_topic=True)["per_topic"]["AP"] == {"1": 1.0, "2": 0.0, "3": 0.0, "4": 0.0}


def test_an_evaluation_prints_as_an_aligned_table_that_says_what_is_missing():
    assert str(evaluate(RUN, QRELS, [AP, nDCG @ 10, NumRelRet])) == (
        "AP         0.2500\n"
        "nDCG@10    0.2500\n"
        "NumRelRet       1\n"
        "4 topics; 2 without results count 0; 1 without a relevant document count 0; "
        "1 topic of the run without judgments left out"
    )
    assert str(evaluate({"1": {"a": 1}}, {"1": {"a": 1}}, AP)) == "AP  1.0000\n1 topic"
    assert repr(evaluate(RUN, QRELS, AP)) == "Evaluation(4 topics: AP 0.25)"


def test_in_a_notebook_an_evaluation_is_a_table_with_the_topics_folded_in():
    shown = evaluate(
        {"<b>": {"a": 1.0}}, {"<b>": {"a": 1}, "2": {"a": 1}}, [AP, nDCG(dcg="exp-log2") @ 10, NumRelRet]
    )._repr_html_()
    means, topics = shown.split("<details>")
    assert "<th>AP</th><th>nDCG(dcg=&#x27;exp-log2&#x27;)@10</th><th>NumRelRet</th>" in means
    assert "<td>0.5000</td><td>0.5000</td><td>1</td>" in means
    assert "2 topics; 1 without results count 0" in means
    assert '<tr><td style="text-align:left">&lt;b&gt;</td><td>1.0000</td><td>1.0000</td><td>1</td></tr>' in topics
    assert '<tr><td style="text-align:left">2</td><td>0.0000</td><td>0.0000</td><td>0</td></tr>' in topics
    assert "<b>" not in shown


def test_in_a_notebook_the_topics_beyond_the_first_thousand_are_left_out_and_counted():
    qrels = {str(i): {"a": 1} for i in range(1001)}
    shown = evaluate({}, qrels, AP)._repr_html_()
    assert "each topic, the first 1,000 of 1,001" in shown
    assert shown.count("<tr><td>") == 1001  # the means and the topics
    assert "the first" not in evaluate({}, {"1": {"a": 1}}, AP)._repr_html_()


def test_a_run_without_any_topic_scores_0_and_misses_all():
    evaluation = evaluate({}, QRELS, [AP, nDCG @ 10, P @ 5])
    assert set(evaluation.values()) == {0.0}
    assert evaluation.missing == 4


def test_a_run_with_many_ids_is_evaluated_alike():
    ids = Strings.of(f"doc{i}" for i in range(5000))
    topics = Topics([Topic("1", ""), Topic("2", "")])
    numbers = np.repeat(np.arange(2), 100)
    codes = np.concatenate([np.arange(99), [4999], np.arange(50, 150)]).astype(np.int32)
    scores = np.tile(np.arange(100, 0, -1, dtype=np.float32), 2)
    run = Run.from_columns(topics, ids, numbers, codes, scores)
    qrels = {"1": {"doc0": 1, "doc3": 2, "unknown": 1}, "2": {"doc51": 1, "doc4999": 1}}
    measures = [AP, nDCG @ 10, R, RR]
    assert evaluate(run, qrels, measures) == evaluate(run.to_dict(), qrels, measures)


@each(
    ("split", "system", "mrr"),
    [("dev", "BM25", 0.552), ("dev", "SciBERT", 0.708), ("test", "BM25", 0.431), ("test", "SciBERT", 0.683)],
)
def test_published_figures_of_real_runs_come_out(shared, split, system, mrr):
    folder = shared / "checkthat25_4b"
    run = folder / "runs" / f"{split}.leon_predictions_{system}_TOP10.trec"
    evaluation = evaluate(run, folder / "qrels" / f"{split}.tsv", "MRR@5")
    assert evaluation["MRR@5"] == pytest.approx(mrr, abs=0.0005)


@pytest.mark.parametrize("name", ["doc_org_convdr", "doc_org_manual_ance_bert", "doc_org_manual_bm25"])
def test_real_runs_with_graded_judgments_score_as_in_trec_eval(shared, name):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = ["map", "ndcg", "recip_rank", "Rprec", "bpref", "num_ret", "num_rel", "num_rel_ret", "set_P", "set_F"]
    names += ["ndcg_cut_5", "ndcg_cut_500", "P_10", "recall_100", "success_1", "map_cut_100", "iprec_at_recall_0.10"]
    measures = {n: parse(n) if n == "num_ret" or "ndcg" in n else parse(n)(rel=2) for n in names}
    run = read_run(shared / "cast2021" / "baselines" / f"{name}.run")
    qrels = read_qrels(shared / "cast2021" / "qrels" / "test_docs.tsv")
    asked = {re.sub(r"_(?=\d)", ".", name) for name in names}
    expected = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), asked, relevance_level=2).evaluate(run.to_dict())
    evaluation = evaluate(run, qrels, measures.values())
    for n, measure in measures.items():
        values = evaluation.per_topic(measure)
        assert {t: values[t] for t in expected} == pytest.approx({t: v[n] for t, v in expected.items()}, abs=1e-6), n
