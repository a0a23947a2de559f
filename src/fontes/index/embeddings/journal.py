"""Encoding a segment's documents in blocks, each written to disk with a line in a journal before the next block."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from ...core.arrays import AnyArray
from ...core.errors import FontesError
from ...core.work import Progress, cluster, reported_as, reporter
from ...storage.arrays import sync
from ...storage.artifact import drafting

if TYPE_CHECKING:
    from ..segment import Segment

BLOCK_DOCUMENTS = 512  # documents of a block
JOURNAL = ("journal", "settings.json")  # files of a draft that are not columns
PARTS = "part-"  # prefix of the files of blocks made on a cluster

Span = tuple[int, int]  # documents from one ordinal up to another
Block = tuple[AnyArray, ...]

T = TypeVar("T")


@dataclass(frozen=True)
class ColumnFile:
    """A file of numbers that grows with each block.

    Args:
        name: Name of the file.
        width: Bytes of an entry.
        of_documents: Whether it has an entry per document; otherwise per row, of which a document may have several.
        offset: Bytes reserved at the beginning, for a header.
    """

    name: str
    width: int
    of_documents: bool = False
    offset: int = 0

    def size(self, documents: int, rows: int) -> int:
        """Return the bytes of so many documents and rows."""
        return self.width * (documents if self.of_documents else rows)


class Encoding(ABC, Generic[T]):
    """An encoding of a segment's documents.

    Attributes:
        ids: Document ids.
        folder_name: Name of its folder, or the beginning of the name.
        settings: Settings as JSON values; a draft whose settings differ, except for NAMES, is started again.
        columns: Columns of its blocks.
    """

    noun: ClassVar[str] = "vectors"
    """Name of the content in messages."""
    NAMES: ClassVar[tuple[str, ...]] = ("encoder", "settings", "precision")
    """Settings that may change while the encoder stays the same: its text, and the precision of its machine."""

    ids: Sequence[str]
    folder_name: str
    settings: dict[str, object]
    columns: tuple[ColumnFile, ...]

    @abstractmethod
    def existing(self, segment: Path) -> T | None:
        """Return the finished artifact; None if it is missing or damaged."""

    @abstractmethod
    def block(self, first: int, last: int) -> Block:
        """Return the arrays of the documents from `first` up to `last`, in the order of the columns."""

    @abstractmethod
    def finish(self, segment: Path, draft: Path, rows: int) -> T:
        """Make the artifact from the columns in a draft, and commit it."""

    def tidy(self, existing: T) -> None:
        """Remove what a process left that was killed after the commit."""


class BlockSource(Protocol):
    """Actors of a cluster that encode."""

    def blocks(self, make: Callable[[Segment], Encoding[Any]], segment: Segment) -> Blocks:
        """Return the function that yields the blocks of a segment's encoding in order; `make` is pickled."""
        ...


def remote_encoder(encoder: object) -> contextlib.AbstractContextManager[BlockSource | None]:
    """Provide the actors of a cluster that encode during the block; None if this process encodes."""
    actors = cluster()
    return contextlib.nullcontext() if actors is None else actors.remote_encoder(encoder)


Blocks = Callable[[Path, Encoding[Any], Sequence[Span]], Iterator[Block]]
"""Yields the blocks of an encoding with this draft, in the order of the spans."""


def encode(segment: Path, encoding: Encoding[T], overwrite: bool, remote_blocks: Blocks | None = None) -> T:
    """Encode the documents of a segment, unless they are encoded already.

    An encoding that was killed, or that filled the disk, resumes after the last block in its journal.

    Args:
        segment: The segment's folder.
        encoding: Encoding to make.
        overwrite: Whether to encode again if the artifact exists.
        remote_blocks: Yields the blocks; None encodes them in this process.

    Raises:
        FontesError: Another process is encoding the segment with the encoder, or the disk cannot be written; finished blocks
            are kept.
    """
    busy = FontesError(f"{segment.parent} is being encoded by another process with the same encoder; wait for it")
    with contextlib.ExitStack() as stack:
        try:
            draft = stack.enter_context(drafting(segment / encoding.folder_name, busy))
        except OSError as e:
            message = f"{segment.parent}: {encoding.noun} cannot be written: {e.strerror}; nothing was changed"
            raise FontesError(message) from e
        if not overwrite and (existing := encoding.existing(segment)) is not None:
            shutil.rmtree(draft, ignore_errors=True)
            encoding.tidy(existing)
            return existing
        return _encode_blocks(segment, draft, encoding, remote_blocks)


