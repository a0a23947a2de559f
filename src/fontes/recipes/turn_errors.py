"""`turn_errors`: the turns that a conversational search misses, by the step at fault and by depth of the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace

from ..core import InputError, Qrels, Run, Topics
from ..core.checks import check_whole
from ..measures import evaluate
from ..plots.tables import ResultTable

HEADERS = {"turns": "turns", "successes": "found"}  # columns of a table that are never left out


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
