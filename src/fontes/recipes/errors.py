"""Errors of reranking: relevant documents that are not among the candidates, ranked down, or tied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields

from ..core import Qrels, Run
from ..core.run import Ranking
from ..plots.tables import ResultTable

BEST = 5  # first ranks that the table counts
EXPLANATION = (
    "Topics by the first relevant document of each ranking. Missing: it is not among the candidates, so no order of them finds "
    "it. Up, same and down: its rank beside that in the order of the candidates; lost and gained: out of the best {best}, or "
    "into them. Tied: another document has its score, so the order of ids decides."
)


@dataclass(frozen=True)
class RankChanges:
    """Numbers of topics by what reranking did to the first relevant document.

    Args:
        topics: All topics.
        missing: Topics without a relevant document among the reranked documents.
        up: Topics whose first relevant document has a better rank than before, or was not there before.
        same: Topics where it has the same rank.
        down: Topics where it has a worse rank.
        lost: Topics where it was among the best, and no longer is.
        gained: Topics where it is among the best, and was not.
        tied: Topics where another document has the score of the first relevant document.
    """

    topics: int
    missing: int
    up: int
    same: int
    down: int
    lost: int
    gained: int
    tied: int

    @classmethod
    def of(cls, before: Run, after: Run, qrels: Qrels, best: int = BEST) -> RankChanges:
        """Count the judged topics of two runs.

        Args:
            before: The candidates in their own order.
            after: The reranked documents.
            qrels: The judgments; grades of 1 or more are relevant.
            best: Number of first ranks for `lost` and `gained`.
        """
        counts = {field.name: 0 for field in fields(cls)}
        for topic_id, grades in qrels.items():
            relevant = {doc_id for doc_id, grade in grades.items() if grade > 0}
            if not relevant:
                continue
            counts["topics"] += 1
            first, last = _first(before, topic_id, relevant), _first(after, topic_id, relevant)
            if last is None:
                counts["missing"] += 1
                continue
            counts["same" if last == first else "up" if first is None or last < first else "down"] += 1
            was_best = first is not None and first < best
            counts["lost"] += was_best and last >= best
            counts["gained"] += last < best and not was_best
            counts["tied"] += _is_tied(after[topic_id], last)
        return cls(**counts)


def errors_of(pairs: Mapping[str, tuple[Run, Run]], qrels: Qrels) -> list[str]:
    """Return a part of recipe.md: a table of `RankChanges`, a row for each system with the runs before and after it."""
    header = ["system", *(field.name for field in fields(RankChanges))]
    rows = [[name, *(f"{count:,}" for count in astuple(RankChanges.of(*runs, qrels)))] for name, runs in pairs.items()]
    return ["## Errors of reranking", EXPLANATION.format(best=BEST), ResultTable.of(header, rows, 1).markdown()] if rows else []


def _first(run: Run, topic_id: str, relevant: set[str]) -> int | None:
    """Return the position of the first relevant document, from 0; None if there is none."""
    ids = run[topic_id].ids if topic_id in run else []
    return next((position for position, doc_id in enumerate(ids) if doc_id in relevant), None)


def _is_tied(ranking: Ranking, position: int) -> bool:
    scores = ranking.scores
    return any(0 <= other < len(scores) and scores[other] == scores[position] for other in (position - 1, position + 1))
