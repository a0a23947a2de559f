"""Fields that are kept apart: their frequencies and lengths beside the postings, through the life of an index."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.damage import forge, put
from support.each import each
from support.examples import up_to
from support.forged import forged_manifest
from support.histories import some_docs
from support.occurrences import agrees
from support.small_collections import PROPERTY, files

from fontes.cluster.shards import PartOfIndex
from fontes.core import Doc, FontesError, IndexFormatError, InputError, ParameterError
from fontes.index import Index, component, draft, inversion

FIELDS = ("title", "text")
BOTH: dict[str, Any] = {"analyzer": "whitespace", "separate": True, "positions": True, "threads": 1}
DOCS = [Doc(f"d{n:02}", f"fox {'dog ' * (n % 4)} w{n % 11} é{n}", "fox fox" if n % 3 else "") for n in range(60)]


FEW = settings(PROPERTY, max_examples=6)
STEP = st.tuples(st.sampled_from(["add", "add", "replace", "delete", "delete", "merge"]), st.integers(0, 1 << 20))


HISTORY = (st.lists(STEP, max_size=8), st.integers(0, 1 << 20), st.sampled_from([1, 1, 3]), st.sampled_from(["1K", "2G"]))


@FEW
@given(*HISTORY)
def test_after_a_history_fields_and_positions_are_those_of_what_is_left(
    tmp_path_factory: Any, steps: Any, seed: int, shards: int, memory: str
) -> None:
    lived(tmp_path_factory, steps, seed, shards, memory)


@pytest.mark.slow
@settings(PROPERTY, max_examples=up_to(300))
@given(*HISTORY)
def test_after_any_history_fields_and_positions_are_those_of_what_is_left(
    tmp_path_factory: Any, steps: Any, seed: int, shards: int, memory: str
) -> None:
    lived(tmp_path_factory, steps, seed, shards, memory)


def lived(tmp_path_factory: Any, steps: Any, seed: int, shards: int, memory: str) -> None:
    """Goes through a history and compares what is left with a plain count, and with the files of one build."""
    folder = tmp_path_factory.mktemp("i")
    docs = {doc.id: doc for doc in some_docs(seed, [f"a{n}" for n in range(20)])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft, "FACTOR", 3)
        patch.setattr(draft, "FEW", 3)
        patch.setattr(draft, "MIN_TIER_DOCUMENTS", 15)
        patch.setattr(inversion, "CHUNK_POSTINGS", 40)
        index = Index.build(list(docs.values()), folder / "x", shards=shards, memory=memory, **BOTH)
        for number, (step, chance) in enumerate(steps):
            match step:
                case "add":
                    new = some_docs(chance, [f"{number}-{n}" for n in range(chance % 13)])
                    index.add(new, memory=memory, threads=1)
                    docs |= {doc.id: doc for doc in new}
                case "replace":
                    new = some_docs(chance, [doc_id for doc_id in docs if hash_of(doc_id, chance) % 3 == 0])
                    index.add(new, duplicates="replace", memory=memory, threads=1)
                    docs = {name: doc for name, doc in docs.items() if name not in {one.id for one in new}}
                    docs |= {doc.id: doc for doc in new}
                case "delete":
                    gone = [doc_id for doc_id in docs if hash_of(doc_id, chance) % 4 == 0]
                    index.delete(gone)
                    docs = {name: doc for name, doc in docs.items() if name not in gone}
                case "merge":
                    index.merge(memory=memory, threads=1)
        agrees(index, [docs[doc_id] for doc_id in index.ids.tolist()], FIELDS)
        index.check(deep=True)
        if shards == 1:
            index.merge(threads=1)
            fresh = Index.build([docs[doc_id] for doc_id in index.ids.tolist()], folder / "fresh", **BOTH)
            if index.columns == fresh.columns:  # which stay where no document with them does
                assert index.fingerprint == fresh.fingerprint
            index.check(deep=True)


def hash_of(doc_id: str, chance: int) -> int:
    return sum(doc_id.encode()) * 7919 + chance


@pytest.mark.parametrize("deleted", [False, True])
def test_an_actor_searches_its_shards_with_the_counts_of_the_whole(tmp_path: Path, deleted: bool) -> None:
    index = Index.build(DOCS, tmp_path / "x", shards=3, **BOTH)
    if deleted:
        index.delete([doc.id for doc in DOCS[::7]])
    for model in (
        index.bm25(),
        index.tfidf(),
        index.ql(),
        index.bm25(fields={"title": 2, "text": 1}),
        index.ql(fields={"title": 1}),
    ):
        whole = model.search("the fox and a dog", len(index))
        hits = {}
        for shard in range(3):
            part = PartOfIndex(index.state, [shard])
            of_shard = model.with_(index=part).search("the fox and a dog", len(index))
            hits |= dict(zip(of_shard.ids, of_shard.scores.tolist(), strict=True))
        assert hits == dict(zip(whole.ids, whole.scores.tolist(), strict=True))


@pytest.mark.parametrize("fields", [("title",), ("year", "text", "title", "nothing")])
def test_any_fields_can_be_kept_apart(tmp_path: Path, fields: tuple[str, ...]) -> None:
    docs = [
        Doc("a", "x y", "t", {"year": 2020}),
        Doc("b", "", "", {"nothing": None}),
        Doc("c", "2020 x x", "x", {"year": "2020 x"}),
    ]
    index = Index.build(docs, tmp_path / "x", fields=fields, **BOTH)
    agrees(index, docs, fields)
    index.check(deep=True)
    assert index.info()["separate"]["bytes"] > 0


def test_many_fields_and_frequent_terms_are_kept(tmp_path: Path) -> None:
    fields = [f"f{n}" for n in range(100)]
    docs = [Doc("a", "", "", {"f0": "x " * 70_000, "f7": "x"}), Doc("b", "", "", dict.fromkeys(fields, "x y")), Doc("c", "")]
    docs += [Doc("d", "", "", {"f99": "x " * 300})]
    index = Index.build(docs, tmp_path / "x", fields=fields, **BOTH)
    agrees(index, docs, fields)
    index.check(deep=True)


def test_word_n_grams_end_with_a_field_that_is_kept_apart(tmp_path: Path) -> None:
    docs = [Doc("a", "the fox", "dog")]
    apart = Index.build(docs, tmp_path / "x", analyzer="standard+words:1-2", separate=True)
    assert apart.terms.tolist() == ["dog", "fox", "the", "the fox"]
    assert sorted(apart.analyzed(["a"])[0]) == apart.terms.tolist()
    joined = Index.build(docs, tmp_path / "y", analyzer="standard+words:1-2")
    assert joined.terms.tolist() == ["dog", "dog the", "fox", "the", "the fox"]


def test_an_older_fontes_searches_such_an_index_and_refuses_to_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index.build(DOCS, tmp_path / "x", **BOTH)
    table = {name: place for name, place in component.COMPONENTS.items() if name not in ("fields", "positions")}
    monkeypatch.setattr(component.components, "_table", table)
    for name in ("fields", "positions"):
        monkeypatch.delitem(component.components._things, name)
    older = Index.open(index.path)
    assert len(older.search("dog")) == 10
    with pytest.raises(ParameterError, match="there is no component 'fields'"):
        older.add([Doc("new", "fox")])
    older.delete("d07")
    with pytest.raises(FontesError, match="no package is installed for its component 'fields'"):
        older.merge()


def test_an_index_that_lost_its_positions_says_so(tmp_path: Path) -> None:
    index = Index.build(DOCS, tmp_path / "x", **BOTH)
    forged_manifest(index.path, lambda manifest: manifest.update(components=["fields"]))
    reader = Index.open(index.path)
    assert (reader.separate, reader.has_positions) == (FIELDS, False)


def test_commands_make_and_describe_such_an_index(tmp_path: Path, fontes: Any) -> None:
    (tmp_path / "docs.jsonl").write_text('{"_id": "a", "title": "Fox", "text": "The quick fox"}\n', encoding="utf-8")
    code, out, _ = fontes("index", tmp_path / "docs.jsonl", "-o", tmp_path / "x", "--separate", "--positions")
    assert code == 0
    assert "bytes a posting), positions" in out
    assert "bytes a token)" in out
    lines = [line.split() for line in fontes("info", tmp_path / "x")[1].splitlines() if line.strip()]
    assert [line[-3:] for line in lines if line[0] in ("separate", "positions")] == [
        ["bytes", "a", "posting)"],
        ["bytes", "a", "token)"],
    ]
    _, _, problem = fontes(
        "index", tmp_path / "docs.jsonl", "-o", tmp_path / "y", "--positions", "--analyzer", "english+words:1-2"
    )
    assert "positions need an analyzer of one term for each token" in problem
    assert "Traceback" not in problem


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, of one of which documents are deleted."""
    path = tmp_path_factory.mktemp("sound") / "x.index"
    index = Index.build(DOCS[:45], path, **BOTH)
    index.add(DOCS[45:])
    index.delete(["d03", "d05"])
    return path


