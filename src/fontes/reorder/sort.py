"""`Sort`: documents in the order of a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..core.arrays import Int64s
from ..core.dates import date_text
from ..core.run import Run
from ..core.values import Explanation
from ..index.columns import column_type, column_values
from ..index.columns.facets import ORDERED
from .candidates import Reordering, score_before

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class Sort(Reordering, name="sort"):
    """Sorts documents by a date or a number: `bm25() >> sort("date", descending=True)`.

    It sorts all documents that match, or the best k after `% k` with a k below 1,000: `bm25() % 100 >> sort("price")`. To
    return all matches, a lexical retriever before this stage has k=1,000,000,000 in place of the default 1,000, as the text of
    the pipeline shows; other stages, such as `dense`, rerankers and fusions, keep their own k.

    Scores are the negative ranks, so that every writer and measure keeps the order. Documents with equal values are ordered by
    descending id. Documents without a value are last in both directions.

    Args:
        index: The index that holds the column.
        column: A column of dates or numbers.
        descending: Whether the greatest value, or the newest date, is first.

    Raises:
        ParameterError: The column is unknown, or holds neither dates nor numbers.
        InputError: When called: a document is not in the index.
    """

    needs_full_ranking: ClassVar[bool] = True
    starts_from_scores: ClassVar[bool] = False

    index: Index = field(repr=False)
    column: str
    descending: bool = False

    def check(self) -> None:
        column_type(self.index, self.column, "sort", ORDERED)

    def apply(self, run: Run, /) -> Run:
        self.check()
        return run.with_scores((-self._ranks(run)).astype(np.float32))

    def explained(self, run: Run, row: int) -> Explanation:
        stored = column_values(self.index, self.column, self.ordinals(run))
        value = stored.values[row]
        shown = date_text(int(value)) if stored.kind == "date" and stored.present[row] else str(value)
        position = f"{self.column} {shown}" if stored.present[row] else f"no {self.column}: last"
        rank = float(self._ranks(run)[row])
        return Explanation(-rank, f"{self!r}: rank {rank:g} of {run.rows}, {position}", (score_before(run, row),))

    def _ranks(self, run: Run) -> Int64s:
        """Return the rank of each row in its topic, from 1."""
        stored = column_values(self.index, self.column, self.ordinals(run))
        # The ranks of the values are negated, not the values: the smallest int64 has no negative.
        value_ranks = np.unique(stored.values, return_inverse=True)[1]
        keys = -value_ranks if self.descending else value_ranks
        topics = run.topic_numbers
        order = np.lexsort((-run.ids.rank[run.codes].astype(np.int64), keys, ~stored.present, topics))
        ranks = np.empty(run.rows, dtype=np.int64)
        ranks[order] = np.arange(run.rows) - run.bounds[topics] + 1
        return ranks
