"""How many processors a process may use: its affinity and the quotas of its control groups."""

import os
from pathlib import Path

import pytest
from support.each import each

from fontes.core import work


def limited(monkeypatch: pytest.MonkeyPatch, root: Path, group: str, quotas: dict[str, str]) -> int:
    """`processors()` on a machine of 8 processors, in this group, with these files of quotas."""
    for name, content in quotas.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "groups").write_text(group)
    monkeypatch.setattr(work, "CGROUPS", root)
    monkeypatch.setattr(work, "GROUPS", root / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    return work.processors()


@each(
    ("group", "quotas", "expected"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/a/b\n", {"a/cpu.max": "250000 100000\n", "a/b/cpu.max": "max 100000\n"}, 3),
        (
            "4:cpu,cpuacct:/c\n0::/\n",
            {"cpu,cpuacct/c/cpu.cfs_quota_us": "400000", "cpu,cpuacct/c/cpu.cfs_period_us": "100000"},
            4,
        ),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ("damaged", {"cpu.max": "nothing"}, 8),
    ],
)
def test_the_least_quota_of_a_group_and_its_parents_counts(
    group: str, quotas: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert limited(monkeypatch, tmp_path, group, quotas) == expected
