"""The documents' text, compressed in blocks, each document read by itself."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError, InputError
from ..core.strings import utf8
from ..core.values import Doc
from ..storage.arrays import ByteWriter, read_array, smallest, write_array

BLOCK = 1 << 15  # bytes of text in a block, about


class DocumentWriter:
    """Writes text.bytes (the compressed blocks), text.blocks (first document and first byte of each), text.sizes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bytes = ByteWriter(folder, "text.bytes")
        self._sizes: list[NDArray[np.uint32]] = []
        self._blocks: list[tuple[int, int]] = []
        self._count = 0

    def add(self, titles: Sequence[bytes], texts: Sequence[bytes], metadata: Sequence[bytes]) -> None:
        """Appends documents: their titles, their texts, and their metadata as JSON (empty for none)."""
        sizes = np.array([list(map(len, part)) for part in (titles, texts, metadata)], dtype=np.uint32).T
        ends = np.cumsum(sizes.sum(axis=1, dtype=np.int64))
        first = 0
        while first < len(texts):
            start = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, start + BLOCK, side="right")))
            self._blocks.append((self._count + first, self._bytes.length))
            parts = zip(titles[first:last], texts[first:last], metadata[first:last], strict=True)
            self._bytes.write(zlib.compress(b"".join(b"".join(part) for part in parts), 1))
            first = last
        self._sizes.append(sizes)
        self._count += len(texts)

    def close(self) -> None:
        """Completes the files."""
        self._bytes.close()
        blocks = np.array([*self._blocks, (self._count, self._bytes.length)], dtype=np.int64)
        write_array(self._folder, "text.blocks", blocks)
        write_array(self._folder, "text.sizes", smallest(np.concatenate([*self._sizes, np.zeros((0, 3), np.uint32)])))

    def abandon(self) -> None:
        """Closes the files as they are."""
        self._bytes.abandon()


class DocumentStore:
    """Reads what `DocumentWriter` wrote."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bytes = read_array(folder, "text.bytes")
        self._blocks = read_array(folder, "text.blocks")
        self._sizes = read_array(folder, "text.sizes")

    def read(self, ids: Sequence[str], ordinals: Sequence[int]) -> list[Doc]:
        """The documents with these ordinals, which have these ids."""
        blocks = np.searchsorted(self._blocks[:, 0], np.asarray(ordinals, dtype=np.int64), side="right") - 1
        opened: dict[int, tuple[bytes, NDArray[np.int64]]] = {}
        docs = []
        for doc_id, ordinal, block in zip(ids, ordinals, blocks.tolist(), strict=True):
            if block not in opened:
                opened[block] = self._open(block)
            text, bounds = opened[block]
            at = 3 * (ordinal - int(self._blocks[block, 0]))
            title, body, metadata = (text[bounds[at + i] : bounds[at + i + 1]] for i in range(3))
            docs.append(Doc(doc_id, body.decode(), title.decode(), json.loads(metadata) if metadata else {}))
        return docs

    def check(self) -> None:
        """Raises IndexFormatError unless every block can be read."""
        for block in range(len(self._blocks) - 1):
            text, bounds = self._open(block)
            if len(text) != bounds[-1]:
                raise IndexFormatError(f"{self._folder} is damaged: block {block} of the documents has the wrong length")

    def _open(self, block: int) -> tuple[bytes, NDArray[np.int64]]:
        (first, start), (last, end) = self._blocks[block].tolist(), self._blocks[block + 1].tolist()
        try:
            text = zlib.decompress(self._bytes[start:end].tobytes())
        except zlib.error as e:
            raise IndexFormatError(
                f"{self._folder} is damaged: block {block} of the documents cannot be unpacked; build the index again"
            ) from e
        bounds = np.zeros(3 * (last - first) + 1, dtype=np.int64)
        np.cumsum(self._sizes[first:last].ravel(), out=bounds[1:])
        return text, bounds


def metadata_bytes(doc: Doc) -> bytes:
    """A document's metadata as JSON, empty for none.

    Raises:
        InputError: Where JSON cannot hold it.
    """
    if not doc.metadata:
        return b""
    try:
        return utf8(json.dumps(dict(doc.metadata), ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as e:
        raise InputError(f"document '{doc.id}': its metadata is not JSON ({e})") from e
