"""Where the default of a recipe's parameter comes from: `k1: float = field(default=1.5, metadata=PUBLISHED)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any

ORIGIN = "origin"
PUBLISHED: Mapping[str, str] = {ORIGIN: "published"}
"""Metadata of a field whose default the publication states."""
AUTHORS_CODE: Mapping[str, str] = {ORIGIN: "authors' code"}
"""Metadata of a field whose default the authors' code has, or a library that it calls, and the publication does not state."""
OURS = "ours"
"""The origin of the default of a field that declares none."""


def origin_of(parameter: Field[Any]) -> str:
    """Where the default of a recipe's field comes from: "published", "authors' code" or "ours"."""
    return str(parameter.metadata.get(ORIGIN, OURS))
