"""Metadata of a run in the form of ir_metadata: platform, implementation, measured resources, method and data."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..core import MissingExtraError, ParameterError, Run
from ..core.answers import NAME
from .provenance import machine, versions

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


def metadata_of(run: Run, more: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the metadata of a run, for `write_run(run, path, metadata=…)`.

    Args:
        run: A run of a stage, on this machine, in this process.
        more: Metadata that only its author knows, such as `{"actor": {"name": …}, "research goal": …}`; they take precedence.

    Raises:
        ParameterError: `more` is no mapping.
    """
    facts, loaded = machine(), versions()
    fontes, python = loaded.pop("fontes"), loaded.pop("python")
    cpu = {"model": facts["processor"], "architecture": platform.machine(), "number of cores": facts["cores"]}
    hardware: dict[str, object] = {"cpu": cpu, "ram": f"{facts['memory_gb']} GB"}
    if "accelerator" in facts:
        hardware["gpu"] = facts["accelerator"]
    metadata: dict[str, object] = {
        "platform": {
            "hardware": hardware,
            "operating system": {"kernel": platform.release(), "distribution": _distribution()},
            "software": {
                "libraries": {"python": [f"{name}=={version}" for name, version in loaded.items()]},
                "retrieval toolkit": [f"fontes=={fontes}"],
            },
        },
        "implementation": {"executable": {"cmd": shlex.join(sys.argv)}, "source": {"lang": [f"python {python}"]}},
    }
    if "seconds" in run.provenance:
        metadata["resources"] = {"runtime": {"wallclock": f"{run.provenance['seconds']:.3f} s"}}
    if "system" in run.provenance:
        metadata["method"] = {"retrieval": [{"name": "fontes", "method": run.provenance["system"]}]}
    if run.provenance.get("indexes"):
        metadata["data"] = {"index fingerprints": dict(run.provenance["indexes"])}
    if NAME in run.provenance:
        metadata["language models"] = dict(run.provenance[NAME])
    return _merged(metadata, more or {})


def _merged(metadata: Mapping[str, Any], more: object) -> dict[str, object]:
    """Return a copy with the values of `more`, which are merged with nested mappings and replace all other values."""
    if not isinstance(more, Mapping):
        raise ParameterError(f"metadata are a mapping, such as {{'actor': {{'name': …}}}}, not {type(more).__name__}")
    merged = dict(metadata)
    for key, value in more.items():
        are_mappings = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if are_mappings else value
    return merged


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.platform()


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
