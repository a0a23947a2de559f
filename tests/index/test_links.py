"""An index of a stranger with symbolic links in it: nothing is written or removed where they lead, whatever is changed."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.test_distributed_build import digests
from support.counting_encoder import Counting
from support.counting_terms import CountingTerms

from fontes.core import FontesError, InputError
from fontes.experiments.collection import Collection
from fontes.index import Index
from fontes.index.leftovers import clean
from fontes.storage.artifact import ArtifactKind, commit, drafting, seal

DOCS = [(f"d{n:02}", f"fox number {n}") for n in range(20)]
LINK = r"is a link, which may lead anywhere; remove it\. Nothing was changed"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Index.build(DOCS, tmp_path / "x.index", threads=1)
    return tmp_path / "x.index"


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder of the user's, which stays as it is."""
    folder = tmp_path / "outside"
    (folder / "deeper").mkdir(parents=True)
    for name in ("holder.json", "settings.json", "journal", "vectors.npy", "norms", "numbers", "deeper/file"):
        (folder / name).write_text("mine")
    before = digests(folder)
    yield folder
    assert digests(folder) == before


CHANGES: dict[str, Callable[[Index], object]] = {
    "add": lambda index: index.add([("new", "dog")], threads=1),
    "delete": lambda index: index.delete("d03"),
    "merge": lambda index: index.merge(threads=1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_draft_of_changes_is_no_link(path: Path, outside: Path, change: str) -> None:
    (path / ".writer").symlink_to(outside)
    before = (path / "manifest.json").read_bytes()
    with pytest.raises(FontesError, match=rf"\.writer {LINK}"):
        CHANGES[change](Index.open(path))
    assert (path / "manifest.json").read_bytes() == before
    (path / ".writer").unlink()
    (path / ".writer").symlink_to(path / "nowhere")
    with pytest.raises(FontesError, match=rf"\.writer {LINK}"):
        CHANGES[change](Index.open(path))
    assert not (path / "nowhere").exists()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["holder.json", "segment", "new-1"])
def test_there_is_no_link_in_the_draft_of_changes(path: Path, outside: Path, change: str, name: str) -> None:
    (path / ".writer").mkdir()
    (path / ".writer" / name).symlink_to(outside / name if name.endswith("json") else outside)
    with pytest.raises(FontesError, match=rf"{name} {LINK}"):
        CHANGES[change](Index.open(path))


@pytest.mark.parametrize("kind", ["vectors", "weights"])
@pytest.mark.parametrize("file", ["", "settings.json", "journal", "vectors.npy", "norms", "numbers"])
def test_the_draft_of_an_encoding_has_no_links(path: Path, outside: Path, kind: str, file: str) -> None:
    encoder: Any = {"vectors": Counting(), "weights": CountingTerms()}[kind]
    index = Index.open(path)
    index.encode(encoder)
    segment = index.state.leaves[0].segment.folder
    (made,) = [entry for entry in segment.iterdir() if entry.is_dir()]
    draft = segment / f".{made.name.removesuffix('-1') if kind == 'vectors' else made.name}"
    shutil.rmtree(made)
    if file:
        draft.mkdir()
        (draft / file).symlink_to(outside / file)
    else:
        draft.symlink_to(outside)
    with pytest.raises(FontesError, match=LINK):
        Index.open(path).encode(encoder)


def test_a_link_in_the_place_of_an_artifact_is_replaced_and_not_followed(tmp_path: Path, outside: Path) -> None:
    kind = ArtifactKind("test", 1, "numbers", "count again")
    for target in (outside, tmp_path / "nowhere"):
        place = tmp_path / "place"
        shutil.rmtree(place, ignore_errors=True)
        place.symlink_to(target)
        with drafting(place, FontesError("busy")) as draft:
            (draft / "numbers").write_text("1")
            seal(draft, kind, {})
            commit(draft, place)
        assert not place.is_symlink()
        assert (place / "numbers").read_text() == "1"
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["outside", "place"]


def test_links_in_an_index_are_not_followed_by_replacing_or_cleaning(path: Path, outside: Path) -> None:
    (segment,) = path.glob("segment-*")
    (path / "segment-0123456789abcdef").symlink_to(outside)
    (segment / "deleted-0123456789abcdef").symlink_to(outside)
    (segment / "vectors-0123456789abcdef-float32-1").symlink_to(outside)
    (segment / "vectors-0123456789abcdef-float32-2").symlink_to(outside)
    (path / ".writer").symlink_to(outside)
    clean(path)
    Index.build(DOCS[:7], path, overwrite=True, drop_vectors=True, threads=1)
    assert Index.open(path).ids.tolist() == [doc_id for doc_id, _ in DOCS[:7]]


def test_a_deletion_is_not_put_where_a_link_leads(path: Path, outside: Path, tmp_path: Path) -> None:
    """The name of the folder is known beforehand: it is that of its content."""
    other = Path(shutil.copytree(path, tmp_path / "other.index"))
    Index.open(other).delete("d03")
    (deleted,) = other.glob("segment-*/deleted-*")
    (segment,) = path.glob("segment-*")
    (segment / deleted.name).symlink_to(outside)
    with pytest.raises(FontesError, match="is a link to another place"):
        Index.open(path).delete("d03")
    assert len(Index.open(path)) == len(DOCS)


def test_an_index_of_a_folder_of_results_is_no_link(tmp_path: Path) -> None:
    """Not even one to an index, which might be damaged or of an older format and then be built again."""
    folder = tmp_path / "indexes"
    made = Collection(DOCS, folder).index().path
    made.rename(tmp_path / "other.index")
    made.symlink_to(tmp_path / "other.index")
    (tmp_path / "other.index" / "manifest.json").write_text("{}")
    before = digests(tmp_path / "other.index")
    with pytest.raises(InputError, match=rf"{made.name} is a link, which may lead anywhere"):
        Collection(DOCS, folder).index()
    assert digests(tmp_path / "other.index") == before
