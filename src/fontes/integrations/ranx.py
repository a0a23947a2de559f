"""ranx: conversion of runs and judgments, both ways. Needs `fontes[ranx]`."""

from __future__ import annotations

from typing import Any

from ..core import InputError, MissingExtraError, Qrels, Run

try:
    import ranx
except ImportError:
    raise MissingExtraError.of("ranx", "ranx", "conversion to ranx") from None


def to_ranx(value: Run | Qrels, name: str | None = None) -> Any:
    """Return a run or judgments as a `Run` or `Qrels` of ranx.

    Topics without results are left out, because ranx cannot represent them; ranx counts them with `make_comparable=True`.
    Equal scores stay equal; their order in ranx is undefined. Groups of judgments are lost.

    Args:
        value: A Run or Qrels of Fontes.
        name: The name in ranx's reports; None for the text of a run's stage.

    Raises:
        InputError: The value is neither a Run nor Qrels, or it is empty.
    """
    if not isinstance(value, (Run, Qrels)):
        raise InputError(f"to_ranx takes a Run or Qrels of Fontes, not {type(value).__name__}; Run.of and Qrels.of make them")
    rows = {topic_id: dict(docs) for topic_id, docs in value.to_dict().items() if docs}
    if not rows:
        raise InputError(f"the {type(value).__name__} is empty, which ranx cannot hold")
    if isinstance(value, Run):
        return ranx.Run(rows, name=value.provenance.get("system") if name is None else name)
    return ranx.Qrels(rows, name=name)


def from_ranx(value: object) -> Run | Qrels:
    """Return a run or judgments of ranx as a `Run` or `Qrels`; a run's name becomes "system" in its provenance.

    Topics come in the order of ranx, which sorts their ids; documents of a topic come in Fontes' ranking order.

    Raises:
        InputError: The value is neither a Run nor Qrels of ranx.
    """
    if isinstance(value, ranx.Qrels):
        grades = value.qrels.items()
        return Qrels.of({str(t): {str(d): int(grade) for d, grade in docs.items()} for t, docs in grades})
    if not isinstance(value, ranx.Run):
        raise InputError(f"from_ranx takes a Run or Qrels of ranx, not {type(value).__name__}")
    scores = value.run.items()
    run = Run.of({str(t): {str(d): float(score) for d, score in docs.items()} for t, docs in scores})
    return run.with_(provenance={"system": value.name}) if value.name else run
