"""A cluster that does its tasks one after the other in the process that asks: what a build on a cluster makes, without Ray."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from fontes.cluster import Cluster, building
from fontes.core.work import silent, work


def one_by_one(patch: pytest.MonkeyPatch, bytes_of_a_part: int, fan: int = 16) -> None:
    """Lets builds on a cluster run so, with parts of so many bytes, of which a merge takes `fan`."""

    @contextmanager
    def joined_here(purpose: str) -> Iterator[Cluster]:
        yield Cluster(None, {"here": {"CPU": 2, "memory": 4e9}})  # type: ignore[arg-type]

    def map_unordered(
        cluster: Cluster, function: Callable[[Any], Any], parts: Sequence[Any], task: str, **limits: object
    ) -> Iterator[tuple[int, Any]]:
        for number in reversed(range(len(parts))):
            with work(progress=silent):  # as in a process of its own
                result = function(parts[number])
            yield number, result

    patch.setattr(building, "joined_here", joined_here)
    patch.setattr(building, "map_unordered", map_unordered)
    small_parts(patch, bytes_of_a_part, fan)


def small_parts(patch: pytest.MonkeyPatch, bytes_of_a_part: int, fan: int = 16) -> None:
    """Lets builds on a cluster make parts of so many bytes, of which a merge takes `fan`."""
    patch.setattr(building, "PART", bytes_of_a_part)
    patch.setattr(building, "MIN_PART", 1)
    patch.setattr(building, "MAX_MERGED", fan)
