"""Packed lists are read where they lie as arrays of documents and weights are; small enough to run interpreted."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fontes.index.packed import NO_CODES, list_offsets
from fontes.index.packed_kernels import WINDOW, pack
from fontes.lexical.lists import unite
from fontes.storage import compiled
from fontes.storage.arrays import fixed

DOCUMENTS = 3 * WINDOW + 100
DF = (1, 3, 40, 9, 200, 300, 900, 301, 600, 12)
LONG = 250  # postings above which a term has a row
LAYOUTS = [(12, 12, 1), (16, 12, 1), (3, 16, 2), (8, 12, 1), (0, 0, 0)]  # bits beside a document, bits and bytes of a code


class Lists:
    """Lists whose documents and codes are known, and what `pack` makes of them; postings of the code 0 have weights apart."""

    def __init__(self, beside: int, bits: int, width: int) -> None:
        draws = np.random.default_rng(3)
        lists = [np.sort(draws.choice(DOCUMENTS, df, replace=False)) for df in DF]
        lists[0][:] = DOCUMENTS - 1
        lists[6][:3] = lists[5][:3]  # in both
        lists[6].sort()
        lists[7] = np.arange(WINDOW - 150, WINDOW + 151)  # close together, across two windows
        self.docs = [np.unique(docs).astype(np.int32) for docs in lists]
        sizes = np.array([len(docs) for docs in self.docs])
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        codes = draws.integers(0, 1 << bits, bounds[-1]) * (draws.random(bounds[-1]) < 0.9)
        self.row_of = np.full(len(sizes), -1, dtype=np.int32)
        long = np.flatnonzero(sizes > LONG)
        self.row_of[long] = np.arange(len(long))
        self.starts = np.zeros((len(long), -(-DOCUMENTS // WINDOW) + 1), dtype=np.uint32)
        has_rest, of_long = int(bits > beside), int(sizes[long].sum())
        widths, offsets = np.array([beside, has_rest, width]), list_offsets(bounds, self.row_of)
        words, places = np.zeros(bounds[-1] - of_long, np.uint32), np.zeros(of_long, np.uint16)
        of_words, of_places = np.zeros(has_rest * len(words), np.uint16), np.zeros(width * of_long, np.uint8)
        whole = np.concatenate(self.docs)
        inputs = bounds, whole, codes.astype(np.uint16), self.row_of, offsets, widths
        pack(*map(fixed, inputs), (words, of_words, places, of_places), self.starts)
        self._weigh(draws, bounds, codes, whole, bits)
        packed = bounds, offsets, words, of_words if has_rest else NO_CODES, places, of_places, widths, self.flat
        self.lists = *map(fixed, packed), fixed(self.saturation), tuple(map(fixed, self.rest))
        self.row_of, self.starts = fixed(self.row_of), fixed(self.starts)

    def _weigh(self, draws: Any, bounds: Any, codes: Any, whole: Any, bits: int) -> None:
        """Weights of the postings: by code, except those of the code 0; or all by themselves."""
        term_of = np.repeat(np.arange(len(DF)), np.diff(bounds))
        alone, self.idf = draws.random(len(whole)), np.ones(len(DF))
        self.flat, self.saturation = np.zeros(0, np.float32), np.zeros(0)
        self.rest: tuple[Any, ...] = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        weights = alone.astype(np.float32)
        if bits:
            self.idf, self.saturation = draws.random(len(DF)) + 1, draws.random(1 << bits) + 1
            rare = np.flatnonzero(codes == 0)
            self.rest = np.searchsorted(term_of[rare], np.arange(len(DF) + 1)), whole[rare], alone[rare]
            weights = (self.idf[term_of] * np.where(codes == 0, alone, self.saturation[codes])).astype(np.float32)
        else:
            self.flat = weights
        self.weights = np.split(weights, bounds[1:-1])


@pytest.fixture(scope="module")
def loops() -> ModuleType:
    compiled.load()
    return importlib.import_module("fontes.lexical.packed_kernels")


@pytest.fixture(scope="module", params=LAYOUTS, ids=str)
def made(request: pytest.FixtureRequest) -> Lists:
    return Lists(*request.param)


@pytest.mark.parametrize("size", [1, 7, 256, 2000])
def test_portions_of_a_list_are_read(made: Lists, loops: ModuleType, size: int) -> None:
    for term, docs in enumerate(made.docs):
        for first in range(0, len(docs), max(size, len(docs) // 5)):
            last, out = min(first + size, len(docs)), np.full(size + 1, -1, np.int32)
            loops.read(made.lists, made.row_of, made.starts, term, first, last, out)
            assert out.tolist() == [*docs[first:last].tolist(), *[-1] * (size + 1 - (last - first))]


def met(made: Lists, loops: ModuleType, docs: NDArray[np.int32], term: int, size: int) -> list[tuple[int, int]]:
    """Places in `docs` and in the list of a term of the documents that are in both, found in portions."""
    cursor, found = 0, []
    for first in range(0, len(docs), size):
        portion = docs[first : first + size]
        of_docs, of_list = np.empty((2, len(portion) + 1), dtype=np.int64)
        count, cursor = loops.meet(made.lists, made.row_of, made.starts, term, portion, cursor, of_docs, of_list)
        found += [(first + int(a), int(b)) for a, b in zip(of_docs[:count], of_list[:count], strict=True)]
    return found


@pytest.mark.parametrize("size", [1, 64, 2000])
def test_the_documents_that_a_list_has_are_met_in_ascending_portions(made: Lists, loops: ModuleType, size: int) -> None:
    every = np.arange(DOCUMENTS, dtype=np.int32)
    for docs in (*made.docs[: 9 if size > 1 else 3], every[::3].copy(), every[-5:], every[:0]):
        for term, of_term in enumerate(made.docs):
            _, a, b = np.intersect1d(docs, of_term, return_indices=True)
            assert met(made, loops, docs, term, size) == list(zip(a.tolist(), b.tolist(), strict=True))


def test_weights_of_single_postings_are_added(made: Lists, loops: ModuleType) -> None:
    draws = np.random.default_rng(5)
    for term, (docs, weights) in enumerate(zip(made.docs, made.weights, strict=True)):
        postings = np.sort(draws.choice(len(docs), min(len(docs), 50), replace=False))
        sums = np.full(len(postings), 0.5)
        row, idf = made.row_of[term], float(made.idf[term])
        loops.add_weights(made.lists, row, term, 2.0, idf, docs[postings], postings, sums)
        assert sums.tolist() == [0.5 + 2.0 * float(weight) for weight in weights[postings]]


def test_lists_are_united_and_counted(made: Lists) -> None:
    for terms in ([0], [1, 3], [4, 6], list(range(len(DF)))):
        expected, marks = np.unique(np.concatenate([made.docs[term] for term in terms])), -(-DOCUMENTS // 64)
        out, numbers = np.empty(DOCUMENTS, np.int32), np.array(terms)
        lists = (made.lists, made.row_of, made.starts), WINDOW
        assert unite(numbers, *lists, np.zeros(marks, np.uint64), np.zeros(0, np.int32)) == len(expected)
        assert out[: unite(numbers, *lists, np.zeros(marks, np.uint64), out)].tolist() == expected.tolist()
