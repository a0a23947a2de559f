"""Ids: a string, or a whole number, which stands for its digits; and the columns of DataFrames, by their names."""

import numpy as np
import pytest
from support.each import each

from fontes.core import Doc, InputError, Qrels, Run, Topics
from fontes.formats import read_corpus


def texts(value):
    return {topic.id: topic.text for topic in Topics.of(value).values()}


def docs(value):
    return [(doc.id, doc.text) for doc in read_corpus(value)]


def test_a_whole_number_as_an_id_stands_for_its_digits():
    for number in [7, np.int64(7), np.uint8(7)]:
        assert texts({number: "a"}) == texts([(number, "a")]) == {"7": "a"}
        assert docs({number: "a"}) == docs([(number, "a")]) == docs([{"id": number, "text": "a"}]) == [("7", "a")]
        assert Qrels.of({number: {number: 1}}).to_dict() == Qrels.of([(number, number, 1)]).to_dict() == {"7": {"7": 1}}
        assert Run.of({number: {number: 1.0}}).to_dict() == Run.of([(number, number, 1.0)]).to_dict() == {"7": {"7": 1.0}}


@each("wrong", [7.0, np.float32(7), None, True, float("nan"), b"7", ("7",)])
@each(
    ("made", "named"),
    [
        (lambda i: Topics.of({i: "a"}), "item 1 of the topics: the topic id is "),
        (lambda i: Topics.of([(i, "a")]), "item 1 of the topics: the topic id is "),
        (lambda i: list(read_corpus({i: "a"})), "documents, item 1: the id is "),
        (lambda i: list(read_corpus([{"id": i, "text": "a"}])), "documents, item 1: the id is "),
        (lambda i: Qrels.of({"q": {"d": 1}, i: {"d": 1}}), "row 2 of the qrels: the topic id is "),
        (lambda i: Qrels.of([("q", i, 1)]), "row 1 of the qrels: the document id is "),
        (lambda i: Run.of({i: {"d": 1.0}}), "the run: the topic id is "),
        (lambda i: Run.of([("q", "d", 1.0), ("q", i, 1.0)]), "row 2 of the run: the document id is "),
    ],
)
def test_any_other_id_is_refused_with_its_place(made, named, wrong):
    with pytest.raises(InputError) as caught:
        made(wrong)
    assert str(caught.value).startswith(named)


TOPIC_NAMES = ("qid", "query_id", "id", "Query-ID", "topic", "post_id")
DOC_NAMES = ("docno", "doc_id", "DocNo", "pid", "cord_uid")


def test_topics_of_a_data_frame_go_by_the_names_of_its_columns():
    pd = pytest.importorskip("pandas")
    read = {
        (name, text): texts(pd.DataFrame({text: ["a", "b"], name: [2, 1], "x": [0, 0]}))
        for name in TOPIC_NAMES
        for text in ("text", "query", "Question", "tweet_text")
    }
    assert read == {key: {"2": "a", "1": "b"} for key in read}


@pytest.mark.parametrize("name", ["id", "_id", "docno", "doc_id", "cord_uid", "pid", "DOCNO"])
def test_documents_of_a_data_frame_go_by_the_names_of_its_columns(name):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"Abstract": ["a", None], name: [2, 1], "Title": ["t", "u"]})
    corpus = read_corpus(frame)
    assert list(corpus) == list(corpus) == [Doc("2", "a", "t"), Doc("1", "", "u")]


def test_fields_choose_the_columns_of_a_data_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"paper": ["1"], "Intro": ["a"], "Body": ["b"]})
    assert list(read_corpus(frame, fields={"id": "paper", "text": ["Intro", "Body"]})) == [Doc("1", "a\nb")]


def test_judgments_and_runs_of_a_data_frame_go_by_the_names_of_its_columns():
    pd = pytest.importorskip("pandas")
    frames = {(topic, doc): pd.DataFrame({doc: ["d", "e"], topic: [1, 1]}) for topic in TOPIC_NAMES for doc in DOC_NAMES}
    without = {names: Qrels.of(frame).to_dict() for names, frame in frames.items()}
    assert without == {key: {"1": {"d": 1, "e": 1}} for key in frames}
    for grade in ("relevance", "label", "grade", "Score"):
        graded = {names: Qrels.of(frame.assign(**{grade: [0, 2]})).to_dict() for names, frame in frames.items()}
        assert graded == {key: {"1": {"d": 0, "e": 2}} for key in frames}, grade
    runs = {names: Run.of(frame.assign(score=[0.5, 1.5])).to_dict() for names, frame in frames.items()}
    assert runs == {key: {"1": {"e": 1.5, "d": 0.5}} for key in frames}


def test_of_a_row_with_several_ids_the_one_that_is_just_called_id_is_the_last():
    pd = pytest.importorskip("pandas")
    assert Qrels.of(pd.DataFrame({"id": ["d"], "qid": ["q"], "label": [1]})).to_dict() == {"q": {"d": 1}}
    assert Qrels.of(pd.DataFrame({"id": ["q"], "docno": ["d"], "label": [1]})).to_dict() == {"q": {"d": 1}}
    assert Qrels.of(pd.DataFrame({"id": [5], "qid": ["q"], "docno": ["d"], "label": [1]})).to_dict() == {"q": {"d": 1}}