def changed(path: Path, name: str, change: Callable[[Any], object]) -> Path:
    """Changes an array of the index, the longest of that name, with sums that fit."""
    file = max(path.glob(f"segment-*/{name}.npy"), key=lambda one: one.stat().st_size)
    array = np.load(file)
    change(array)
    np.save(file, array)
    forge(path, file)
    return file


@each(
    ("name", "change"),
    [
        ("fields.bounds", put(3, 255)),
        ("fields.bounds", lambda bounds: bounds.__setitem__(slice(1, -1), bounds[-1])),
        ("fields.df", put((0, 0), 99)),
        ("fields.cf", put((0, 0), 99)),
        ("fields.lengths", put((0, 0), 99)),
        ("positions.bounds", put(-1, 3)),
        ("positions.tokens", put((0, 1), 0)),
    ],
)
def test_numbers_that_cannot_be_are_damage_at_opening(sound: Path, tmp_path: Path, name: str, change: Any) -> None:
    file = changed(Path(shutil.copytree(sound, tmp_path / "x.index")), name, change)
    with pytest.raises(IndexFormatError, match="damaged") as error:
        Index.open(tmp_path / "x.index")
    assert file.name.partition(".")[0] in str(error.value)


def swap(array: Any) -> None:
    """The first row that differs from the first one, and that, in each other's place."""
    flat = array.reshape(len(array), -1)
    other = int(np.flatnonzero((flat != flat[0]).any(axis=1))[0])
    array[[0, other]] = array[[other, 0]]


