"""The documents' text, compressed in blocks, each document read by itself."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError, InputError
from ..core.strings import utf8
from ..core.values import Doc
from ..storage.arrays import REMEDY, UNSIGNED, Arrays, ByteWriter, rises, smallest, write_array

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
    """Reads what `DocumentWriter` wrote.

    Args:
        folder: The segment's folder.
        documents: How many documents it has.

    Raises:
        IndexFormatError: A file is missing or damaged; so in all methods.
    """

    def __init__(self, folder: Path, documents: int) -> None:
        self._folder = folder
        arrays = Arrays(folder)
        self._bytes = arrays.array("text.bytes", "|u1", None)
        self._blocks = arrays.array("text.blocks", "<i8", None, 2)
        self._sizes = arrays.array("text.sizes", UNSIGNED[:3], documents, 3)
        for column, end in enumerate((documents, len(self._bytes))):
            if not rises(self._blocks[:, column], end):
                raise arrays.damaged("text.blocks", f"its column {column + 1} does not rise from 0 to {end:,}")

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
            parts = [text[bounds[at + i] : bounds[at + i + 1]] for i in range(3)]
            try:
                title, body, metadata = (part.decode() for part in parts)
                docs.append(Doc(doc_id, body, title, _metadata(metadata)))
            except (ValueError, RecursionError) as e:
                raise self._damaged(block, f"document '{doc_id}' cannot be read") from e
        return docs

    def check(self) -> None:
        """Reads every block."""
        for block in range(len(self._blocks) - 1):
            self._open(block)

    def _open(self, block: int) -> tuple[bytes, NDArray[np.int64]]:
        (first, start), (last, end) = self._blocks[block].tolist(), self._blocks[block + 1].tolist()
        bounds = np.zeros(3 * (last - first) + 1, dtype=np.int64)
        np.cumsum(self._sizes[first:last].ravel(), out=bounds[1:])
        length, unpack = int(bounds[-1]), zlib.decompressobj()
        try:
            text = unpack.decompress(self._bytes[start:end].tobytes(), length + 1)
        except zlib.error as e:
            raise self._damaged(block, "it cannot be unpacked") from e
        if len(text) != length or not unpack.eof or unpack.unused_data:
            raise self._damaged(block, f"it does not have {length:,} bytes")
        return text, bounds

    def _damaged(self, block: int, problem: str) -> IndexFormatError:
        return IndexFormatError(f"{self._folder / 'text.bytes.npy'} is damaged: block {block} of the documents: {problem}; {REMEDY}")


def _metadata(text: str) -> dict[str, Any]:
    """Metadata out of JSON; empty for none. Raises ValueError for what is no object."""
    metadata = json.loads(text) if text else {}
    if not isinstance(metadata, dict):
        raise ValueError(text)
    return metadata


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
