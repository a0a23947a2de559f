"""Runs, rankings, and the one order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fontes.core import Doc, Hit, Run, Strings, Topic, Topics, order_keys

FLOATS = st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0])
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
RUNS = st.dictionaries(IDS, st.dictionaries(IDS, FLOATS, max_size=12), max_size=4)


def in_order(ranking):
    """The documents of a dict from id to score in the order of trec_eval."""
    return sorted(ranking, key=lambda doc_id: (float(ranking[doc_id]), doc_id), reverse=True)


@settings(deadline=None)
@given(RUNS)
def test_each_ranking_is_ordered_by_score_and_then_by_id_both_descending(rankings):
    run = Run.of(rankings)
    assert list(run) == list(rankings)
    for topic_id, ranking in rankings.items():
        assert run[topic_id].ids == in_order(ranking)
        assert run[topic_id].scores.tolist() == [ranking[d] for d in in_order(ranking)]


@settings(deadline=None)
@given(st.dictionaries(IDS, FLOATS, max_size=20))
def test_descending_keys_are_the_one_order(scores):
    ids = Strings.of(scores)
    keys = order_keys(np.array(list(scores.values()), dtype=np.float32), ids.rank)
    assert keys.dtype == np.uint64
    assert ids.take(np.argsort(keys)[::-1]) == in_order(scores)
    assert len(set(keys.tolist())) == len(scores)


@settings(deadline=None)
@given(FLOATS, FLOATS)
def test_a_key_is_greater_exactly_where_the_score_is(a, b):
    first, second = order_keys(np.array([a, b], dtype=np.float32), np.zeros(2, dtype=np.uint32)).tolist()
    assert (first > second) == (a > b)
    assert (first == second) == (a == b)


def test_minus_zero_ties_with_zero():
    assert Run.of({"1": {"a": 0.0, "b": -0.0, "c": 0.0}})["1"].ids == ["c", "b", "a"]


def test_infinite_scores_stand_first_and_last():
    assert Run.of({"1": {"a": -np.inf, "b": 0.0, "c": np.inf}})["1"].ids == ["c", "b", "a"]


def test_scores_that_differ_only_beyond_float32_are_ties():
    assert Run.of({"1": {"a": 1.0 + 1e-9, "b": 1.0}})["1"].ids == ["b", "a"]


def test_ids_that_are_not_ascii_are_ordered_by_their_code_points():
    assert Run.of({"1": dict.fromkeys(["a", "é", "z", "日本", "\U0001f600", "Z"], 1.0)})["1"].ids == [
        *("\U0001f600", "日本", "é", "z", "a", "Z")
    ]


def test_a_document_may_be_listed_for_two_topics():
    assert Run.of([("q1", "b", 1.0), ("q2", "b", 2.0), ("q1", "a", 3.0)]).to_dict() == {
        "q1": {"a": 3.0, "b": 1.0},
        "q2": {"b": 2.0},
    }


def test_a_run_is_made_from_whatever_is_at_hand():
    for rows in [
        {"1": {"a": 1.0, "b": 2.0}},
        {"1": {"a": 1, "b": 2}},
        {"1": [("a", 1.0), ("b", 2.0)]},
        [("1", "a", 1.0), ("1", "b", 2.0)],
        ((1, d, s) for d, s in [("a", 1.0), ("b", 2.0)]),
        {"1": Run.of({"1": {"a": 1.0, "b": 2.0}})["1"]},
        {"1": [Hit("b", 2.0, 1), Hit("a", 1.0, 2)]},
        [{"qid": 1, "docno": "a", "score": 1.0}, {"qid": 1, "docno": "b", "score": 2.0}],
    ]:
        assert Run.of(rows) == Run.of({"1": {"b": 2.0, "a": 1.0}})


def test_a_run_goes_to_a_dict_and_to_a_data_frame_and_back():
    pd = pytest.importorskip("pandas")
    run = Run.of({"1": {"a": 1.5, "b": 2.0}, "2": {"é": -1.0}})
    frame = run.to_pandas()
    assert frame.to_dict("list") == {
        "query_id": ["1", "1", "2"],
        "doc_id": ["b", "a", "é"],
        "score": [2.0, 1.5, -1.0],
        "rank": [1, 2, 1],
    }
    assert Run.of(run.to_dict()) == Run.of(frame) == Run.of(frame.sample(frac=1, random_state=1)[::-1].sort_index()) == run
    renamed = pd.DataFrame({"qid": frame["query_id"], "docno": frame["doc_id"], "score": frame["score"]})
    assert Run.of(renamed) == run


@settings(deadline=None)
@given(RUNS)
def test_a_run_goes_to_a_dict_and_back(rankings):
    run = Run.of(rankings)
    assert Run.of(run.to_dict()) == run


def test_a_run_keeps_the_given_topics_also_those_without_results():
    topics = Topics.of({"2": "two", "1": "one", "3": "three"})
    run = Run.of([("1", "a", 1.0), ("2", "b", 1.0), ("4", "c", 1.0)], topics)
    assert list(run) == ["2", "1", "3", "4"]
    assert run["1"].topic.text == "one"
    assert len(run["3"]) == 0
    assert len(Run.of({"1": {}})["1"]) == 0


def test_a_run_does_not_change():
    run = Run.of({"1": {"a": 1.0}})
    for name in ("topics", "documents", "provenance", "scores"):
        with pytest.raises(AttributeError):
            setattr(run, name, None)
    with pytest.raises(TypeError):
        run["1"] = {}
    for array in (run.scores, run.codes, run.bounds, run["1"].scores):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_top_of_more_than_any_number_of_documents_is_the_run():
    run = Run.of({"1": {"a": 1.0, "b": 2.0}})
    assert run.top(10**30) == run


def test_with_makes_a_copy_with_other_topics_documents_or_provenance():
    run = Run.of({"1": {"a": 1.0}})
    other = run.with_(topics=Topics.of({"1": "flu"}), provenance={"system": "x"})
    assert other["1"].topic.text == "flu"
    assert other.provenance == {"system": "x"}
    assert run["1"].topic.text == ""
    assert run.provenance == {}
    assert other == run


@settings(deadline=None)
@given(RUNS, st.integers(1, 15))
def test_top_keeps_the_best_k_of_each_topic(rankings, k):
    run = Run.of(rankings)
    top = run.top(k)
    assert list(top) == list(run)
    assert all(list(top[t]) == list(run[t])[:k] for t in run)


def test_the_columns_hold_positions_in_a_table_that_may_be_larger():
    ids = Strings.of(["x", "a", "b", "y"])
    columns = (np.array([1, 0, 1]), np.array([2, 1, 1], dtype=np.int32), np.array([1, 5, 2], dtype=np.float32))
    run = Run.from_columns(Topics.of({"1": "", "2": "", "3": ""}), ids, *columns)
    assert run.bounds.tolist() == [0, 1, 3, 3]
    assert run.codes.tolist() == [1, 1, 2]
    assert run.scores.tolist() == [5, 2, 1]
    assert run.rows == 3
    assert run.ids is ids
    assert run == Run.of({"1": {"a": 5}, "2": {"b": 1, "a": 2}, "3": {}})


def test_the_columns_of_a_large_run_are_small():
    topics, depth = 700, 1000
    run = Run.from_columns(
        Topics(Topic(str(i), "") for i in range(topics)),
        Strings.of(f"d{i}" for i in range(depth)),
        np.repeat(np.arange(topics), depth),
        np.tile(np.arange(depth, dtype=np.int32), topics),
        np.tile(np.arange(depth, dtype=np.float32), topics),
    )
    assert run.rows == topics * depth
    assert run.bounds.nbytes + run.codes.nbytes + run.scores.nbytes < 20e6


def test_runs_are_equal_if_topics_documents_and_scores_are():
    run = Run.of({"1": {"a": 1.0, "b": 2.0}})
    assert run == Run.of([("1", "b", 2.0), ("1", "a", 1.0)])
    assert run != Run.of({"1": {"a": 1.0, "b": 2.5}})
    assert run != Run.of({"1": {"a": 1.0, "c": 2.0}})
    assert run != Run.of({"2": {"a": 1.0, "b": 2.0}})
    assert run != "run"
    with pytest.raises(TypeError, match="unhashable"):
        hash(run)


def test_a_ranking_is_a_sequence_of_hits():
    ranking = Run.of({"1": {"a": 1.0, "b": 2.0, "c": 0.5}})["1"]
    assert list(ranking) == [Hit("b", 2.0, 1), Hit("a", 1.0, 2), Hit("c", 0.5, 3)]
    assert ranking[0] == ("b", 2.0, 1)
    assert ranking[-1] == ("c", 0.5, 3)
    assert ranking[1:] == [("a", 1.0, 2), ("c", 0.5, 3)]
    assert len(ranking) == 3
    for rank in (3, -4):
        with pytest.raises(IndexError):
            ranking[rank]


def test_a_ranking_prints_rank_score_and_id():
    ranking = Run.of({"q": {"a": 1.0, "b": 2.0}})["q"]
    assert str(ranking) == "   1      2.0000  b\n   2      1.0000  a"
    assert repr(ranking) == "Ranking(2 documents for topic 'q')"


def test_a_ranking_gives_its_documents_where_the_run_knows_them():
    class Shelf:
        def docs(self, ids):
            return [Doc(i, f"text of {i}") for i in ids]

    run = Run.of({"1": {"a": 1.0, "b": 2.0}})
    assert [d.text for d in run.with_(documents=Shelf())["1"].docs()] == ["text of b", "text of a"]


def test_a_topic_that_the_run_does_not_have_is_a_key_error():
    with pytest.raises(KeyError):
        Run.of({"1": {"a": 1.0}})["2"]


def test_an_empty_run_works():
    run = Run.of({})
    assert (len(run), run.rows, run.to_dict(), run.top(5) == run) == (0, 0, {}, True)
    assert repr(run) == "Run(0 topics, 0 documents)"


def test_a_computed_score_is_rounded_to_float32():
    run = Run.of({"q1": {"a": 1.0}, "q2": {"a": 2.0, "b": 1.0}})
    assert run.with_scores(np.array([1.0, 2.0, 3e38])).to_dict()["q2"] == {"b": np.float32(3e38), "a": 2.0}


def test_a_run_of_a_topic_with_a_lone_surrogate_can_be_printed() -> None:
    run = Run.of({"1": {"a": 1.0}}).with_(topics=Topics.of({"1": "red \ud800 plums"}))
    assert str(run).encode().decode().splitlines()[1] == "1  red \ufffd plums"
