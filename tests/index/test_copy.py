"""Copies of an index from directory to directory: whole, checked, started again, of an index that changes meanwhile."""

from pathlib import Path

import pytest
from support.tiny_models import tiny

from fontes.core import FontesError, IndexFormatError, InputError, ParameterError
from fontes.index import Index, remote
from fontes.index.remote import copy_index


def files(path: Path) -> dict[str, bytes]:
    """The files of an index by their names, without locks."""
    found = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    return {name: file.read_bytes() for name, file in found.items() if not name.startswith(".")}


@pytest.fixture
def index(tmp_path: Path) -> Index:
    docs = [(f"d{n}", f"some words {n}") for n in range(20)]
    index = Index.build(docs, tmp_path / "here.index", separate=True, positions=True)
    index.add([("new", "fresh words")])
    index.delete(["d3"])
    return index


def test_a_copy_has_the_bytes_of_its_source(index: Index, tmp_path: Path) -> None:
    copy_index(index.path, tmp_path / "deep" / "there.index")
    assert files(tmp_path / "deep" / "there.index") == files(index.path)
    copied = Index.open(tmp_path / "deep" / "there.index")
    copied.check(deep=True)
    assert copied.fingerprint == index.fingerprint


def test_vectors_are_copied_too(index: Index, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from fontes.neural import TransformerEncoder

    encoder = TransformerEncoder(tiny("bert"))
    index.encode(encoder)
    copy_index(index.path, tmp_path / "there.index")
    assert files(tmp_path / "there.index") == files(index.path)
    assert Index.open(tmp_path / "there.index").dense(encoder).search("fresh words")[0]
    copy_index(index.path, tmp_path / "there.index", overwrite=True)
    vectors = next((tmp_path / "there.index").glob("segment-*/vectors-*/*.npy"))
    vectors.write_bytes(vectors.read_bytes()[:-1] + b"?")
    copy_index(index.path, tmp_path / "there.index", overwrite=True)
    assert files(tmp_path / "there.index") == files(index.path)


def test_a_copy_over_another_copies_what_is_new_or_damaged(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there.index"
    copy_index(index.path, there)
    with pytest.raises(InputError, match=r"is an index already; overwrite=True \(--overwrite\) replaces it"):
        copy_index(index.path, there)
    index.add([("newer", "fresher words")])
    damaged = next(there.glob("segment-*/doc_ids.bytes.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    copied: list[str] = []
    get = remote._copy_file
    monkeypatch.setattr(remote, "_copy_file", lambda address, path: (copied.append(Path(address).name), get(address, path))[1])
    copy_index(index.path, there, overwrite=True)
    assert files(there) == files(index.path)
    segments = index.state.manifest["segments"]
    assert len(copied) == 1 + 1 + len(segments[-1]["files"])  # the manifest, the damaged file, the new segment


def test_a_damaged_source_is_not_copied(index: Index, tmp_path: Path) -> None:
    file = next(index.path.glob("segment-*/doc_ids.bytes.npy"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(IndexFormatError, match="is damaged"):
        copy_index(index.path, tmp_path / "there.index")
    assert not (tmp_path / "there.index").exists()


def test_a_source_that_is_merged_meanwhile_is_copied_as_it_is_then(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, merged = remote._copy_file, []

    def merging(address: str, path: Path) -> None:
        if not merged and "segment-" in address:
            merged.append(Index.open(index.path).merge())
        get(address, path)

    monkeypatch.setattr(remote, "_copy_file", merging)
    copy_index(index.path, tmp_path / "there.index")
    assert merged
    assert files(tmp_path / "there.index") == files(index.path)


def test_an_interrupted_copy_is_no_index_and_goes_on(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, get, left = tmp_path / "there.index", remote._copy_file, iter(range(5))

    def failing(address: str, path: Path) -> None:
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        get(address, path)

    monkeypatch.setattr(remote, "_copy_file", failing)
    with pytest.raises(FontesError, match="No space left on device"):
        copy_index(index.path, there)
    with pytest.raises(IndexFormatError):
        Index.open(there)
    monkeypatch.undo()
    copy_index(index.path, there)
    assert files(there) == files(index.path)


def test_places_that_are_one_or_inside_of_one_another_are_refused(index: Index, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(index.path)
    for target in (index.path, tmp_path / "link", index.path / "inside", tmp_path):
        with pytest.raises(ParameterError, match="one is inside of the other"):
            copy_index(index.path, target, overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and is not an index"):
        copy_index(index.path, tmp_path / "other", overwrite=True)
    with pytest.raises(IndexFormatError, match="does not exist"):
        copy_index(tmp_path / "nowhere.index", tmp_path / "x.index")


def test_the_command_copies_from_folder_to_folder(index: Index, tmp_path: Path, fontes) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = fontes("copy", index.path, tmp_path / "backup.index")
    assert (code, out) == (0, f"{index.path} is at {tmp_path / 'backup.index'}\n")
    assert files(tmp_path / "backup.index") == files(index.path)
