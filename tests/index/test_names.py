"""Names in the files of an index lead nowhere else: they are checked before anything is read or written by them."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.forged import forged_artifact, forged_manifest
from support.hashed_encoder import Hashed, made_docs

from fontes.core import FontesError, IndexFormatError
from fontes.index import Index

NAMES = ["../other", "/etc", "a/b", "..", ".", "", "segment-x", "segment-0123456789abcdef/..", "a\0b", "a\\b", 7, None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = Index.build(made_docs(30), tmp_path_factory.mktemp("names") / "x")
    index.encode(Hashed())
    return index.path


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "x"))


def test_entries_of_segments_that_lead_elsewhere_or_are_none_are_refused(copy: Path) -> None:
    (copy.parent / "secret").write_text("x")
    manifest = copy / "manifest.json"
    sound, facts = manifest.read_bytes(), {"bytes": 1, "sha256": "0" * 64}
    (segment,) = json.loads(sound)["segments"]
    names = ("../../secret", "/etc/passwd", "a/b", "..", "", "a\0b")
    tables = [{**segment["files"], name: facts} for name in names]
    tables += [[], None, {"a": 1}, {"a": {}}, {"a": {"bytes": "1", "sha256": "x"}}]
    entries = [*({**segment, "name": name} for name in NAMES), *({**segment, "files": files} for files in tables)]
    for segments in (*([entry] for entry in entries), [segment, segment]):
        manifest.write_bytes(sound)
        forged_manifest(copy, lambda changed, segments=segments: changed.update(segments=segments))
        with pytest.raises(IndexFormatError, match=r"manifest\.json is damaged"):
            Index.open(copy)


@pytest.mark.parametrize("name", ["../../../secret", "/etc/passwd", "a/b", ".."])
def test_a_file_of_vectors_with_a_name_that_leads_elsewhere_is_refused(copy: Path, name: str) -> None:
    (copy.parent / "secret").write_text("x")
    folder = next(copy.glob("segment-*/vectors-*"))
    forged_artifact(folder, lambda meta: meta["files"].update({name: {"bytes": 1, "sha256": "0" * 64}}))
    with pytest.raises(IndexFormatError, match=r"artifact\.json is damaged"):
        Index.open(copy).embeddings(Hashed())


@pytest.mark.parametrize("where", ["segment-*", "segment-*/df.npy", "segment-*/vectors-*/vectors.npy", "segment-*/vectors-*"])
def test_a_link_to_another_place_is_not_read(copy: Path, where: str) -> None:
    entry = next(copy.glob(where))
    entry.rename(copy.parent / "elsewhere")
    entry.symlink_to(copy.parent / "elsewhere")
    with pytest.raises(IndexFormatError, match=r"is a link to another place|is no plain file"):
        Index.open(copy).embeddings(Hashed())


def test_an_array_that_is_not_in_the_table_is_no_way_around_it(copy: Path) -> None:
    file = next(copy.glob("segment-*/df.npy"))
    file.rename(copy.parent / "elsewhere.npy")
    file.symlink_to(copy.parent / "elsewhere.npy")
    forged_manifest(copy, lambda manifest: manifest["segments"][0]["files"].pop("df.npy"))
    with pytest.raises(IndexFormatError, match="it is no plain file"):
        Index.open(copy)


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(copy: Path) -> None:
    file = next(copy.glob("segment-*/df.npy"))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(IndexFormatError, match="is no plain file"):
        Index.open(copy)


def test_an_index_of_a_stranger_makes_nothing_outside_of_its_folder(copy: Path) -> None:
    """Whatever name the segment has, encoding and overwriting change the folder of the index alone."""
    outside = copy.parent / "other"
    outside.mkdir()
    (outside / "keep").write_text("x")
    forged_manifest(copy, lambda manifest: manifest["segments"][0].update(name="../other"))
    with pytest.raises(FontesError):
        Index.open(copy).encode(Hashed(dim=8))
    Index.build(made_docs(5), copy, overwrite=True, drop_vectors=True)
    assert [file.name for file in outside.iterdir()] == ["keep"]


def test_arrays_with_objects_in_them_are_refused_so_nothing_is_unpickled(copy: Path) -> None:
    file = next(copy.glob("segment-*/df.npy"))
    np.save(file, np.array([print], dtype=object), allow_pickle=True)
    size = file.stat().st_size
    forged_manifest(copy, lambda manifest: manifest["segments"][0]["files"]["df.npy"].update(bytes=size))
    with pytest.raises(IndexFormatError, match="its header is invalid"):
        Index.open(copy)
