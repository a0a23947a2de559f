"""What stopped builds and encodings leave behind is named, and removed where nobody works in it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.hashed_encoder import Hashed, made_docs

from fontes.core import FontesError, InputError
from fontes.index import Index
from fontes.index.leftovers import clean, leftovers
from fontes.storage.artifact import drafting, staging

BUSY = FontesError("busy")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    index = Index.build(made_docs(30), tmp_path / "x")
    index.encode(Hashed())
    return index


def left(place: Path) -> dict[str, bool]:
    """What is left, as seen from the folder of the place, and whether it is in use."""
    return {str(item.path.relative_to(place.parent)): item.in_use for item in leftovers(place)}


def litter(index: Index) -> list[str]:
    """Puts beside and in an index what killed processes leave there."""
    segment = index.state.leaves[0].segment.folder
    (vectors,) = segment.glob("vectors-*-1")
    (index.path.parent / ".x.building-abcd1234" / "segment").mkdir(parents=True)
    shutil.copytree(segment, index.path / "segment-0123456789abcdef")
    shutil.copytree(vectors, vectors.with_name(f"{vectors.name[:-1]}2"))
    draft = segment / f".{vectors.name[:-2]}"
    draft.mkdir()
    (vectors.with_name(f"{vectors.name[:-1]}2") / "journal").write_text("")
    ended = subprocess.Popen(["true"])
    ended.wait()
    (index.path.parent / f".x.{ended.pid}-1.tmp").write_text("")
    places = [".x.building-abcd1234", "x/segment-0123456789abcdef", vectors, draft, f".x.{ended.pid}-1.tmp"]
    places.append(vectors.with_name(f"{vectors.name[:-1]}2") / "journal")
    return sorted(str(place.relative_to(index.path.parent) if isinstance(place, Path) else place) for place in places)


def test_a_sound_index_has_no_leftovers(index: Index) -> None:
    (index.path / ".DS_Store").write_text("")
    (index.path / "segment-of-mine").mkdir()
    (index.path.parent / ".y.building-abcd1234").mkdir()
    (index.path.parent / ".x.building").mkdir()
    assert left(index.path) == {}


def test_what_is_left_is_named_and_removed_and_the_index_stays_as_it_is(index: Index) -> None:
    names = litter(index)
    assert left(index.path) == dict.fromkeys(names, False)
    gone, staying = clean(index.path)
    assert sorted(str(item.path.relative_to(index.path.parent)) for item in gone) == names
    assert staying == leftovers(index.path) == []
    again = Index.open(index.path)
    again.check()
    assert len(again.dense(Hashed()).search("w1", 3).ids) == 3
    assert again.fingerprint == index.fingerprint


def test_what_a_process_works_in_stays(index: Index) -> None:
    segment = index.state.leaves[0].segment.folder
    with staging(index.path) as stage, drafting(segment / f"vectors-{'0' * 16}-int8", BUSY) as draft:
        (draft / "journal").write_text("")
        (index.path.parent / f".x.{os.getpid()}-1.tmp").write_text("")
        assert set(left(index.path).values()) == {True}
        gone, staying = clean(index.path)
        assert (gone, len(staying)) == ([], 3)
        assert stage.is_dir()
        assert (draft / "journal").is_file()


def test_what_is_no_folder_or_file_of_its_own_is_no_leftover(index: Index, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (tmp_path / ".x.building-abcd1234").symlink_to(mine)
    (index.path / ".y.building-abcd1234").symlink_to(mine)
    clean(index.path)
    assert mine.is_dir()
    assert left(index.path) == {}


def test_leftovers_are_found_in_all_indexes_of_a_folder_and_beside_its_runs(index: Index, tmp_path: Path) -> None:
    results = tmp_path / "results"
    (results / "indexes").mkdir(parents=True)
    (results / "runs").mkdir()
    index.path.rename(results / "indexes" / "x")
    moved = Index.open(results / "indexes" / "x")
    names = litter(moved)
    (results / "runs" / ".bm25.run.999999999-1.tmp").write_text("")
    expected = {f"results/indexes/{name}" for name in names} | {"results/runs/.bm25.run.999999999-1.tmp"}
    assert set(left(results)) == expected
    clean(results)
    assert left(results) == {}


def test_check_names_leftovers_and_removes_them(fontes, index: Index) -> None:
    names = litter(index)
    code, output, _ = fontes("check", index.path)
    assert code == 0
    assert output.count("left behind: ") == len(names)
    assert f"fontes check {index.path} --clean removes it" in output
    assert output.endswith(f"{index.path} is sound: 30 documents\n")
    assert len(json.loads(fontes("check", index.path, "--json")[1])["leftovers"]) == len(names)
    code, output, _ = fontes("check", index.path, "--clean")
    assert (code, output.count("removed: ")) == (0, len(names))
    facts = {"path": str(index.path), "sound": True, "documents": 30, "leftovers": [], "removed": []}
    assert json.loads(fontes("check", index.path, "--clean", "--json")[1]) == facts


def test_check_names_what_was_to_become_an_index_where_there_is_none(fontes, tmp_path: Path) -> None:
    (tmp_path / ".x.building-abcd1234").mkdir()
    code, output, error = fontes("check", tmp_path / "x")
    assert (code, "left behind" in output, "does not exist" in error) == (1, True, True)
    assert fontes("check", tmp_path / "x", "--clean")[0] == 0
    assert list(tmp_path.iterdir()) == []
    assert fontes("check", tmp_path / "x", "--clean")[0] == 1


def test_an_index_with_vectors_is_overwritten_only_where_they_may_be_lost(fontes, index: Index, tmp_path: Path) -> None:
    (index.state.leaves[0].segment.folder / f".late-{'0' * 16}-2").mkdir()
    with pytest.raises(InputError) as error:
        Index.build(made_docs(5), index.path, overwrite=True)
    message = str(error.value)
    assert repr(Hashed()) in message
    assert "(float32)" in message
    assert f".late-{'0' * 16}-2 (unfinished)" in message
    assert "build at another place to keep them, or drop them with drop_vectors=True (--drop-vectors)" in message
    assert len(Index.open(index.path)) == 30
    (tmp_path / "c.jsonl").write_text('{"_id": "1", "text": "a"}\n')
    assert "--drop-vectors" in fontes("index", tmp_path / "c.jsonl", "-o", index.path, "--overwrite")[2]
    assert Index.open(index.path).embeddings(Hashed()).documents == 30
    assert fontes("index", tmp_path / "c.jsonl", "-o", index.path, "--overwrite", "--drop-vectors")[0] == 0
    assert Index.open(index.path).info()["vectors"] == []
