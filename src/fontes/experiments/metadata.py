"""Metadata of a run in the form of ir_metadata: platform, implementation, resources, method and data."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from ..core import ParameterError, Run
from ..core.answers import NAME
from .provenance import machine, versions


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
