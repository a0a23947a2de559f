"""The component of texts: documents compressed in blocks, each document read by itself."""

from __future__ import annotations

import json
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Bools, Int64s, UInt32s
from ..core.errors import IndexFormatError, InputError
from ..core.strings import offsets_of
from ..core.values import Doc
from ..core.work import Progress, reporter
from ..formats.packed import Packed
from ..storage.arrays import REMEDY, UNSIGNED, Arrays, ByteWriter, NumberWriter, rises, write_array
from ..storage.caches import Cached
from ..storage.files import MAX_PIECE, check_length
from ..storage.threads import Queue, Workers, in_order
from .component import Building, Component, Described, Writer, components

if TYPE_CHECKING:
    from .batches import Batch
    from .segment import Leaf, Segment


MAX_BLOCK_BYTES = 1 << 15  # maximum bytes of text in a block
CACHED_BLOCKS = 2048  # cached unpacked blocks of a segment, 64 MB
MAX_EXPANDED = 1 << 28  # bytes of text that one call reads from blocks of any size,
MAX_RATIO = 100  # and times the size of these blocks; texts have 2 to 10
MIN_BLOCK = 3 * MAX_BLOCK_BYTES // 4  # minimum bytes of text before a document's size may end a block
BLOCK_END_FRACTION = 1 << 28  # of 1 << 32: the fraction of document sizes that end a block
LEVEL = 1  # of Zstandard
ZSTANDARD = b"\x28\xb5\x2f\xfd"  # first bytes of a block packed by Zstandard (RFC 8878); older blocks are packed by zlib

_compressors = threading.local()


@dataclass(frozen=True)
class Block:
    """Consecutive documents that are compressed together.

    Args:
        sizes: uint32, (documents, 3): bytes of the title, the text and the metadata of each.
        load: Returns titles, texts and metadata, concatenated.
        packed: The compressed block; None if it is not compressed yet.
    """

    sizes: UInt32s
    load: Callable[[], bytes | memoryview]
    packed: bytes | None = None

    def of(self, live: Bools) -> Block:
        """Return the block of the documents in the mask `live`."""
        if live.all():
            return self
        text, ends = self.load(), np.cumsum(self.sizes.sum(axis=1, dtype=np.int64)).tolist()
        indices = np.flatnonzero(live).tolist()
        return Block(self.sizes[live], partial(b"".join, [text[ends[i - 1] if i else 0 : ends[i]] for i in indices]))


class Blocks:
    """Grouping of documents into blocks of up to MAX_BLOCK_BYTES, or of one document.

    A block of at least MIN_BLOCK bytes also ends before a document of certain sizes. Sequences of documents that differ at
    their beginning therefore soon have equal blocks, and a merge compresses few blocks again.
    """

    def __init__(self) -> None:
        self._parts: list[Block] = []
        self._size = 0

    def add(self, docs: Block) -> Iterator[Block]:
        """Append documents and yield complete blocks. Documents that fill a block stay packed."""
        totals = docs.sizes.sum(axis=1, dtype=np.int64)
        ends = np.cumsum(totals)
        marked = np.flatnonzero(totals.astype(np.uint32) * np.uint32(0x9E3779B1) < BLOCK_END_FRACTION)
        first, start = 0, 0
        while first < len(docs.sizes):
            # The block ends before the first document that does not fit, or before a marked one once it has MIN_BLOCK bytes.
            full = int(np.searchsorted(ends, start + MAX_BLOCK_BYTES - self._size, side="right"))
            earliest = first if self._size >= MIN_BLOCK else 1 + int(np.searchsorted(ends, start + MIN_BLOCK - self._size))
            last = min(full, *marked[np.searchsorted(marked, earliest) :][:1].tolist(), len(docs.sizes))
            if last <= first and self._parts:
                yield from self.flush()
                continue
            last = max(first + 1, last)
            end = int(ends[last - 1])
            is_whole = last - first == len(docs.sizes)
            part = docs if is_whole else Block(docs.sizes[first:last], partial(bytes, docs.load()[start:end]))
            self._parts.append(part)
            self._size += end - start
            first, start = last, end

    def flush(self) -> Iterator[Block]:
        """Yield the incomplete last block, if any."""
        parts = self._parts
        self._parts, self._size = [], 0
        if len(parts) > 1:
            yield Block(np.concatenate([part.sizes for part in parts]), lambda: b"".join(part.load() for part in parts))
        yield from parts if len(parts) == 1 else ()


