"""Lock of an experiment: its inputs, environment and results, for comparison with later runs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..comparison import Report
from ..comparison.report import json_values
from ..core import InputError, Stage
from ..core.part import indexes_of, walk
from .provenance import machine, versions

LAYOUT = 2
HASH = re.compile("[0-9a-f]{64}")
TOLERANCE = 1e-12  # relative; sums differ in the last digits between processors
TESTED = ("difference", "low", "high", "statistic", "p", "corrected", "d_z", "hedges_g", "wins", "ties", "losses")
COUNTED = ("documents", "terms", "tokens")  # of an index
# The parts of a lock that are compared, in this order, and what messages call them.
COMPARED = {
    "data": "data",
    "indexes": "index",
    "models": "models",
    "settings": "file",
    "systems": "system",
    "tests": "test",
    "topics": "topics",
}


@dataclass(frozen=True)
class Difference:
    """A difference from the lock.

    Args:
        what: Its path in the lock.
        locked: The locked value, or None.
        now: The present value, or None.
    """

    what: str
    locked: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.what}: {_shown(self.locked)} in the lock, {_shown(self.now)} now"


@dataclass(frozen=True)
class Check:
    """Result of running an experiment again.

    Args:
        differences: Data, settings, runs and numbers that differ from the lock; empty if the experiment was reproduced.
        notes: Differing libraries and hardware, which do not count as differences.
        numbers: Count of compared numbers.
    """

    differences: tuple[Difference, ...]
    notes: tuple[Difference, ...]
    numbers: int

    def __bool__(self) -> bool:
        """Whether the experiment was reproduced."""
        return not self.differences

    @classmethod
    def of(cls, locked: Mapping[str, Any], now: Mapping[str, Any]) -> Check:
        """Compare a lock with that of a later run."""
        different = [d for key, name in COMPARED.items() for d in differences(locked.get(key, {}), now[key], name)]
        loaded = locked.get("versions", {})  # the process may have loaded unrelated libraries
        notes = [
            *differences(loaded, {name: now["versions"].get(name) for name in loaded}, "versions"),
            *differences(locked.get("hardware", {}), now["hardware"], "hardware"),
        ]
        return cls(tuple(different), tuple(notes), sum(numbers(now[key]) for key in ("systems", "tests", "topics")))


def lock_of(
    settings: Mapping[str, Any],
    data: Mapping[str, Any],
    stages: Mapping[str, Stage[Any, Any]],
    runs: Mapping[str, Mapping[str, Any]],
    report: Report | None,
    topics: int,
) -> dict[str, Any]:
    """Return the lock of a run, as JSON values.

    Args:
        settings: The given parameters.
        data: SHA-256 of each piece of data by its use, with its file if any.
        stages: The systems that are stages.
        runs: SHA-256 of the run file and number of documents, by system.
        report: The report; None where nothing was measured.
        topics: The number of topics.
    """
    indexes = {id(index): index for stage in stages.values() for index in indexes_of(stage).values()}
    return {
        "layout": LAYOUT,
        "settings": dict(settings),
        "data": dict(data),
        "indexes": [_of_index(index) for index in indexes.values()],
        "models": {name: models for name, stage in stages.items() if (models := models_of(stage))},
        "systems": json_values({name: {**run, **_measured(name, report)} for name, run in runs.items()}),
        "tests": {} if report is None else json_values(_tests(report)),
        "topics": topics,
        "versions": versions(),
        "hardware": machine(),
    }


def models_of(stage: Stage[Any, Any]) -> list[str]:
    """Return the fingerprints of the models in a stage, in the order of its parts."""
    fingerprints = (getattr(part, "fingerprint", None) for part in walk(stage))
    return list(dict.fromkeys(one for one in fingerprints if isinstance(one, str)))


def read_lock(path: Path) -> dict[str, Any]:
    """Read the lock at a path.

    Raises:
        InputError: The lock is missing or unreadable.
    """
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
        layout = lock["layout"]
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such lock; run the experiment without --check first") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: the lock cannot be read ({error}); run the experiment again to make a new one") from None
    if not all(isinstance(lock.get(key, {}), dict) for key in ("versions", "hardware")):
        raise InputError(f"{path}: the lock is damaged; run the experiment again to make a new one")
    if layout != LAYOUT:
        raise InputError(f"{path}: the lock has the layout {layout}, and this Fontes reads {LAYOUT}; run the experiment again")
    return dict(lock)


def differences(locked: Any, now: Any, what: str = "") -> Iterator[Difference]:
    """Yield the differences of two JSON values by key; numbers are equal up to a relative 1e-12."""
    if isinstance(locked, dict) and isinstance(now, dict):
        for key in [*locked, *(key for key in now if key not in locked)]:
            yield from differences(locked.get(key), now.get(key), f"{what}, {key}" if what else key)
    elif isinstance(locked, list) and isinstance(now, list) and len(locked) == len(now):
        for number, (one, other) in enumerate(zip(locked, now, strict=True), 1):
            yield from differences(one, other, f"{what} {number}")
    elif not _equal(locked, now):
        yield Difference(what, locked, now)


def numbers(value: Any) -> int:
    """Count the numbers in a JSON value."""
    if isinstance(value, dict):
        return sum(map(numbers, value.values()))
    if isinstance(value, list):
        return sum(map(numbers, value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def _of_index(index: Any) -> dict[str, Any]:
    facts = index.info()
    return {"fingerprint": index.fingerprint, **{key: facts[key] for key in COUNTED if key in facts}}


def _measured(name: str, report: Report | None) -> dict[str, Any]:
    if report is None or name not in report.systems:
        return {}
    return {
        "measures": {str(measure): report.mean(name, measure) for measure in report.measures},
        "intervals": {str(measure): list(report.intervals[measure][name]) for measure in report.measures},
    }


def _tests(report: Report) -> dict[str, Any]:
    tests: dict[str, Any] = {}
    for one in report.comparisons:
        tests.setdefault(str(one.measure), {})[f"{one.system} - {one.against}"] = {key: getattr(one, key) for key in TESTED}
    return tests


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
