"""A component of another package: one class in one file is built, added to, deleted from, merged, checked and shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fontes.core.errors import FontesError, IndexFormatError, ParameterError
from fontes.index import Index, component as frame
from fontes.index.batches import Batch
from fontes.index.component import Building, Component, Writer
from fontes.index.segment import Leaf, Segment
from fontes.index.state import State
from fontes.storage.arrays import Arrays, NumberWriter, write_array


class TitleLengths(Component[NDArray[Any]]):
    """The bytes of each document's title."""

    name = "titles"

    def open(self, segment: Segment) -> NDArray[Any]:
        return Arrays(segment.folder).array("titles.bytes", ("|u1", "<u2", "<u4"), segment.documents)

    def join(self, leaves: Sequence[Leaf], parts: Sequence[NDArray[Any]], facts: dict[str, Any]) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, np.uint8), *(part[leaf.live] for leaf, part in zip(leaves, parts, strict=True))])

    def writer(self, building: Building) -> Writer:
        class TitleWriter(Writer):
            numbers = NumberWriter(building.folder, "titles.bytes")

            def write(self, batch: Batch, first: int) -> None:
                self.numbers.write(batch.docs.sizes[:, 0])

            def close(self) -> dict[str, int]:
                self.numbers.close()
                return {}

        return TitleWriter()

    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        lengths = self.join(leaves, [self.of(leaf.segment) for leaf in leaves], {})
        write_array(folder, "titles.bytes", lengths.astype(np.min_scalar_type(int(lengths.max()))))
        return {}

    def check(self, leaf: Leaf, deep: bool) -> None:
        titles = [len(doc.title) for doc in leaf.segment.docs(0, leaf.segment.documents)]
        if deep and self.of(leaf.segment).tolist() != titles:
            raise IndexFormatError(f"{leaf.segment.folder} is damaged: its titles have other lengths")

    def facts(self, state: State) -> dict[str, Any]:
        return {"bytes_of_titles": int(sum(self.of(leaf.segment)[leaf.live].sum() for leaf in state.leaves))}


DOCS = [{"_id": f"d{n}", "title": "t" * n, "text": "fox owl"} for n in range(8)]


@pytest.fixture
def registered() -> Iterator[None]:
    with frame.components.restored():
        frame.components.add("titles", TitleLengths())
        yield


def lengths(index: Index) -> list[int]:
    component, leaves = frame.components["titles"], index.state.leaves
    joined: NDArray[Any] = component.join(leaves, [component.of(leaf.segment) for leaf in leaves], {})
    return joined.tolist()


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("shards", [1, 2])
def test_a_further_component_lives_with_its_index(tmp_path: Path, fontes: Any, shards: int) -> None:
    index = Index.build(DOCS[:5], tmp_path / "x", components=["titles"], shards=shards)
    assert lengths(index) == [0, 1, 2, 3, 4]
    index.add(DOCS[5:7])
    index.delete("d1")
    assert sorted(lengths(Index.open(tmp_path / "x"))) == [0, 2, 3, 4, 5, 6]
    index.check(deep=True)
    index.merge()
    index.check(deep=True)
    assert sorted(lengths(index)) == [0, 2, 3, 4, 5, 6]
    assert index.info()["bytes_of_titles"] == 20
    _, out, _ = fontes("info", tmp_path / "x")
    assert ["bytes", "of", "titles", "20"] in [line.split() for line in out.splitlines()]
    if shards == 1:
        docs = [doc for doc in DOCS[:7] if doc["_id"] != "d1"]
        new = Index.build(docs, tmp_path / "y", components=["titles"])
        assert new.fingerprint == index.fingerprint
        assert new.fingerprint != Index.build(docs, tmp_path / "z").fingerprint


@pytest.mark.usefixtures("registered")
def test_a_damaged_further_component_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    Index.build(DOCS, path, components=["titles"])
    (file,) = path.glob("segment-*/titles.bytes.npy")
    sound = file.read_bytes()
    file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    with pytest.raises(IndexFormatError, match=r"titles\.bytes\.npy has changed"):
        Index.open(path).check()
    with pytest.raises(IndexFormatError, match="its titles have other lengths"):
        Index.open(path).state.leaves[0].check()
    file.write_bytes(sound[:-1])
    with pytest.raises(IndexFormatError, match=r"titles\.bytes\.npy has .* bytes instead of"):
        Index.open(path)
    file.unlink()
    with pytest.raises(IndexFormatError, match=r"titles\.bytes\.npy is missing"):
        Index.open(path)


def test_without_its_package_a_component_is_not_lost_by_a_merge(tmp_path: Path) -> None:
    with frame.components.restored():
        frame.components.add("titles", TitleLengths())
        index = Index.build(DOCS, tmp_path / "x", components=["titles"])
        index.add([{"_id": "new", "text": "fox"}])
    index = Index.open(tmp_path / "x")
    assert len(index.search("fox")) == 9
    index.check(deep=True)
    with pytest.raises(FontesError, match="no package is installed for its component 'titles'"):
        index.merge()
    with pytest.raises(ParameterError, match="there is no component 'titles'"):
        index.add([{"_id": "newer", "text": "fox"}])
    index.merge(drop_vectors=True)
    assert "bytes_of_titles" not in index.info()


@pytest.mark.usefixtures("registered")
def test_every_component_of_fontes_has_the_verbs() -> None:
    built_in = ["columns", "fields", "late", "positions", "postings", "sparse", "text", "vectors"]
    assert list(frame.components) == sorted([*built_in, "titles"])
    for name, component in frame.components.items():
        assert component.name == name
        for verb in ("open", "merge", "check", "facts"):
            assert getattr(type(component), verb) is not getattr(Component, verb), (name, verb)
