"""Indexes and artifacts as a stranger may write them: with other metadata, and the digest that fits them."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fontes.index.files import with_segments


def forged_manifest(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Changes the manifest of an index and works out its fingerprint again, as anybody can."""
    file = path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(with_segments(manifest, manifest["segments"])))
    return path


def forged_artifact(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Changes the metadata of an artifact and works out its digest again."""
    file = folder / "artifact.json"
    meta = json.loads(file.read_text())
    change(meta)
    settings = {key: value for key, value in meta.items() if key not in ("files", "digest")}
    meta["digest"] = digest([settings, meta["files"]])
    file.write_text(json.dumps(meta))
    return folder


def digest(value: object) -> str:
    """The SHA-256 of a JSON value as Fontes works it out."""
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, sort_keys=True).encode()).hexdigest()
