"""CIFF files written and read by the rules of Protobuf in a few lines, for tests of those that are compiled."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HEADER = [
    *"version num_postings_lists num_docs total_postings_lists total_docs total_terms_in_collection".split(),
    *"average_doclength description".split(),
]
LIST, POSTING, RECORD = ("term", "df", "cf", "postings"), ("docid", "tf"), ("docid", "collection_docid", "doclength")

# What ciff-toolkit 0.2.2 wrote of: d1 "spring water spring", d2 "water mill", an empty document, one of "spring", three "mill"
# and 200 "x", and one of "žlutý", "kůň", U+1F40E and U+FF5E; the terms in the order of their UTF-16, as Java sorts them.
TOOLKIT = bytes.fromhex(
    "1d0801100818052008280530d50139cdcccccccc4c454042056120746f79110a056bc5afc58810011801220408041001160a046d696c6c100218"
    "04220408011001220408021003160a06737072696e671002180322021002220408031001150a0577617465721002180222021001220408011001"
    "0f0a0178100118c8012205080310c801130a07c5be6c7574c3bd10011801220408041001100a04f09f908e100118012204080410010f0a03efbd"
    "9e10011801220408041001061202643118030808011202643218020908021205656d7074790b080312046c6f6e6718cc010808041202c5be1804"
)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, value: Any) -> bytes:
    """A field of a message; nothing where it is 0 or empty."""
    if isinstance(value, (list, tuple)):
        return b"".join(varint(number << 3 | 2) + varint(len(piece)) + piece for piece in value)
    if not value:
        return b""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    piece = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(piece)) + piece


def message(names: Sequence[str], values: Mapping[str, Any]) -> bytes:
    return b"".join(field(names.index(name) + 1, value) for name, value in values.items())


def delimited(content: bytes) -> bytes:
    return varint(len(content)) + content


def postings_list(term: str, tfs: Mapping[int, int], **others: Any) -> bytes:
    """The message of a term with its frequency in each document; `others` replace fields."""
    before, pairs = 0, []
    for doc, tf in sorted(tfs.items()):
        pairs.append(message(POSTING, {"docid": doc - before, "tf": tf}))
        before = doc
    values = {"term": term, "df": len(tfs), "cf": sum(tfs.values()), "postings": pairs}
    return message(LIST, values | others)


def record(docid: int, name: str, length: int) -> bytes:
    return message(RECORD, {"docid": docid, "collection_docid": name, "doclength": length})


def ciff(
    bags: Sequence[Mapping[str, int]],
    names: Iterable[str] | None = None,
    lengths: Sequence[int] | None = None,
    lists: Sequence[bytes] | None = None,
    **header: Any,
) -> bytes:
    """A file of documents as bags of words.

    Args:
        bags: The documents.
        names: Their ids; d0, d1, … unless given.
        lengths: Their lengths; the sums of their bags unless given.
        lists: The messages of the postings lists in place of those of the bags.
        **header: Fields of the header in place of what is so.
    """
    terms: dict[str, dict[int, int]] = {}
    for doc, bag in enumerate(bags):
        for term, tf in bag.items():
            terms.setdefault(term, {})[doc] = tf
    lists = [postings_list(term, terms[term]) for term in sorted(terms, key=str.encode)] if lists is None else lists
    lengths = [sum(bag.values()) for bag in bags] if lengths is None else lengths
    tokens = sum(sum(bag.values()) for bag in bags)
    counts = [1, len(lists), len(bags), len(lists), len(bags), tokens, tokens / max(1, len(bags)), "a test"]
    whole = message(HEADER, dict(zip(HEADER, counts, strict=True)) | header)
    named = [f"d{doc}" for doc in range(len(bags))] if names is None else names
    records = [record(doc, name, length) for doc, (name, length) in enumerate(zip(named, lengths, strict=True))]
    return b"".join(map(delimited, [whole, *lists, *records]))


def parsed(content: bytes) -> tuple[dict[str, Any], dict[str, dict[int, int]], list[tuple[str, int]]]:
    """The header, the postings by term, and each document's id and length."""
    messages, at = [], 0
    while at < len(content):
        size, at = _varint(content, at)
        messages.append(content[at : at + size])
        at += size
    header = _values(HEADER, messages[0])
    end = 1 + header["num_postings_lists"]
    terms: dict[str, dict[int, int]] = {}
    for piece in messages[1:end]:
        values, doc, postings = _values(LIST, piece), 0, {}
        for pair in values["postings"]:
            gap = _values(POSTING, pair)
            doc += gap["docid"]
            postings[doc] = gap["tf"]
        assert (values["df"], values["cf"]) == (len(postings), sum(postings.values()))
        assert values["term"] not in terms
        terms[values["term"]] = postings
    records = [_values(RECORD, piece) for piece in messages[end:]]
    assert [each["docid"] for each in records] == list(range(header["num_docs"]))
    return header, terms, [(each["collection_docid"], each["doclength"]) for each in records]


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        value |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 128:
            return value, at


def _values(names: Sequence[str], content: bytes) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(names, 0)
    values |= {name: "" for name in ("description", "term", "collection_docid") if name in names}
    values |= {"postings": []} if "postings" in names else {}
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        name, kind = names[(tag >> 3) - 1], tag & 7
        if kind == 0:
            values[name], at = _varint(content, at)
        elif kind == 1:
            (values[name],) = struct.unpack("<d", content[at : at + 8])
            at += 8
        else:
            size, at = _varint(content, at)
            piece = content[at : at + size]
            at += size
            if name == "postings":
                values[name].append(piece)
            else:
                values[name] = piece if names is POSTING else piece.decode()
    return values
