"""Precision of the models in a part: parts that leave theirs open, as "auto", run in the one that suits the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from .part import Part, walk

P = TypeVar("P")


def settled(part: P, precisions: Mapping[str, str] | None = None) -> P:
    """The part with its models in the precision in which they run here, as when they are to run in the same elsewhere.

    Args:
        part: The part; anything else stays as it is.
        precisions: The result of `precisions_of`; by default that of this part.
    """
    if not isinstance(part, Part):
        return part
    known = precisions_of(part) if precisions is None else precisions

    def in_precision(inner: Any) -> Part:
        open_one = _is_open(inner) and inner.fingerprint in known
        return inner.with_(precision=known[inner.fingerprint]) if open_one else inner  # type: ignore[no-any-return]

    return part.map(in_precision) if known else part  # type: ignore[return-value]


def precisions_of(part: Part) -> dict[str, str]:
    """By the fingerprint of each model that leaves its precision open, the one in which it runs here. Loads these models."""
    models: Iterator[Any] = filter(_is_open, walk(part))
    return {model.fingerprint: model.chosen_precision.partition(" ")[0] for model in models}


def _is_open(part: Part) -> bool:
    return getattr(part, "precision", None) == "auto" and hasattr(type(part), "chosen_precision")
