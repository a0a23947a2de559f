"""Name and instruction sets of the processor."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def cpuinfo(field: str) -> str:
    """Return the first value of a field of Linux's /proc/cpuinfo; empty elsewhere."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip().lower() == field:
                return value.strip()
    return ""


def processor_features() -> set[str]:
    """Return the names of its instruction sets, as Linux gives them."""
    return {*cpuinfo("flags").split(), *cpuinfo("features").split()}
