"""Actors: processes of the cluster that hold something (a model, some shards) while they are asked many times."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ..core.errors import FontesError
from ..core.part import Part, walk
from ..core.progress import Report, silent
from ..core.work import Resources, keep, resources
from .joining import Cluster, joined_here, translated
from .tasks import RETRIES, in_order, stream

THREADS = 4  # processors of an actor that has no GPU, where its machine has as many
ABSENCE = 5.0  # seconds until an actor is asked again that did not answer
BASE = 1 << 30  # bytes that a process takes beside its models: libraries, and what a batch needs
DEPTH = 2  # calls that wait at an actor, so that it need not

H = TypeVar("H")
P = TypeVar("P")
R = TypeVar("R")


class Actors(Generic[H]):
    """Actors, each of which holds the result of one function. They end with the block.

    An actor that dies is started again, on another machine if it must be, makes again what it holds, and does again what it was
    doing.

    Args:
        cluster: The cluster.
        makes: For each actor the function, of a module or `functools.partial` of one, that makes what the actor holds, in the
            actor, when it is first needed.
        task: Name of the work, for messages.
        cpus: Processors of an actor; 0 if it shares them with others.
        gpus: GPUs of an actor.
        memory: Bytes that an actor uses, for Ray to place it; 0 if little.
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
    ) -> None:
        self._cluster, self._task = cluster, task
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus} | ({"memory": memory} if memory else {})
        options |= {"max_restarts": RETRIES, "max_task_retries": RETRIES, "scheduling_strategy": "SPREAD"}
        with translated(task):
            remote = cluster.ray.remote(**options)(_Holder)
            settings = replace(resources(), ray=None)
            self._actors = [remote.remote(make, settings) for make in makes]

    @classmethod
    def alike(cls, cluster: Cluster, make: Callable[[], H], task: str, most: int, memory: int = 0) -> Actors[H]:
        """Actors that all hold the same: one for each GPU of the cluster, or where there is none, for each four processors.

        There are fewer on a machine that has less memory than they use together; at least one is begun, where there is most.

        Args:
            cluster: The cluster.
            make: Makes what each holds.
            task: Name of the work, for messages.
            most: Greatest number, such as that of the parts of the work.
            memory: Bytes that an actor uses.
        """
        resource = "GPU" if cluster.gpus else "CPU"
        nodes = [node for node in cluster.nodes.values() if node.get(resource, 0) >= 1]
        uses = 1 if cluster.gpus else min([THREADS, *(int(node[resource]) for node in nodes)])
        memory = int(min(memory, max((node.get("memory", memory) for node in nodes), default=memory)))
        places = [node[resource] // uses for node in nodes]
        if memory:
            places = [min(place, node.get("memory", memory) // memory) for place, node in zip(places, nodes, strict=True)]
        makes = [make] * max(1, min(most, int(sum(places))))
        return cls(cluster, makes, task, **({"gpus": uses} if cluster.gpus else {"cpus": uses}), memory=memory)

    def __len__(self) -> int:
        return len(self._actors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the actors. Where this process has left the cluster they are gone, and `kill` would start another Ray."""
        for actor in self._actors if self._cluster.ray.is_initialized() else ():
            with contextlib.suppress(Exception):
                self._cluster.ray.kill(actor)

    def spread(self, function: Callable[[H, P], R], parts: Sequence[P], progress: Report = silent) -> Generator[tuple[int, R]]:
        """Calls a function on each part, with what whichever actor is free holds; gives the results as they come.

        Args:
            function: A function of a module, or `functools.partial` of one. It must give the same each time.
            parts: Its second arguments, beside what the actor holds.
            progress: Is called with the number of parts that are done.

        Yields:
            The number of a part, and its result.

        Raises:
            FontesError: The function raised it, or the cluster is lost.
        """
        busy, absent = [0] * len(self), [0.0] * len(self)  # calls of each actor, and until when it is not to be asked
        of: dict[int, int] = {}
        waiting = {actor.ready.remote(): number for number, actor in enumerate(self._actors)}
        placed: list[int] = []

        def submit(number: int) -> Any:
            hope = any(absent[actor] < math.inf for actor in placed)
            if waiting:  # an actor may have no place while others use the cluster, and gets nothing until it has one
                count, seconds = (len(waiting), 0) if hope else (1, None)
                placed.extend(
                    waiting.pop(new) for new in self._cluster.ray.wait(list(waiting), num_returns=count, timeout=seconds)[0]
                )
            now = time.monotonic()
            of[number] = best = min(placed, key=lambda actor: (max(absent[actor], now), busy[actor]))
            if absent[best] > now:  # all are being started again
                time.sleep(1)
            busy[best] += 1
            return self._actors[best].call.options(max_task_retries=0).remote(function, parts[number])

        def again(number: int, error: Exception) -> bool:
            """Another actor takes the part: where a machine is lost, there may be no place for the one that was there."""
            died = isinstance(error, self._cluster.ray.exceptions.ActorDiedError)
            busy[of[number]] -= 1
            absent[of[number]] = math.inf if died else time.monotonic() + ABSENCE
            return min(absent) < math.inf

        results = stream(self._cluster, submit, len(parts), DEPTH * len(self), self._task, progress, again)
        with contextlib.closing(results):
            for number, result in results:
                busy[of[number]] -= 1
                yield number, result

    def answers(self, function: Callable[[H, P], R], part: P) -> list[R | FontesError]:
        """Calls a function in all actors at once, each with the same part.

        Returns:
            Of each actor the result, or the error: what the function raised of Fontes, or what has become of the actor, which
            has Ray's own error as its cause.
        """
        with translated(self._task):
            common = self._cluster.ray.put(part)
            references = [actor.call.remote(function, common) for actor in self._actors]
        answers: list[R | FontesError] = []
        for reference in references:
            try:
                with translated(self._task):
                    answers.append(self._cluster.ray.get(reference))
            except FontesError as error:
                answers.append(error)
        return answers


def map_with(
    make: Callable[[], H],
    function: Callable[[H, P], R],
    parts: Sequence[P],
    task: str,
    stage: object,
    progress: Report = silent,
) -> list[R]:
    """Results of a function for each part, in order, from actors on the cluster that `work` names.

    Args:
        make: Makes what each actor holds; see `Actors`.
        function: A function of a module, or `functools.partial` of one.
        parts: Its second arguments.
        task: Name of the work, for messages.
        stage: The part whose models the actors hold, which says how much memory they take.
        progress: Is called with the number of parts that are done.
    """
    with (
        joined_here(task) as cluster,
        Actors.alike(cluster, make, task, len(parts), memory_of(stage)) as actors,
    ):
        return list(in_order(actors.spread(function, parts, progress)))


def memory_of(part: object) -> int:
    """Bytes that a process takes which holds the models of a part, by the files of these; 0 where it has none.

    A weight may be stored in half of what it takes in the memory. What an index takes is not counted.
    """
    parts = walk(part) if isinstance(part, Part) else ()
    folders = {folder for one in parts if isinstance(folder := getattr(one, "folder", None), Path)}
    return BASE + 2 * sum(file.stat().st_size for folder in folders for file in folder.rglob("*")) if folders else 0


class _Holder:
    """The content of an actor's process."""

    def __init__(self, make: Callable[[], Any], settings: Resources) -> None:
        self._make, self._settings, self._ready = make, settings, False
        self._holds: Any = None

    def ready(self) -> None:
        """Returns when the process is there."""

    def call(self, function: Callable[[Any, Any], Any], part: Any) -> Any:
        keep(self._settings)
        if not self._ready:
            self._holds, self._ready = self._make(), True
        return function(self._holds, part)
