"""Actors: cluster processes that hold state (a model, some shards) across many calls."""

from __future__ import annotations

import contextlib
import math
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ..core.errors import FontesError
from ..core.part import Part, walk
from ..core.work import Progress, Resources, keep, reporter, resources
from .answers import AnswerStore, answer_store
from .joining import Cluster, joined_here, translated

STOP = 10.0  # seconds for cancelled tasks to end
RETRIES = 3  # restarts of a task whose process or machine dies

P = TypeVar("P")
R = TypeVar("R")


def map_unordered(
    cluster: Cluster, function: Callable[[P], R], parts: Sequence[P], task: str, *, cpus: float = 1, memory: int = 0
) -> Generator[tuple[int, R]]:
    """Run a function on each part and yield results as they complete; leaving the loop cancels the rest.

    A task whose process or machine dies is restarted, so the function must write files as drafts and rename them. The first
    error cancels all tasks. At most two tasks per CPU are in flight.

    Args:
        cluster: Cluster to use.
        function: Deterministic function of a module (nodes import it), or a `functools.partial` of one.
        parts: Arguments. Arguments and results are transferred and should be small.
        task: Name of the work, for messages, such as "building".
        cpus: CPUs per task.
        memory: Bytes per task, for Ray's scheduler; 0 if negligible.

    Yields:
        Number of a part, and its result.

    Raises:
        FontesError: The function raised it, or the cluster is lost.
    """
    options: dict[str, object] = {"num_cpus": cpus, "max_retries": RETRIES, **({"memory": memory} if memory else {})}
    remote = cluster.ray.remote(**options)(_call)
    with translated(task):
        common = cluster.ray.put((resources().for_worker(), function))
    limit = max(2, int(2 * cluster.cpus / max(cpus, 1)))
    yield from stream(cluster, lambda number: remote.remote(common, parts[number]), len(parts), limit, task)


def stream(
    cluster: Cluster,
    submit: Callable[[int], object],
    count: int,
    limit: int,
    task: str,
    should_restart: Callable[[int, Exception], bool] = lambda number, error: False,
) -> Generator[tuple[int, Any]]:
    """Yield results of `count` calls as they complete; leaving the loop cancels the rest.

    Args:
        cluster: Cluster to use.
        submit: Starts a numbered call and returns Ray's reference.
        count: Number of calls.
        limit: Maximum number of calls in flight.
        task: Name of the work.
        should_restart: Called with the number of a call whose actor was lost, and the error; whether to repeat the call.
    """
    ray = cluster.ray
    waiting, in_flight = deque(range(count)), dict[Any, int]()
    try:
        while waiting or in_flight:
            with translated(task):
                while waiting and len(in_flight) < limit:
                    number = waiting.popleft()
                    in_flight[submit(number)] = number
                ready, _ = ray.wait(list(in_flight))
                number = in_flight.pop(ready[0])
                try:
                    result = ray.get(ready[0])
                except ray.exceptions.RayActorError as error:
                    if not should_restart(number, error):
                        raise
                    waiting.appendleft(number)
                    continue
            yield number, result
    finally:
        for reference in in_flight:
            with contextlib.suppress(Exception):
                ray.cancel(reference)
        with contextlib.suppress(Exception):  # until files are written completely
            ray.wait(list(in_flight), num_returns=len(in_flight), timeout=STOP)


def in_order(results: Iterator[tuple[int, R]]) -> Iterator[R]:
    """Yield results in order of their numbers."""
    results_by_number: dict[int, R] = {}
    next_number = 0
    for number, result in results:
        results_by_number[number] = result
        while next_number in results_by_number:
            yield results_by_number.pop(next_number)
            next_number += 1


def _call(common: tuple[Resources, Callable[[P], R]], part: P) -> R:
    """Call a function on a part in a task, with the settings of the driver."""
    settings, function = common
    keep(settings)
    return function(part)


