"""Errors of reranking (relevant documents not among the candidates, ranked down, or tied), and of conversations, by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace

from ..core import InputError, Qrels, Run, Topics
from ..core.checks import check_whole
from ..core.run import Ranking
from ..measures import evaluate
from ..plots.tables import ResultTable

BEST = 5  # first ranks that the table counts
EXPLANATION = (
    "Topics by the first relevant document of each ranking. Missing: it is not among the candidates, so no order of them finds "
    "it. Up, same and down: its rank beside that in the order of the candidates; lost and gained: out of the best {best}, or "
    "into them. Tied: another document has its score, so the order of ids decides."
)
HEADERS = {"turns": "turns", "successes": "found"}  # columns of a table that are never left out


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


@dataclass(frozen=True)
class TurnErrors:
    """Numbers of turns at one depth: those found, and the others by the first of the named reasons.

    Args:
        turns: Turns with a relevant document.
        successes: Turns found: with a relevant document among the first k of the run.
        by_reranker: Those of them that had none there before reranking.
        rewriting: Turns that were not found, but are found with the manual rewrite.
        retrieval: Otherwise, turns without a relevant document among the candidates.
        lost_by_reranker: Otherwise, turns with a relevant document among the first k before reranking.
        ranked_low: All other turns, whose relevant documents are further down before and after reranking.
    """

    turns: int = 0
    successes: int = 0
    by_reranker: int = 0
    rewriting: int = 0
    retrieval: int = 0
    lost_by_reranker: int = 0
    ranked_low: int = 0

    def __add__(self, other: TurnErrors) -> TurnErrors:
        return TurnErrors(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def turn_errors(
    topics: object, run: object, candidates: object, qrels: object, manual: object = None, *, k: int = 3, rel: int = 2
) -> dict[int, TurnErrors]:
    """Return the errors by depth of the turn, from 1: which step is at fault for each turn that a run misses.

    Args:
        topics: The turns: anything `Topics.of` accepts. Topics without turns are at depth 1.
        run: The final run: anything `Run.of` accepts.
        candidates: The run before reranking, with the same rewrites.
        qrels: The judgments. Turns without a relevant document are not counted.
        manual: The final run with manual rewrites; None if `run` is that run, so that no error is the rewriter's.
        k: Documents among which a relevant one is found.
        rel: Least grade of a relevant document.

    Raises:
        InputError: None of the topics has a relevant document.
    """
    check_whole("turn_errors: k", k)
    judged = Topics.of(topics).judged(judgments := Qrels.of(qrels))
    relevant = {topic for topic in judged if any(grade >= rel for grade in judgments[topic].values())}
    if not relevant:
        raise InputError(f"no topic has a document with a grade of {rel} or more, so that no turn can be found")
    first, anywhere = f"Success(rel={rel})@{k}", f"R(rel={rel})"
    final, before = _hits(run, judgments, first), _hits(candidates, judgments, first)
    retrieved = _hits(candidates, judgments, anywhere)
    by_hand = set[str]() if manual is None else _hits(manual, judgments, first)
    rows: dict[int, TurnErrors] = {}
    for topic in judged.values():
        if topic.id not in relevant:
            continue
        one = TurnErrors(turns=1)
        if topic.id in final:
            one = replace(one, successes=1, by_reranker=int(topic.id not in before))
        elif topic.id in by_hand:
            one = replace(one, rewriting=1)
        elif topic.id not in retrieved:
            one = replace(one, retrieval=1)
        else:
            lost = topic.id in before
            one = replace(one, lost_by_reranker=int(lost), ranked_low=int(not lost))
        depth = max(1, len(topic.turns))
        rows[depth] = rows.get(depth, TurnErrors()) + one
    return dict(sorted(rows.items()))


def _hits(run: object, qrels: Qrels, measure: str) -> set[str]:
    """Return the topics for which a run has a relevant document."""
    return {topic for topic, value in evaluate(Run.of(run), qrels, measure).per_topic(measure).items() if value > 0}


def errors_table(rows: Mapping[int, TurnErrors]) -> str:
    """Return the errors as a Markdown table, with a last row for all turns; a reason without any turn is left out."""
    total = sum(rows.values(), TurnErrors())
    shown = [name for name in (field.name for field in fields(TurnErrors)) if getattr(total, name) or name in HEADERS]
    table = [[str(depth), *(f"{getattr(row, name):,}" for name in shown)] for depth, row in (*rows.items(), ("all", total))]
    header = ["turn", *(HEADERS.get(name, name.replace("_", " ")) for name in shown)]
    return ResultTable.of(header, table, 1).markdown()