class DocumentWriter(Writer):
    """Writes text.bytes (the compressed blocks), text.blocks (first document and first byte of each) and text.sizes."""

    def __init__(self, folder: Path, workers: Workers | None = None) -> None:
        self._folder = folder
        self._queue = Queue(workers or Workers(1), self._append_all)
        self._bytes = ByteWriter(folder, "text.bytes")
        self._sizes = NumberWriter(folder, "text.sizes", 3)
        self._starts = array("q")
        self._count = 0
        self._blocks = Blocks()

    def write(self, batch: Batch, first: int) -> None:
        self._queue.add(lambda blocks: list(map(packed, blocks)), list(self.blocks(batch.docs)))

    def finish(self) -> None:
        self._queue.close()

    def blocks(self, docs: Packed) -> Iterator[Block]:
        """Take documents and yield complete blocks, which the caller packs and appends in this order.

        Raises:
            InputError: A document is too long to be read in one piece.
        """
        for i in np.flatnonzero(docs.sizes.sum(axis=1, dtype=np.int64) > MAX_PIECE).tolist():
            check_length(int(docs.sizes[i].sum(dtype=np.int64)), f"document '{docs.ids[i]}'", "text")
        yield from self._blocks.add(Block(docs.sizes, lambda: docs.text.data))

    def _append_all(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.append(block)

    def append(self, block: Block) -> None:
        """Append a packed block."""
        assert block.packed is not None
        self._starts.extend((self._count, self._bytes.length))
        self._bytes.write(block.packed)
        self._sizes.write(block.sizes)
        self._count += len(block.sizes)

    def close(self) -> dict[str, int]:
        for block in self._blocks.flush():
            self.append(packed(block))
        self._bytes.close()
        self._sizes.close()
        self._starts.extend((self._count, self._bytes.length))
        write_array(self._folder, "text.blocks", np.array(self._starts, dtype=np.int64).reshape(-1, 2))
        return {}

    def abandon(self) -> None:
        self._bytes.abandon()
        self._sizes.abandon()


def packed(block: Block) -> Block:
    """Return the block with its text compressed."""
    return block if block.packed is not None else replace(block, packed=compressed(block.load()))


def compressed(text: bytes | memoryview) -> bytes:
    """Return the text packed by Zstandard, with its length and a checksum."""
    import zstandard

    compressor = vars(_compressors).get("of_thread")  # threads cannot share a compressor
    if compressor is None:
        compressor = _compressors.of_thread = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    return bytes(compressor.compress(text))


def decompressed(packed: bytes, length: int) -> bytes | None:
    """Return the text of a packed block; None unless it is complete and of this length. Nothing longer is unpacked.

    Raises:
        ValueError: The bytes are damaged.
    """
    if packed[: len(ZSTANDARD)] != ZSTANDARD:
        unpack = zlib.decompressobj()
        try:
            text = unpack.decompress(packed, length + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        return text if len(text) == length and unpack.eof and not unpack.unused_data else None
    import zstandard

    try:
        if zstandard.get_frame_parameters(packed).content_size != length:
            return None
        return bytes(zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False))
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


class DocumentStore:
    """Reader of the files of `DocumentWriter`. All methods raise IndexFormatError if a file is missing or damaged."""

    def __init__(self, folder: Path, documents: int) -> None:
        self._folder = folder
        arrays = Arrays(folder)
        self._bytes = arrays.array("text.bytes", "|u1", None)
        self._blocks = arrays.array("text.blocks", "<i8", None, 2)
        self._sizes = arrays.array("text.sizes", UNSIGNED[:3], documents, 3)
        self._recent: Cached[int, tuple[bytes, Int64s]] = Cached(CACHED_BLOCKS)
        for column, end in enumerate((documents, len(self._bytes))):
            if not rises(self._blocks[:, column], end):
                raise arrays.damaged("text.blocks", f"its column {column + 1} does not rise from 0 to {end:,}")

    @property
    def size(self) -> int:
        """Bytes of all titles, texts and metadata."""
        return int(self._sizes.sum(dtype=np.int64))

    def read(self, ids: Sequence[str], ordinals: Sequence[int]) -> list[Doc]:
        """Return the documents with these ordinals and ids.

        Raises:
            InputError: They have more than 256 MiB, and more than 100 times the size of their blocks.
        """
        blocks = np.searchsorted(self._blocks[:, 0], np.asarray(ordinals, dtype=np.int64), side="right") - 1
        size, stored = self.bytes_of(ordinals), int((self._blocks[blocks + 1, 1] - self._blocks[blocks, 1]).sum())
        if size > max(MAX_EXPANDED, MAX_RATIO * stored):
            raise InputError(
                f"{self._folder / 'text.bytes.npy'}: {len(ids):,} documents have {size:,} bytes, more than {MAX_RATIO} times "
                "their compressed size; read fewer at once, with a smaller k"
            )
        opened: dict[int, tuple[bytes, Int64s]] = {}
        docs = []
        for doc_id, ordinal, block in zip(ids, ordinals, blocks.tolist(), strict=True):
            if block not in opened:
                opened[block] = self._unpacked(block)
            text, bounds = opened[block]
            i = 3 * (ordinal - int(self._blocks[block, 0]))
            a, b, c, d = bounds[i : i + 4].tolist()
            try:
                docs.append(Doc(doc_id, text[b:c].decode(), text[a:b].decode(), _metadata(text[c:d].decode())))
            except (ValueError, RecursionError) as e:
                raise self._damaged(block, f"document '{doc_id}' cannot be read") from e
        return docs

    def bytes_of(self, ordinals: Sequence[int]) -> int:
        """Return the bytes of titles, texts and metadata of these documents."""
        return int(self._sizes[np.asarray(ordinals, dtype=np.int64)].sum(dtype=np.int64))

    def blocks(self) -> Iterator[tuple[int, Block]]:
        """Yield all blocks, packed, with the position of each block's first document."""
        for number, ((first, start), (last, end)) in enumerate(pairwise(self._blocks.tolist())):
            sizes = self._sizes[first:last].astype(np.uint32)
            yield first, Block(sizes, partial(self._text, number), self._bytes[start:end].tobytes())

    def check(self) -> None:
        """Read every block."""
        for _, block in self.blocks():
            block.load()

    def _unpacked(self, block: int) -> tuple[bytes, Int64s]:
        """Return the result of `_open`, cached unless the block is a single document, which may have any size."""
        is_single = self._blocks[block + 1, 0] - self._blocks[block, 0] == 1
        return self._open(block) if is_single else self._recent.get(block, partial(self._open, block))

    def _text(self, block: int) -> bytes:
        return self._open(block)[0]

    def _open(self, block: int) -> tuple[bytes, Int64s]:
        (first, start), (last, end) = self._blocks[block].tolist(), self._blocks[block + 1].tolist()
        bounds = offsets_of(self._sizes[first:last].ravel())
        length, limit = int(bounds[-1]), MAX_PIECE if last - first == 1 else MAX_BLOCK_BYTES
        if length > limit:
            raise self._damaged(block, f"it has {length:,} bytes, more than the maximum of {limit:,}")
        try:
            text = decompressed(self._bytes[start:end].tobytes(), length)
        except ValueError as e:
            raise self._damaged(block, "it cannot be unpacked") from e
        if text is None:
            raise self._damaged(block, f"it does not have {length:,} bytes")
        return text, bounds

    def _damaged(self, block: int, problem: str) -> IndexFormatError:
        return IndexFormatError(
            f"{self._folder / 'text.bytes.npy'} is damaged: block {block} of the documents: {problem}; {REMEDY}"
        )


def _metadata(text: str) -> dict[str, object]:
    """Parse metadata from JSON; an empty text has none. Raises ValueError unless it is an object."""
    metadata = json.loads(text) if text else {}
    if not isinstance(metadata, dict):
        raise ValueError(text)
    return metadata


class Texts(Component[DocumentStore], name="text"):
    """The documents as they were read: title, text and metadata."""

    def open(self, segment: Segment) -> DocumentStore:
        return DocumentStore(segment.folder, segment.documents)

    def writer(self, building: Building) -> DocumentWriter:
        return DocumentWriter(building.folder, building.workers)

    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        _merge_texts(leaves, folder)
        return {}

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            leaf.segment.texts.check()

    def facts(self, state: Described) -> dict[str, object]:
        files = [item for segment in state.manifest["segments"] for item in segment["files"].items()]
        return {"bytes_of_text": sum(file["bytes"] for name, file in files if name.startswith("text."))}


TEXTS: Texts = components["text"]


def _merge_texts(leaves: Sequence[Leaf], folder: Path) -> None:
    report = reporter()
    start, count, total = time.perf_counter(), 0, sum(leaf.documents for leaf in leaves)
    writer = DocumentWriter(folder)
    try:
        for block in in_order(packed, _blocks(leaves)):
            writer.append(block)
            count += len(block.sizes)
            report(Progress("merging", count, total, time.perf_counter() - start))
        writer.close()
    finally:
        writer.abandon()


def _blocks(leaves: Sequence[Leaf]) -> Iterator[Block]:
    """Yield the living documents in blocks as a build makes them; equal blocks of a segment stay packed."""
    blocks = Blocks()
    for leaf in leaves:
        dead = leaf.dead
        for first, block in leaf.segment.texts.blocks():
            yield from blocks.add(block if dead is None else block.of(~dead[first : first + len(block.sizes)]))
    yield from blocks.flush()
