"""Batches of documents as concatenated bytes, with few Python objects, for indexing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import Doc, InputError
from ..core.strings import Strings, offsets_of, utf8


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
    text: NDArray[np.uint8]
    sizes: NDArray[np.uint32]
    values: Sequence[Mapping[str, Any]] = ()

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
    if not any(doc.metadata for doc in docs):
        return packed_columns(*columns)
    return packed_columns(*columns, [metadata_bytes(doc) for doc in docs], [doc.metadata for doc in docs])


def packed_columns(
    ids: Sequence[str],
    titles: Sequence[str],
    texts: Sequence[str],
    metadata: Sequence[bytes] = (),
    values: Sequence[Mapping[str, Any]] = (),
) -> Packed:
    """Pack documents given as columns, with metadata as JSON and as `values`; all columns except ids and texts may be empty."""
    sizes = np.zeros((len(ids), 3), dtype=np.uint32)
    parts: list[Sequence[bytes]] = [_encoded(titles) if any(titles) else (), _encoded(texts), metadata]
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


def metadata_bytes(doc: Doc) -> bytes:
    """A document's metadata as JSON, empty for none; InputError if JSON cannot hold it."""
    if not doc.metadata:
        return b""
    try:
        return metadata_json(dict(doc.metadata))
    except (TypeError, ValueError, RecursionError) as e:
        raise InputError(f"document '{doc.id}': its metadata is not JSON ({e})") from e


def metadata_json(values: dict[str, Any]) -> bytes:
    """Metadata as JSON; raises as `json.dumps`."""
    return utf8(ENCODER.encode(values))


def _encoded(strings: Sequence[str]) -> list[bytes]:
    try:
        return [string.encode() for string in strings]
    except UnicodeEncodeError:
        return [utf8(string) for string in strings]


ENCODER = json.JSONEncoder(ensure_ascii=False)
