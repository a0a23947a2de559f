"""Headers of TREC runs by ir_metadata: YAML in comments before the rows (Breuer, Keller and Schaer, SIGIR 2022)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core import InputError, MissingExtraError, ParameterError
from ..storage.files import BOM, InputFile, reading

START, END = "# ir_metadata.start", "# ir_metadata.end"
MAX_HEADER = 1 << 20  # bytes of a header
PLAIN = re.compile(r"(?!(?:true|false|null|yes|no|on|off)$)[A-Za-z_][\w -]*", re.IGNORECASE)


def header_of(metadata: Mapping[str, object]) -> bytes:
    """Return the header with these metadata: mappings, lists, texts, numbers, truth values and None.

    Raises:
        ParameterError: A value has another type; the message gives its keys.
    """
    if not isinstance(metadata, Mapping):
        raise ParameterError(f"metadata are a mapping, such as {{'actor': {{'name': …}}}}, not {type(metadata).__name__}")
    lines = [START, *(f"# {line}" for line in _yaml(metadata, "metadata")), END, ""]
    return "\n".join(lines).encode(errors="backslashreplace")


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Read the header of a run; empty if it has none.

    Args:
        path: The run (decompressed if need be), or its address.

    Raises:
        InputError: The file cannot be read, or its header is not YAML, or not a mapping.
        MissingExtraError: The run has a header, and PyYAML is not installed.
    """
    with reading(path) as source:
        lines = skip_header(source)
    if not lines:
        return {}
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError.of("PyYAML", "metadata", f"{path}: reading the header") from error
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[1:-1])
    try:
        metadata = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or type(error).__name__
        raise InputError.at(path, 2 + (mark.line if mark else 0), f"the header is no YAML ({problem})") from None
    if not isinstance(metadata, dict):
        raise InputError.at(path, 2, "the header is no mapping of names to values")
    return metadata


def skip_header(source: InputFile) -> list[str]:
    """Read up to the first row of a run, and return the lines of its header; empty if it has none.

    Raises:
        InputError: The header has no end, or is longer than 1 MiB.
    """
    head: bytes = source.file.peek(len(BOM) + len(START))  # type: ignore[attr-defined]
    if not head.removeprefix(BOM).startswith(START.encode()):
        return []
    lines: list[str] = []
    length = 0
    while not lines or lines[-1] != END:
        line = source.file.readline(MAX_HEADER)
        length += len(line)
        if not line.startswith((b"#", BOM)) or length > MAX_HEADER:
            raise InputError.at(source.name, len(lines) + 1, f"the header has no end, which is the line '{END}'")
        lines.append(line.removeprefix(BOM).decode(errors="replace").rstrip())
    return lines


def _yaml(value: Mapping[str, object], where: str) -> Iterator[str]:
    for key, item in value.items():
        name = str(key) if PLAIN.fullmatch(str(key)) else json.dumps(str(key))
        yield from _entry(f"{name}:", item, f"{where}, {key}")


def _entry(prefix: str, value: object, where: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield prefix
        yield from (f"  {line}" for line in _yaml(value, where))
    elif isinstance(value, (list, tuple)) and value:
        yield prefix
        for number, item in enumerate(value, 1):
            yield from (f"  {line}" for line in _entry("-", item, f"{where}, {number}"))
    elif value is None or isinstance(value, (str, int, float, Mapping, list, tuple)):
        if isinstance(value, float) and not math.isfinite(value):
            raise ParameterError(f"{where}: {value} is no number that a header holds")
        escaped = isinstance(value, str) and not value.isprintable()
        yield f"{prefix} {json.dumps(value, ensure_ascii=escaped)}"
    else:
        raise ParameterError(f"{where}: a header holds texts, numbers, lists and mappings, not {type(value).__name__}")
