"""Threads that work side by side, as many as `work` says, and their results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from .work import keep, resources, thread_count

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[..., Result], *columns: Sequence[Any], limit: int | None = None) -> list[Result]:
    """Results of a function for each item, in order; one thread is the caller's own.

    Args:
        function: What is called.
        columns: Its first arguments, its second ones, and so on.
        limit: Number of threads that the work is worth; None: as many as there are items.
    """
    threads = min(thread_count(), len(columns[0]) if limit is None else limit)
    if threads <= 1 or len(columns[0]) == 1:
        return [function(*arguments) for arguments in zip(*columns, strict=True)]
    with pool_of(threads) as pool:
        return list(pool.map(function, *columns))


def pool_of(threads: int) -> ThreadPoolExecutor:
    """So many threads, which belong to the `work` block that starts them."""
    return ThreadPoolExecutor(threads, initializer=keep, initargs=(resources(),))


class Workers:
    """Threads that work side by side. One alone is the caller's own.

    Args:
        threads: Number of threads; None: as `work` says.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or thread_count()
        self._pool = pool_of(self.threads) if self.threads > 1 else None

    def begin(self, function: Callable[..., Result], *arguments: Any) -> Callable[[], Result]:
        """Begins a call; what is returned waits for its end, and gives its result or raises its error."""
        if self._pool is None:
            result = function(*arguments)
            return lambda: result
        return self._pool.submit(function, *arguments).result

    def in_order(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of a function for each item, in order; none runs far ahead. An error of the items comes in order, too."""
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


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results of a function for each item of a stream, in order; none is worked out far ahead."""
    with Workers() as workers:
        yield from workers.in_order(function, items)
