"""Time, memory and energy of an experiment, measured by tirex-tracker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core import MissingExtraError

MEASURED = (
    "TIME_ELAPSED_WALL_CLOCK_MS",
    "TIME_ELAPSED_USER_MS",
    "TIME_ELAPSED_SYSTEM_MS",
    "CPU_USED_PROCESS_PERCENT",
    "CPU_ENERGY_SYSTEM_JOULES",
    "RAM_USED_PROCESS_KB",
    "RAM_ENERGY_SYSTEM_JOULES",
    "GPU_USED_PROCESS_PERCENT",
    "GPU_VRAM_USED_PROCESS_MB",
    "GPU_ENERGY_SYSTEM_JOULES",
)


def tracker() -> Any:
    """Return the package tirex_tracker.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import tirex_tracker
    except ImportError as error:
        raise MissingExtraError.of("tirex-tracker", "tirex", "measurements = true") from error
    return tirex_tracker


@contextmanager
def measuring(is_on: bool) -> Iterator[dict[str, object]]:
    """Measure the block if `is_on`; yields the measurements, which are filled in at its end.

    Keys are tirex-tracker's names in lower case; a value is a number, or the max, min and avg of a series. Measurements that
    the machine does not offer are left out.

    Raises:
        MissingExtraError: It is on, and tirex-tracker is not installed.
    """
    values: dict[str, object] = {}
    if not is_on:
        yield values
        return
    package = tracker()
    with package.tracking([getattr(package.Measure, name) for name in MEASURED]) as results:
        yield values
    for measure, entry in results.items():
        value = json.loads(entry.value) if isinstance(entry.value, (bytes, str)) else entry.value
        if isinstance(value, dict):
            value = {name: number for name, number in value.items() if name != "timeseries"}
        if value is not None:
            values[measure.name.lower()] = value
