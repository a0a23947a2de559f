"""The best passages of each document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Run, Stage
from ..core.checks import check_whole
from ..core.errors import ParameterError
from ..core.progress import Report
from .aggregate import parents_of


@dataclass(frozen=True)
class BestPassages(Stage[Run, Run], name="best_passages"):
    """Keeps the best passages of each document: `bm25 % 10 >> Sentences() >> reranker >> BestPassages(3)`.

    Args:
        n: How many of each document at most; None: no bound.
        threshold: The least score of a passage that stays; None: any.
        separator: As for `to_documents`.

    Raises:
        InputError: When it is called, for an id that is no passage's.
        ParameterError: When it is called, for parameters that make no sense.
    """

    n: int | None = 3
    threshold: float | None = None
    separator: str | None = None

    def check(self) -> None:
        if self.n is not None:
            check_whole("best_passages: n", self.n)
        value = self.threshold
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or np.isnan(value)):
            raise ParameterError(f"best_passages: the threshold is a number, not {value!r}")

    def apply(self, run: Run, progress: Report, /) -> Run:
        self.check()
        names, parents, _ = parents_of(run, self.separator)
        mask = np.ones(run.rows, dtype=np.bool_) if self.threshold is None else run.scores >= np.float32(self.threshold)
        if self.n is not None and run.rows:
            of_document = run.topic_numbers * len(names) + parents[run.codes]
            # Rows are in the order of their topic, so those of a document are, too.
            order = np.argsort(of_document, kind="stable")
            starts = np.flatnonzero(np.diff(of_document[order], prepend=-1))
            places = np.arange(run.rows) - np.repeat(starts, np.diff(starts, append=run.rows))
            mask[order[places >= self.n]] = False
        return run.keep(mask)
