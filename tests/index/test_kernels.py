"""The loops of the index, interpreted, against plain Python: counts, inversion, and postings of older indexes."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
from support.each import each
from support.older import packed, varint

from fontes.index import kernels, kernels as building


def interpreted(name: str) -> Any:
    """A loop without its compiler."""
    function = getattr(kernels, name)
    return getattr(function, "py_func", function)


DOCS = [[4, 2, 4, 4], [], [0, 1, 2, 2, 5], [5], [], [2, 0, 2]]
POSTINGS: list[list[tuple[int, int]]] = [  # of each term (document, tf): gaps and tfs around the powers of 128
    [(0, 1)],
    [(0, 2), (1, 1), (64, 127), (127, 128)],
    [],
    [(62, 1), (125, 300)],
    [(63, 1), (127, 16_383), (8_318, 16_384), (8_319, 1)],
    [(1_048_575, 2_097_152), (3_000_000, 2**31 - 1)],
]


def ends(lengths: list[int]) -> Any:
    return np.cumsum([0, *lengths])


def test_the_terms_of_each_document_are_counted_in_the_order_in_which_they_come() -> None:
    numbers = np.array([number for doc in DOCS for number in doc], dtype=np.int32)
    terms, counts, scratch = np.empty_like(numbers), np.empty_like(numbers), np.zeros(6, np.int32)
    bounds = interpreted("count_terms")(numbers, ends([len(doc) for doc in DOCS]), scratch, terms, counts)
    found = [dict(zip(terms[a:b].tolist(), counts[a:b].tolist(), strict=True)) for a, b in pairwise(bounds)]
    assert [list(bag.items()) for bag in found] == [list(Counter(doc).items()) for doc in DOCS]
    assert not scratch.any()


def test_documents_are_inverted_into_the_places_of_their_terms() -> None:
    bags = [Counter(doc) for doc in DOCS]
    terms, counts = (np.array([pair[i] for bag in bags for pair in bag.items()]) for i in (0, 1))
    order = [1, 2, 5, 0, 4, 3]  # of the terms in the output
    df = Counter(term for bag in bags for term in bag)
    starts = ends([df[term] for term in order])
    cursor = np.zeros(6, dtype=np.int64)
    cursor[order] = starts[:-1]
    docs, tfs = np.full(starts[-1], -1), np.full(starts[-1], -1)
    building.invert.py_func(10, terms, counts, ends([len(bag) for bag in bags]), cursor, docs, tfs)
    expected = [(10 + doc, bag[term]) for term in order for doc, bag in enumerate(bags) if term in bag]
    assert list(zip(docs.tolist(), tfs.tolist(), strict=True)) == expected
    assert cursor[order].tolist() == starts[1:].tolist()


def unpacked(parts: list[list[int]], df: list[int], terms: list[int], documents: int = 3_000_001) -> Any:
    """What is read from bytes: (documents, tfs), or False."""
    data = np.array([byte for part in parts for byte in part], dtype=np.uint8)
    size = sum(df[term] for term in terms)
    docs, tfs = np.zeros(size, np.int32), np.zeros(size, np.int32)
    bounds, of = ends([len(part) for part in parts]), np.array(terms, np.int64)
    sound = interpreted("unpack_postings")(data, bounds[of], bounds[of + 1], np.array(df)[of], documents, docs, tfs)
    return sound and list(zip(docs.tolist(), tfs.tolist(), strict=True))


@each("terms", [[0, 1, 2, 3, 4, 5], [4, 1, 4], [2], []])
def test_bytes_are_read_as_the_postings_of_the_terms_end_to_end(terms: list[int]) -> None:
    parts, df = [packed(postings) for postings in POSTINGS], [len(postings) for postings in POSTINGS]
    assert unpacked(parts, df, terms) == [posting for term in terms for posting in POSTINGS[term]]


@each(
    ("data", "df", "documents"),
    [
        ([3], 2, 9),  # fewer postings than df
        ([3, 3], 1, 9),  # more
        ([0, 2], 1, 9),  # no distance from the document before
        ([1], 1, 9),
        ([3, 21], 2, 10),  # a document beyond the last
        ([4], 1, 9),  # a tf that is missing
        ([4, 0], 1, 9),  # a tf of 0
        ([4, *varint(2**31)], 1, 9),  # one beyond 31 bits
        ([131], 1, 9),  # bytes that end too early
        ([3, 131], 2, 9),
        ([131, *[128] * 5, 0], 1, 9),  # a number of too many bytes
    ],
)
def test_bytes_that_are_no_postings_are_not_read(data: list[int], df: int, documents: int) -> None:
    assert unpacked([[3], data, [3]], [1, df, 1], [1], documents) is False
    assert unpacked([[3], [3, 20, 2], [3]], [1, 2, 1], [1], 11) == [(0, 1), (10, 2)]
