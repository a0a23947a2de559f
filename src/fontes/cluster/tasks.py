"""Tasks: one function over many parts, each scheduled where the cluster has room."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core.progress import Progress, Report, silent
from ..core.work import Resources, keep, resources
from .joining import Cluster, translated

STOP = 10.0  # seconds for what was cancelled to end
RETRIES = 3  # times that a task is begun again when its process or machine dies

P = TypeVar("P")
R = TypeVar("R")


def spread(
    cluster: Cluster,
    function: Callable[[P], R],
    parts: Sequence[P],
    task: str,
    *,
    cpus: float = 1,
    memory: int = 0,
    progress: Report = silent,
) -> Generator[tuple[int, R]]:
    """Run a function on each part and yield results as they complete; leaving the loop cancels the rest.

    A task whose process or machine dies is restarted, so the function must write to a draft and rename it. The first error
    ends all. At most two tasks per CPU are in flight.

    Args:
        cluster: Cluster to use.
        function: Deterministic function of a module (nodes import it), or a `functools.partial` of one.
        parts: Arguments; they and the results are transferred and should be small.
        task: Name of the work, for progress and messages: "building".
        cpus: CPUs per task.
        memory: Bytes per task, for Ray's placement; 0 if little.
        progress: Called with the number of finished parts.

    Yields:
        Number of a part, and its result.

    Raises:
        FontesError: The function raised it, or the cluster is lost.
    """
    options: dict[str, Any] = {"num_cpus": cpus, "max_retries": RETRIES} | ({"memory": memory} if memory else {})
    remote = cluster.ray.remote(**options)(_call)
    with translated(task):
        common = cluster.ray.put((replace(resources(), ray=None), function))
    limit = max(2, int(2 * cluster.cpus / max(cpus, 1)))
    yield from stream(cluster, lambda number: remote.remote(common, parts[number]), len(parts), limit, task, progress)


def stream(
    cluster: Cluster,
    submit: Callable[[int], Any],
    count: int,
    limit: int,
    task: str,
    progress: Report,
    again: Callable[[int, Exception], bool] = lambda number, error: False,
) -> Generator[tuple[int, Any]]:
    """Yield results of `count` calls as they complete; leaving the loop cancels the rest.

    Args:
        cluster: Cluster to use.
        submit: Starts a numbered call and returns Ray's reference.
        count: Number of calls.
        limit: Maximum number of calls in flight.
        task: Name of the work.
        progress: Called with the number of finished calls.
        again: Whether to restart a numbered call whose actor was lost.
    """
    ray = cluster.ray
    waiting, flying = deque(range(count)), dict[Any, int]()
    start, done = time.perf_counter(), 0
    try:
        while waiting or flying:
            with translated(task):
                while waiting and len(flying) < limit:
                    number = waiting.popleft()
                    flying[submit(number)] = number
                ready, _ = ray.wait(list(flying))
                number = flying.pop(ready[0])
                try:
                    result = ray.get(ready[0])
                except ray.exceptions.RayActorError as error:
                    if not again(number, error):
                        raise
                    waiting.appendleft(number)
                    continue
            done += 1
            progress(Progress(task, done, count, time.perf_counter() - start, unit="parts"))
            yield number, result
    finally:
        for reference in flying:
            with contextlib.suppress(Exception):
                ray.cancel(reference)
        with contextlib.suppress(Exception):  # what they have begun to write is to be complete or gone
            ray.wait(list(flying), num_returns=len(flying), timeout=STOP)


def in_order(results: Iterator[tuple[int, R]]) -> Iterator[R]:
    """Yield results in order of their numbers."""
    early: dict[int, R] = {}
    following = 0
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


def _call(common: tuple[Resources, Callable[[P], R]], part: P) -> R:
    settings, function = common
    keep(settings)
    return function(part)
