"""Documents in DataFrames, Series, Arrow tables and lists of texts: their values, ids and errors."""

import collections
import datetime
import decimal
import math
import random
import re
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each

from fontes.core import Doc, InputError, Topics
from fontes.core.errors import InputWarning
from fontes.formats import read_corpus
from fontes.formats.packed import Packing, join_packed, pack_docs
from fontes.index import Index

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

TEXTS = ["a cat sat", "a dog ran", "the cat ran"]
VALUES = {  # cells of a column, their type in the index, and their JSON values
    "dates": (pd.to_datetime(["2020-01-01", "2020-01-02", None]), "date", ["2020-01-01", "2020-01-02", None]),
    "nanoseconds": (
        pd.Series(["2020-01-01T12:30:00.123456789", None, None]).astype("datetime64[ns]"),
        "date",
        ["2020-01-01T12:30:00.123456", None, None],
    ),
    "zone": (
        pd.to_datetime(["2020-01-01", "2020-07-01", None]).tz_localize("Europe/Prague"),
        "date",
        ["2020-01-01T00:00:00+01:00", "2020-07-01T00:00:00+02:00", None],
    ),
    "date": ([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), None], "date", ["2020-01-01", "2020-01-02", None]),
    "durations": (pd.to_timedelta(["1 day", "1.5 s", None]), "float", [86400.0, 1.5, None]),
    "category": (pd.Categorical(["x", "y", None]), "keyword", ["x", "y", None]),
    "category of numbers": (pd.Categorical([1, 2, None]), "integer", [1, 2, None]),
    "lists": ([["x"], ["y", "z"], None], "keywords", [["x"], ["y", "z"], None]),
    "nullable": (pd.array([1, None, 3], dtype="Int64"), "integer", [1, None, 3]),
    "floats": ([1.5, float("nan"), 2.0], "float", [1.5, None, 2.0]),
    "truth": (pd.array([True, None, False], dtype="boolean"), "boolean", [True, None, False]),
    "decimal": ([decimal.Decimal("1.50"), decimal.Decimal(2), None], "float", [1.5, 2, None]),
    "strings": (pd.array(["x", None, "z"], dtype="string"), "keyword", ["x", None, "z"]),
    "times": ([datetime.time(1, 2), None, datetime.time(3)], "keyword", ["01:02:00", None, "03:00:00"]),
}
OBJECTS = {  # values that only columns of Python's objects have
    "local": (
        [datetime.datetime(1880, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(seconds=3464))), None, None],
        "date",
        ["1879-12-31T23:02:16+00:00", None, None],
    ),
    "arrays": ([np.array(["x", "y"]), np.array([]), None], "keywords", [["x", "y"], [], None]),
    "moments": ([np.datetime64("2020-01-01"), np.datetime64("NaT"), None], "date", ["2020-01-01", None, None]),
    "numbers": ([np.int64(1), np.float32(2.5), None], "float", [1, 2.5, None]),
    "sets": ([{"b", "a"}, set(), None], "keywords", [["a", "b"], [], None]),
    "uuid": ([uuid.UUID(int=1), None, None], "keyword", ["00000000-0000-0000-0000-000000000001", None, None]),
    "period": (pd.period_range("2020-01", periods=3, freq="M"), "keyword", ["2020-01", "2020-02", "2020-03"]),
}


def docs(value):
    return [(doc.id, doc.text) for doc in read_corpus(value)]


