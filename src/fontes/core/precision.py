"""Precision of models whose precision is "auto", which depends on the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from .part import Part, walk

P = TypeVar("P")


def fix_precision(part: P, precisions: Mapping[str, str] | None = None) -> P:
    """Return the part with each model's "auto" precision replaced by the one used here; values that are no parts unchanged.

    `precisions` is the result of `precisions_of`; by default that of this part.
    """
    if not isinstance(part, Part):
        return part
    used = precisions_of(part) if precisions is None else precisions

    def in_precision(inner: Any) -> Part:
        automatic = _is_auto(inner) and inner.fingerprint in used
        return inner.with_(precision=used[inner.fingerprint]) if automatic else inner  # type: ignore[no-any-return]

    return part.map(in_precision) if used else part  # type: ignore[return-value]


def precisions_of(part: Part) -> dict[str, str]:
    """Return the precision used here by each model with "auto", by fingerprint. Loads these models."""
    models: Iterator[Any] = filter(_is_auto, walk(part))
    return {model.fingerprint: model.chosen_precision.partition(" ")[0] for model in models}


def _is_auto(part: Part) -> bool:
    return getattr(part, "precision", None) == "auto" and hasattr(type(part), "chosen_precision")
