"""Ranks of the judged documents in a run, the input of all measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..core import Qrels, Run, Strings
from ..core.arrays import Bools, Floats, Int64s

Mask = Bools

NOT_RETRIEVED = 1 << 62  # rank of a document not retrieved
SEARCH_COST = 64  # ids listed in the time of one `Strings.find`


@dataclass(frozen=True, eq=False)
class Ranks:
    """A table with one row per judgment, ordered by topic (as in the qrels) and then by rank.

    All arrays are int64. A table takes 32 bytes a judgment.

    Args:
        qrels: The judgments.
        topic: Topic number of each row, from 0.
        grade: Grade of each row's document.
        rank: Rank of each row's document in the run, from 0, or FAR if not retrieved.
        starts: First row of each topic.
        retrieved: Number of retrieved documents of each topic.
        by_qrels: The ranks in the order of the qrels.
    """

    qrels: Qrels
    topic: Int64s
    grade: Int64s
    rank: Int64s
    starts: Int64s
    retrieved: Int64s
    by_qrels: Int64s

    @classmethod
    def of(cls, run: Run, qrels: Qrels) -> Ranks:
        """Return the table for a run."""
        topic, grade, starts = judgments(qrels)
        retrieved, rank = _look_up(run, qrels, starts)
        order = np.lexsort((rank, topic))
        return cls(qrels, topic, grade[order], rank[order], starts, retrieved, rank)

    def condensed(self) -> Ranks:
        """Return the table for the run without documents that are unjudged or have a negative grade."""
        judged = (self.rank < NOT_RETRIEVED) & (self.grade >= 0)
        rank = np.where(judged, self.running(judged) - 1, NOT_RETRIEVED)
        order = np.lexsort((rank, self.topic))
        return replace(self, grade=self.grade[order], rank=rank[order], retrieved=self.count(judged))

    def lists(self, values: Floats) -> Iterator[Floats]:
        """Yield each topic's values, one per row, in the order of the run's documents; 0 for unjudged ones."""
        bounds = [*self.starts.tolist(), len(self.topic)]
        for start, end, size in zip(bounds, bounds[1:], self.retrieved.tolist(), strict=False):
            ranked = np.zeros(size)
            ranked_rows = self.rank[start:end] < NOT_RETRIEVED
            ranked[self.rank[start:end][ranked_rows]] = values[start:end][ranked_rows]
            yield ranked

    def relevant(self, rel: int) -> Mask:
        """Mask of rows whose grade is at least `rel`."""
        return self.grade >= rel

    def relevant_retrieved(self, rel: int, depth: int = NOT_RETRIEVED) -> Mask:
        """Mask of rows of relevant documents among the first `depth` of the ranking."""
        return self.relevant(rel) & (self.rank < depth)

    def count(self, rows: Mask) -> Int64s:
        """Number of marked rows of each topic."""
        return np.bincount(self.topic[rows], minlength=len(self.starts))

    def total(self, rows: Mask, weights: Floats) -> Floats:
        """Sum of the weights of the marked rows of each topic."""
        return np.bincount(self.topic[rows], weights=weights[rows], minlength=len(self.starts)).astype(np.float64)

    def running(self, rows: Mask) -> Int64s:
        """Number of marked rows of the topic up to and including each row."""
        marked = np.concatenate(([0], np.cumsum(rows)))
        return marked[1:] - marked[self.starts][self.topic]

    def evidence(self, rel: int) -> Int64s:
        """Rank at which each topic's first evidence set of `Qrels.groups` is complete, or FAR."""
        complete = np.full(len(self.qrels), NOT_RETRIEVED, dtype=np.int64)
        bounds = [*self.starts.tolist(), len(self.topic)]
        for i, (topic_id, grades) in enumerate(self.qrels.items()):
            rank = dict(zip(grades, self.by_qrels[bounds[i] : bounds[i + 1]].tolist(), strict=True))
            sets = self.qrels.groups(topic_id, rel)
            complete[i] = min((max(rank[d] for d in members) for members in sets), default=NOT_RETRIEVED)
        return complete


def judgments(qrels: Qrels) -> tuple[Int64s, Int64s, Int64s]:
    """Return topic number and grade of each judgment, and each topic's first judgment, int64, in qrels order."""
    sizes = np.array([len(grades) for grades in qrels.values()], dtype=np.int64)
    grade = np.array([g for grades in qrels.values() for g in grades.values()], dtype=np.int64)
    return np.repeat(np.arange(len(qrels)), sizes), grade, np.cumsum(sizes) - sizes


def ratio(numerator: Floats | Int64s, denominator: Floats | Int64s) -> Floats:
    """Return numerator / denominator, and 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)


def _look_up(run: Run, qrels: Qrels, starts: Int64s) -> tuple[Int64s, Int64s]:
    """Return each topic's number of retrieved documents, and each judgment's rank, in qrels order."""
    topic_numbers = {topic_id: i for i, topic_id in enumerate(run)}
    codes = _codes(run.ids, {doc_id for grades in qrels.values() for doc_id in grades})
    judgment = np.full(len(run.ids), -1, dtype=np.int64)
    retrieved = np.zeros(len(qrels), dtype=np.int64)
    rank = np.full(sum(map(len, qrels.values())), NOT_RETRIEVED, dtype=np.int64)
    bounds = run.bounds.tolist()
    for i, (topic_id, grades) in enumerate(qrels.items()):
        topic_number = topic_numbers.get(topic_id, -1)
        if topic_number < 0:
            continue
        rows = run.codes[bounds[topic_number] : bounds[topic_number + 1]]
        retrieved[i] = len(rows)
        judged_rows = [(codes[doc_id], row) for row, doc_id in enumerate(grades, int(starts[i])) if doc_id in codes]
        if not judged_rows:
            continue
        judged_codes, judged = np.array(judged_rows, dtype=np.int64).T
        judgment[judged_codes] = judged
        of_rows = judgment[rows]
        ranks = np.flatnonzero(of_rows >= 0)
        rank[of_rows[ranks]] = ranks
        judgment[judged_codes] = -1
    return retrieved, rank


def _codes(ids: Strings, judged: set[str]) -> dict[str, int]:
    """Codes of the judged documents in `ids`, found by search or by listing all ids, whichever is faster."""
    if len(judged) * SEARCH_COST < len(ids):
        codes = ((doc_id, ids.find(doc_id)) for doc_id in judged)
        return {doc_id: code for doc_id, code in codes if code >= 0}
    return {doc_id: code for code, doc_id in enumerate(ids) if doc_id in judged}
