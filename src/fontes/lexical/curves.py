"""Curves: the weights of a model as a table by tf and document length, which the packed lists of an index have as codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..core.arrays import AnyArray, Float64s, Ints
from ..index.packed import PackedLists
from ..index.parts import Part
from ..storage.arrays import fixed
from ..storage.caches import LazyAttribute
from .weighting import Idfs, Saturation, Statistics, Weighting, in_one_byte, saturation_of

SAME_WEIGHTS = fixed(np.ones(2))  # ratios, as in `kernel.search_bag`


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Weights of a model as idf times a function of tf and length, rounded to float32.

    Args:
        idfs: Returns the idf of each of some terms.
        function: The function.
        saturation: float64; the function by code, 0 for the code 0.
        rest: float64; the function of the postings in the `rest` of the lists.
    """

    idfs: Callable[[Ints], Float64s]
    function: Saturation
    saturation: Float64s
    rest: Float64s

    @classmethod
    def of(cls, part: Part, weighting: Weighting, lists: PackedLists) -> ScoreTable | None:
        """Return the curve of a model; None if its weights have another form."""
        statistics = Statistics.of(part)
        function = saturation_of(weighting, statistics)
        if function is None or function.sums_idf or not lists.by_length:
            return None
        _, docs, rest_tf, rest_lengths = lists.rest
        if function.lengths is statistics.lengths:
            pair_lengths, rest_lengths = lists.pairs[1, 1:].astype(np.float64), rest_lengths.astype(np.float64)
        elif function.lengths is statistics.lengths_in_one_byte:
            pair_lengths, rest_lengths = _IN_ONE_BYTE.of(lists)
        else:
            exact = part.lengths
            length_of = np.zeros(int(exact.max()) + 1, dtype=np.float64)  # the length that the model uses, by exact length
            length_of[exact] = function.lengths
            if not np.array_equal(length_of[exact], function.lengths):
                return None
            pair_lengths, rest_lengths = length_of[lists.pairs[1, 1:]], function.lengths[docs]
        saturation = np.zeros(lists.pairs.shape[1], dtype=np.float64)
        saturation[1:] = function.saturate(lists.pairs[0, 1:], pair_lengths)
        idfs = Idfs.of(part.whole, weighting, function.idf)
        rest = function.saturate(rest_tf, rest_lengths)
        return cls(lambda terms: idfs(statistics.counts_of(terms)), function, saturation, rest)

    def ratios(self, saturation: Float64s, rest: Float64s) -> Float64s | None:
        """Return the greatest and the least ratio of the weights to those of another curve; None if it has values of 0."""
        old, new = np.concatenate([saturation[1:], rest]), np.concatenate([self.saturation[1:], self.rest])
        if np.array_equal(old, new):
            return SAME_WEIGHTS
        if not (old.min() > 0 and new.min() > 0):
            return None
        quotients = new / old
        return fixed(np.array([quotients.max() * (1 + 1e-9), quotients.min() * (1 - 1e-9)]))


_IN_ONE_BYTE: LazyAttribute[PackedLists, tuple[AnyArray, AnyArray]] = LazyAttribute(
    "lengths_in_one_byte", lambda lists: (in_one_byte(lists.pairs[1, 1:]), in_one_byte(lists.rest[3]))
)
