"""Actors: cluster processes that hold state (a model, some shards) across many calls."""

from __future__ import annotations

import contextlib
import math
import pickle
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ..core.errors import FontesError
from ..core.part import Part, walk
from ..core.progress import Progress, ProgressCallback, silent
from ..core.work import Resources, keep, resources
from .answers import Ledger, ledger_of
from .joining import Cluster, joined_here, translated

STOP = 10.0  # seconds for cancelled tasks to end
RETRIES = 3  # restarts of a task whose process or machine dies

P = TypeVar("P")
R = TypeVar("R")


def map_unordered(
    cluster: Cluster,
    function: Callable[[P], R],
    parts: Sequence[P],
    task: str,
    *,
    cpus: float = 1,
    memory: int = 0,
    progress: ProgressCallback = silent,
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
        common = cluster.ray.put((resources().elsewhere(), function))
    limit = max(2, int(2 * cluster.cpus / max(cpus, 1)))
    yield from stream(cluster, lambda number: remote.remote(common, parts[number]), len(parts), limit, task, progress)


def stream(
    cluster: Cluster,
    submit: Callable[[int], Any],
    count: int,
    limit: int,
    task: str,
    progress: ProgressCallback,
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
        with contextlib.suppress(Exception):  # so that no file is half written
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


THREADS = 4  # CPUs of an actor without a GPU, at most those of its machine
ABSENCE = 5.0  # seconds until an actor that did not answer is called again
BASE = 1 << 30  # bytes of a process beside its models: libraries and a batch
INLINE = 1 << 16  # bytes of an argument up to which its copy in each call is faster than one in Ray's store
DEPTH = 2  # calls queued at an actor, so that it is never idle

H = TypeVar("H")


class Actors(Generic[H]):
    """Actors that each hold the result of one function; they end with the block.

    A dead actor is restarted, on another machine if necessary, rebuilds its state and repeats its call.

    Args:
        cluster: Cluster to use.
        makes: One function per actor, of a module or a `functools.partial` of one, that makes its state there on first use.
        task: Name of the work, for messages.
        cpus: CPUs per actor; 0 to share them.
        gpus: GPUs per actor.
        memory: Bytes per actor, for Ray's placement; 0 if little.
        ledger: Budget and kept answers of language models; None without any.
        calls: Calls that an actor answers at a time, each in a thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        makes: Sequence[Callable[[], H]],
        task: str,
        *,
        cpus: float = 1,
        gpus: float = 0,
        memory: int = 0,
        ledger: Ledger | None = None,
        calls: int = 1,
    ) -> None:
        self._cluster, self._task, self._ledger = cluster, task, ledger
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus} | ({"memory": memory} if memory else {})
        options |= {
            "max_concurrency": calls,
            "max_restarts": RETRIES,
            "max_task_retries": RETRIES,
            "scheduling_strategy": "SPREAD",
        }
        with translated(task):
            remote = cluster.ray.remote(**options)(_Holder)
            settings = resources().elsewhere()
            self._actors = [remote.remote(make, settings, number, ledger) for number, make in enumerate(makes)]

    @classmethod
    def alike(
        cls, cluster: Cluster, make: Callable[[], H], task: str, most: int, memory: int = 0, ledger: Ledger | None = None
    ) -> Actors[H]:
        """Create at most `most` actors with the same state: one per GPU or, without GPUs, one per four CPUs.

        `memory`, in bytes per actor, limits the number of actors per machine; at least one is started.
        """
        resource = "GPU" if cluster.gpus else "CPU"
        nodes = [node for node in cluster.nodes.values() if node.get(resource, 0) >= 1]
        uses = 1 if cluster.gpus else min([THREADS, *(int(node[resource]) for node in nodes)])
        memory = int(min(memory, max((node.get("memory", memory) for node in nodes), default=memory)))
        slots = [node[resource] // uses for node in nodes]
        if memory:
            slots = [min(place, node.get("memory", memory) // memory) for place, node in zip(slots, nodes, strict=True)]
        makes = [make] * max(1, min(most, int(sum(slots))))
        share = {"gpus": uses} if cluster.gpus else {"cpus": uses}
        return cls(cluster, makes, task, **share, memory=memory, ledger=ledger)

    def __len__(self) -> int:
        return len(self._actors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the actors: none if this process has left the cluster, where `kill` would start another Ray."""
        for actor in self._actors if self._cluster.ray.is_initialized() else ():
            with contextlib.suppress(Exception):
                self._cluster.ray.kill(actor)

    def spread(self, *arguments: Any, **options: Any) -> Generator[tuple[int, Any]]:
        """Deprecated: `map_unordered`."""
        warnings.warn("Actors.spread is now Actors.map_unordered", DeprecationWarning, stacklevel=2)
        return self.map_unordered(*arguments, **options)

    def map_unordered(
        self, function: Callable[[H, P], R], parts: Sequence[P], progress: ProgressCallback = silent
    ) -> Generator[tuple[int, R]]:
        """Call a function on each part in any free actor and yield results as they complete.

        Args:
            function: Deterministic function of a module, or a `functools.partial` of one.
            parts: Second arguments, after the actor's state.
            progress: Called with the number of finished parts.

        Yields:
            Number of a part, and its result.

        Raises:
            FontesError: The function raised it, or the cluster is lost.
        """
        busy, absent = [0] * len(self), [0.0] * len(self)  # calls of each actor, and the time until which it gets none
        of: dict[int, int] = {}
        waiting = {actor.ready.remote(): number for number, actor in enumerate(self._actors)}
        placed: list[int] = []

        def submit(number: int) -> Any:
            hope = any(absent[actor] < math.inf for actor in placed)
            if waiting:  # an actor may wait for a place while others use the cluster, and gets no calls until then
                count, seconds = (len(waiting), 0) if hope else (1, None)
                placed.extend(
                    waiting.pop(new) for new in self._cluster.ray.wait(list(waiting), num_returns=count, timeout=seconds)[0]
                )
            now = time.monotonic()
            of[number] = best = min(placed, key=lambda actor: (max(absent[actor], now), busy[actor]))
            if absent[best] > now:  # all are restarting
                time.sleep(1)
            busy[best] += 1
            return self._actors[best].call.options(max_task_retries=0).remote(function, parts[number])

        def again(number: int, error: Exception) -> bool:
            """Move the part to another actor: after losing a machine, the old one may have no place."""
            died = isinstance(error, self._cluster.ray.exceptions.ActorDiedError)
            if died and self._ledger is not None:
                self._ledger.leave(of[number])
            busy[of[number]] -= 1
            absent[of[number]] = math.inf if died else time.monotonic() + ABSENCE
            return min(absent) < math.inf

        results = stream(self._cluster, submit, len(parts), DEPTH * len(self), self._task, progress, again)
        with contextlib.closing(results):
            for number, result in results:
                busy[of[number]] -= 1
                yield number, result

    def answers(self, function: Callable[[H, P], R], part: P) -> list[R | FontesError]:
        """Call a function with the same part in all actors; return the result or FontesError of each."""
        ray = self._cluster.ray
        with translated(self._task):
            packed = ray.cloudpickle.dumps((function, part))
            common = ray.put(packed) if len(packed) > INLINE else packed
            references = [actor.answer.remote(common) for actor in self._actors]
        answers: list[R | FontesError] = []
        for reference in references:
            try:
                with translated(self._task):
                    answers.append(pickle.loads(ray.get(reference)))
            except FontesError as error:
                answers.append(error)
        return answers


def map_with(
    make: Callable[[], H],
    function: Callable[[H, P], R],
    parts: Sequence[P],
    task: str,
    stage: object,
    progress: ProgressCallback = silent,
) -> list[R]:
    """Return results of a function for each part, in order, from actors on the cluster of `work`; see `Actors`.

    The models of `stage` determine the actors' memory.
    """
    with (
        joined_here(task) as cluster,
        ledger_of(cluster, stage) as ledger,
        Actors.alike(cluster, make, task, len(parts), memory_of(stage), ledger) as actors,
    ):
        return list(in_order(actors.map_unordered(function, parts, progress)))


def memory_of(part: object) -> int:
    """Estimate the bytes of a part's models in memory, without indexes, from file sizes; 0 without models.

    Stored weights may have half their size in memory.
    """
    parts = walk(part) if isinstance(part, Part) else ()
    folders = {folder for one in parts if isinstance(folder := getattr(one, "folder", None), Path)}
    return BASE + 2 * sum(file.stat().st_size for folder in folders for file in folder.rglob("*")) if folders else 0


class _Holder:
    """State of an actor's process."""

    def __init__(self, make: Callable[[], Any], settings: Resources, number: int, ledger: Ledger | None) -> None:
        self._make, self._ready = make, False
        self._settings = settings if ledger is None else ledger.used_by(number, settings)
        self._holds: Any = None
        self._making = threading.Lock()

    def ready(self) -> None:
        """Return once the process runs."""

    def call(self, function: Callable[[Any, Any], Any], part: Any) -> Any:
        keep(self._settings)
        with self._making:
            if not self._ready:
                self._holds, self._ready = self._make(), True
        return function(self._holds, part)

    def answer(self, packed: bytes) -> bytes:
        """Call a function, both packed: one string of bytes takes Ray less time than several arrays."""
        return pickle.dumps(self.call(*pickle.loads(packed)), protocol=5)
