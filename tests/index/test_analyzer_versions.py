"""An index keeps the version of the analyzer that built it."""

import json
from pathlib import Path

import pytest

from fontes import Index
from fontes.core import ParameterError
from fontes.text import Analyzer

DOCS = {"d1": "L’homme au cafe\u0301", "d2": "un homme", "d3": "Irmak"}


def test_an_index_of_an_earlier_release_opens_and_answers_as_it_did(tmp_path: Path) -> None:
    path = tmp_path / "old.index"
    Index.build(DOCS, path, analyzer=Analyzer.of("french").as_version(1))
    described = json.loads((path / "manifest.json").read_text())["analyzer"]
    assert "version" not in described
    for index in (Index.open(path), Index.open(path, analyzer="french")):
        assert index.analyzer.version == 1
        assert [hit.id for hit in index.bm25().search("homme")] == ["d2"]
        assert [hit.id for hit in index.bm25().search("cafe\u0301")] == ["d1"]
    index.add({"d4": "L’homme"})
    index.merge()
    assert json.loads((path / "manifest.json").read_text())["analyzer"] == described
    assert [hit.id for hit in index.bm25().search("homme")] == ["d2"]
    with pytest.raises(ParameterError, match="another analyzer"):
        Index.open(path, analyzer="english")


def test_a_new_index_names_the_version_and_finds_both_forms(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "new.index", analyzer="french")
    assert json.loads((tmp_path / "new.index" / "manifest.json").read_text())["analyzer"]["version"] == 2
    assert {hit.id for hit in index.bm25().search("l'homme")} == {"d1", "d2"}
    assert [hit.id for hit in index.bm25().search("café")] == ["d1"]


@pytest.mark.parametrize("name", ["english", "turkish", "simple"])
def test_compiled_and_other_searches_compose_a_query_alike(tmp_path: Path, name: str) -> None:
    docs = {f"d{n}": text for n, text in enumerate(["café noir", "cafe\u0301 blanc", "the Irmak"] * 40)}
    index = Index.build(docs, tmp_path / "i", analyzer=name)
    for query in ("café", "cafe\u0301", "cafe\u0301 " * 2000, "+cafe\u0301"):
        assert len(index.bm25().search(query, k=200)) == 80
