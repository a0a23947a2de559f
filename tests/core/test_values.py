"""Topics, documents, hits and explanations."""

import dataclasses
from collections import namedtuple

import pytest

from fontes.core import Doc, Explanation, Hit, Qrels, Topic, Topics


def test_topics_are_made_from_whatever_is_at_hand():
    for given in [
        {"1": "one", "2": "two"},
        {1: "one", 2: "two"},
        {"1": Topic("1", "one"), "2": Topic("2", "two")},
        [Topic("1", "one"), Topic("2", "two")],
        [("1", "one"), (2, "two")],
        ["one", "two"],
        (t for t in ["one", "two"]),
        Topics([Topic("1", "one"), Topic("2", "two")]),
    ]:
        topics = Topics.of(given)
        assert dict(topics) == {"1": Topic("1", "one"), "2": Topic("2", "two")}
        assert repr(topics) == "Topics(2)"


def test_a_query_or_a_topic_alone_is_one_topic():
    assert dict(Topics.of("flu")) == {"1": Topic("1", "flu")}
    assert dict(Topics.of(Topic("q7", "flu"))) == {"q7": Topic("q7", "flu")}


@pytest.mark.parametrize("columns", [("query_id", "text"), ("qid", "query")])
def test_topics_are_made_from_a_data_frame(columns):
    pd = pytest.importorskip("pandas")
    assert dict(Topics.of(pd.DataFrame([(7, "flu")], columns=columns))) == {"7": Topic("7", "flu")}


def test_topics_of_records_keep_their_narratives_and_descriptions():
    record = namedtuple("TrecQuery", "query_id title description narrative")
    for given in (record("7", "flu", "a", "b"), {"qid": 7, "query": "flu", "description": "a", "narrative": "b"}):
        assert dict(Topics.of([given])) == {"7": Topic("7", "flu", "b", "a")}
    assert dict(Topics.of([{"qid": 7, "query": "flu", "narrative": None}])) == {"7": Topic("7", "flu")}


def test_topics_keep_the_order_in_which_they_were_given():
    assert list(Topics.of({"b": "x", "a": "y", "10": "z"})) == ["b", "a", "10"]


def test_documents_and_topics_do_not_change():
    for value in (Doc("d", "text"), Topic("1", "text")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.text = "other"
    with pytest.raises(TypeError):
        Topics.of("flu")["1"] = Topic("1", "cold")


def test_topics_with_metadata_can_be_keys():
    assert len({Topic("1", "a", metadata={"labels": ["x"]}), Topic("1", "a", metadata={"labels": ["x"]})}) == 1


def test_a_rewritten_topic_keeps_its_origin():
    first = Topic("1", "what about it?")
    assert dataclasses.replace(first, text="what about flu?", origin=first).origin is first


def test_a_hit_is_a_tuple_of_id_score_and_rank():
    assert Hit("d", 1.5, 1) == ("d", 1.5, 1)


def test_an_explanation_prints_as_a_tree_and_converts_to_dicts():
    tree = Explanation(3.0, "sum of", (Explanation(1.0, "a"), Explanation(2.0, "b", (Explanation(2.0, "c"),))))
    assert str(tree) == "3  sum of\n  1  a\n  2  b\n    2  c"
    assert tree.to_dict()["parts"][1] == {"value": 2.0, "label": "b", "parts": [{"value": 2.0, "label": "c", "parts": []}]}


def test_qrels_are_a_mapping_to_grades_and_convert_to_and_from_dicts():
    qrels = Qrels.of({"1": {"a": 2, "b": 0}, "2": {"a": -1}})
    assert list(qrels) == ["1", "2"]
    assert dict(qrels["1"]) == {"a": 2, "b": 0}
    assert qrels.to_dict() == {"1": {"a": 2, "b": 0}, "2": {"a": -1}}
    assert Qrels.of(qrels) is qrels
    assert repr(qrels) == "Qrels(2 topics, 3 judgments)"


def test_a_dict_made_from_qrels_is_a_copy():
    qrels = Qrels.of({"1": {"a": 2}})
    qrels.to_dict()["1"]["a"] = 0
    assert qrels["1"]["a"] == 2


@pytest.mark.parametrize("columns", [("query_id", "doc_id", "relevance"), ("qid", "docno", "label")])
def test_qrels_are_made_from_triples_and_data_frames(columns):
    pd = pytest.importorskip("pandas")
    assert Qrels.of([(1, "a", 2)]).to_dict() == {"1": {"a": 2}}
    assert Qrels.of(pd.DataFrame([(1, "a", 2)], columns=columns)).to_dict() == {"1": {"a": 2}}
    assert Qrels.of([dict(zip(columns, (1, "a", 2), strict=True))]).to_dict() == {"1": {"a": 2}}
    judgment = namedtuple("TrecQrel", (*columns, "iteration"))  # as of ir_datasets
    assert Qrels.of(judgment("1", doc_id, 2, "0") for doc_id in "ab").to_dict() == {"1": {"a": 2, "b": 2}}


def test_a_document_may_have_the_same_grade_in_two_groups():
    assert len(Qrels([("1", "g", "a", 1), ("1", "h", "a", 1)])["1"]) == 1


def test_the_groups_of_a_topic_are_its_evidence_sets():
    rows = [("1", "g", "a", 1), ("1", "g", "b", 1), ("1", "h", "b", 1), ("1", "0", "c", 1), ("1", "Q0", "d", 0)]
    assert Qrels(rows).groups("1") == [{"a", "b"}, {"b"}, {"c"}]


def test_a_group_counts_only_if_all_its_documents_are_relevant():
    rows = [("1", "g", "a", 2), ("1", "g", "b", 1), ("1", "0", "c", 2)]
    assert Qrels(rows).groups("1", rel=2) == [{"c"}]
    assert Qrels(rows).groups("unknown") == []


def test_the_rows_of_qrels_give_them_back():
    rows = [("1", "g", "a", 1), ("1", "h", "a", 1), ("1", "0", "b", 0), ("2", "0", "a", -2)]
    assert list(Qrels(rows).rows()) == rows
    assert Qrels(Qrels(rows).rows()).groups("1") == Qrels(rows).groups("1")
