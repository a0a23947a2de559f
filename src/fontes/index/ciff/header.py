"""The header of a CIFF file: how much follows, and what the collection is of which it may be a part."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

VERSION = 1
VARINT, DOUBLE, TEXT, FLOAT = 0, 1, 2, 5  # how Protobuf writes a value


@dataclass(frozen=True)
class Header:
    """The first message of a CIFF file. The names are the format's own, and the order is that of its fields' numbers.

    Args:
        version: The format's.
        num_postings_lists: How many postings lists follow.
        num_docs: How many documents follow.
        total_postings_lists: How many terms the collection has; more than follow, where some were exported alone.
        total_docs: How many documents the collection has.
        total_terms_in_collection: How many terms all documents have together.
        average_doclength: Their mean.
        description: What the index is, for people.
    """

    version: int = 0
    num_postings_lists: int = 0
    num_docs: int = 0
    total_postings_lists: int = 0
    total_docs: int = 0
    total_terms_in_collection: int = 0
    average_doclength: float = 0.0
    description: str = ""

    @classmethod
    def parse(cls, message: bytes) -> Header:
        """From the bytes of the message.

        Raises:
            ValueError: They are of no such message.
        """
        names = [field.name for field in fields(cls)]
        values: dict[str, Any] = {}
        for number, kind, value in _fields(message):
            if not 1 <= number <= len(names):
                continue
            name = names[number - 1]
            if kind != {"average_doclength": DOUBLE, "description": TEXT}.get(name, VARINT):
                raise ValueError(f"its field {name} has a value of another kind")
            values[name] = value.decode() if name == "description" else value
        header = cls(**values)
        for name in names[:6]:
            if getattr(header, name) < 0:
                raise ValueError(f"its {name} is {getattr(header, name)}")
        return header

    def message(self) -> bytes:
        """The message, as Protobuf writes it: what is 0 or empty is left out."""
        parts = []
        for number, field in enumerate(fields(self), 1):
            value = getattr(self, field.name)
            if not value:
                continue
            if field.name == "average_doclength":
                parts.append(varint(number << 3 | DOUBLE) + struct.pack("<d", value))
            elif field.name == "description":
                text = value.encode(errors="replace")
                parts.append(varint(number << 3 | TEXT) + varint(len(text)) + text)
            else:
                parts.append(varint(number << 3 | VARINT) + varint(value))
        return b"".join(parts)


def header_of(facts: Mapping[str, Any]) -> Header:
    """The header that the manifest of an index keeps.

    Raises:
        ValueError: It is none, or what goes with it is no number.
    """
    names = [field.name for field in fields(Header)]
    surplus = facts["surplus"]
    if set(facts) != {*names, "surplus"} or not (surplus is None or type(surplus) is int):
        raise ValueError(f"{facts}")
    header = Header(**{name: facts[name] for name in names})
    for field in fields(Header):
        kind = {"average_doclength": (int, float), "description": (str,)}.get(field.name, (int,))
        if type(facts[field.name]) not in kind:
            raise ValueError(f"{facts}")
    return header


def varint(value: int) -> bytes:
    """A number from 0 up as Protobuf writes it: seven bits a byte, low bits first, the high bit set on all but the last."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, with a sign of 64 bits, and the place after it.

    Raises:
        ValueError: There is none.
    """
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            value &= (1 << 64) - 1
            return value - (1 << 64) if value >> 63 else value, at
    raise ValueError("it is cut off, or has a number of more than 64 bits")


def _fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, kind and value; raises ValueError where it is none."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        kind: int = tag & 7
        value: Any = None
        if kind == VARINT:
            value, at = read_varint(message, at)
        elif kind in (DOUBLE, TEXT, FLOAT):
            size, at = (8 if kind == DOUBLE else 4, at) if kind != TEXT else read_varint(message, at)
            if not 0 <= size <= len(message) - at:
                raise ValueError("it is cut off")
            piece = message[at : at + size]
            value = struct.unpack("<d", piece)[0] if kind == DOUBLE else piece
            at += size
        else:
            raise ValueError(f"it has a value of the kind {kind}")
        yield tag >> 3, kind, value