@each("name", ["fields.rows", "fields.df", "fields.lengths", "positions.rows", "positions.tokens"])
def test_what_does_not_fit_the_postings_is_found_by_a_deep_check(sound: Path, tmp_path: Path, name: str) -> None:
    path = Path(shutil.copytree(sound, tmp_path / "x.index"))
    Index.open(path).check(deep=True)
    changed(path, name, swap)
    with pytest.raises(IndexFormatError, match="damaged"):
        Index.open(path, verify=True).check(deep=True)


@each("value", [0, 1, 2, 127, 128, 254, 255])
@each("name", ["fields", "positions"])
def test_rows_of_any_bytes_are_refused_and_never_read_or_written_beside_them(
    sound: Path, tmp_path: Path, name: str, value: int
) -> None:
    path = Path(shutil.copytree(sound, tmp_path / "x.index"))
    changed(path, f"{name}.rows", lambda rows: rows.fill(value))
    index = Index.open(path)
    with pytest.raises(IndexFormatError, match=r"damaged|do not fit"):
        index.check(deep=True)
    part = index.state.parts[0]
    with suppress(IndexFormatError):
        for number in range(len(part.terms)):
            part.positions.of(number)
    with suppress(IndexFormatError):
        part.frequencies(np.arange(len(part.terms)))
    with suppress(IndexFormatError):
        index.merge()


@settings(PROPERTY, max_examples=up_to(25))
@given(st.integers(0, 1 << 30))
def test_rows_with_a_changed_byte_are_refused_or_other_numbers(sound: Path, tmp_path_factory: Any, chance: int) -> None:
    path = Path(shutil.copytree(sound, tmp_path_factory.mktemp("i") / "x.index"))
    name = ("fields.rows", "positions.rows", "positions.offsets")[chance % 3]
    changed(path, name, lambda array: array.__setitem__(chance // 3 % len(array), chance // 997 % 256))
    index = Index.open(path)
    part = index.state.parts[0]
    places = np.arange(0, int(part.df[part.term_number("fox")]), 3)
    for read in (
        lambda: part.frequencies(np.arange(len(part.df))),
        lambda: part.positions.of(part.term_number("fox")),
        lambda: part.positions.of(part.term_number("fox"), places),
        index.merge,
    ):
        with suppress(IndexFormatError):
            read()


def test_documents_of_another_index_are_not_found(tmp_path: Path) -> None:
    index = Index.build(DOCS[:3], tmp_path / "x", **BOTH)
    with pytest.raises(InputError):
        index.analyzed(["nobody"])
    assert index.analyzed(["d01"]) == [["fox", "fox", "fox", "dog", "w1", "é1"]]
    assert {name.partition(".")[0] for name in map(os.path.basename, files(index.path))} >= {"fields", "positions"}
