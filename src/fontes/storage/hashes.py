"""SHA-256 of files, texts and JSON values, in hexadecimal digits."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def hash_file(path: Path) -> str:
    """The SHA-256 of a file's bytes.

    Raises:
        OSError: Where it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_text(text: str) -> str:
    """The SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def hash_json(value: Any) -> str:
    """The SHA-256 of a JSON value, whatever the order of the keys in its objects."""
    return hash_text(json.dumps(value, ensure_ascii=True, sort_keys=True))
