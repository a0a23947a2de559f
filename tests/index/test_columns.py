"""Columns of an index: found in the metadata or declared, filtered as plain Python would, merged byte for byte."""

import json
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.described import FILTERS, TYPES, described, passing
from support.each import each
from support.examples import up_to
from support.small_collections import PROPERTY

from fontes.core import Doc, IndexFormatError, InputError, ParameterError
from fontes.index import Index
from fontes.index.columns import filter_of


def test_a_filter_is_read_only_whatever_the_segments_are(living, tmp_path):
    for index in (living[0], of_metadata(tmp_path / "x", {"year": 2020}, {"year": 2021})):
        passed = filter_of(index.state, "year >= 2020")
        with pytest.raises(ValueError, match="read-only"):
            passed.mask[0] = True


def files(index: Index) -> dict[str, bytes]:
    (leaf,) = index.state.leaves
    return {file.name: file.read_bytes() for file in leaf.segment.folder.glob("column*")}


def of_metadata(path: Path, *metadata: dict[str, Any], **options: Any) -> Index:
    return Index.build([Doc(f"d{n}", "text", metadata=each) for n, each in enumerate(metadata)], path, **options)


@pytest.fixture(scope="module")
def living(tmp_path_factory) -> tuple[Index, list[Doc]]:
    """An index of several segments with deletions, and the documents that are left in it."""
    docs = described(300)
    index = Index.build(docs[:120], tmp_path_factory.mktemp("columns") / "x", analyzer="whitespace", columns=TYPES)
    index.add(docs[120:200])
    index.delete([f"d{n}" for n in range(0, 200, 7)])
    index.add(docs[200:])
    assert len(index.state.leaves) == 3
    return index, [doc for n, doc in enumerate(docs) if n >= 200 or n % 7]


@PROPERTY
@given(FILTERS)
def test_a_filter_passes_the_documents_for_which_it_is_true(living, said):
    index, docs = living
    text, holds = said
    assert passing(index, text) == [doc.id for doc in docs if holds(doc.metadata) is True]


def test_a_missing_value_matches_nothing_and_its_contrary_neither(tmp_path):
    index = of_metadata(tmp_path / "x", {"year": 2020}, {"year": 2021}, {}, {"year": None}, {"year": ""})
    assert passing(index, "year == 2020") == ["d0"]
    assert passing(index, "year != 2020") == passing(index, "not year == 2020") == ["d1"]
    assert passing(index, "year is None") == ["d2", "d3", "d4"]
    assert passing(index, "year is None or not year == 2020") == ["d1", "d2", "d3", "d4"]


@each(
    ("values", "kind"),
    [
        ([1, 2, None], "integer"),
        ([1, 2.5], "float"),
        ([float("nan"), 1], "integer"),
        ([True, False], "boolean"),
        (["en", "cs"], "keyword"),
        (["2020-01-01", "2021-02-03T10:00:00Z"], "date"),
        (["2020-01-01", "soon"], "keyword"),
        (["a", ["b", "c"]], "keywords"),
        ([[], ["2020-01-01"]], "keywords"),
        ([1, True], None),
        ([1, "one"], None),
        ([{"a": 1}], None),
        ([[1, 2]], None),
        (["x" * 257], None),
        ([2**63], None),
        ([None, ""], None),
    ],
)
def test_the_type_of_a_column_is_that_of_its_values(tmp_path, values, kind):
    index = of_metadata(tmp_path / "x", *({"key": value} for value in values))
    assert index.columns == ({} if kind is None else {"key": kind})


