"""A cluster that does its tasks one after the other in the process that asks: what a build on a cluster makes, without Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from fontes.cluster import Cluster
from fontes.index.distributed import driver


def one_by_one(patch: pytest.MonkeyPatch, bytes_of_a_part: int, fan: int = 16) -> None:
    """Lets builds on a cluster run so, with parts of so many bytes, of which a merge takes `fan`."""

    @contextmanager
    def joined(ray: object, purpose: str) -> Iterator[Cluster]:
        yield Cluster(None, {"here": {"CPU": 2, "memory": 4e9}})  # type: ignore[arg-type]

    def spread(
        cluster: Cluster, function: Callable[[Any], Any], parts: Sequence[Any], task: str, **limits: object
    ) -> Iterator[tuple[int, Any]]:
        for number in reversed(range(len(parts))):
            yield number, function(parts[number])

    patch.setattr(driver, "joined_cluster", joined)
    patch.setattr(driver, "spread", spread)
    small_parts(patch, bytes_of_a_part, fan)


def small_parts(patch: pytest.MonkeyPatch, bytes_of_a_part: int, fan: int = 16) -> None:
    """Lets builds on a cluster make parts of so many bytes, of which a merge takes `fan`."""
    patch.setattr(driver, "PART", bytes_of_a_part)
    patch.setattr(driver, "MIN_PART", 1)
    patch.setattr(driver, "FAN", fan)
