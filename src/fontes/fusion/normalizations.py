"""Normalisations: scores of each list on one scale, so that those of several runs can be added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import InputError, Run
from ..core.pairs import Floats, Ints


class RankedLists:
    """The lists of a run end to end, one for each topic with documents.

    Attributes:
        scores: Score of each row, float64, best to worst in each list.
        ranks: Rank of each row, float64, from 1.
        first: First row of each list.
        size: Number of rows of each list.
        best: Best score of each list.
        least: Worst score of each list.
    """

    def __init__(self, run: Run, name: str) -> None:
        """Take the lists of `run`, which messages call `name`."""
        self._run, self._name = run, name
        sizes = np.diff(run.bounds)
        filled = sizes > 0
        self.scores: Floats = run.scores.astype(np.float64)
        self.ranks: Floats = (np.arange(1, run.rows + 1) - np.repeat(run.bounds[:-1], sizes)).astype(np.float64)
        self.first: Ints = run.bounds[:-1][filled]
        self.size: Ints = sizes[filled]
        self.best: Floats = self.scores[self.first]
        self.least: Floats = self.scores[run.bounds[1:][filled] - 1]

    def spread(self, of_lists: Any) -> Any:
        """Repeat one value per list for each row."""
        return np.repeat(of_lists, self.size)

    def sums(self, of_rows: Floats) -> Floats:
        """Sum over each list."""
        return np.add.reduceat(of_rows, self.first) if len(self.first) else self.best

    def error(self, row: int, problem: str) -> InputError:
        """Error for a problem with the score of a row."""
        topic = list(self._run.topics)[int(self._run.topic_numbers[row])]
        return InputError(f"{self._name}, topic '{topic}', document '{self._run.ids[int(self._run.codes[row])]}': {problem}")


def min_max(lists: RankedLists) -> Floats:
    """(score - least) / (best - least); 1 in a list of equal scores."""
    return _ratio(lists.scores - lists.spread(lists.least), lists.spread(lists.best - lists.least), 1.0)


def by_max(lists: RankedLists) -> Floats:
    """Score / best.

    Raises:
        InputError: A best score is not positive.
    """
    if len(lists.best) and lists.best.min() <= 0:
        problem = f"max divides by the best score, which is {lists.best.min():g} here; normalise by min-max"
        raise lists.error(int(lists.first[np.argmin(lists.best)]), problem)
    scores: Floats = lists.scores / lists.spread(lists.best)
    return scores


def by_sum(lists: RankedLists) -> Floats:
    """Score - least, divided by the sum of these over the list; 1 / length in a list of equal scores."""
    above = lists.scores - lists.spread(lists.least)
    return _ratio(above, lists.spread(lists.sums(above)), 1 / lists.spread(lists.size))


def z_score(lists: RankedLists) -> Floats:
    """(score - mean) / standard deviation, which divides by n; 0 in a list of equal scores."""
    apart = lists.scores - lists.spread(lists.sums(lists.scores) / lists.size)
    deviation = np.sqrt(lists.sums(apart**2) / lists.size)
    return _ratio(apart, lists.spread(np.where(lists.best > lists.least, deviation, 0.0)), 0.0)


def by_rank(lists: RankedLists) -> Floats:
    """1 - (rank - 1) / length of the list."""
    scores: Floats = 1 - (lists.ranks - 1) / lists.spread(lists.size).astype(np.float64)
    return scores


NORMALIZATIONS: dict[str, Callable[[RankedLists], Floats]] = {
    "min-max": min_max,
    "max": by_max,
    "sum": by_sum,
    "z": z_score,
    "rank": by_rank,
}


def normalized(lists: RankedLists, normalization: str | None) -> Floats:
    """Normalise the scores of each list, float64; None leaves them unchanged.

    Raises:
        InputError: A score is infinite, or does not suit the normalisation.
    """
    if not np.isfinite(lists.scores).all():
        raise lists.error(int(np.argmin(np.isfinite(lists.scores))), "the score is infinite; fuse by rank")
    return lists.scores if normalization is None else NORMALIZATIONS[normalization](lists)


def _ratio(above: Floats, below: Floats, constant: Any) -> Floats:
    """above / below; `constant` for rows of a list of equal scores, where below is 0."""
    out = np.broadcast_to(np.asarray(constant, dtype=np.float64), above.shape).copy()
    return np.divide(above, below, out=out, where=below > 0)
