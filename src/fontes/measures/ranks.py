"""Ranks of the judged documents in a run: all that measures need of a run and its qrels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import Qrels, Run, Strings

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

FAR = 1 << 62  # the rank of a document that was not retrieved
SEARCH_COST = 64  # `Strings.find` takes about as long as listing this many ids


@dataclass(frozen=True, eq=False)
class Ranks:
    """A table with one row a judgment, ordered by topic (as in the qrels) and then by rank.

    All arrays are int64. A table takes 32 bytes a judgment.

    Args:
        qrels: The judgments.
        topic: For each row the number of its topic, from 0.
        grade: For each row the grade of its document.
        rank: For each row the rank of its document in the run, from 0, or FAR where it was not retrieved.
        starts: For each topic its first row.
        retrieved: For each topic how many documents the run has.
        by_qrels: The ranks once more, in the order of the qrels.
    """

    qrels: Qrels
    topic: Ints
    grade: Ints
    rank: Ints
    starts: Ints
    retrieved: Ints
    by_qrels: Ints

    @classmethod
    def of(cls, run: Run, qrels: Qrels) -> Ranks:
        """The table for a run."""
        topic, grade, starts = judgments(qrels)
        retrieved, rank = _look_up(run, qrels, starts)
        order = np.lexsort((rank, topic))
        return cls(qrels, topic, grade[order], rank[order], starts, retrieved, rank)

    def condensed(self) -> Ranks:
        """The table for the run without the documents that are not judged, or have a negative grade."""
        judged = (self.rank < FAR) & (self.grade >= 0)
        rank = np.where(judged, self.running(judged) - 1, FAR)
        order = np.lexsort((rank, self.topic))
        return replace(self, grade=self.grade[order], rank=rank[order], retrieved=self.count(judged))

    def lists(self, values: Floats) -> Iterator[Floats]:
        """For each topic the values, one a row of the table, of its documents as the run ranks them; 0 for those not judged."""
        bounds = [*self.starts.tolist(), len(self.topic)]
        for start, end, number in zip(bounds, bounds[1:], self.retrieved.tolist(), strict=False):
            ranked = np.zeros(number)
            here = self.rank[start:end] < FAR
            ranked[self.rank[start:end][here]] = values[start:end][here]
            yield ranked

    def relevant(self, rel: int) -> Mask:
        """The rows whose grade is at least `rel`."""
        return self.grade >= rel

    def relevant_retrieved(self, rel: int, depth: int = FAR) -> Mask:
        """The rows of relevant documents among the first `depth` of the ranking."""
        return self.relevant(rel) & (self.rank < depth)

    def count(self, rows: Mask) -> Ints:
        """For each topic, how many of its rows are marked."""
        return np.bincount(self.topic[rows], minlength=len(self.starts))

    def total(self, rows: Mask, weights: Floats) -> Floats:
        """For each topic, the sum of the weights of its marked rows."""
        return np.bincount(self.topic[rows], weights=weights[rows], minlength=len(self.starts)).astype(np.float64)

    def running(self, rows: Mask) -> Ints:
        """For each row, how many rows of its topic are marked, from the first to this one."""
        marked = np.concatenate(([0], np.cumsum(rows)))
        return marked[1:] - marked[self.starts][self.topic]

    def evidence(self, rel: int) -> Ints:
        """For each topic, the rank at which the first evidence set of `Qrels.groups` is complete, or FAR."""
        complete = np.full(len(self.qrels), FAR, dtype=np.int64)
        bounds = [*self.starts.tolist(), len(self.topic)]
        for i, (topic_id, grades) in enumerate(self.qrels.items()):
            rank = dict(zip(grades, self.by_qrels[bounds[i] : bounds[i + 1]].tolist(), strict=True))
            sets = self.qrels.groups(topic_id, rel)
            complete[i] = min((max(rank[d] for d in members) for members in sets), default=FAR)
        return complete


def judgments(qrels: Qrels) -> tuple[Ints, Ints, Ints]:
    """The judgments as columns, int64, in the order of the qrels.

    Returns:
        For each judgment the number of its topic, and its grade; and for each topic its first judgment.
    """
    sizes = np.array([len(grades) for grades in qrels.values()], dtype=np.int64)
    grade = np.array([g for grades in qrels.values() for g in grades.values()], dtype=np.int64)
    return np.repeat(np.arange(len(qrels)), sizes), grade, np.cumsum(sizes) - sizes


def ratio(above: Floats | Ints, below: Floats | Ints) -> Floats:
    """above / below, and 0 where below is 0."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)


def _look_up(run: Run, qrels: Qrels, starts: Ints) -> tuple[Ints, Ints]:
    """For each topic the number of documents retrieved, and for each judgment, in the order of the qrels, its rank."""
    numbers = {topic_id: i for i, topic_id in enumerate(run)}
    codes = _codes(run.ids, {doc_id for grades in qrels.values() for doc_id in grades})
    judgment = np.full(len(run.ids), -1, dtype=np.int64)
    retrieved = np.zeros(len(qrels), dtype=np.int64)
    rank = np.full(sum(map(len, qrels.values())), FAR, dtype=np.int64)
    bounds = run.bounds.tolist()
    for i, (topic_id, grades) in enumerate(qrels.items()):
        number = numbers.get(topic_id, -1)
        if number < 0:
            continue
        rows = run.codes[bounds[number] : bounds[number + 1]]
        retrieved[i] = len(rows)
        own = [(codes[doc_id], row) for row, doc_id in enumerate(grades, int(starts[i])) if doc_id in codes]
        if not own:
            continue
        here, judged = np.array(own, dtype=np.int64).T
        judgment[here] = judged
        of_rows = judgment[rows]
        ranks = np.flatnonzero(of_rows >= 0)
        rank[of_rows[ranks]] = ranks
        judgment[here] = -1
    return retrieved, rank


def _codes(ids: Strings, judged: set[str]) -> dict[str, int]:
    """The codes of the judged documents that `ids` has, by whichever way is shorter: search each, or list all."""
    if len(judged) * SEARCH_COST < len(ids):
        codes = ((doc_id, ids.find(doc_id)) for doc_id in judged)
        return {doc_id: code for doc_id, code in codes if code >= 0}
    return {doc_id: code for code, doc_id in enumerate(ids) if doc_id in judged}
