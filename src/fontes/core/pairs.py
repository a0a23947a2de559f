"""Union of several runs as (topic, document) pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .arrays import Float32s, Float64s, Int32s, Int64s, Ints, Scalar, UInt64s
from .errors import PipelineError
from .run import Run, finite_scores, order_keys
from .strings import Strings, offsets_of
from .values import Topic, Topics

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Union of several runs. Takes 4 bytes per pair and 8 per row; some 40 bytes per row during construction.

    Attributes:
        runs: The runs.
        topics: Topics of all runs: the first run's in order, then those that the second adds, and so on.
        ids: A table of document ids.
        bounds: int64, (topics + 1,): topic i has the pairs bounds[i] to bounds[i + 1], in ascending order of the document ids.
        codes: int32, (pairs,): document of each pair, as a position in `ids`.
        numbers: For each run, int64, (its topics,): position of its topics in `topics`.
        pair_numbers: For each run, int64, (its rows,): pair of each row.
    """

    runs: tuple[Run, ...]
    topics: Topics
    ids: Strings
    bounds: Int64s
    codes: Int32s
    numbers: tuple[Int64s, ...]
    pair_numbers: tuple[Int64s, ...]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Pairs:
        """Return the union of at least one run."""
        topics, numbers = _topics(runs)
        ids, codes = _codes(runs)
        total = np.zeros(len(topics), dtype=np.int64)
        earlier = []  # for each run and topic, the number of rows of earlier runs
        for run, topic_numbers in zip(runs, numbers, strict=True):
            earlier.append(total[topic_numbers])
            total[topic_numbers] += np.diff(run.bounds)
        starts = offsets_of(total)
        keys = np.empty(starts[-1], dtype=np.uint64)
        rows = []  # positions of each run's rows among those of all runs, by topic
        for run, topic_numbers, earlier_rows, docs in zip(runs, numbers, earlier, codes, strict=True):
            within = np.arange(run.rows) + np.repeat(earlier_rows - run.bounds[:-1], np.diff(run.bounds))
            rows.append(within + np.repeat(starts[topic_numbers], np.diff(run.bounds)))
            keys[rows[-1]] = ids.rank[docs].astype(np.uint64) << HALF | within.astype(np.uint64)
        _sort_each(keys, starts)
        rank = (keys >> HALF).astype(np.int64)
        new = np.ones(len(keys), dtype=bool)
        new[1:] = rank[1:] != rank[:-1]
        new[starts[:-1][total > 0]] = True
        ends = np.cumsum(new)
        pair_of_row = np.empty(len(keys), dtype=np.int64)
        pair_of_row[np.repeat(starts[:-1], total) + (keys & LOW).astype(np.int64)] = ends - 1
        bounds = np.concatenate([[0], ends])[starts]
        pairs = ids.order[rank[new]].astype(np.int32)
        return cls(tuple(runs), topics, ids, bounds, pairs, tuple(numbers), tuple(pair_of_row[r] for r in rows))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def sizes(self) -> Int64s:
        """Number of pairs of each topic."""
        return np.diff(self.bounds)

    def of_topics(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Repeat the value of each topic for its pairs."""
        return np.repeat(values, self.sizes)

    def order(self, scores: Float32s) -> Int64s:
        """Return the order of the pairs by topic, then best first, for scores without NaN."""
        first = self.of_topics(self.bounds[:-1])
        within = np.arange(len(self)) - first  # ascends with the document ids
        keys = ~order_keys(scores, within.astype(np.uint32))
        _sort_each(keys, self.bounds)
        return first + (~keys & LOW).astype(np.int64)

    def run(self, scores: Float64s, provenance: dict[str, object]) -> Run:
        """Return the run with these scores, one per pair.

        Raises:
            InputError: A score is NaN or beyond float32; the message names topic and document.
        """
        rounded = finite_scores(scores, self.topics, self.of_topics(np.arange(len(self.topics))), self.ids, self.codes)
        documents = next((run.documents for run in self.runs if run.documents is not None), None)
        order = self.order(rounded)
        return Run(
            self.topics, self.ids, self.bounds, self.codes[order], rounded[order], documents=documents, provenance=provenance
        )


def _topics(runs: Sequence[Run]) -> tuple[Topics, list[Int64s]]:
    if all(run.topics is runs[0].topics for run in runs):
        return runs[0].topics, [np.arange(len(runs[0]))] * len(runs)
    topics: dict[str, Topic] = {}
    position: dict[str, int] = {}
    numbers = []
    for run in runs:
        for topic_id, topic in run.topics.items():
            position.setdefault(topic_id, len(position))
            if not topics.setdefault(topic_id, topic).text:
                topics[topic_id] = topic
        numbers.append(np.fromiter(map(position.__getitem__, run.topics), np.int64, len(run)))
    return Topics(topics.values()), numbers


def _codes(runs: Sequence[Run]) -> tuple[Strings, list[Int32s]]:
    """Merged table of document ids, and each run's documents as positions in it."""
    tables = [run.ids for run in runs]
    if all(table is tables[0] for table in tables):
        return tables[0], [run.codes for run in runs]
    seen: dict[str, int] = {}
    codes = []
    for run in runs:
        used, positions = _used(run)
        merged = [seen.setdefault(doc_id, len(seen)) for doc_id in run.ids.take(used)]
        codes.append(np.array(merged, dtype=np.int32)[positions])
    return Strings.of(seen), codes


def _used(run: Run) -> tuple[Ints, Ints]:
    """Positions in the run's table of ids that it uses, and the position among these of each row's document."""
    if run.rows < len(run.ids) // 8:  # few rows of a large table: avoid a pass over the table
        return np.unique(run.codes, return_inverse=True)
    used = np.bincount(run.codes, minlength=len(run.ids)) > 0
    return np.flatnonzero(used), (np.cumsum(used) - 1)[run.codes]


def _sort_each(keys: UInt64s, bounds: Int64s) -> None:
    """Sort the keys of each topic in place; many short sorts are much faster than a long one."""
    for start, end in itertools.pairwise(bounds.tolist()):
        keys[start:end].sort()


def aligned(run: Run, result: Run, label: str) -> Float32s:
    """Return the score that a stage's result has for each row of the run that it took; NaN for a row that it left out."""
    codes = result.codes
    if result.ids is not run.ids:
        used, rows = np.unique(codes, return_inverse=True)
        codes = np.array([run.ids.find(doc_id) for doc_id in result.ids.take(used)], dtype=np.int32)[rows]
    if (codes < 0).any() or list(result.topics) != list(run.topics):
        raise PipelineError(f"{label} gives other documents or topics than it takes, so it does not score those of a run")
    rows = run.topic_numbers * len(run.ids) + run.codes
    others = result.topic_numbers * len(run.ids) + codes
    order = np.argsort(rows)
    positions = np.minimum(np.searchsorted(rows, others, sorter=order), max(0, run.rows - 1))
    scores = np.full(run.rows, np.nan, dtype=np.float32)
    scores[order[positions]] = result.scores
    return scores


def summed(runs: Sequence[Run], weights: Sequence[float]) -> Run:
    """Return the weighted sum of the scores of runs over the same topics; raise PipelineError for others."""
    if any(list(run.topics) != list(runs[0].topics) for run in runs):
        raise PipelineError("+ sums runs over the same topics in the same order; one of the stages gives others")
    pairs = Pairs.of(runs)
    total = np.zeros(len(pairs), dtype=np.float64)
    for run, weight, pair_numbers in zip(runs, weights, pairs.pair_numbers, strict=True):
        total[pair_numbers] += weight * run.scores.astype(np.float64)
    return pairs.run(total, {"parts": [run.provenance for run in runs]})
