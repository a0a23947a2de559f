"""Ids: a string, or a whole number, which stands for its digits; and the columns of DataFrames, by their names."""

from __future__ import annotations

import numpy as np
import pytest
from support.each import each

from fontes.core import Doc, InputError, Qrels, Run, Topic, Topics
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


def test_the_id_of_a_topic_or_a_document_that_is_made_by_hand_is_a_string():
    with pytest.raises(InputError, match=r"the id of a Topic is 7, not a string; write Topic\('7', …\)"):
        Topics([Topic(7, "a")])
    with pytest.raises(InputError, match="documents, item 1: the id of a Doc is 7, not a string"):
        list(read_corpus([Doc(7, "a")]))


@pytest.mark.parametrize("content", ['{"_id": 7.0, "text": "a"}', '{"_id": 7.5, "text": "a"}'])
def test_a_float_in_a_file_is_no_id_either(tmp_path, content):
    (tmp_path / "x.jsonl").write_text(content)
    with pytest.raises(InputError, match=r"x\.jsonl, line 1: the id is 7\.., which is neither a string nor a whole number"):
        list(read_corpus(tmp_path / "x.jsonl"))
    with pytest.raises(InputError, match=r"x\.jsonl, line 1: the id is 7\.., which is neither"):
        Topics.read(tmp_path / "x.jsonl")


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
    with pytest.raises(InputError, match=r"no id \(.*\); found 'paper', 'Intro', 'Body'; say which is which: read_corpus"):
        list(read_corpus(frame))


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


def test_ids_that_pandas_made_floats_of_are_refused_with_what_to_do():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"qid": [1, 2], "docno": [10, None], "score": [1.0, 2.0]})
    with pytest.raises(InputError, match=r"the DataFrame, row 1: the document id is 10\.0, .*astype\(int\)"):
        Run.of(frame)
    with pytest.raises(InputError, match=r"the DataFrame, row 2: the document id is missing"):
        Run.of(frame.convert_dtypes())
    with pytest.raises(InputError, match=r"the DataFrame, row 1: the topic id is 1\.5"):
        Topics.of(pd.DataFrame({"qid": [1.5], "text": ["a"]}))
    with pytest.raises(InputError, match="the DataFrame, row 1: the text of the topic is missing"):
        Topics.of(pd.DataFrame({"qid": [1], "text": [None]}))


def test_a_data_frame_without_a_column_says_which_it_has():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"qid": [1], "paper": ["d"], "score": [1.0]})
    for made in (Qrels.of, Run.of):
        with pytest.raises(InputError, match="no column for the id of the document; the columns are qid, paper, score;"):
            made(frame)
    with pytest.raises(InputError, match="no column for the score; the columns are qid, docno"):
        Run.of(pd.DataFrame({"qid": [1], "docno": ["d"]}))
    with pytest.raises(InputError, match="the DataFrame, row 1: 'no' in the column 'label' is no grade"):
        Qrels.of(pd.DataFrame({"qid": [1], "docno": ["d"], "label": ["no"]}))
