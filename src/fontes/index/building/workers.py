"""Threads that work side by side, and their results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Threads that work side by side. One alone is the caller's own.

    Args:
        threads: How many.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def begin(self, function: Callable[..., Result], *arguments: Any) -> Callable[[], Result]:
        """Begins a call; what is returned waits for its end, and gives its result or raises its error."""
        if self._pool is None:
            result = function(*arguments)
            return lambda: result
        return self._pool.submit(function, *arguments).result

    def in_order(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """What a function gives for each item, in order; none runs far ahead. An error of the items comes in order, too."""
        running: deque[Callable[[], Result]] = deque()
        error: Exception | None = None
        stream = iter(items)
        while True:
            try:
                item = next(stream)
            except StopIteration:
                break
            except Exception as e:
                error = e
                break
            running.append(self.begin(function, item))
            if len(running) >= self.threads + (self.threads > 1):
                yield running.popleft()()
        while running:
            yield running.popleft()()
        if error is not None:
            raise error

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class Queue:
    """Calls whose results are taken in order, a few at a time.

    Args:
        workers: Who carries them out.
        take: Is called with each result.
    """

    def __init__(self, workers: Workers, take: Callable[[Any], None]) -> None:
        self._workers, self._take = workers, take
        self._running: deque[Callable[[], Any]] = deque()

    def add(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Appends a call, when so many are not yet done that each thread has one."""
        self._running.append(self._workers.begin(function, *arguments))
        while len(self._running) > (self._workers.threads if self._workers.threads > 1 else 0):
            self._take(self._running.popleft()())

    def close(self) -> None:
        """Takes all results that are still to come."""
        while self._running:
            self._take(self._running.popleft()())


def in_order(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """What a function gives for each item, in order; so many calls run side by side, and none runs far ahead."""
    with Workers(threads) as workers:
        yield from workers.in_order(function, items)