@each(
    ("declared", "value", "where"),
    [
        ("integer", "2020", "key == 2020"),
        ("integer", " -7 ", "key == -7"),
        ("float", "2.5", "key == 2.5"),
        ("float", 3, "key == 3"),
        ("boolean", "True", "key"),
        ("date", "2020-01-01", "key == '2020-01-01T00:00Z'"),
        ("keyword", 2020, "key == '2020'"),
        ("keyword", "2020-01-01", "key > '2019'"),
        ("keyword", "x" * 1000, "key > 'w'"),
        ("keywords", "a", "'a' in key"),
    ],
)
def test_a_declared_column_reads_what_strings_say(tmp_path, declared, value, where):
    index = of_metadata(tmp_path / "x", {"key": value, "other": 3}, columns={"key": declared})
    assert index.columns == {"key": declared}
    assert passing(index, where) == ["d0"]


@each(
    "metadata",
    [{"year": "2020"}, {"year": 2020.5}, {"year": True}, {"lang": 3}, {"lang": ["en"]}, {"born": "soon"}, {"open": 1}],
)
def test_an_addition_whose_column_is_of_another_type_is_refused_and_changes_nothing(tmp_path, metadata):
    index = of_metadata(tmp_path / "x", {"year": 2020, "lang": "en", "born": "2020-01-01", "open": True})
    before = {file: file.read_bytes() for file in index.path.rglob("*") if file.is_file() and ".writer" not in file.parts}
    (name,) = metadata
    with pytest.raises(InputError, match=f"document 'new': its metadata '{name}' is"):
        index.add([Doc("new", "text", metadata=metadata)])
    after = {file: file.read_bytes() for file in index.path.rglob("*") if file.is_file() and ".writer" not in file.parts}
    assert after == before
    assert "new" not in Index.open(index.path)


def test_additions_bring_new_columns_and_those_that_are_there_keep_their_types(tmp_path):
    index = of_metadata(tmp_path / "x", {"score": 0.5, "tags": ["a"], "long": "x" * 300})
    index.add([Doc("e", "text", metadata={"score": 2, "tags": "b", "year": 2020, "long": "short"})])
    assert index.columns == Index.open(index.path).columns == {"score": "float", "tags": "keywords", "year": "integer"}
    assert passing(index, "score >= 2 and 'b' in tags and year == 2020") == ["e"]
    assert passing(index, "year is None") == ["d0"]
    with pytest.raises(ParameterError, match="'long' holds long texts"):
        passing(index, "long == 'short'")


@each("text", ["a", "b", "bb", "c", "d"])
def test_keywords_are_compared_by_their_code_points(tmp_path, text):
    """Also with one that no document has, and with the first and the last."""
    words = ["b", "c", "bb", "b", None, "č"]
    index = Index.build(
        [{"_id": f"d{n}", "text": "x", "word": word} for n, word in enumerate(words)],
        tmp_path / "x",
        columns={"word": "keyword"},
    )
    for sign, compare in (
        ("<", operator.lt),
        ("<=", operator.le),
        (">", operator.gt),
        (">=", operator.ge),
        ("==", operator.eq),
    ):
        expected = [f"d{n}" for n, word in enumerate(words) if word is not None and compare(word, text)]
        assert passing(index, f"word {sign} '{text}'") == expected, sign


def test_additions_to_declared_columns_bring_no_others(tmp_path):
    index = of_metadata(tmp_path / "x", {"year": 2020}, columns={"year": "integer"})
    index.add([Doc("e", "text", metadata={"year": "2021", "lang": "en"})])
    assert index.columns == {"year": "integer"}
    assert passing(index, "year > 2020") == ["e"]


VALUES = {
    "i": st.integers(-300, 300) | st.integers(-(2**62), 2**62),
    "f": st.floats(allow_nan=False) | st.integers(-3, 3),
    "k": st.text(max_size=3),
    "l": st.lists(st.text(max_size=2), max_size=3) | st.text(max_size=2),
    "b": st.booleans(),
    "d": st.dates().map(str),
}
RECORDS = st.fixed_dictionaries({}, optional={name: values | st.none() for name, values in VALUES.items()})
KINDS = {"i": "integer", "f": "float", "k": "keyword", "l": "keywords", "b": "boolean", "d": "date"}


