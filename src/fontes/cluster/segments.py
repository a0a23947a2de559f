"""Tasks of a build on a cluster: the segment of a part, or the merge of several segments.

Each result is a folder in a place that all machines share, under a name that says what it is made of. It is made in a draft and
renamed, so that it is whole or not there; what is there already is not made again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.errors import IndexFormatError
from ..core.progress import silent
from ..core.strings import Strings
from ..formats.corpus import Corpus
from ..index.build import IndexSettings, build_segment, merge_segments
from ..index.columns import COLUMNS, ColumnWriter, Schema, columns_anew
from ..index.segment import Deletions, Leaf, Segment
from ..index.tables import first_repeated, joined
from ..storage.arrays import sync_folder
from ..storage.artifact import META, Artifact, ArtifactKind, seal

KIND = ArtifactKind("fontes-index-part", 1, "a part of an index", "start the build again")


@dataclass(frozen=True)
class Finished:
    """A finished segment.

    Args:
        name: The name of its folder.
        counts: Numbers of its documents, terms, postings and tokens.
        names: Of the segment of a part, the names of metadata that were taken up, with their types; see `ColumnWriter`.
        repeated: An id that it has twice, and the places of both among its documents; None where there is none.
        before: Whether it was there already.
    """

    name: str
    counts: dict[str, int]
    names: list[tuple[str, str]]
    repeated: tuple[str, int, int] | None
    before: bool = False

    @property
    def documents(self) -> int:
        """Number of its documents."""
        return self.counts["documents"]


@dataclass(frozen=True)
class Part:
    """A part of the documents, of which a segment is to be made.

    Args:
        corpus: Its documents.
        folder: The folder of finished segments.
        name: The name of this one.
        form: Settings of the index.
        schema: The columns that were named, or none yet.
    """

    corpus: Corpus
    folder: Path
    name: str
    form: IndexSettings
    schema: Schema


@dataclass(frozen=True)
class Child:
    """A finished segment that goes into a merge.

    Args:
        name: The name of its folder.
        first: The place of its first document that is taken.
        last: The place after that of the last one.
        documents: Number of its documents.
        anew: Whether its columns are to be read from the documents again, as they have other types than those of the whole.
    """

    name: str
    first: int
    last: int
    documents: int
    anew: bool = False

    @property
    def taken(self) -> int:
        """Number of its documents that are taken."""
        return self.last - self.first

    @property
    def is_whole(self) -> bool:
        """Whether all of its documents are taken, as they are."""
        return self.taken == self.documents and not self.anew


@dataclass(frozen=True)
class Merge:
    """Segments beside one another that are to become one.

    Args:
        children: The segments.
        folder: The folder of finished segments.
        name: The name of this one.
        schema: The columns of all documents.
    """

    children: tuple[Child, ...]
    folder: Path
    name: str
    schema: Schema


def make_part(part: Part) -> Finished:
    """The segment of a part."""

    def write(folder: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
        columns = ColumnWriter(folder, part.schema)
        counts = build_segment(
            part.corpus,
            folder,
            part.form,
            progress=silent,
            columns=columns,
            repeated=True,
        )
        return counts, columns.names

    return _made(part.folder, part.name, write)


def make_merge(merge: Merge) -> Finished:
    """The segment of several."""

    def write(folder: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
        leaves = [_leaf(merge.folder, child) for child in merge.children]
        for number, child in enumerate(merge.children):
            if child.anew:
                other = folder.parent / f"columns-{number}"
                other.mkdir()
                segment = leaves[number].segment
                segment.opened[COLUMNS.name] = columns_anew(segment, other, merge.schema)
        return merge_segments(leaves, folder, progress=silent), []

    return _made(merge.folder, merge.name, write)


def make_check(folder: Path, names: Sequence[str]) -> tuple[str, int, int] | None:
    """An id that several finished segments have among them twice, and its places among the documents of all of them."""
    return _repeated(joined([Segment(folder / name).ids for name in names], [None] * len(names)))


def segment_at(folder: Path, name: str) -> Path:
    """A finished segment, without what was beside its files until it is in an index."""
    (folder / name / META).unlink()
    return folder / name


def _made(folder: Path, name: str, write: Callable[[Path], tuple[dict[str, int], list[tuple[str, str]]]]) -> Finished:
    """The segment under a name, which `write` makes in an empty folder unless it is there."""
    place = folder / name
    if (before := _finished(place)) is not None:
        return before
    draft = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder))
    try:
        segment = draft / "segment"
        segment.mkdir()
        counts, names = write(segment)
        repeated = _repeated(Segment(segment).ids)
        seal(segment, KIND, {"counts": counts, "names": names, "repeated": repeated})
        segment.chmod(0o755)
        with suppress(OSError):  # another process may have made the same
            segment.rename(place)
        sync_folder(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Finished(name, counts, names, repeated)


def _finished(place: Path) -> Finished | None:
    """The segment in a folder if it is as it was written; else the folder is removed."""
    if not place.exists():
        return None
    try:
        artifact = Artifact(place, KIND)
        artifact.check()
        repeated = artifact.meta["repeated"]
        names = [(name, kind) for name, kind in artifact.meta["names"]]
        return Finished(place.name, artifact.fact("counts", dict), names, repeated and tuple(repeated), before=True)
    except IndexFormatError:
        shutil.rmtree(place)
        return None


def _leaf(folder: Path, child: Child) -> Leaf:
    segment = Segment(folder / child.name)
    if child.last - child.first == segment.documents:
        return Leaf(segment)
    others = np.ones(segment.documents, dtype=np.bool_)
    others[child.first : child.last] = False
    return Leaf(segment, 0, Deletions.of(segment.lists, others))


def _repeated(ids: Strings) -> tuple[str, int, int] | None:
    """An id that is there twice, and the places of both."""
    order = ids.order
    place = first_repeated(ids.blob, ids.offsets.astype(np.int64), order)
    if place < 0:
        return None
    first, second = sorted((int(order[place]), int(order[place + 1])))
    return ids[first], first, second
