"""Changes of parts of documents, as JSON merge patches (RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..core.errors import InputError
from ..core.values import Doc

PARTS = ("title", "text", "metadata")


def patched(doc: Doc, patch: Mapping[str, Any]) -> Doc:
    """Return a document with changed parts.

    Args:
        doc: The document.
        patch: New "title" and "text", and keys of "metadata" with new values, or None to remove them; all else stays.

    Raises:
        InputError: The patch has another part, or a value of another type.
    """
    if not isinstance(patch, Mapping):
        raise InputError(f"document '{doc.id}': a change is an object with {', '.join(PARTS)}, not a {type(patch).__name__}")
    if unknown := [part for part in patch if part not in PARTS]:
        raise InputError(
            f"document '{doc.id}': a change has {', '.join(PARTS)}, and no '{unknown[0]}'; other keys belong in metadata"
        )
    for part in ("title", "text"):
        if not isinstance(patch.get(part, ""), str):
            raise InputError(f"document '{doc.id}': its new {part} is no string")
    metadata = patch.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise InputError(f"document '{doc.id}': its new metadata are no object; a key that is null is removed")
    merged: Mapping[str, object] = _merged(doc.metadata, metadata)
    return replace(doc, metadata=merged, **{part: patch[part] for part in ("title", "text") if part in patch})


def _merged(value: object, patch: object) -> Any:
    """Apply a merge patch to a JSON value (RFC 7396, section 2)."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(value) if isinstance(value, Mapping) else {}
    for key, new in patch.items():
        if new is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), new)
    return merged
