"""Damage to files: what may become of one that was written, each kind drawn at random, and metadata that are made to fit it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SHAPE = re.compile(rb"'shape': \(([^)]*)\)")
DESCR = re.compile(rb"'descr': '([^']*)'")
TYPES = b"<i8 <u8 <f8 <i4 <u4 <f4 <i2 <u2 <f2 |i1 |u1 |b1 >i4 |O <c8 |V4".split()


@dataclass(frozen=True)
class Damage:
    """A file and what it holds now, None where it is gone; `how` it came about; whether the metadata were made to fit."""

    file: str
    content: bytes | None
    how: str
    forged: bool


def damage(sound: dict[str, bytes], number: int) -> Damage:
    """That of a trial."""
    draw = np.random.default_rng([11, number])
    kinds = sorted({_kind(file) for file in sound})
    kind = kinds[int(draw.integers(len(kinds)))]
    files = sorted(file for file in sound if _kind(file) == kind)
    file = files[int(draw.integers(len(files)))]
    names = sorted(WAYS)
    while True:
        how = names[int(draw.integers(len(names)))]
        content = WAYS[how](sound[file], draw, sound, file)
        if content != sound[file]:
            break
    fits = (file.endswith(".npy") or (file.endswith(".json") and how == "JSON")) and not file.startswith("cache/")
    forged = fits and content is not None and bool(draw.random() < 0.4)
    return Damage(file, content, how, forged)


def _kind(file: str) -> str:
    return re.sub(r"[0-9a-f]{16,}(-\d+)?", "*", file)


def _flip(content: bytes, draw: Any, first: int, last: int, count: int = 1) -> bytes:
    new = bytearray(content)
    for _ in range(count):
        if first < min(last, len(new)):
            new[int(draw.integers(first, min(last, len(new))))] ^= 1 << int(draw.integers(8))
    return bytes(new)


def _overwritten(content: bytes, draw: Any) -> bytes:
    """A number made extreme."""
    width = int(draw.choice([1, 2, 4, 8]))
    places = (len(content) - 128) // width
    if places <= 0:
        return content
    at = 128 + width * int(draw.integers(places))
    values = [
        b"\xff" * width,
        b"\0" * width,
        b"\xff" * (width - 1) + b"\x7f",
        b"\0" * (width - 1) + b"\x80",
        b"\1" + b"\0" * (width - 1),
    ]
    return content[:at] + values[int(draw.integers(len(values)))] + content[at + width :]


def _swapped(content: bytes, draw: Any) -> bytes:
    """Two numbers in each other's place, so that all add up as before."""
    width = int(draw.choice([1, 2, 4, 8]))
    places = (len(content) - 128) // width
    if places < 2:
        return content
    a, b = sorted(128 + width * int(place) for place in draw.choice(places, 2, replace=False))
    return content[:a] + content[b : b + width] + content[a + width : b] + content[a : a + width] + content[b + width :]


def _values(content: bytes) -> tuple[int, np.ndarray] | None:
    """Where the values of an array of numbers begin, and these; None for another file, or fewer than two."""
    end, kind = content.find(b"\n") + 1, DESCR.search(content[:256])
    if not content.startswith(b"\x93NUMPY") or kind is None:
        return None
    values = np.frombuffer(content[end:], np.dtype(kind[1].decode()))
    return (end, values.copy()) if len(values) > 1 else None


def _balanced(content: bytes, draw: Any) -> bytes:
    """A number raised and another one lowered as much, so that all add up as before and some number may be there twice."""
    if (there := _values(content)) is None or there[1].dtype.kind not in "iu":
        return content
    end, values = there
    a, b = draw.choice(len(values), 2, replace=False)
    step = values.dtype.type(min(int(draw.integers(1, 4)), int(values[b])) if values[b] > 0 else 0)
    with np.errstate(over="ignore"):
        values[a], values[b] = values[a] + step, values[b] - step
    return content[:end] + values.tobytes()


def _turned(content: bytes) -> bytes:
    """The last value first."""
    if (there := _values(content)) is None:
        return content
    return content[: there[0]] + there[1][::-1].tobytes()


def _stretch(content: bytes, draw: Any) -> bytes:
    """A piece of the file where another one should be."""
    if len(content) < 130:
        return content
    size = int(draw.integers(1, min(4096, len(content) - 128) + 1))
    a, b = (int(draw.integers(128, len(content) - size + 1)) for _ in range(2))
    piece = b"\0" * size if draw.random() < 0.3 else content[a : a + size]
    return content[:b] + piece + content[b + size :]