@settings(PROPERTY, max_examples=up_to(60, 8))
@given(st.lists(st.tuples(st.lists(RECORDS, min_size=1, max_size=4), st.sets(st.integers(0, 5))), min_size=1, max_size=3))
def test_merged_columns_have_the_bytes_of_a_build_of_the_documents_left(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("merge")
    docs = [Doc(f"{n}-{i}", "text", metadata=each) for n, (records, _) in enumerate(history) for i, each in enumerate(records)]
    gone = {f"{n}-{i}" for n, (records, deleted) in enumerate(history) for i in deleted if i < len(records)}
    index = Index.build([doc for doc in docs if doc.id.startswith("0-")], folder / "x", columns=KINDS)
    for n in range(1, len(history)):
        index.add([doc for doc in docs if doc.id.startswith(f"{n}-")])
    index.delete(gone)
    left = [doc for doc in docs if doc.id not in gone]
    index.merge()
    fresh = Index.build(left, folder / "y", columns=KINDS)
    if left:
        assert files(index) == files(fresh)
        assert index.facets(*KINDS) == fresh.facets(*KINDS)


def test_facets_count_the_documents_that_have_each_value(living):
    index, docs = living
    for column in TYPES:
        counts: dict[Any, int] = {}
        for doc in docs:
            value = doc.metadata.get(column)
            for item in set(value) if isinstance(value, list) else [] if value is None else [value]:
                counts[item] = counts.get(item, 0) + 1
        assert list(index.facets(column)[column].items()) == sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def test_facets_of_an_unknown_column_or_document_are_refused(living):
    index, _ = living
    run = index.bm25()("w1").with_(documents=index)
    with pytest.raises(InputError, match="document 'nobody' is not in the index"):
        type(run).of({"1": {"nobody": 1.0}}).with_(documents=index).facets("lang")


def test_keys_beyond_a_number_and_those_that_are_no_text_are_no_columns(tmp_path):
    index = of_metadata(tmp_path / "x", {f"key{n:03d}": n for n in range(200)}, {"\ud800": 1, "": 2})
    assert list(index.columns) == [f"key{n:03d}" for n in range(128)]


def test_strings_that_are_no_utf_8_are_kept_with_a_sign_in_their_place(tmp_path):
    index = of_metadata(tmp_path / "x", {"key": "a\ud800"}, {"key": "a\ufffd"}, {"key": "b"})
    assert index.facets("key") == {"key": {"a\ufffd": 2, "b": 1}}
    assert passing(index, "key == 'a\ufffd'") == ["d0", "d1"]


@each("name", ["columns.types", "columns.bytes", "column-0.values", "column-1.bounds", "column-4.starts"])
def test_damaged_columns_are_an_error_that_names_the_file(tmp_path, name):
    index = Index.build(described(50), tmp_path / "x", analyzer="whitespace")
    (file,) = index.path.glob(f"segment-*/{name}.npy")
    array = np.load(file)
    damaged = array.copy()
    damaged[-1] = 200 if array.dtype == np.uint8 else 0
    if name == "column-0.values":
        damaged = array[:-1]
    data = file.read_bytes()
    np.save(file, damaged)
    if file.stat().st_size != len(data):
        with pytest.raises(IndexFormatError):
            Index.open(index.path)
        return
    every = " or ".join(["born > '2000-01-01'", "lang == 'cs'", "open", "score > 0", "'a' in tags", "year > 3"])
    with pytest.raises(IndexFormatError, match="colum"):
        passing(Index.open(index.path), every)


def test_a_manifest_whose_columns_are_others_is_refused(tmp_path):
    index = of_metadata(tmp_path / "x", {"year": 2020})
    manifest = json.loads((index.path / "manifest.json").read_text())
    manifest["columns"] = {"declared": False, "types": {"year": "string"}}
    (index.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(IndexFormatError, match="manifest"):
        Index.open(index.path)
