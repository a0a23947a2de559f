"""Thread pools sized by `work`, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.work import keep, resources, thread_count

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[..., Result], *columns: Sequence[object], limit: int | None = None) -> list[Result]:
    """Call a function on each item in threads, and return the results in order; a single thread is the caller's own.

    Args:
        function: The function.
        columns: Its first arguments, its second ones, and so on.
        limit: Greatest useful number of threads; None: the number of items.
    """
    most = len(columns[0]) if limit is None else min(limit, len(columns[0]))
    if most <= 1 or (threads := min(thread_count(), most)) <= 1:
        return [function(*arguments) for arguments in zip(*columns, strict=True)]
    with pool_of(threads) as pool:
        return list(pool.map(function, *columns))


def pool_of(threads: int) -> ThreadPoolExecutor:
    """Return a thread pool whose threads inherit the current `work` settings."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, initializer=keep, initargs=(resources(),))


class Workers:
    """A pool of threads; a single one is the caller's own.

    Args:
        threads: Number of threads; None: as set by `work`.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or thread_count()
        self._pool = pool_of(self.threads) if self.threads > 1 else None

    def begin(self, function: Callable[..., Result], *arguments: object) -> Callable[[], Result]:
        """Start a call; the returned function waits for it and returns its result or raises its error."""
        if self._pool is None:
            result = function(*arguments)
            return lambda: result
        return self._pool.submit(function, *arguments).result

    def in_order(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results for each item in order, with bounded lookahead; errors of the items are raised in order."""
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
    """A bounded queue of calls whose results are taken in order.

    Args:
        workers: The threads.
        take: Called with each result.
    """

    def __init__(self, workers: Workers, take: Callable[[Any], None]) -> None:
        self._workers, self._take = workers, take
        self._running: deque[Callable[[], object]] = deque()

    def add(self, function: Callable[..., object], *arguments: object) -> None:
        """Append a call, waiting while every thread has one pending."""
        self._running.append(self._workers.begin(function, *arguments))
        while len(self._running) > (self._workers.threads if self._workers.threads > 1 else 0):
            self._take(self._running.popleft()())

    def close(self) -> None:
        """Take all remaining results."""
        while self._running:
            self._take(self._running.popleft()())


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the results for each item of a stream in order, with bounded lookahead."""
    with Workers() as workers:
        yield from workers.in_order(function, items)
