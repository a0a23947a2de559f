"""`Collapse`: the best documents of each group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_whole
from ..core.progress import ProgressCallback
from ..core.run import Run
from ..core.values import Explanation
from ..core.where import TYPES
from ..index.columns import column_type, column_values
from .candidates import Reordering, score_before

if TYPE_CHECKING:
    from ..index import Index

SINGLE = tuple(kind for kind in TYPES if kind != "keywords")  # types of one value a document


@dataclass(frozen=True)
class Collapse(Reordering, name="collapse"):
    """Keeps the best documents of each group: `bm25() >> collapse("thread", keep=1)`.

    A group is the documents of a topic with one value in a column. Scores and order stay, and all documents without a value. It
    thins out the documents that it gets, so `% k` goes behind it: `bm25() >> collapse("thread") % 10`.

    Args:
        index: The index whose column is read.
        column: A column of any type but lists.
        keep: Documents kept of each group.

    Raises:
        ParameterError: The column is unknown or holds lists, or `keep` is below 1.
        InputError: When called: a document is not in the index.
    """

    index: Index = field(repr=False)
    column: str
    keep: int = 1

    def check(self) -> None:
        column_type(self.index, self.column, "collapse", SINGLE)
        check_whole("collapse: keep", self.keep)

    def apply(self, run: Run, progress: ProgressCallback, /) -> Run:
        self.check()
        return run.keep(self._ranks(run) <= self.keep)

    def explained(self, run: Run, row: int) -> Explanation:
        ranks = self._ranks(run)
        score, before = float(run.scores[row]), score_before(run, row)
        if not ranks[row]:
            return Explanation(score, f"kept: the document has no {self.column}", (before,))
        if ranks[row] <= self.keep:
            return Explanation(score, f"kept: rank {ranks[row]} of the documents with its {self.column}", (before,))
        return Explanation(
            0.0,
            f"left out: rank {ranks[row]} of the documents with its {self.column}, of which {self!r} keeps {self.keep}",
        )

    def _ranks(self, run: Run) -> NDArray[np.int64]:
        """Rank of each row among those of its topic with its value, from 1; 0 without a value."""
        stored = column_values(self.index, self.column, self.ordinals(run))
        groups = np.unique(stored.values, return_inverse=True)[1].astype(np.int64)
        keys = run.topic_numbers * (len(groups) + 1) + groups
        order = np.argsort(keys, kind="stable")  # rows are best first within a topic
        starts = np.searchsorted(keys[order], keys[order], side="left")
        ranks = np.empty(run.rows, dtype=np.int64)
        ranks[order] = np.arange(run.rows) - starts + 1
        return np.where(stored.present, ranks, 0)
