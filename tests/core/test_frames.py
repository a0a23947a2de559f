"""Tables of Arrow, DuckDB, polars, pandas and Hugging Face as topics, judgments, runs and documents."""

from __future__ import annotations

import pytest
from support.each import each

import fontes as ft
from fontes.core import MissingExtraError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

ROWS = {
    "qid": ["1", "1", "2"],
    "docno": ["a", "b", "a"],
    "query": ["rain", "rain", "snow"],
    "score": [1.5, 2.5, 0.1],
    "relevance": [1, 0, 2],
}
DOCS = {"_id": ["a", "b"], "title": ["Rain", None], "text": ["it rains", "it snows"], "year": [2001, None], "tags": [["x"], []]}
RUN = ft.Run.of({"1": {"a": 1.5, "b": 2.5}, "2": {"a": 0.1}})
CORPUS = [
    ft.Doc("a", "it rains", "Rain", {"year": 2001, "tags": ["x"]}),
    ft.Doc("b", "it snows", "", {"year": None, "tags": []}),
]


def duckdb(columns):
    return pytest.importorskip("duckdb").from_arrow(pa.table(columns))


def polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def dataset(columns):
    return pytest.importorskip("datasets").Dataset(pa.table(columns))


def reversed_dataset(columns):
    rows = dataset(columns)
    return rows.select(range(len(rows) - 1, -1, -1))


KINDS = {
    "arrow": pa.table,
    "batch": lambda columns: pa.table(columns).to_batches()[0],
    "reader": lambda columns: pa.table(columns).to_reader(),
    "duckdb": duckdb,
    "polars": polars,
    "datasets": dataset,
    "streamed": lambda columns: dataset(columns).to_iterable_dataset(),
    "shuffled": lambda columns: reversed_dataset({name: column[::-1] for name, column in columns.items()}),
}
SLOW = ("datasets", "streamed", "shuffled")  # the import takes seconds
EVERY = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in KINDS]


@pytest.mark.parametrize("kind", EVERY)
def test_a_table_is_topics_judgments_a_run_and_documents(kind):
    make = KINDS[kind]
    assert ft.Run.of(make(ROWS)) == RUN
    assert {topic.id: topic.text for topic in ft.Topics.of(make(ROWS)).values()} == {"1": "rain", "2": "snow"}
    assert ft.Qrels.of(make(ROWS)).to_dict() == {"1": {"a": 1, "b": 0}, "2": {"a": 2}}
    assert list(ft.read_corpus(make(DOCS))) == CORPUS


@pytest.mark.slow
def test_all_splits_of_a_dataset_are_an_error():
    splits = pytest.importorskip("datasets").DatasetDict({"test": dataset(ROWS)})
    for read in (ft.Run.of, ft.Topics.of, ft.Qrels.of, lambda value: list(ft.read_corpus(value))):
        with pytest.raises(ft.FontesError, match=r"choose one of them: dataset\['test'\]"):
            read(splits)


