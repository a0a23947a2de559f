"""Name, instruction sets and number of the processors."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/proc/self/cgroup")  # control groups of this process
CGROUPS = Path("/sys/fs/cgroup")


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


def processors() -> int:
    """Return how many processors this process may use at once: those of its affinity, or fewer by the quota of its container.

    The quota is that of Linux's control groups, rounded up. Other work on the machine does not count.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *(-(-quota // period) for quota, period in _quotas())]))


def _quotas() -> list[tuple[int, int]]:
    """Microseconds of processor time in each period, and the period, by all control groups of this process."""
    groups = []
    with suppress(OSError, ValueError):
        for line in GROUPS.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                mount = CGROUPS / controllers if controllers else CGROUPS
                groups += [(mount, Path(*parts)) for parts in _ancestors(path)]
    quotas = []
    for mount, group in groups:
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):  # version 2, version 1
            with suppress(OSError, ValueError):
                words = " ".join((mount / group / name).read_text(encoding="utf-8") for name in names).split()
                quota, period = map(int, words)  # "max" or -1: no quota
                quotas += [(quota, period)] if min(quota, period) > 0 else []
    return quotas


def _ancestors(path: str) -> list[list[str]]:
    """Parts of the path of a control group and of all groups that hold it, the root's first."""
    parts = [part for part in path.split("/") if part]
    return [parts[:end] for end in range(len(parts) + 1)]
