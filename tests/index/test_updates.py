"""Changes of parts of documents: what is copied, what is analysed again, and that all else is as in a new index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.counting_encoder import Counting

from fontes.core import Doc, InputError
from fontes.index import Change
from fontes.index_methods import Index
from fontes.text import Analyzer

DOCS = [Doc(f"d{n}", f"fox {'dog ' * n}number {n}", f"Title {n}", {"year": 2000 + n, "tags": ["a"]}) for n in range(6)]


class Texts:
    """A tokenizer that notes the texts that it is given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, text: str) -> list[str]:
        self.seen.append(text)
        return text.lower().split()


def as_new(index: Index, folder: Path, **settings: Any) -> None:
    """Asserts that an index is sound, and searches as a new one of its documents."""
    index.check(deep=True)
    fresh = Index.build(index.docs(index.ids.tolist()), folder / "fresh", threads=1, **settings)
    for query in ("fox", "dog dog", "number 3", "Title", "new"):
        assert index.bm25().search(query).to_columns(columns=["year"])["doc_id"] == fresh.bm25().search(query).ids
        assert index.bm25().search(query).scores.tolist() == fresh.bm25().search(query).scores.tolist()
    assert index.facets("year") == fresh.facets("year")


@pytest.mark.parametrize("settings", [{}, {"positions": True}, {"separate": True, "positions": True}])
def test_an_update_of_metadata_alone_analyses_no_text(tmp_path: Path, settings: dict[str, Any]) -> None:
    texts = Texts()
    index = Index.build(DOCS, tmp_path / "x", analyzer=Analyzer.of(texts), threads=1, **settings)
    texts.seen.clear()
    changes = {"d1": {"metadata": {"year": 1999, "tags": None, "new": 1}}, "d4": {"metadata": {"year": 7}}}
    assert index.update(changes) == Change(2, 2, 0, 0, 6, 2)
    assert texts.seen == []
    assert index.doc("d1") == replace(DOCS[1], metadata={"year": 1999, "new": 1})
    assert list(index.ids) == ["d0", "d2", "d3", "d5", "d1", "d4"]
    index.update({"d1": {"text": "fox new"}, "d2": {"metadata": {"year": 2}}, "d4": {"metadata": {"year": 8}}})
    assert {text for text in texts.seen if "fox" in text} <= {"Title 1 fox new", "fox new"}
    as_new(index, tmp_path, analyzer=Analyzer.of(texts), **settings)


def test_an_update_of_indexed_metadata_analyses_the_document(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x", fields=("text", "year"), threads=1)
    index.update({"d1": {"metadata": {"year": 3000}}})
    assert index.bm25().search("3000").ids == ["d1"]
    assert index.bm25().search("2001").ids == []
    index.check(deep=True)


def test_an_update_of_metadata_keeps_the_vectors(tmp_path: Path) -> None:
    index, encoder = Index.build(DOCS, tmp_path / "x", threads=1), Counting(str(tmp_path / "log"))
    index.encode(encoder)
    before = index.dense(encoder).search("fox", k=6).to_columns()
    (tmp_path / "log").unlink()
    index.update({"d3": {"metadata": {"year": 1}}})
    index.update({"d0": {"metadata": {"year": 1}}, "d3": {"metadata": {"year": 2}}})
    after = index.dense(encoder).search("fox", k=6)
    assert after.to_columns()["doc_id"] == before["doc_id"]
    assert after.scores.tolist() == before["score"].tolist()
    assert not (tmp_path / "log").exists()
    index.check(deep=True)


def test_an_update_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x", threads=1)
    fingerprint = index.fingerprint
    with pytest.raises(InputError, match="year"):
        index.update({"d2": {"text": "new"}, "d1": {"metadata": {"year": "soon"}}})
    assert index.fingerprint == fingerprint
    assert index.update({"d1": {"title": "new"}, "z": {}}, missing="skip").skipped == 1
    assert index.doc("d1").title == "new"


def test_documents_that_pass_a_filter_are_deleted(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x", threads=1)
    assert index.delete(where="year >= 2003").deleted == 3
    assert index.delete(where="year >= 2003").deleted == 0
    assert index.ids.tolist() == ["d0", "d1", "d2"]
    as_new(index, tmp_path)


def test_the_command_deletes_what_passes_a_filter(tmp_path: Path, fontes: Any) -> None:
    index = Index.build(DOCS, tmp_path / "x", threads=1)
    status, out, _ = fontes("delete", index.path, "--where", "year >= 2004")
    assert (status, "2 documents deleted" in out) == (0, True)
    assert fontes("delete", index.path)[0] != 0
    assert Index.open(index.path).ids.tolist() == ["d0", "d1", "d2", "d3"]