@each(
    ("read", "columns", "message"),
    [
        (ft.Run.of, {"qid": ["1"], "docno": ["a"]}, "no column for the score; the columns are qid, docno"),
        (ft.Run.of, {"qid": [None], "docno": ["a"], "score": [1.0]}, "row 1: the topic id is missing"),
        (ft.Run.of, {"qid": [1.5], "docno": ["a"], "score": [1.0]}, "the topic id is 1.5, which is neither"),
        (ft.Run.of, {"qid": ["1"], "docno": ["a"], "score": ["x"]}, "row 1: 'x' in the column 'score' is not a number"),
        (ft.Run.of, {"qid": ["1"], "docno": ["a"], "score": [None]}, "row 1: None in the column 'score' is not a number"),
        (ft.Qrels.of, {"qid": ["1"], "docno": ["a"], "label": [0.5]}, "0.5 in the column 'label' is no grade"),
        (ft.Qrels.of, {"qid": ["1"], "docno": [None], "label": [1], "x": [b"1"]}, None),
        (ft.Topics.of, {"qid": ["1"], "x": ["rain"]}, "no column for the text of the topic"),
        (ft.Topics.of, {"qid": ["1"], "query": [None]}, "the text of the topic is missing"),
        (ft.read_corpus, {"_id": [None], "text": ["x"]}, "row 1: the id is null"),
        (ft.read_corpus, {"x": ["a"]}, "row 1: no id"),
        (
            ft.read_corpus,
            {"_id": ["a"], "text": ["x"], "y": [b"\xff\xfe"]},
            "row 1, column 'y': the value holds bytes that are no text",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_one_sentence(read, columns, message):
    if message is None:
        assert len(read(pa.table(columns))) == 0
        return
    with pytest.raises(ft.FontesError, match=message):
        list(read(pa.table(columns)))


def test_a_table_without_pyarrow_names_the_extra(monkeypatch):
    table = pa.table(ROWS)
    monkeypatch.setattr("fontes.core.tabular.import_module", lambda name: __import__("nothing_of_this_name"))
    with pytest.raises(MissingExtraError, match=r"reading a Table needs pyarrow.*fontes\[parquet\]"):
        ft.Run.of(table)
    with pytest.raises(MissingExtraError, match=r"to_arrow\(\) needs pyarrow"):
        RUN.to_arrow()


def test_a_lazy_frame_and_what_has_columns_alone_are_errors():
    polars = pytest.importorskip("polars")
    with pytest.raises(ft.FontesError, match=r"frame.collect\(\) gives a DataFrame"):
        ft.Run.of(polars.DataFrame(ROWS).lazy())

    class Odd:
        columns = ("qid",)

    with pytest.raises(ft.FontesError, match="rows of the type Odd cannot be read"):
        ft.Qrels.of(Odd())


def test_runs_and_judgments_of_ours_are_no_tables_to_each_other():
    assert ft.Run.of(ft.Qrels.of({"1": {"a": 2}})).to_dict() == {"1": {"a": 2.0}}


def test_rows_of_ours_go_to_arrow_and_are_queried_by_name():
    assert pa.table(RUN).equals(RUN.to_arrow())
    assert RUN.to_arrow().column_names == ["query_id", "doc_id", "score", "rank"]
    run = RUN  # noqa: F841
    best = pytest.importorskip("duckdb").sql("select doc_id from run where rank = 1 order by query_id").fetchall()
    assert best == [("b",), ("a",)]
    assert ft.Qrels.of(ft.Qrels.of({"1": {"a": 2}}).to_arrow()).to_dict() == {"1": {"a": 2}}


def test_a_run_is_written_as_parquet_and_read_back(tmp_path):
    path = tmp_path / "x.parquet"
    RUN.to_parquet(path)
    assert ft.Run.of(path) == ft.read_run(path) == RUN
    assert ft.read_run(path, topics={"0": "no results", "1": "rain"})["0"].ids == []
    ft.write_run(RUN, tmp_path / "y", format="parquet")
    assert (tmp_path / "y").read_bytes() == path.read_bytes()
    pa.parquet.write_table(pa.table({"qid": ["1", "1"], "docno": ["a", "a"], "score": [1.0, 2.0]}), path)
    with pytest.raises(ft.FontesError, match=r"x.parquet.*topic '1', document 'a': the document is listed twice"):
        ft.read_run(path)
    with pytest.raises(ft.FontesError, match="cannot be written"):
        RUN.to_parquet(tmp_path / "none" / "x.parquet")


def test_a_series_is_no_run_and_no_judgments_but_its_frame_is():
    pandas = pytest.importorskip("pandas")
    frame = RUN.to_pandas().set_index(["query_id", "doc_id"])
    for read in (ft.Run.of, ft.Qrels.of):
        for series in (frame["score"], pa.array([1]), pa.chunked_array([[1]]), pytest.importorskip("polars").Series([1])):
            with pytest.raises(ft.FontesError, match=r"has no columns; give a table \(pandas: series\.rename\('score'\)"):
                read(series)
    assert ft.Run.of(frame["score"].rename("score").reset_index()) == ft.Run.of(frame) == RUN
    assert isinstance(frame, pandas.DataFrame)
