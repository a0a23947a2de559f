"""The lock of an experiment: what it was made of and what came out, to be compared with a later run."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..comparison.report import Report
from ..core import InputError
from ..storage.files import write
from .hashes import hash_of
from .settings import Settings

LAYOUT = 1
HASH = re.compile("[0-9a-f]{64}")
TOLERANCE = 1e-12  # relative: sums may end in another digit on another processor
# Distribution to the module that says whether it was used.
LIBRARIES = {
    "numpy": "numpy",
    "numba": "numba",
    "scipy": "scipy",
    "PyStemmer": "Stemmer",
    "ir-datasets": "ir_datasets",
    "nltk": "nltk",
    "simplemma": "simplemma",
    "spacy": "spacy",
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "sentence-transformers": "sentence_transformers",
    "faiss-cpu": "faiss",
    "annoy": "annoy",
    "nupunkt": "nupunkt",
}
TESTED = ("difference", "low", "high", "statistic", "p", "corrected", "d_z", "hedges_g", "wins", "ties", "losses")


@dataclass(frozen=True)
class Difference:
    """Something that is not as the lock has it. None stands for what is not there."""

    what: str
    locked: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.what}: {_shown(self.locked)} in the lock, {_shown(self.found)} now"


def of_data(settings: Settings, runs: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    """The SHA-256 of each file, by what it is used for; of a collection of ir-datasets that of its contents."""
    given: dict[str, Path | str | None] = {
        "corpus": None if settings.index.path else settings.collection.corpus,
        "topics": settings.collection.topics,
        "qrels": settings.collection.qrels,
        **{f"run of {name}": path for name, path in runs.items()},
    }
    return {
        use: {"file": _relative(source, settings.file), "sha256": hash_of(source, use)}
        for use, source in given.items()
        if source is not None
    }


def of_report(report: Report, runs: Mapping[str, bytes]) -> dict[str, Any]:
    """The numbers: for each system its measures and the SHA-256 of its run, for each test what it found."""
    systems = {
        name: {
            "run": hashlib.sha256(runs[name]).hexdigest(),
            "documents": system.run.rows,
            "measures": {str(measure): report.mean(name, measure) for measure in report.measures},
            "intervals": {str(measure): list(report.intervals[measure][name]) for measure in report.measures},
        }
        for name, system in report.systems.items()
    }
    tests: dict[str, Any] = {}
    for one in report.comparisons:
        tests.setdefault(str(one.measure), {})[f"{one.system} - {one.against}"] = {key: getattr(one, key) for key in TESTED}
    found: dict[str, Any] = _plain({"systems": systems, "tests": tests, "topics": len(report.topics)})
    return found


def of_stages(report: Report) -> dict[str, str]:
    """What each system is, with all its parameters: those that the file leaves out too."""
    return {name: system.description for name, system in report.systems.items() if system.seconds is not None}


def of_machine() -> dict[str, Any]:
    """Processor, cores, memory in GB, operating system, and the accelerator where one is in use."""
    facts = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
        if hasattr(os, "sysconf")
        else None,
        "system": platform.platform(),
    }
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["accelerator"] = torch.cuda.get_device_name()
    return facts


def of_versions() -> dict[str, str]:
    """Versions of Fontes, Python and the libraries that have been loaded."""
    found = {"fontes": version("fontes"), "python": platform.python_version()}
    for name, module in LIBRARIES.items():
        if module in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = str(getattr(sys.modules[module], "__version__", "unknown"))
    return found


def write_lock(path: Path, lock: Mapping[str, Any]) -> None:
    """Writes a lock as JSON, keys in order."""
    write(path, [(json.dumps({"layout": LAYOUT, **lock}, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()])


def read_lock(path: Path) -> dict[str, Any]:
    """The lock at `path`. Raises InputError where there is none that can be read."""
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
        layout = lock["layout"]
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such lock; run the experiment without --check first") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: the lock cannot be read ({error}); run the experiment again to make a new one") from None
    if layout != LAYOUT:
        raise InputError(f"{path}: the lock has the layout {layout}, and this Fontes reads {LAYOUT}; run the experiment again")
    return dict(lock)


def differences(locked: Any, found: Any, what: str = "") -> Iterator[Difference]:
    """Where two values of JSON differ, in the order of the keys; numbers are equal up to a relative 1e-12."""
    if isinstance(locked, dict) and isinstance(found, dict):
        for key in [*locked, *(key for key in found if key not in locked)]:
            yield from differences(locked.get(key), found.get(key), f"{what}, {key}" if what else key)
    elif isinstance(locked, list) and isinstance(found, list) and len(locked) == len(found):
        for number, (one, other) in enumerate(zip(locked, found, strict=True), 1):
            yield from differences(one, other, f"{what} {number}")
    elif not _equal(locked, found):
        yield Difference(what, locked, found)


def numbers(value: Any) -> int:
    """How many numbers there are in a value of JSON."""
    if isinstance(value, dict):
        return sum(map(numbers, value.values()))
    if isinstance(value, list):
        return sum(map(numbers, value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-300)
    return bool(one == other and type(one) is type(other))


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"{value[:12]}…" if HASH.fullmatch(value) else value
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """The same with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _relative(source: Path | str, file: Path) -> str:
    """A path as seen from the experiment's file, so that a lock says nothing of the machine."""
    return source if isinstance(source, str) else os.path.relpath(source, file.parent)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