THREADS = 4  # CPUs of an actor without a GPU, if its machine has as many
RETRY_DELAY = 5.0  # seconds until an actor that did not answer is called again
BASE = 1 << 30  # bytes of a process besides its models, for libraries and a batch
INLINE = 1 << 16  # maximum bytes of an argument that is copied into each call; larger ones go into Ray's store
DEPTH = 2  # calls queued at each actor, so that none is idle

H = TypeVar("H")


class Actors(Generic[H]):
    """Actors that each hold the result of one function as their state; they end with the block.

    An actor that dies is restarted, on another machine if necessary; it rebuilds its state and repeats its call.

    Args:
        cluster: Cluster to use.
        makes: One function per actor, which makes the actor's state on first use: a function of a module, or a
            `functools.partial` of one.
        task: Name of the work, for messages.
        cpus: CPUs per actor; 0 to share them.
        gpus: GPUs per actor.
        memory: Bytes per actor, for Ray's scheduler; 0 if negligible.
        store: Stored answers of language models, whose budget the actors share; None without language models.
        calls: Number of calls that an actor answers at a time, each in a thread.
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
        store: AnswerStore | None = None,
        calls: int = 1,
    ) -> None:
        self._cluster, self._task = cluster, task
        self._budget = None if store is None else resources().budget
        self._reserved = 0 if self._budget is None else self._budget.reserve_rest()
        self._share = None if self._budget is None else self._reserved // len(makes)
        options: dict[str, object] = {"num_cpus": cpus, "num_gpus": gpus, **({"memory": memory} if memory else {})}
        options |= {
            "max_concurrency": calls,
            "max_restarts": RETRIES,
            "max_task_retries": RETRIES,
            "scheduling_strategy": "SPREAD",
        }
        with translated(task):
            remote = cluster.ray.remote(**options)(_Holder)
            settings = resources().for_worker()
            self._actors = [remote.remote(make, settings, store, self._share) for make in makes]

    @classmethod
    def alike(
        cls,
        cluster: Cluster,
        make: Callable[[], H],
        task: str,
        max_actors: int,
        memory: int = 0,
        store: AnswerStore | None = None,
    ) -> Actors[H]:
        """Create at most `max_actors` actors with the same state: one per GPU or, without GPUs, one per four CPUs.

        `memory`, in bytes per actor, limits the number of actors per machine; at least one is started.
        """
        resource = "GPU" if cluster.gpus else "CPU"
        nodes = [node for node in cluster.nodes.values() if node.get(resource, 0) >= 1]
        units = 1 if cluster.gpus else min([THREADS, *(int(node[resource]) for node in nodes)])
        memory = int(min(memory, max((node.get("memory", memory) for node in nodes), default=memory)))
        slots = [node[resource] // units for node in nodes]
        if memory:
            slots = [min(count, node.get("memory", memory) // memory) for count, node in zip(slots, nodes, strict=True)]
        makes = [make] * max(1, min(max_actors, int(sum(slots))))
        share = {"gpus": units} if cluster.gpus else {"cpus": units}
        return cls(cluster, makes, task, **share, memory=memory, store=store)

    def __len__(self) -> int:
        return len(self._actors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the actors. Does nothing once this process has left the cluster: `kill` would start another Ray."""
        if self._budget is not None:
            used = [self._used(actor) for actor in self._actors]
            self._budget.settle(self._reserved, min(self._reserved, sum(used)))
            self._budget = None
        for actor in self._actors if self._cluster.ray.is_initialized() else ():
            with contextlib.suppress(Exception):
                self._cluster.ray.kill(actor)

    def _used(self, actor: Any) -> int:
        """Return the tokens that an actor used; its share if it is lost."""
        with contextlib.suppress(Exception):
            return int(self._cluster.ray.get(actor.used.remote(), timeout=STOP))
        return self._share or 0

    def map_unordered(self, function: Callable[[H, P], R], parts: Sequence[P]) -> Generator[tuple[int, R]]:
        """Call a function on each part in any free actor and yield results as they complete.

        Args:
            function: Deterministic function of a module, or a `functools.partial` of one.
            parts: Second arguments, after the actor's state.

        Yields:
            Number of a part, and its result.

        Raises:
            FontesError: The function raised it, or the cluster is lost.
        """
        busy = [0] * len(self)  # calls in flight of each actor
        unavailable_until = [0.0] * len(self)  # time until which each actor gets no calls
        actor_of: dict[int, int] = {}
        starting = {actor.ready.remote(): number for number, actor in enumerate(self._actors)}
        ready_actors: list[int] = []

        def submit(number: int) -> object:
            any_alive = any(unavailable_until[actor] < math.inf for actor in ready_actors)
            if starting:  # an actor may wait for free CPUs, and gets no calls until it runs
                count, seconds = (len(starting), 0) if any_alive else (1, None)
                ready_actors.extend(
                    starting.pop(reference)
                    for reference in self._cluster.ray.wait(list(starting), num_returns=count, timeout=seconds)[0]
                )
            now = time.monotonic()
            actor_of[number] = best = min(ready_actors, key=lambda actor: (max(unavailable_until[actor], now), busy[actor]))
            if unavailable_until[best] > now:  # all are restarting
                time.sleep(1)
            busy[best] += 1
            return self._actors[best].call.options(max_task_retries=0).remote(function, parts[number])

        def should_restart(number: int, error: Exception) -> bool:
            """Move the part to another actor: after the loss of a machine, the old actor may find no free CPUs."""
            died = isinstance(error, self._cluster.ray.exceptions.ActorDiedError)
            busy[actor_of[number]] -= 1
            unavailable_until[actor_of[number]] = math.inf if died else time.monotonic() + RETRY_DELAY
            return min(unavailable_until) < math.inf

        results = stream(self._cluster, submit, len(parts), DEPTH * len(self), self._task, should_restart)
        with contextlib.closing(results):
            for number, result in results:
                busy[actor_of[number]] -= 1
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


