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
from ..storage.compiled import inner, kernel


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
QUOTE, BACKSLASH, COLON, COMMA, OPEN, CLOSE, NEWLINE = (ord(c) for c in '"\\:,{}\n')
PLAIN = np.array([32 <= byte < 128 and byte not in (QUOTE, BACKSLASH) for byte in range(256)])  # inside a string
ESCAPES = np.zeros(256, dtype=np.uint8)  # characters by the letter after a backslash; 0 for none
ESCAPES[list(b'"/\\bfnrt')] = list(b'"/\\\b\f\n\r\t')
METADATA_KEY = b'"metadata"'  # allowed only with an empty object


class LineBlock:
    """A block of whole lines, one JSON object each; `keys` are the JSON keys of the id, title and text, empty for none."""

    def __init__(self, block: bytes, keys: tuple[bytes, bytes, bytes]) -> None:
        self.block = block
        self._bytes = np.frombuffer(block, dtype=np.uint8)
        self._keys = np.frombuffer(b"".join((*keys, METADATA_KEY)), dtype=np.uint8)
        self._key_bounds = np.cumsum([0, *map(len, (*keys, METADATA_KEY))])

    def read(self, start: int) -> tuple[Packed, int]:
        """Return the documents from `start` to the first line that Python must decode, and that line's offset (-1: none)."""
        lines = self.block.count(b"\n", start) + 1
        ids, text = np.empty(len(self.block) - start, np.uint8), np.empty(len(self.block) - start, np.uint8)
        offsets, sizes = np.zeros(lines + 1, dtype=np.int64), np.zeros((lines, 3), dtype=np.uint32)
        count, used, end = _read_block(self._bytes, start, self._keys, self._key_bounds, ids, offsets, text, sizes)
        return Packed(Strings(ids[: offsets[count]].copy(), offsets[: count + 1]), text[:used], sizes[:count]), end


@kernel()
def _read_block(block: Any, start: int, keys: Any, key_bounds: Any, ids: Any, offsets: Any, text: Any, sizes: Any) -> Any:
    """Fill ids, offsets, text and sizes; return the number of documents, the bytes of text, and the end offset."""
    count, used = 0, 0
    spans = np.zeros((4, 3), dtype=np.int64)  # id, title, text and metadata: start, end, has escapes
    while start < len(block):
        at = _skip_blanks(block, start, len(block))
        if at < len(block) and block[at] != NEWLINE:
            at = _read_spans(block, at, len(block), keys, key_bounds, spans)
            if at < 0:
                return count, used, start
        else:
            start = at + 1
            continue
        offsets[count + 1] = _copy_string(block, spans[0], ids, offsets[count])
        for part in range(1, 3):
            filled = _copy_string(block, spans[part], text, used)
            sizes[count, part - 1] = filled - used
            used = filled
        count += 1
        start = at + 1
    return count, used, -1


@inner()
def _read_spans(block: Any, at: int, end: int, keys: Any, key_bounds: Any, spans: Any) -> int:
    """Fill the value spans of a line and return its end; -1 if the line is not plain or lacks an id or a text."""
    spans[:, 0] = -1
    if block[at] != OPEN:
        return -1
    at = _skip_blanks(block, at + 1, end)
    while True:
        part = _key_index(block, at, end, keys, key_bounds)
        if part < 0 or spans[part, 0] >= 0:
            return -1
        at = _skip_blanks(block, at + key_bounds[part + 1] - key_bounds[part], end)
        if at >= end or block[at] != COLON:
            return -1
        at = _skip_blanks(block, at + 1, end)
        if part == 3:
            if at >= end or block[at] != OPEN:
                return -1
            at = _skip_blanks(block, at + 1, end)
            if at >= end or block[at] != CLOSE:
                return -1
            spans[part, 0] = at
        else:
            if at >= end or block[at] != QUOTE:
                return -1
            close, escapes = _string_end(block, at + 1, end)
            if close < 0:
                return -1
            spans[part, 0], spans[part, 1], spans[part, 2] = at + 1, close, escapes
            at = close
        at = _skip_blanks(block, at + 1, end)
        if at >= end or (block[at] != COMMA and block[at] != CLOSE):
            return -1
        if block[at] == CLOSE:
            break
        at = _skip_blanks(block, at + 1, end)
    at = _skip_blanks(block, at + 1, end)
    if (at < end and block[at] != NEWLINE) or spans[0, 0] < 0 or spans[2, 0] < 0 or spans[0, 2]:
        return -1
    if spans[1, 0] < 0:
        spans[1] = 0
    for i in range(spans[0, 0], spans[0, 1]):
        if 0x21 <= block[i] < 0x7F:
            return at
    return -1  # perhaps an empty id


