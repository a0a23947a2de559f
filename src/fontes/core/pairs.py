"""Several runs side by side: the (topic, document) pairs that they have together, and where each run's rows are in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .run import Run, order_keys
from .strings import Strings
from .values import Topic, Topics

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = 64
SCORE_BITS = 32


@dataclass(frozen=True, eq=False)
class Pairs:
    """The union of several runs.

    `topics` are those of all runs: the first run's in its order, then those that the second adds, and so on. Topic i has the
    pairs bounds[i]:bounds[i+1] (int64), in ascending order of the document ids; `codes` (int32, positions in `ids`) are the
    documents. For each run, `numbers` holds the position in `topics` of each of its topics and `places` the pair of each of its
    rows, both int64. Takes 4 bytes a pair and 8 a row; making it, some 40 bytes a row.
    """

    runs: tuple[Run, ...]
    topics: Topics
    ids: Strings
    bounds: Ints
    codes: NDArray[np.int32]
    numbers: tuple[Ints, ...]
    places: tuple[Ints, ...]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Pairs:
        """The union of at least one run."""
        topics, numbers = _topics(runs)
        ids, codes = _codes(runs)
        names, documents = len(topics), max(len(ids), 1)
        keys = [
            np.repeat(own * documents, np.diff(run.bounds)) + ids.rank[docs]
            for run, own, docs in zip(runs, numbers, codes, strict=True)
        ]
        pairs, place = _unique(np.concatenate(keys), names * documents)
        ends = np.cumsum([len(k) for k in keys])[:-1]
        return cls(
            tuple(runs),
            topics,
            ids,
            np.searchsorted(pairs, np.arange(names + 1) * documents),
            ids.order[pairs % documents].astype(np.int32),
            tuple(numbers),
            tuple(np.split(place, ends)),
        )

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def sizes(self) -> Ints:
        """For each topic the number of its pairs."""
        return np.diff(self.bounds)

    def of_topics(self, values: NDArray[Any]) -> NDArray[Any]:
        """For each pair the value of its topic."""
        return np.repeat(values, self.sizes)

    def sort_keys(self, scores: NDArray[np.float32]) -> NDArray[np.uint64] | None:
        """For each pair one number that ascends by topic, then from the worst to the best in the one order.

        Its last bits, `place_bits` of them, are the place of the pair within its topic. None where 64 bits do not suffice.
        """
        low = self.place_bits
        high = max(len(self.topics) - 1, 0).bit_length()
        if high + SCORE_BITS + low > BITS:
            return None
        topic = self.of_topics(np.arange(len(self.topics), dtype=np.uint64))
        place = np.arange(len(self), dtype=np.uint64) - self.of_topics(self.bounds[:-1].astype(np.uint64))
        score = order_keys(scores, np.zeros(1, dtype=np.uint32)) >> np.uint64(SCORE_BITS)
        keys: NDArray[np.uint64] = topic << np.uint64(SCORE_BITS + low) | score << np.uint64(low) | place
        return keys

    @property
    def place_bits(self) -> int:
        """How many bits number the pairs of a topic."""
        return max(int(self.sizes.max(initial=0)) - 1, 0).bit_length()

    def run(self, scores: Floats, provenance: dict[str, Any]) -> Run:
        """The run with these scores, one a pair, in the one order."""
        with np.errstate(over="ignore"):
            rounded = scores.astype(np.float32)
        documents = next((run.documents for run in self.runs if run.documents is not None), None)
        keys = self.sort_keys(rounded)
        if keys is None or np.isnan(rounded).any():
            topic = self.of_topics(np.arange(len(self.topics)))
            return Run.from_columns(
                self.topics, self.ids, topic, self.codes, rounded, documents=documents, provenance=provenance
            )
        keys.sort()
        within = (keys & np.uint64((1 << self.place_bits) - 1)).astype(np.int64)
        # The sorted keys go from worst to best; each topic's are read backwards.
        first = self.of_topics(self.bounds[:-1])
        backwards = first + self.of_topics(self.bounds[1:]) - 1 - np.arange(len(self))
        order = first + within[backwards]
        return Run(
            self.topics, self.ids, self.bounds, self.codes[order], rounded[order], documents=documents, provenance=provenance
        )


def _topics(runs: Sequence[Run]) -> tuple[Topics, list[Ints]]:
    """The topics of all runs, with text where a run has it, and for each run the positions of its topics."""
    if all(run.topics is runs[0].topics for run in runs):
        return runs[0].topics, [np.arange(len(runs[0]))] * len(runs)
    found: dict[str, Topic] = {}
    position: dict[str, int] = {}
    numbers = []
    for run in runs:
        for topic_id, topic in run.topics.items():
            position.setdefault(topic_id, len(position))
            if not found.setdefault(topic_id, topic).text:
                found[topic_id] = topic
        numbers.append(np.fromiter(map(position.__getitem__, run.topics), np.int64, len(run)))
    return Topics(found.values()), numbers


def _codes(runs: Sequence[Run]) -> tuple[Strings, list[NDArray[np.int32]]]:
    """One table of document ids, and for each run its documents as positions in it."""
    tables = [run.ids for run in runs]
    if all(table is tables[0] for table in tables):
        return tables[0], [run.codes for run in runs]
    places: dict[str, int] = {}
    codes = []
    for run in runs:
        used, at = _used(run)
        to = [places.setdefault(doc_id, len(places)) for doc_id in run.ids.take(used)]
        codes.append(np.array(to, dtype=np.int32)[at])
    return Strings.of(places), codes


def _used(run: Run) -> tuple[NDArray[Any], NDArray[Any]]:
    """The codes that the run uses, and for each row which of them it has."""
    if run.rows < len(run.ids) // 8:  # as for one topic of a large index, where a pass over the table is the longer way
        return np.unique(run.codes, return_inverse=True)
    used = np.bincount(run.codes, minlength=len(run.ids)) > 0
    return np.flatnonzero(used), (np.cumsum(used) - 1)[run.codes]


def _unique(keys: Ints, end: int) -> tuple[Ints, Ints]:
    """The distinct keys, ascending, and for each key its place among them. All are below `end`."""
    if not len(keys):
        return keys, keys
    row_bits = (len(keys) - 1).bit_length()
    if end.bit_length() + row_bits < BITS:  # sorting numbers is several times as fast as sorting places
        both = keys << row_bits | np.arange(len(keys))
        both.sort()
        order, ordered = both & ((1 << row_bits) - 1), both >> row_bits
    else:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place