def map_with(make: Callable[[], H], function: Callable[[H, P], R], parts: Sequence[P], task: str, stage: object) -> list[R]:
    """Return results of a function for each part, in order, from actors on the cluster of `work`; see `Actors`.

    Reports the number of finished parts. The models of `stage` determine the actors' memory.
    """
    report, start, results = reporter(), time.perf_counter(), dict[int, R]()
    with (
        joined_here(task) as cluster,
        answer_store(cluster, stage) as store,
        Actors.alike(cluster, make, task, len(parts), memory_of(stage), store) as actors,
    ):
        for number, result in actors.map_unordered(function, parts):
            results[number] = result
            report(Progress(task, len(results), len(parts), time.perf_counter() - start, unit="parts"))
    return [results[number] for number in range(len(parts))]


def memory_of(part: object) -> int:
    """Estimate the memory of a part's models, without indexes, in bytes, from file sizes; 0 without models.

    Weights may take twice their stored size in memory.
    """
    parts = walk(part) if isinstance(part, Part) else ()
    folders = {folder for subpart in parts if isinstance(folder := getattr(subpart, "folder", None), Path)}
    return BASE + 2 * sum(file.stat().st_size for folder in folders for file in folder.rglob("*")) if folders else 0


class _Holder:
    """State of an actor's process."""

    def __init__(self, make: Callable[[], object], settings: Resources, store: AnswerStore | None, tokens: int | None) -> None:
        self._make, self._ready = make, False
        self._settings = settings if store is None else store.used_by(settings, tokens)
        self._state: object = None
        self._lock = threading.Lock()

    def ready(self) -> None:
        """Return once the process runs."""

    def used(self) -> int:
        """Return how many tokens the process used, including those reserved by calls that got no answer."""
        return 0 if self._settings.budget is None else self._settings.budget.used()

    def call(self, function: Callable[[Any, Any], object], part: object) -> object:
        """Call a function with the state, which the first call makes, and a part."""
        keep(self._settings)
        with self._lock:
            if not self._ready:
                self._state, self._ready = self._make(), True
        return function(self._state, part)

    def answer(self, packed: bytes) -> bytes:
        """Call a function; function, part and result are pickled: one bytes object takes Ray less time than several arrays."""
        return pickle.dumps(self.call(*pickle.loads(packed)), protocol=5)
