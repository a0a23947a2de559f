"""Equal scores of a run in other orders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..core import Qrels, Run
from ..core.arrays import Floats, Int64s
from .ranks import NOT_RETRIEVED, Ranks, judgments

SAMPLES = 100  # random orders


class TiedScores:
    """Groups of documents of a topic with equal scores (float32, as trec_eval compares them).

    Args:
        run: The run.
        qrels: The judgments.

    Attributes:
        judged: Rows of the run that have a judgment.
        topics: Numbers of the judged topics with a group that has a judged document.
        constant: Number of judged topics with several documents, all with one score.
    """

    def __init__(self, run: Run, qrels: Qrels) -> None:
        self._ranks = Ranks.of(run, qrels)
        self._topic, self._grade, _ = judgments(qrels)
        numbers = {topic_id: number for number, topic_id in enumerate(run.topics)}
        first = np.array([run.bounds[numbers[t]] if t in numbers else 0 for t in qrels], dtype=np.int64)[self._topic]
        self._retrieved = np.flatnonzero(self._ranks.by_qrels < NOT_RETRIEVED)
        self._first = first[self._retrieved]
        self.judged = self._first + self._ranks.by_qrels[self._retrieved]
        group = _groups(run)
        size = np.bincount(group)
        affected = np.zeros(len(size), dtype=bool)
        affected[group[self.judged]] = True
        self._rows = np.flatnonzero((affected & (size > 1))[group])
        self._group = group[self._rows]
        self._gain = np.zeros(run.rows, dtype=np.int64)
        self._gain[self.judged] = np.maximum(self._grade[self._retrieved], 0)
        self._size = run.rows
        self.topics = set(self._topic[self._retrieved[np.isin(self.judged, self._rows)]].tolist())
        counts = np.diff(run.bounds)
        judged = np.array([topic_id in qrels for topic_id in run.topics], dtype=bool)
        several = np.flatnonzero(judged & (counts > 1))
        self.constant = int(np.count_nonzero(group[run.bounds[several]] == group[run.bounds[several + 1] - 1]))

    def best(self) -> Ranks:
        """Return the ranks with the highest grades first in each group."""
        return self._ordered(-self._gain[self._rows])

    def worst(self) -> Ranks:
        """Return the ranks with the highest grades last in each group."""
        return self._ordered(self._gain[self._rows])

    def by_id(self) -> Ranks:
        """Return the ranks with ascending ids in each group; a run has them descending."""
        return self._ordered(-self._rows)

    def shuffled(self, seed: int) -> Iterator[Ranks]:
        """Yield the ranks of SAMPLES random orders of each group."""
        random = np.random.default_rng(seed)
        for _ in range(SAMPLES):
            yield self._ordered(random.random(len(self._rows)))

    def _ordered(self, keys: Floats | Int64s) -> Ranks:
        """Return the ranks with each group in ascending order of the keys of its rows."""
        position = np.arange(self._size)
        position[self._rows[np.lexsort((keys, self._group))]] = self._rows
        rank = self._ranks.by_qrels.copy()
        rank[self._retrieved] = position[self.judged] - self._first
        order = np.lexsort((rank, self._topic))
        return replace(self._ranks, grade=self._grade[order], rank=rank[order], by_qrels=rank)


def _groups(run: Run) -> Int64s:
    """Return the number of the group of each row: equal scores of one topic."""
    starts = np.ones(run.rows, dtype=bool)
    starts[1:] = run.scores[1:] != run.scores[:-1]
    starts[run.bounds[:-1][np.diff(run.bounds) > 0]] = True
    return np.cumsum(starts) - 1
