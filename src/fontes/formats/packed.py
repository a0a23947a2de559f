"""Batches of documents as concatenated bytes, with few Python objects, for indexing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..core import Doc, InputError
from ..core.arrays import Bytes, UInt32s
from ..core.strings import Strings, encoded, offsets_of


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch of documents in UTF-8.

    Args:
        ids: Document ids.
        text: uint8: concatenated title, text and metadata of each document; metadata as JSON, empty for none.
        sizes: uint32, (documents, 3): bytes of each title, text and metadata.
        values: Metadata of each document; empty if none has any.
    """

    ids: Strings
    text: Bytes
    sizes: UInt32s
    values: Sequence[Mapping[str, object]] = ()

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True, slots=True)
class Packing:
    """Deferred packing of documents, which any thread may run.

    Args:
        work: Function that packs them.
        size: Approximate bytes of text.
        count: Number of documents, if known.
    """

    work: Callable[[], Packed]
    size: int
    count: int = 0


def pack_docs(docs: Sequence[Doc]) -> Packed:
    """Pack documents; InputError if metadata cannot be written as JSON."""
    columns = ([doc.id for doc in docs], [doc.title for doc in docs], [doc.text for doc in docs])
    values = [doc.metadata for doc in docs]
    if not any(values):
        return packed_columns(*columns)
    return packed_columns(*columns, metadata_column(columns[0], values), values)


def packed_columns(
    ids: Sequence[str],
    titles: Sequence[str],
    texts: Sequence[str],
    metadata: Sequence[bytes] = (),
    values: Sequence[Mapping[str, object]] = (),
) -> Packed:
    """Pack documents given as columns, with metadata as JSON and as `values`; all columns except ids and texts may be empty."""
    sizes = np.zeros((len(ids), 3), dtype=np.uint32)
    parts: list[Sequence[bytes]] = [encoded(titles) if any(titles) else (), encoded(texts), metadata]
    for column, part in enumerate(parts):
        if part:
            sizes[:, column] = np.fromiter(map(len, part), dtype=np.uint32, count=len(part))
    filled = [part for part in parts if part]
    text = b"".join(filled[0] if len(filled) == 1 else chain.from_iterable(zip(*filled, strict=True)))
    return Packed(Strings.of(ids), np.frombuffer(text, dtype=np.uint8), sizes, values)


def join_packed(parts: Sequence[Packed]) -> Packed:
    """Concatenate packed documents."""
    if len(parts) == 1:
        return parts[0]
    offsets = offsets_of(np.concatenate([np.diff(part.ids.offsets) for part in parts]))
    ids = Strings(np.concatenate([part.ids.blob for part in parts]), offsets)
    text, sizes = np.concatenate([part.text for part in parts]), np.concatenate([part.sizes for part in parts])
    if not any(part.values for part in parts):
        return Packed(ids, text, sizes)
    return Packed(ids, text, sizes, [value for part in parts for value in (part.values or [{}] * len(part))])


def metadata_column(ids: Sequence[str], values: Sequence[Mapping[str, object]]) -> list[bytes]:
    """Return the metadata of documents as JSON, empty for none; InputError names a document whose metadata are not JSON."""
    encode = ENCODER.encode
    try:
        return encoded([encode(dict(value)) if value else "" for value in values])
    except (TypeError, ValueError, RecursionError):
        for doc_id, value in zip(ids, values, strict=True):
            try:
                encode(dict(value))
            except (TypeError, ValueError, RecursionError) as e:
                raise InputError(f"document '{doc_id}': its metadata is not JSON ({e})") from e
        raise


ENCODER = json.JSONEncoder(ensure_ascii=False)