@inner(inline="always")
def _skip_blanks(block: Any, at: int, end: int) -> int:
    while at < end and (block[at] == 32 or block[at] == 9 or block[at] == 13):
        at += 1
    return at


@inner()
def _key_index(block: Any, at: int, end: int, keys: Any, key_bounds: Any) -> int:
    """Return the index of the key at `at`; -1 for none."""
    for part in range(len(key_bounds) - 1):
        size = key_bounds[part + 1] - key_bounds[part]
        if 0 < size <= end - at:
            same = True
            for i in range(size):
                if block[at + i] != keys[key_bounds[part] + i]:
                    same = False
                    break
            if same:
                return part
    return -1


@inner()
def _string_end(block: Any, at: int, end: int) -> tuple[int, bool]:
    """Return the end of a string (-1 if it is not plain), and whether it has escapes."""
    escapes = False
    while at < end:
        byte = block[at]
        if PLAIN[byte]:
            at += 1
            continue
        if byte == QUOTE:
            return at, escapes
        if byte == BACKSLASH:
            escapes = True
            size = _decode_escape(block, at, end)[1]
            if size == 0:
                return -1, escapes
            at += size
        elif byte < 32:
            return -1, escapes
        else:
            size = _character_size(block, at, end)
            if size == 0:
                return -1, escapes
            at += size
    return -1, escapes


@inner()
def _character_size(block: Any, at: int, end: int) -> int:
    """Return the length in bytes of the non-ASCII character at `at`; 0 if it is not UTF-8."""
    byte = block[at]
    size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    if byte < 0xC2 or byte > 0xF4 or at + size > end:
        return 0
    for i in range(at + 1, at + size):
        if block[i] & 0xC0 != 0x80:
            return 0
    second = block[at + 1]
    if (byte == 0xE0 and second < 0xA0) or (byte == 0xED and second > 0x9F):
        return 0
    if (byte == 0xF0 and second < 0x90) or (byte == 0xF4 and second > 0x8F):
        return 0
    return size


@inner()
def _decode_escape(block: Any, at: int, end: int) -> Any:
    """Return the code point of the escape at `at` and its length in bytes; length 0 if Python must decode it."""
    if at + 1 >= end:
        return 0, 0
    kind = block[at + 1]
    if kind != 117:
        return np.int64(ESCAPES[kind]), 2 if ESCAPES[kind] else 0
    code = _decode_hex(block, at + 2, end)
    if code < 0:
        return 0, 0
    if 0xD800 <= code < 0xE000:
        if code >= 0xDC00 or at + 7 >= end or block[at + 6] != BACKSLASH or block[at + 7] != 117:
            return 0, 0
        low = _decode_hex(block, at + 8, end)
        if low < 0xDC00 or low >= 0xE000:
            return 0, 0
        return 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00)), 12
    return code, 6


@inner()
def _decode_hex(block: Any, at: int, end: int) -> Any:
    if at + 4 > end:
        return -1
    code = np.int64(0)
    for i in range(at, at + 4):
        byte = np.int64(block[i])
        if 48 <= byte <= 57:
            code = code << 4 | (byte - 48)
        elif 97 <= byte | 32 <= 102:
            code = code << 4 | ((byte | 32) - 87)
        else:
            return -1
    return code


@inner()
def _copy_string(block: Any, span: Any, target: Any, filled: Any) -> Any:
    """Copy a string with its escapes resolved; return the end of the copy in `target`."""
    at, end = span[0], span[1]
    if span[2] == 0:
        for i in range(end - at):
            target[filled + i] = block[at + i]
        return filled + end - at
    while at < end:
        if block[at] != BACKSLASH:
            target[filled] = block[at]
            at, filled = at + 1, filled + 1
            continue
        code, size = _decode_escape(block, at, end)
        at += size
        if code < 0x80:
            target[filled] = code
            filled += 1
        elif code < 0x800:
            target[filled], target[filled + 1] = 0xC0 | code >> 6, 0x80 | code & 0x3F
            filled += 2
        elif code < 0x10000:
            target[filled], target[filled + 1] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F
            target[filled + 2] = 0x80 | code & 0x3F
            filled += 3
        else:
            target[filled], target[filled + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 0x3F
            target[filled + 2], target[filled + 3] = 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
            filled += 4
    return filled