@each("library", ["pandas", "polars", "arrow", "dicts", "docs"])
def test_each_column_of_a_frame_has_its_type_in_the_index(tmp_path, library):
    columns = VALUES if library in ("polars", "arrow") else VALUES | OBJECTS
    cells = {name: column[0] for name, column in columns.items()}
    frame = pd.DataFrame({"id": ["a", "b", "c"], "text": TEXTS, **cells})
    match library:
        case "polars":
            frame = pl.from_pandas(frame)
        case "arrow":
            frame = pa.Table.from_pandas(frame)
        case "dicts" | "docs":
            frame = frame.to_dict("records")
    if library == "docs":
        frame = [Doc(row["id"], row["text"], "", {name: row[name] for name in columns}) for row in frame]
    index = Index.build(frame, tmp_path / "x")
    assert index.columns == {name: kind for name, (_, kind, _) in columns.items()}
    metadata = [doc.metadata for doc in index.docs(["a", "b", "c"])]
    assert {name: [each[name] for each in metadata] for name in columns} == {name: v for name, (_, _, v) in columns.items()}
    assert Index.build([("z", "old")], tmp_path / "y").add(frame).added == 3


def test_a_frame_gives_the_bytes_of_its_json_lines(tmp_path):
    frame = pd.DataFrame(
        {"id": range(3000), "title": "t", "text": "some words", "n": range(3000), "s": [None, "x", "y"] * 1000}
    )
    frame.loc[7, "title"] = None
    lines = frame.to_json(orient="records", lines=True)
    (tmp_path / "frame.jsonl").write_text(lines, encoding="utf-8")
    built = [
        Index.build(source, tmp_path / f"index{number}")
        for number, source in enumerate((tmp_path / "frame.jsonl", frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)))
    ]
    assert len({index.fingerprint for index in built}) == 1


def test_a_missing_text_of_a_record_is_empty_and_not_the_word_nan():
    frame = pd.DataFrame({"id": [1, 2], "text": ["x", np.nan], "title": [np.nan, "t"]})
    expected = [Doc("1", "x", ""), Doc("2", "", "t")]
    assert list(read_corpus(frame)) == list(read_corpus(frame.to_dict("records"))) == expected


SERIES = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "iterator": TEXTS,
    "array": np.array(TEXTS),
    "objects": np.array(TEXTS, dtype=object),
    "index": pd.Index(TEXTS),
    "polars": pl.Series(TEXTS),
    "arrow": pa.array(TEXTS),
    "chunked": pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
}


@each("kind", SERIES)
def test_texts_are_documents_numbered_from_0_and_topics_numbered_from_1(kind, tmp_path):
    make = iter if kind == "iterator" else lambda value: value
    assert docs(make(SERIES[kind])) == list(zip("012", TEXTS, strict=True))
    assert {topic.id: topic.text for topic in Topics.of(make(SERIES[kind])).values()} == dict(zip("123", TEXTS, strict=True))
    index = Index.build(make(SERIES[kind]), tmp_path / "x")
    assert index.ids.tolist() == ["0", "1", "2"]


def test_named_tuples_are_records_and_sets_have_an_order():
    frame = pd.DataFrame({"id": ["a", "b"], "text": TEXTS[:2], "day": pd.to_datetime(["2020-01-01", None])})
    for rows in (frame.itertuples(), frame.itertuples(index=False)):
        assert [(doc.id, doc.text, doc.metadata["day"]) for doc in read_corpus(rows)] == [
            ("a", "a cat sat", "2020-01-01"),
            ("b", "a dog ran", None),
        ]
    pair = collections.namedtuple("pair", "key content")
    assert docs([pair("a", "x")]) == [("a", "x")]
    assert next(iter(read_corpus([pair("a", "x")], fields={"id": "content", "text": "key"}))) == Doc("x", "a")
    assert docs(set(TEXTS)) == list(zip("012", sorted(TEXTS), strict=True))


def test_an_interval_of_duckdb_is_a_duration():
    table = pytest.importorskip("duckdb").sql(
        "select 'a' id, 'x' as text, timestamp '2020-01-02 01:00' - timestamp '2020-01-01' d"
    )
    assert [doc.metadata for doc in read_corpus(table)] == [{"d": 90000.0}]


