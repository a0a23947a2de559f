"""Documents in a row as bytes end to end, on their way into an index: many at a time, and few Python objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import Doc, InputError
from ..core.strings import Strings, utf8


@dataclass(frozen=True, slots=True)
class Packed:
    """Documents in a row, in UTF-8.

    Args:
        ids: Their ids.
        text: uint8: title, text and metadata of each document, end to end; metadata as JSON, nothing for none.
        sizes: uint32, (documents, 3): the bytes of the title, the text and the metadata of each.
        values: The metadata of each; empty where none has any.
    """

    ids: Strings
    text: NDArray[np.uint8]
    sizes: NDArray[np.uint32]
    values: Sequence[Mapping[str, Any]] = ()

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True, slots=True)
class Packing:
    """The work of making bytes of documents, which any thread may do.

    Args:
        work: Does it.
        size: About how many bytes of text there are.
        count: How many documents, where that is known already.
    """

    work: Callable[[], Packed]
    size: int
    count: int = 0


def packed(docs: Sequence[Doc]) -> Packed:
    """Documents as bytes.

    Raises:
        InputError: JSON cannot hold the metadata of one.
    """
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
    """Documents as bytes.

    Args:
        ids: Their ids.
        titles: Their titles; empty where none has one.
        texts: Their texts.
        metadata: Their metadata as JSON; empty where none has any.
        values: Their metadata; empty where none has any.
    """
    sizes = np.zeros((len(ids), 3), dtype=np.uint32)
    parts: list[Sequence[bytes]] = [_encoded(titles) if any(titles) else (), _encoded(texts), metadata]
    for column, part in enumerate(parts):
        if part:
            sizes[:, column] = np.fromiter(map(len, part), dtype=np.uint32, count=len(part))
    filled = [part for part in parts if part]
    text = b"".join(filled[0] if len(filled) == 1 else chain.from_iterable(zip(*filled, strict=True)))
    return Packed(Strings.of(ids), np.frombuffer(text, dtype=np.uint8), sizes, values)


def join_packed(parts: Sequence[Packed]) -> Packed:
    """Documents of several parts in one."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.zeros(sum(map(len, parts)) + 1, dtype=np.int64)
    np.cumsum(np.concatenate([np.diff(part.ids.offsets) for part in parts]), out=offsets[1:])
    ids = Strings(np.concatenate([part.ids.blob for part in parts]), offsets)
    text, sizes = np.concatenate([part.text for part in parts]), np.concatenate([part.sizes for part in parts])
    if not any(part.values for part in parts):
        return Packed(ids, text, sizes)
    return Packed(ids, text, sizes, [value for part in parts for value in (part.values or [{}] * len(part))])


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


def _encoded(strings: Sequence[str]) -> list[bytes]:
    try:
        return [string.encode() for string in strings]
    except UnicodeEncodeError:
        return [utf8(string) for string in strings]