def _header(content: bytes, draw: Any) -> bytes:
    """An npy header with another shape or type, of the same length where that is possible."""
    end = content.find(b"\n") + 1
    header = content[:end]
    match = SHAPE.search(header)
    if not content.startswith(b"\x93NUMPY") or not end or match is None:
        return content
    if draw.random() < 0.3:
        kind = TYPES[int(draw.integers(len(TYPES)))]
        new = DESCR.sub(b"'descr': '" + kind + b"'", header)
    else:
        sizes = [int(size) for size in match[1].split(b",") if size.strip()]
        shown = str(sizes[0])
        changes: list[Any] = [
            [sizes[0] // 2, *sizes[1:]],
            [sizes[0] + 1, *sizes[1:]],
            [max(0, sizes[0] - 1), *sizes[1:]],
            [int("0" + shown[1:] if len(shown) > 1 else 0), *sizes[1:]],
            [10**15, *sizes[1:]],
            [2**63 + sizes[0], *sizes[1:]],
            sizes[::-1],
            [*sizes, 1],
            [int(np.prod(sizes))],
            [],
            [0, *sizes[1:]],
            [2, *[max(1, size // 2) for size in sizes]],
        ]
        chosen = changes[int(draw.integers(len(changes)))]
        text = ", ".join(map(str, chosen)) + ("," if len(chosen) == 1 else "")
        new = header.replace(match[0], b"'shape': (" + text.encode() + b")")
    new = new.rstrip(b" \n")
    return new.ljust(len(header) - 1) + b"\n" + content[end:]


def _json(content: bytes, draw: Any) -> bytes:
    """A value of a JSON object replaced by another, or left out; what is no JSON stays as it is."""
    try:
        value = json.loads(content)
    except ValueError:
        return content
    others = [None, -1, 0, 10**30, 1.5, True, "", "x", "../..", [], {}, [[]], "\ud800", 2**31]
    inner, at = value, None
    while isinstance(inner, (dict, list)) and inner and (at is None or draw.random() < 0.7):
        at, outer = (
            (list(inner)[int(draw.integers(len(inner)))] if isinstance(inner, dict) else int(draw.integers(len(inner)))),
            inner,
        )
        inner = outer[at]
    if at is None:
        return content
    if draw.random() < 0.2:
        del outer[at]
    else:
        outer[at] = others[int(draw.integers(len(others)))]
    return json.dumps(value).encode()


def _exchanged(content: bytes, draw: Any, sound: dict[str, bytes], file: str) -> bytes:
    """What another file of the same folder holds."""
    folder = file.rpartition("/")[0]
    others = sorted(other for other in sound if other.rpartition("/")[0] == folder)
    return sound[others[int(draw.integers(len(others)))]]


WAYS: dict[str, Callable[[bytes, Any, dict[str, bytes], str], bytes | None]] = {
    "a bit": lambda content, draw, *_: _flip(content, draw, 0, len(content)),
    "a bit of the values": lambda content, draw, *_: _flip(content, draw, 128, len(content)),
    "a bit of the header": lambda content, draw, *_: _flip(content, draw, 0, 128),
    "some bits": lambda content, draw, *_: _flip(content, draw, 0, len(content), int(draw.integers(2, 20))),
    "cut off": lambda content, draw, *_: content[: int(draw.integers(len(content)))] if content else content,
    "longer": lambda content, draw, *_: content + bytes(int(draw.integers(1, 200))),
    "gone": lambda *_: None,
    "a number": lambda content, draw, *_: _overwritten(content, draw),
    "another number": lambda content, draw, *_: _overwritten(content, draw),
    "two balanced numbers": lambda content, draw, *_: _balanced(content, draw),
    "turned round": lambda content, *_: _turned(content),
    "two numbers": lambda content, draw, *_: _swapped(content, draw),
    "a stretch": lambda content, draw, *_: _stretch(content, draw),
    "the header": lambda content, draw, *_: _header(content, draw),
    "the shape": lambda content, draw, *_: _header(content, draw),
    "JSON": lambda content, draw, *_: _json(content, draw),
    "exchanged": _exchanged,
}


def put(place: Any, value: int) -> Callable[[Any], object]:
    """Puts a value into a place of an array."""
    return lambda array: array.__setitem__(place, value)


def forge(folder: Path, file: Path) -> None:
    """Makes the metadata fit a file that was changed, as a stranger can."""
    from support.forged import digest, forged_artifact, forged_manifest

    from fontes.index.files import _fingerprint

    if file.suffix == ".json":
        with contextlib.suppress(KeyError, TypeError, AttributeError):  # it has no such parts any more
            (forged_manifest if file.name == "manifest.json" else forged_artifact)(file.parent, lambda changed: None)
        return
    fact = {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    if (file.parent / "artifact.json").exists():
        forged_artifact(file.parent, lambda meta: meta["files"].__setitem__(file.name, fact))
        return
    manifest = json.loads((folder / "manifest.json").read_text())
    for segment in manifest["segments"]:
        if segment["name"] == file.parent.name:
            segment["files"][file.name] = fact
        if segment.get("deleted") and segment["deleted"]["name"] == file.parent.name:
            segment["deleted"]["files"][file.name] = fact
    if "deleted" in manifest["segments"][0]:
        manifest["fingerprint"] = _fingerprint(manifest)
    else:
        facts = {key: value for key, value in manifest.items() if key not in ("fingerprint", "segments")}
        manifest["fingerprint"] = digest([facts, manifest["segments"][0]["files"]])
    (folder / "manifest.json").write_text(json.dumps(manifest))
