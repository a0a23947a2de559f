"""Positions are added to an index from its stored texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hashed_encoder import Hashed
from support.small_collections import files

import fontes as ft
from fontes import Index
from fontes.core import FontesError, InputError, ParameterError
from fontes.index import writer

DOCS = [
    {
        "id": f"d{n}",
        "title": f"Hot spring {n}",
        "text": "the hot springs of the café " * (n % 4),
        "year": 1990 + n,
        "tags": ["a", "b"],
    }
    for n in range(700)
]


@each(
    "settings",
    [{}, {"separate": True}, {"shards": 3}, {"analyzer": "czech+lower", "fields": ("text",)}, {"columns": {"year": "integer"}}],
)
def test_an_index_with_added_positions_equals_one_that_was_built_with_them(tmp_path: Path, settings: dict[str, Any]) -> None:
    index = Index.build(DOCS, tmp_path / "a", **settings)
    change = index.merge(positions=True)
    assert change.documents == len(DOCS)
    Index.build(DOCS, tmp_path / "b", positions=True, **settings)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    index.check()
    assert len((index.query() >> index.bm25()).search('"springs of the café"')) == 10


def test_the_values_of_a_table_keep_their_types(tmp_path: Path) -> None:
    table = tmp_path / "docs.csv"
    table.write_text("id,text,year,place\n1,hot springs,2019,07\n2,the springs,2020,x\n")
    index = Index.build(table, tmp_path / "a")
    index.merge(positions=True)
    Index.build(table, tmp_path / "b", positions=True)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_several_segments_and_deletions_become_one_segment(tmp_path: Path) -> None:
    index = Index.build(DOCS[:300], tmp_path / "a")
    index.add(DOCS[300:])
    index.delete([doc["id"] for doc in DOCS[100:400]])
    index.merge(positions=True)
    Index.build(DOCS[:100] + DOCS[400:], tmp_path / "b", positions=True)
    built, added = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in "ba")
    assert added["fingerprint"] == built["fingerprint"]
    index.add([{"id": "new", "text": "springs of the hot"}])
    assert [hit.id for hit in (index.query() >> index.bm25()).search('"springs of the hot"')] == ["new"]


def test_vectors_stay(tmp_path: Path) -> None:
    encoder = Hashed()
    index = Index.build(DOCS, tmp_path / "a")
    index.encode(encoder)
    before = list(index.dense(encoder).search("hot spring 5", k=20))
    index.merge(positions=True)
    assert list(index.dense(encoder).search("hot spring 5", k=20)) == before


def test_nothing_changes_where_positions_are(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "a", positions=True)
    before = files(tmp_path / "a")
    index.merge(positions=True)
    assert files(tmp_path / "a") == before


def test_an_empty_index_has_positions_of_what_is_added_later(tmp_path: Path) -> None:
    index = Index.build([], tmp_path / "a")
    index.merge(positions=True)
    index.add(DOCS[:3])
    assert index.state.has_positions


def test_an_index_of_an_earlier_release_keeps_its_analysis(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "a", analyzer=ft.Analyzer.of("french").as_version(1))
    index.merge(positions=True)
    assert "version" not in json.loads((tmp_path / "a" / "manifest.json").read_text())["analyzer"]


def test_what_has_no_positions_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    grams = Index.build(DOCS, tmp_path / "grams", analyzer="english+words:1-2")
    weights = Index.build([{"id": "1", "text": "", "vector": {"hot": 1.0}}], tmp_path / "weights", vectors="vector")
    grams.export(tmp_path / "docs.ciff")
    ciff = Index.build(tmp_path / "docs.ciff", tmp_path / "ciff")
    for index, kind, problem in (
        (grams, ParameterError, "leave out its n-grams"),
        (weights, ParameterError, "term weights .* have neither fields nor positions"),
        (ciff, InputError, "holds no text to find positions in"),
    ):
        before = files(index.path)
        with pytest.raises(kind, match=problem):
            index.merge(positions=True)
        assert files(index.path) == before


def test_a_failed_commit_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build(DOCS, tmp_path / "a")
    before = files(index.path)

    def fail(path: Path, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "replace_manifest", fail)
    with pytest.raises(FontesError, match="cannot be written: No space left on device; nothing was changed"):
        index.merge(positions=True)
    assert files(index.path) == before
