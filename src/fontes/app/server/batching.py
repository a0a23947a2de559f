"""Requests that wait together are worked on together: a queue of which threads take as many as wait."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
Waiting = deque[tuple[Any, "asyncio.Future[Any]"]]


class Batcher(Generic[K, R]):
    """A queue of requests, in which those of one kind are one batch. It belongs to one event loop.

    A request that comes alone starts at once. Those that come while all threads are busy wait, and the first thread that gets
    free takes all of a kind that wait, up to `most`; kinds have their turns.

    Args:
        work: Gives the results of requests of one kind, in their order; an exception among them is that request's own.
        pool: The threads.
        threads: How many they are: so many batches are worked on at a time.
        most: Requests of a batch.
    """

    def __init__(
        self, work: Callable[[K, list[Any]], Sequence[R | Exception]], pool: ThreadPoolExecutor, threads: int, most: int
    ) -> None:
        self._work = work
        self._most = most
        self._free = threads
        self._pool = pool
        self._waiting: OrderedDict[K, Waiting] = OrderedDict()
        self._woken = False

    def __len__(self) -> int:
        """How many requests wait."""
        return sum(map(len, self._waiting.values()))

    async def result(self, kind: K, request: Any) -> R:
        """The result of a request; one that is cancelled while it waits is never worked on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.setdefault(kind, deque()).append((request, future))
        self._wake(loop)
        return await future

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._free and self._waiting and not self._woken:
            self._woken = True
            loop.call_soon(self._start, loop)  # so that all that came with this one are there

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._woken = False
        while self._free and self._waiting:
            kind, waiting = self._waiting.popitem(last=False)
            batch: list[tuple[Any, asyncio.Future[R]]] = []
            while waiting and len(batch) < self._most:
                request, future = waiting.popleft()
                if not future.done():
                    batch.append((request, future))
            if waiting:
                self._waiting[kind] = waiting
            if batch:
                self._free -= 1
                started = loop.run_in_executor(self._pool, self._work, kind, [request for request, _ in batch])
                started.add_done_callback(lambda done, batch=batch: self._finish(loop, done, batch))  # type: ignore[misc]

    def _finish(self, loop: asyncio.AbstractEventLoop, done: Any, batch: list[tuple[Any, asyncio.Future[R]]]) -> None:
        self._free += 1
        error = None if done.cancelled() else done.exception()
        results = [error or RuntimeError("the server ends")] * len(batch) if error or done.cancelled() else done.result()
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._wake(loop)
