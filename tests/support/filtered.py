"""Runs under a filter."""

from __future__ import annotations

from fontes.core import Run
from fontes.index import Index
from fontes.index.columns import filter_of


def same(searched: Run, every: Run, index: Index, where: str, k: int) -> bool:
    """Whether a run is, to the last bit, the best k of what is left of a run of all documents."""
    passed = filter_of(index.state, where)
    assert passed is not None
    expected = every.keep(passed.mask[every.codes]).top(k)
    arrays = [(run.bounds.tobytes(), run.codes.tobytes(), run.scores.tobytes()) for run in (searched, expected)]
    return arrays[0] == arrays[1]
