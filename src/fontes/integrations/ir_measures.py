"""ir_measures: conversion of runs, judgments and measures, both ways. Needs `fontes[ir-measures]`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from ..core import InputError, MissingExtraError, ParameterError, Qrels, Run
from ..measures import Measure
from ..measures.formulas import RankBiasedPrecision, SetFMeasure
from ..measures.names import parse

try:
    import ir_measures
except ImportError:
    raise MissingExtraError.of("ir-measures", "ir-measures", "conversion to ir_measures") from None


def to_ir_measures(value: Run | Qrels | Measure) -> Any:
    """Return a run as a list of `ScoredDoc`, judgments as a list of `Qrel` with groups, or a measure as one of ir_measures.

    Raises:
        InputError: The value is not a Run, Qrels or measure of Fontes.
        ParameterError: ir_measures does not have the measure, or one of its parameters, or no provider that computes it.
    """
    if isinstance(value, Run):
        return [ir_measures.ScoredDoc(topic_id, hit.id, hit.score) for topic_id, ranking in value.items() for hit in ranking]
    if isinstance(value, Qrels):
        return [ir_measures.Qrel(topic_id, doc_id, grade, group) for topic_id, group, doc_id, grade in value.rows()]
    if not isinstance(value, Measure):
        raise InputError(f"to_ir_measures takes a Run, Qrels or a measure of Fontes, not {type(value).__name__}")
    if value.name == "IPrec" and round(value.cutoff or 0, 2) != value.cutoff:
        raise ParameterError(f"ir_measures rounds the recall of {value} to two decimals")
    try:
        measure = ir_measures.parse_measure(_name_of(value))
        supported = any(provider.supports(measure) for provider in ir_measures.DefaultPipeline.providers)
    except (NameError, ValueError, TypeError, SyntaxError, AssertionError, KeyError) as error:
        problem = re.sub("=<object .*?>", " is missing", str(error))
        raise ParameterError(f"ir_measures has no {value} ({problem})") from None
    if not supported:
        raise ParameterError(f"ir_measures has no {value}: none of its providers computes it")
    return measure


def run_of(scored: object) -> Run:
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


def measure_of(measure: object) -> Measure:
    """Return the measure of Fontes with the name and parameters of a measure of ir_measures.

    Raises:
        ParameterError: Fontes does not have the measure.
    """
    ours = parse(str(measure))
    return ours if not isinstance(ours, SetFMeasure) else ours(beta=math.sqrt(ours.beta))


def _name_of(measure: Measure) -> str:
    """Return the name of a measure in ir_measures: SetF's beta is β² there, and RBP takes grades unless it has rel."""
    if isinstance(measure, SetFMeasure):
        measure = measure(beta=float(measure.beta) ** 2)
    name = str(measure)
    if isinstance(measure, RankBiasedPrecision) and "rel=" not in name:
        name = name.replace("(", "(rel=1,") if "(" in name else name.replace("RBP", "RBP(rel=1)")
    return name


def _rows(judged: Iterable[object]) -> Iterable[tuple[str, str, str, int]]:
    """Yield topic id, group, document id and grade of each `Qrel`; raise InputError for other values."""
    for number, row in enumerate(judged, 1):
        if not isinstance(row, ir_measures.Qrel) or not isinstance(row.relevance, int):
            raise InputError(f"judgment {number} is no Qrel of ir_measures with a whole number: {row!r}")
        yield str(row.query_id), str(row.iteration), str(row.doc_id), row.relevance
