"""ir_measures: runs, judgments and measures to ir_measures, and back. Needs `fontes[ir-measures]`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import InputError, MissingExtraError, ParameterError, Qrels, Run
from ..measures import Measure
from ..measures.names import parse

try:
    import ir_measures
except ImportError:
    raise MissingExtraError.of("ir-measures", "ir-measures", "conversion to ir_measures") from None


def to_ir_measures(value: Run | Qrels | Measure) -> Any:
    """Return a run as a list of `ScoredDoc`, judgments as a list of `Qrel` (with their groups), or a measure as its own.

    Raises:
        InputError: The value is none of these.
        ParameterError: ir_measures does not know the measure, or a parameter of it.
    """
    if isinstance(value, Run):
        return [ir_measures.ScoredDoc(topic_id, hit.id, hit.score) for topic_id, ranking in value.items() for hit in ranking]
    if isinstance(value, Qrels):
        return [ir_measures.Qrel(topic_id, doc_id, grade, group) for topic_id, group, doc_id, grade in value.rows()]
    if not isinstance(value, Measure):
        raise InputError(f"to_ir_measures takes a Run, Qrels or a measure of Fontes, not {type(value).__name__}")
    try:
        return ir_measures.parse_measure(str(value))
    except (NameError, ValueError, TypeError, SyntaxError, AssertionError) as error:
        raise ParameterError(f"ir_measures has no {value} ({error})") from None


def run_of(scored: Any) -> Run:
    """Return a run from `ScoredDoc`s, or from what else ir_measures takes as a run: a DataFrame, or dicts.

    Raises:
        InputError: A row is not topic id, document id and score, or a document is listed twice.
    """
    return Run.of(scored)


def qrels_of(judged: Any) -> Qrels:
    """Return judgments from `Qrel`s, with their groups, or from what else ir_measures takes: a DataFrame, or dicts.

    Raises:
        InputError: A row is no judgment, or a document has two grades.
    """
    if isinstance(judged, Qrels) or hasattr(judged, "columns") or hasattr(judged, "items"):
        return Qrels.of(judged)
    return Qrels(_rows(judged))


def measure_of(measure: Any) -> Measure:
    """Return a measure of ir_measures as that of Fontes with the same name and parameters.

    Raises:
        ParameterError: Fontes does not have it.
    """
    return parse(str(measure))


def _rows(judged: Iterable[Any]) -> Iterable[tuple[str, str, str, int]]:
    for number, row in enumerate(judged, 1):
        if not isinstance(row, ir_measures.Qrel) or not isinstance(row.relevance, int):
            raise InputError(f"judgment {number} is no Qrel of ir_measures with a whole number: {row!r}")
        yield str(row.query_id), str(row.iteration), str(row.doc_id), row.relevance
