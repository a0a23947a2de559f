"""ir_measures: conversion of runs, judgments and measures, both ways. Needs `fontes[ir-measures]`."""

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
    """Return a run as a list of `ScoredDoc`, judgments as a list of `Qrel` with groups, or a measure as one of ir_measures.

    Raises:
        InputError: The value is not a Run, Qrels or measure of Fontes.
        ParameterError: ir_measures does not have the measure, or one of its parameters.
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
    """Return the run from `ScoredDoc`s, a DataFrame or dicts, as ir_measures accepts them.

    Raises:
        InputError: A row is not a topic id, a document id and a score, or a document occurs twice.
    """
    return Run.of(scored)


def qrels_of(judged: Any) -> Qrels:
    """Return the judgments, with groups, from `Qrel`s, a DataFrame or dicts, as ir_measures accepts them.

    Raises:
        InputError: A row is not a judgment, or a document has two grades.
    """
    if isinstance(judged, Qrels) or hasattr(judged, "columns") or hasattr(judged, "items"):
        return Qrels.of(judged)
    return Qrels(_rows(judged))


def measure_of(measure: Any) -> Measure:
    """Return the measure of Fontes with the name and parameters of a measure of ir_measures.

    Raises:
        ParameterError: Fontes does not have the measure.
    """
    return parse(str(measure))


def _rows(judged: Iterable[Any]) -> Iterable[tuple[str, str, str, int]]:
    """Yield topic id, group, document id and grade of each `Qrel`; raise InputError for other values."""
    for number, row in enumerate(judged, 1):
        if not isinstance(row, ir_measures.Qrel) or not isinstance(row.relevance, int):
            raise InputError(f"judgment {number} is no Qrel of ir_measures with a whole number: {row!r}")
        yield str(row.query_id), str(row.iteration), str(row.doc_id), row.relevance
