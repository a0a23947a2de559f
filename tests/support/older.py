"""Postings of indexes of version 2: one or two integers of variable length each."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

from fontes.core.strings import offsets_of
from fontes.index.postings import PostingLists
from fontes.storage.arrays import read_array, smallest, write_array


def varint(value: int) -> list[int]:
    """Seven bits a byte, low bits first, the high bit set on all bytes but the last."""
    return [value] if value < 128 else [value % 128 + 128, *varint(value // 128)]


def packed(postings: Iterable[tuple[int, int]]) -> list[int]:
    """The distance from the document before it times two, plus one if the term occurs once; otherwise the tf follows."""
    out, before = [], -1
    for doc, tf in postings:
        out += varint((doc - before) * 2 + 1) if tf == 1 else [*varint((doc - before) * 2), *varint(tf)]
        before = doc
    return out


def rewrite_postings(folder: Path) -> None:
    """Write the postings of an inverted index in the older form."""
    lists = PostingLists(folder, len(read_array(folder, "doc_lengths")))
    terms = np.arange(len(lists.df))
    postings = list(zip(*(part.tolist() for part in lists.postings(terms)), strict=True))
    parts = [packed(postings[a:b]) for a, b in pairwise(offsets_of(lists.df).tolist())]
    write_array(folder, "postings", np.array([byte for part in parts for byte in part], dtype=np.uint8))
    write_array(folder, "postings.bounds", smallest(offsets_of([len(part) for part in parts])))