def _encode_blocks(segment: Path, draft: Path, encoding: Encoding[T], remote_blocks: Blocks | None) -> T:
    count, report = len(encoding.ids), reporter()
    with _writing(segment, encoding, None):
        journal = Journal(draft, encoding)
        for part in [] if remote_blocks else draft.glob(f"*{PARTS}*"):  # left by a run on a cluster
            part.unlink(missing_ok=True)
    try:
        resumed_at, start = journal.documents, time.perf_counter()

        def progress_at(position: float) -> Progress:
            part = position / count if count else 1.0
            return Progress("encoding", int(position), count, time.perf_counter() - start, part=part, before=resumed_at)

        spans = [(first, min(first + BLOCK_DOCUMENTS, count)) for first in range(resumed_at, count, BLOCK_DOCUMENTS)]

        def encoded_block(first: int, last: int) -> Block:
            with reported_as(lambda current: progress_at(first + (current.fraction or 0.0) * (last - first))):
                return encoding.block(first, last)

        local_blocks = (encoded_block(first, last) for first, last in spans)
        blocks = local_blocks if remote_blocks is None else remote_blocks(draft, encoding, spans)
        for (first, last), block in zip(spans, blocks, strict=True):
            with _writing(segment, encoding, journal):
                journal.append(last - first, block)
            report(progress_at(journal.documents))
        journal.close()
        with _writing(segment, encoding, journal):
            return encoding.finish(segment, draft, journal.rows)
    finally:
        journal.close()


@contextlib.contextmanager
def _writing(segment: Path, encoding: Encoding[Any], journal: Journal | None) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if not segment.exists():
            raise FontesError(f"{segment.parent} was merged meanwhile; call index.refresh(), and encode again") from e
        count = journal.documents if journal else 0
        raise FontesError(
            f"{segment.parent}: {encoding.noun} cannot be written: {e.strerror or e}; {count:,} of {len(encoding.ids):,} "
            "documents are encoded and kept; encoding again resumes after them"
        ) from e


class Journal:
    """An unfinished encoding: a folder with the columns so far, and a file with a line for each block.

    Attributes:
        documents: Number of documents on disk.
        rows: Number of their rows.
    """

    def __init__(self, draft: Path, encoding: Encoding[Any]) -> None:
        self._draft, self._encoding = draft, encoding
        blocks = self._sound_blocks()
        self.documents, self.rows = (sum(block[i] for block in blocks) for i in (0, 1))
        if not blocks:
            (draft / "settings.json").write_text(json.dumps(encoding.settings), encoding="utf-8")
        sizes = {column.name: column.offset + column.size(self.documents, self.rows) for column in encoding.columns}
        sizes["journal"] = sum(len(json.dumps(block)) + 1 for block in blocks)
        self._files: dict[str, IO[bytes]] = {}
        for name, size in sizes.items():
            self._files[name] = (draft / name).open("r+b" if blocks else "w+b")
            self._files[name].truncate(size)
            self._files[name].seek(size)

    def append(self, documents: int, block: Sequence[AnyArray]) -> None:
        """Append a block atomically; it is on disk when this returns."""
        check, rows = 0, documents
        for column, array in zip(self._encoding.columns, block, strict=True):
            raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            self._files[column.name].write(raw)
            sync(self._files[column.name])
            check = zlib.crc32(raw, check)
            if not column.of_documents and column.width:
                rows = len(raw) // column.width
        self._files["journal"].write((json.dumps([documents, rows, check]) + "\n").encode())
        sync(self._files["journal"])
        self.documents += documents
        self.rows += rows

    def close(self) -> None:
        """Close unfinished files."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()

    def _sound_blocks(self) -> list[list[int]]:
        """Return the complete blocks, [documents, rows, checksum], of an earlier run of the same encoding."""
        blocks: list[list[int]] = []
        with contextlib.suppress(OSError, ValueError, TypeError), contextlib.ExitStack() as stack:
            settings = json.loads((self._draft / "settings.json").read_text(encoding="utf-8"))
            named = dict.fromkeys(self._encoding.NAMES)
            if settings | named != self._encoding.settings | named:
                return []
            lines = (self._draft / "journal").read_bytes().split(b"\n")[:-1]
            files = [stack.enter_context((self._draft / column.name).open("rb")) for column in self._encoding.columns]
            for column, file in zip(self._encoding.columns, files, strict=True):
                file.seek(column.offset)
            lengths = [os.fstat(file.fileno()).st_size for file in files]
            for documents, rows, expected in map(json.loads, lines):
                sizes = [column.size(documents, rows) for column in self._encoding.columns]
                if not all(0 <= size <= length for size, length in zip(sizes, lengths, strict=True)):
                    break
                check = 0
                for size, file in zip(sizes, files, strict=True):
                    check = zlib.crc32(file.read(size), check)
                if check != expected:
                    break
                blocks.append([documents, rows, expected])
        return blocks
