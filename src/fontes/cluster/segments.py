"""Build tasks: the segment of a part, or the merge of several segments.

Each result is a folder in shared storage, named by its inputs, written as a draft and renamed. Existing results are reused.
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
from ..core.strings import Strings
from ..formats.corpus import Corpus
from ..index.build import build_segment, merge_segments
from ..index.columns import COLUMNS, ColumnWriter, Schema, converted_columns
from ..index.filled import FieldCounter
from ..index.segment import Deletions, Leaf, Segment
from ..index.settings import IndexSettings
from ..index.tables import first_repeated, join_tables
from ..storage.artifact import META, Artifact, ArtifactKind, seal
from ..storage.system import sync_folder

Fields = tuple[dict[str, int], list[str]]  # `FieldCounter.filled` and `FieldCounter.keys`
Contents = tuple[dict[str, int], list[tuple[str, str]], Fields]  # counts, metadata names with types, fields

KIND = ArtifactKind("fontes-index-part", 2, "a part of an index", "start the build again")


@dataclass(frozen=True)
class FinishedSegment:
    """A finished segment.

    Args:
        name: Folder name.
        counts: Numbers of documents, terms, postings and tokens.
        names: Metadata names in a part, with their types; see `ColumnWriter`.
        repeated: A duplicate id and the positions of both documents; None without duplicates.
        fields: How many documents of a part have each field, and the keys of their metadata; see `FieldCounter`.
        reused: Whether an earlier build made it.
    """

    name: str
    counts: dict[str, int]
    names: list[tuple[str, str]]
    repeated: tuple[str, int, int] | None
    fields: Fields
    reused: bool = False

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.counts["documents"]


@dataclass(frozen=True)
class DocumentPart:
    """A part of the documents, and the name of its segment in the folder of finished segments."""

    corpus: Corpus
    folder: Path
    name: str
    settings: IndexSettings
    schema: Schema


@dataclass(frozen=True)
class Child:
    """A finished segment in a merge, of which documents `first` to `last` are taken.

    With `reread_columns` its columns are read again from the documents, since the whole index has other types.
    """

    name: str
    first: int
    last: int
    documents: int
    reread_columns: bool = False

    @property
    def taken(self) -> int:
        """Number of documents taken."""
        return self.last - self.first

    @property
    def is_whole(self) -> bool:
        """Whether the segment is taken unchanged."""
        return self.taken == self.documents and not self.reread_columns


@dataclass(frozen=True)
class ShardMerge:
    """Adjacent segments to be merged into the segment `name`, with the columns of all documents."""

    children: tuple[Child, ...]
    folder: Path
    name: str
    schema: Schema


def make_part(part: DocumentPart) -> FinishedSegment:
    """Make the segment of a part."""

    def write(folder: Path) -> Contents:
        columns = ColumnWriter(folder, part.schema)
        fields = FieldCounter.of(part.settings, part.schema.types if part.schema.declared else None)
        counts = build_segment(part.corpus, folder, part.settings, further=[columns, fields], repeated=True)
        return counts, columns.names, (dict(fields.filled), list(fields.keys))

    return _make(part.folder, part.name, write)


def make_merge(merge: ShardMerge) -> FinishedSegment:
    """Merge several segments."""

    def write(folder: Path) -> Contents:
        leaves = [_leaf(merge.folder, child) for child in merge.children]
        for number, child in enumerate(merge.children):
            if child.reread_columns:
                columns_folder = folder.parent / f"columns-{number}"
                columns_folder.mkdir()
                segment = leaves[number].segment
                segment.opened[COLUMNS.name] = converted_columns(segment, columns_folder, merge.schema)
        return merge_segments(leaves, folder), [], ({}, [])

    return _make(merge.folder, merge.name, write)


def make_check(folder: Path, names: Sequence[str]) -> tuple[str, int, int] | None:
    """Find an id shared by finished segments, with its positions among all their documents."""
    return _find_duplicate(join_tables([Segment(folder / name).ids for name in names], [None] * len(names)))


def segment_at(folder: Path, name: str) -> Path:
    """Path of a finished segment that is to belong to an index, without its metadata file."""
    (folder / name / META).unlink()
    return folder / name


def _make(folder: Path, name: str, write: Callable[[Path], Contents]) -> FinishedSegment:
    """Return the named segment; write it unless it exists."""
    path = folder / name
    if (existing := _read_finished(path)) is not None:
        return existing
    draft = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder))
    try:
        segment = draft / "segment"
        segment.mkdir()
        counts, names, fields = write(segment)
        repeated = _find_duplicate(Segment(segment).ids)
        seal(segment, KIND, {"counts": counts, "names": names, "repeated": repeated, "fields": fields})
        segment.chmod(0o755)
        with suppress(OSError):  # another process may have written it meanwhile
            segment.rename(path)
        sync_folder(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return FinishedSegment(name, counts, names, repeated, fields)


def _read_finished(path: Path) -> FinishedSegment | None:
    """Return the segment at a path if it is intact; remove a damaged one."""
    if not path.exists():
        return None
    try:
        artifact = Artifact(path, KIND)
        artifact.check()
        repeated = artifact.meta["repeated"]
        names = [(name, kind) for name, kind in artifact.meta["names"]]
        counts, fields = artifact.fact("counts", dict), artifact.fact("fields", list)
        return FinishedSegment(path.name, counts, names, repeated and tuple(repeated), (fields[0], fields[1]), reused=True)
    except IndexFormatError:
        shutil.rmtree(path)
        return None


def _leaf(folder: Path, child: Child) -> Leaf:
    """The documents of a segment that a merge takes."""
    segment = Segment(folder / child.name)
    if child.taken == segment.documents:
        return Leaf(segment)
    deleted = np.ones(segment.documents, dtype=np.bool_)
    deleted[child.first : child.last] = False
    return Leaf(segment, 0, Deletions.of(segment.lists, deleted))


def _find_duplicate(ids: Strings) -> tuple[str, int, int] | None:
    """Find a duplicate id and both positions."""
    order = ids.order
    i = first_repeated(ids.blob, ids.offsets.astype(np.int64), order)
    if i < 0:
        return None
    first, second = sorted((int(order[i]), int(order[i + 1])))
    return ids[first], first, second