@each("labels", [None, [7, 8, 9], ["x", "y", "z"]])
@each("dtype", [None, object, "category"])
def test_the_labels_of_a_series_are_ids(labels, dtype):
    series = pd.Series(TEXTS, index=labels, dtype=dtype)
    expected = dict(zip(map(str, labels or range(3)), TEXTS, strict=True))
    assert dict(docs(series)) == dict(docs(series.to_frame("text"))) == expected
    for topics in (Topics.of(series), Topics.of(series.to_frame("query"))):
        assert {topic.id: topic.text for topic in topics.values()} == expected


def test_records_are_topics():
    frame = pd.DataFrame({"qid": [1, 2], "query": TEXTS[:2], "year": [2001, 2002]})
    assert Topics.of(frame.to_dict("records")) == Topics.of(frame)


def test_labels_that_are_no_ids_are_an_error_with_a_remedy_that_works():
    for labels, problem in (([1, 1, 2], "holds '1' twice"), ([0.5, 1, 2], "holds 0.5, neither a string nor a whole number")):
        series = pd.Series(TEXTS, index=labels)
        for read, value in ((read_corpus, series), (Topics.of, series), (docs, series.to_frame("text"))):
            with pytest.raises(InputError, match=rf"{problem}; (series|frame)\.reset_index\(drop=True\) numbers the rows"):
                read(value)
        assert len(docs(series.reset_index(drop=True))) == 3


def test_a_named_index_of_a_frame_is_a_column_or_its_ids(tmp_path):
    frame = pd.DataFrame({"text": TEXTS, "n": [1, 2, 3]}, index=pd.Index(["x", "y", "z"], name="paper"))
    expected = [Doc(name, text, "", {"n": n}) for name, text, n in zip("xyz", TEXTS, (1, 2, 3), strict=True)]
    assert list(read_corpus(frame)) == list(read_corpus(pa.Table.from_pandas(frame))) == expected
    assert list(read_corpus(frame, fields={"id": "paper"})) == expected
    dated = frame.reset_index().set_index(pd.DatetimeIndex(["2020-01-01", "2020-01-02", "2020-01-02"], name="day"))
    assert next(iter(read_corpus(dated.rename(columns={"paper": "id"})))).metadata == {"day": "2020-01-01", "n": 1}
    assert [doc.id for doc in read_corpus(dated[["text"]])] == ["0", "1", "2"]


def test_a_frame_without_ids_is_numbered_unless_a_column_may_be_meant_as_ids():
    for make, ids in ((pd.DataFrame, ["a1", "a2", "a3"]), (pl.DataFrame, ["a", "b", "c"]), (pa.table, ["x", "y", "z"])):
        columns = {"text": TEXTS, "year": [2001, 2001, 2002], "when": [datetime.date(2020, 1, day) for day in (1, 2, 3)]}
        assert [doc.id for doc in read_corpus(make(columns))] == ["0", "1", "2"]
        with pytest.raises(InputError, match=r"row 1: no id .*read_corpus\(…, fields={'id': 'paper', 'text': 'text'}\)"):
            list(read_corpus(make({"paper": ids, **columns})))
    frame = pd.DataFrame({"text": TEXTS, "year": [2001, 2001, 2002], "paper": ["a1", "a2", "a3"]})
    with pytest.raises(InputError, match=r"or give the rows ids: frame\.reset_index\(names='_id'\)$"):
        list(read_corpus(frame))
    assert docs(frame.reset_index(names="_id")) == docs(frame[["text", "year"]]) == list(zip("012", TEXTS, strict=True))
    with pytest.raises(InputError, match=r"or give the rows ids: frame\.with_row_index\('_id'\)$"):
        list(read_corpus(pl.from_pandas(frame)))
    assert docs(pl.from_pandas(frame).with_row_index("_id")) == list(zip("012", TEXTS, strict=True))
    with pytest.raises(InputError, match="no id"):
        list(read_corpus(pd.DataFrame({"paper_id": [4, 5], "text": TEXTS[:2]})))
    assert docs(frame[frame.year == 2002].drop(columns="paper")) == [("2", "the cat ran")]


