"""ranx: runs and judgments to ranx, and back. Needs `fontes[ranx]`."""

from __future__ import annotations

from typing import Any

from ..core import InputError, MissingExtraError, Qrels, Run

try:
    import ranx
except ImportError:
    raise MissingExtraError.of("ranx", "ranx", "conversion to ranx") from None


def to_ranx(value: Run | Qrels, name: str | None = None) -> Any:
    """Return a run or judgments as ranx's own.

    Topics without results are left out: ranx cannot hold them, and counts them with `make_comparable=True`. Equal scores stay
    equal; ranx orders them as it likes. Groups of judgments are lost.

    Args:
        value: A Run or Qrels of Fontes.
        name: The name in ranx's reports; of a run, by default the text of its stage.

    Raises:
        InputError: The value is neither, or is empty.
    """
    if not isinstance(value, (Run, Qrels)):
        raise InputError(f"to_ranx takes a Run or Qrels of Fontes, not {type(value).__name__}; Run.of and Qrels.of make them")
    rows = {topic_id: dict(docs) for topic_id, docs in value.to_dict().items() if docs}
    if not rows:
        raise InputError(f"the {type(value).__name__} is empty, which ranx cannot hold")
    if isinstance(value, Run):
        return ranx.Run(rows, name=value.provenance.get("system") if name is None else name)
    return ranx.Qrels(rows, name=name)


def from_ranx(value: Any) -> Run | Qrels:
    """Return a run or judgments of ranx as Fontes' own; a run's name becomes its "system".

    Topics come in the order of ranx, which sorts their ids; documents of a topic in the one order.

    Raises:
        InputError: The value is neither.
    """
    if isinstance(value, ranx.Qrels):
        return Qrels.of({str(t): {str(d): int(g) for d, g in docs.items()} for t, docs in value.qrels.items()})
    if not isinstance(value, ranx.Run):
        raise InputError(f"from_ranx takes a Run or Qrels of ranx, not {type(value).__name__}")
    run = Run.of({str(t): {str(d): float(s) for d, s in docs.items()} for t, docs in value.run.items()})
    return run.with_(provenance={"system": value.name}) if value.name else run
