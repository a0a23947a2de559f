"""`Collapse`: the best documents of each group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Int64s
from ..core.checks import check_whole
from ..core.run import Run
from ..core.values import Explanation
from ..core.where import TYPES
from ..index.columns import column_type, column_values
from .candidates import Reordering, score_before

if TYPE_CHECKING:
    from ..index import Index

SINGLE_VALUED = tuple(kind for kind in TYPES if kind != "keywords")  # types of columns with one value per document


@dataclass(frozen=True)
class Collapse(Reordering, name="collapse"):
    """Keeps the best documents of each group: `bm25() >> collapse("thread", keep=1)`.

    A group consists of the documents of a topic with the same value in a column. All documents without a value are kept, and
    scores and order stay the same. Put `% k` after this stage, since it removes documents: `bm25() >> collapse("thread") % 10`.

    Args:
        index: The index that holds the column.
        column: A column of any type except lists.
        keep: Maximum documents of each group.

    Raises:
        ParameterError: The column is unknown or holds lists, or `keep` is below 1.
        InputError: When called: a document is not in the index.
    """

    index: Index = field(repr=False)
    column: str
    keep: int = 1

    def check(self) -> None:
        column_type(self.index, self.column, "collapse", SINGLE_VALUED)
        check_whole("collapse: keep", self.keep)

    def apply(self, run: Run, /) -> Run:
        self.check()
        return run.keep(self._ranks(run) <= self.keep)

    def explained(self, run: Run, row: int) -> Explanation:
        ranks = self._ranks(run)
        score, parts = float(run.scores[row]), (score_before(run, row),)
        if not ranks[row]:
            return Explanation(score, f"kept: the document has no {self.column}", parts)
        if ranks[row] <= self.keep:
            return Explanation(score, f"kept: rank {ranks[row]} of the documents with its {self.column}", parts)
        return Explanation(
            0.0,
            f"left out: rank {ranks[row]} of the documents with its {self.column}, of which {self!r} keeps {self.keep}",
        )

    def _ranks(self, run: Run) -> Int64s:
        """Return the rank of each row in its group, from 1; 0 for a document without a value."""
        stored = column_values(self.index, self.column, self.ordinals(run))
        groups = np.unique(stored.values, return_inverse=True)[1].astype(np.int64)
        keys = run.topic_numbers * (len(groups) + 1) + groups
        order = np.argsort(keys, kind="stable")  # rows are best first within a topic
        starts = np.searchsorted(keys[order], keys[order], side="left")
        ranks = np.empty(run.rows, dtype=np.int64)
        ranks[order] = np.arange(run.rows) - starts + 1
        return np.where(stored.present, ranks, 0)