def test_the_index_that_pandas_stores_in_arrow_is_no_metadata():
    frame = pd.DataFrame({"id": ["a", "b"], "text": TEXTS[:2]}, index=[4, 2])
    assert [doc.metadata for doc in read_corpus(pa.Table.from_pandas(frame))] == [{}, {}]
    assert [doc.id for doc in read_corpus(pa.Table.from_pandas(frame[["text"]]))] == ["4", "2"]


def test_unnamed_columns_are_chosen_by_number():
    frame = pd.DataFrame([["a", "a cat sat"]])
    assert list(read_corpus(frame, fields={"id": "0", "text": "1"})) == [Doc("a", "a cat sat")]


def test_a_list_of_what_looks_like_files_is_no_list_of_texts():
    for paths in [
        ["notes.jsonl"],
        ["a cat.txt", "b.jsonl"],
        ["notes/a", "notes/b"],
        ["s3://bucket/x", "a.b"],
        [Path("notes"), "x"],
    ]:
        with pytest.raises((InputError, ImportError), match=r"there is no such file or folder|s3"):
            read_corpus(paths)


def test_a_list_of_what_names_no_files_is_a_list_of_texts():
    for texts in [["cat"], ["A dog."], ["see a.b", "https://example.org/a"], ["猫が座った", "x"], [""], ["x" * 9999, "\0"]]:
        assert [text for _, text in docs(texts)] == texts


def test_a_list_with_a_file_is_a_list_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("notes").write_text('{"_id": "a", "text": "x"}\n', encoding="utf-8")
    assert docs(["notes"]) == [("a", "x")]
    with pytest.raises(InputError, match="a cat sat: there is no such file or folder"):
        read_corpus(["notes", "a cat sat"])


def test_bad_rows_of_a_frame_are_left_out_on_request():
    frame = pd.DataFrame({"id": ["a", None, "c"], "text": TEXTS, "n": [1, 2, 3]})
    with pytest.warns(InputWarning, match="documents, row 2: the id is null.*; left out, 1 of at most 1"):
        assert [doc.id for doc in read_corpus(frame, skip_bad=1)] == ["a", "c"]


IDS = [("a", "b", "ab c"), (1, 2), ("a", 7, 1.5), ("a", "b", "c", "a\ud800", "  ", "")]
TEXTS_OF_RECORDS = [("", "x", "žluť"), ("x", None), ("x", 7)]
KINDS: list[tuple[Any, ...]] = [
    *(("k", ""), (2**63 - 1, -1), (2**70, 1), (math.nan, 0.5), (math.inf, 1), (None,), (True, False), (True, 1, "1", None)),
    *(([], [1]), ({"url": "u"},), ("x", {"url": 1}), (datetime.date(2020, 1, 2),), (np.float32(1.5),)),
]


@each("seed", range(300))
def test_records_that_are_packed_together_are_those_that_are_read_one_by_one(seed):
    draw = random.Random(seed)
    columns = {"id": draw.choice(IDS), "text": draw.choice(TEXTS_OF_RECORDS)}
    columns |= {name: draw.choice(KINDS) for name in ("title", "n", "k", "metadata") if draw.random() < 0.3}
    records = [{name: draw.choice(values) for name, values in columns.items()} for _ in range(draw.randrange(1, 7))]
    if draw.random() < 0.2:
        records[-1] = dict(reversed(records[-1].items()))

    def packed_together():
        portions = read_corpus(records).portions(1 << 20, 4)
        return join_packed([part.work() if isinstance(part, Packing) else pack_docs(part) for part in portions])

    try:
        expected = pack_docs(list(read_corpus(records)))
    except InputError as error:
        with pytest.raises(InputError, match=f"^{re.escape(str(error))}$"):
            packed_together()
        return
    packed = packed_together()
    assert (list(packed.ids), packed.text.tobytes()) == (list(expected.ids), expected.text.tobytes())
    np.testing.assert_array_equal(packed.sizes, expected.sizes)
    empty = [{}] * len(records)
    assert [dict(value) for value in packed.values or empty] == [dict(value) for value in expected.values or empty]
