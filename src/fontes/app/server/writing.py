"""Writes to a served index: a bounded queue, and commits that each take as many of the waiting writes as they can."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from ...core.errors import FontesError, InputError
from ...core.values import Doc
from ...core.work import Progress, work
from ...index import Change
from ...index.columns import filter_of
from ...index.draft import SMALL, piled
from ...index.patches import patched
from ...index.state import State
from ...index.writer import BusyError, merged_aside, rewrite
from .answers import RefusedError, busy, problem_of
from .served import ServedIndex
from .tickets import Tickets

log = logging.getLogger("fontes.server")
BUSY_PAUSE = 0.1  # seconds before the next attempt while another process changes the index


class Effect(NamedTuple):
    """Effect of a write on a state.

    Attributes:
        docs: Documents with distinct ids, to add or in place of others.
        deleted: Ids of other documents, which are deleted.
        change: The numbers of the answer.
    """

    docs: list[Doc]
    deleted: list[str]
    change: Change

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {"docs": list(map(asdict, self.docs)), "deleted": self.deleted, "change": asdict(self.change)}


@dataclass(frozen=True)
class Write:
    """A request that changes documents, all of them or none.

    Args:
        docs: Documents to write.
        duplicates: How to treat their ids that are there: "error", "skip" or "replace".
        ids: Ids of documents to delete.
        missing: How to treat unknown ids: "error" or "skip".
        where: Filter of documents to delete.
        patches: Changes of documents by id; see `Index.update`.
        exists: Whether the document to write must be there already; None if that does not matter.
        states: Fingerprints of states of which the newest must be one; () for any.
    """

    docs: tuple[Doc, ...] = ()
    duplicates: str = "replace"
    ids: tuple[str, ...] = ()
    missing: str = "error"
    where: str | None = None
    patches: Mapping[str, Any] = field(default_factory=dict)
    exists: bool | None = None
    states: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Write:
        """Return the write that `asdict` described."""
        tuples: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return cls(**{**tuples, "docs": tuple(Doc(**doc) for doc in values["docs"])})

    @property
    def touched(self) -> set[str]:
        """Ids of the documents that it may change, except those of a filter."""
        return {*(doc.id for doc in self.docs), *self.ids, *self.patches}

    def effect(self, state: State, name: str) -> Effect:
        """Return its effect on a state of the index `name`.

        Raises:
            RefusedError: A condition does not hold, or a document is missing.
            InputError: A document is there already, or a change cannot be made.
            ParameterError: The filter is invalid.
        """
        if self.states and state.fingerprint not in self.states:
            raise RefusedError(412, f"{name} is not in the state of If-Match any more; read the document again, with its ETag")
        for doc in self.docs if self.exists is not None else ():
            if (doc.id in state) != self.exists:
                raise RefusedError(412, f"there is {'no' if self.exists else 'a'} document '{doc.id[:200]}' in {name}")
        passing = filter_of(state, self.where)
        ids = list(dict.fromkeys([*self.ids, *self.patches])) if passing is None else state.ids.take(passing.docs)
        absent = [doc_id for doc_id in ids if doc_id not in state] if passing is None else []
        if absent and self.missing == "error":
            note = f", nor {len(absent) - 1:,} others" if len(absent) > 1 else ""
            raise RefusedError(422 if len(ids) > 1 else 404, f"there is no document '{absent[0][:200]}' in {name}{note}")
        present = [doc_id for doc_id in ids if doc_id in state] if absent else list(ids)
        if self.patches:
            docs = [patched(doc, self.patches[doc_id]) for doc_id, doc in zip(present, state.docs(present), strict=True)]
            return Effect(docs, [], Change(len(docs), len(docs), len(absent)))
        written: dict[str, Doc] = {}
        skipped = 0
        for doc in self.docs:
            if doc.id in written or (self.duplicates != "replace" and doc.id in state):
                if self.duplicates == "error":
                    where = "twice in the body" if doc.id in written else f"in the index {name} already"
                    remedy = "duplicates=replace writes the last one, duplicates=skip keeps the first"
                    raise InputError(f"document '{doc.id[:200]}' is {where}; nothing was added; {remedy}")
                skipped += self.duplicates == "skip"
                if self.duplicates == "skip":
                    continue
                del written[doc.id]
            written[doc.id] = doc
        replaced = sum(doc_id in state for doc_id in written) if self.duplicates == "replace" else 0
        change = Change(len(written), replaced, skipped + len(absent), len(present))
        return Effect(list(written.values()), present, change)


class _StoppedError(Exception):
    """The server ends during a merge."""


class Written(NamedTuple):
    """Result of a write: its numbers, and the fingerprint of the state after its commit."""

    change: Change
    fingerprint: str


@dataclass
class _Waiting:
    write: Write
    future: asyncio.Future[Written] | None = None  # None if nobody waits for it
    ticket: int | None = None
    change: Change | None = None  # of a commit that began before the process was killed
    touched: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.touched = self.write.touched


class WriteQueue:
    """Writes to one index, in order, on one event loop. A commit takes those that wait and touch different documents.

    A write with a filter, or that names a state, begins a commit of its own. Large segments are merged beside the commits, in a
    thread of their own.

    Args:
        served: The index.
        limit: Maximum number of waiting writes.
        run: Calls a function in a thread.
        run_aside: Calls a function in the thread of merges.
        names: Replacements for paths in the problems of tickets.
    """

    def __init__(
        self,
        served: ServedIndex,
        limit: int,
        run: Callable[..., Awaitable[Any]],
        run_aside: Callable[..., Coroutine[Any, Any, Any]],
        names: Mapping[str, str],
    ) -> None:
        self._served, self._limit, self._run, self._run_aside, self._names = served, limit, run, run_aside, names
        self._waiting: deque[_Waiting] = deque()
        self._accepting = 0  # writes on their way to the disk, and then into the queue
        self._outcomes: dict[int, dict[str, object]] = {}  # that could not be stored yet
        self._task: asyncio.Task[None] | None = None
        self._merge_task: asyncio.Task[None] | None = None
        self._committing = asyncio.Lock()
        self._is_stopped, self._merges = False, True
        self._tickets: Tickets | None = None

    def __len__(self) -> int:
        """Number of waiting writes."""
        return len(self._waiting)

    def open(self) -> None:
        """Open the tickets, unless another server has them, and let the writes of a killed process wait again."""
        self._tickets = Tickets(self._served.path)
        for ticket, write, effect in self._tickets.waiting():
            if effect is None:
                self._waiting.append(_Waiting(Write.of(write), None, ticket))
            else:
                docs = tuple(Doc(**doc) for doc in effect["docs"])
                again = Write(docs, ids=tuple(effect["deleted"]), missing="skip")
                self._waiting.append(_Waiting(again, None, ticket, Change(**effect["change"])))

    @property
    def has_tickets(self) -> bool:
        """Whether writes can be accepted before their commit."""
        return self._tickets is not None

    async def result(self, write: Write) -> Written:
        """Result of a write after its commit; a write whose request ends while it waits is dropped."""
        self._check_room()
        future: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(write, future))
        self.start()
        return await future

    async def accept(self, write: Write) -> int:
        """Ticket of a write, which is on the disk. It is made even if its request ends before the ticket is sent."""
        self._check_room()
        self._accepting += 1
        return await asyncio.shield(self._accept(write))

    async def _accept(self, write: Write) -> int:
        assert self._tickets is not None
        try:
            ticket: int = await self._run(self._tickets.accept, asdict(write))
            self._waiting.append(_Waiting(write, None, ticket))
        except RecursionError:
            raise RefusedError(422, "the metadata are nested too deeply") from None
        finally:
            self._accepting -= 1
        self.start()
        return ticket

    async def outcome(self, ticket: int) -> dict[str, object] | None:
        """Outcome of an accepted write; see `Tickets.outcome`."""
        outcome: dict[str, object] | None = await self._run(self._tickets.outcome, ticket) if self._tickets else None
        return outcome

    def start(self) -> None:
        """Start to commit what waits, unless a commit is running."""
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._commit_all())

    def stop(self) -> None:
        """Start no further commit; a running one ends in its thread, and a merge is given up."""
        self._is_stopped = True
        for task in (self._task, self._merge_task):
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """Close the tickets, after the last commit."""
        if self._tickets is not None:
            self._tickets.close()

    def _check_room(self) -> None:
        if len(self._waiting) + self._accepting >= self._limit:
            raise busy(f"{self._limit:,} writes to {self._served.name} are waiting (--queue); come again")

    async def _commit_all(self) -> None:
        while batch := self._next_batch():
            async with self._committing:
                results = await self._run(self._commit, batch)
            self._start_merge()
            for waiting, result in zip(batch, results, strict=False):
                if waiting.future is None or waiting.future.done():
                    continue
                if isinstance(result, Exception):
                    waiting.future.set_exception(result)
                else:
                    waiting.future.set_result(result)
            if rest := batch[len(results) :]:
                self._waiting.extendleft(reversed(rest))
                await asyncio.sleep(BUSY_PAUSE)

    def _start_merge(self) -> None:
        """Start to merge large segments, unless that is running or none have piled up."""
        is_free = self._merges and (self._merge_task is None or self._merge_task.done())
        if is_free and piled(self._served.state.index.state.leaves, SMALL + 1):
            self._merge_task = asyncio.create_task(self._run_aside(self._merge, asyncio.get_running_loop()))

    def _merge(self, loop: asyncio.AbstractEventLoop) -> None:
        def go_on(progress: Progress | None = None) -> None:
            if self._is_stopped:
                raise _StoppedError

        try:
            with (
                suppress(_StoppedError, CancelledError),
                work(progress=go_on),
                merged_aside(self._served.state.index.state) as install,
            ):
                if install is not None:
                    installed = asyncio.run_coroutine_threadsafe(self._install(install), loop)
                    while not wait([installed], timeout=0.5).done:
                        go_on()
                    installed.result()
        except FontesError as error:
            self._merges = False
            log.warning("%s: segments are not merged before the server starts again: %s", self._served.name, error)

    async def _install(self, install: Callable[[], State | None]) -> None:
        while not self._is_stopped:
            try:
                async with self._committing:
                    await self._run(self._installed, install)
                return
            except BusyError:
                await asyncio.sleep(BUSY_PAUSE)

    def _installed(self, install: Callable[[], State | None]) -> None:
        install()
        self._served.refresh(now=True)

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        touched: set[str] = set()
        while self._waiting:
            first = self._waiting[0]
            if batch and (first.write.where is not None or first.write.states or first.touched & touched):
                break
            self._waiting.popleft()
            if first.future is None or not first.future.done():
                batch.append(first)
                touched |= first.touched
                if first.write.where is not None:
                    break
        return batch

    def _commit(self, batch: list[_Waiting]) -> list[Written | Exception]:
        """Commit some writes in one step, or in several if a document of one of them cannot be used.

        Returns the results of the first writes; the others remain if another process changes the index, such as fontes merge.
        """
        try:
            results = self._rewrite(batch)
        except BusyError:
            return []
        except Exception as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                results = self._commit(batch[:middle])
                return results + self._commit(batch[middle:]) if len(results) == middle else results
            if batch[0].future is None and not isinstance(error, FontesError):  # no request logs it
                log.exception("%s: the write with the ticket %s failed", self._served.name, batch[0].ticket)
            results = [error]
        self._outcomes |= {w.ticket: self._described(r) for w, r in zip(batch, results, strict=True) if w.ticket is not None}
        with suppress(FontesError):  # no further commit is made before they are stored; a new process repeats this one
            self._store_outcomes()
        return results

    def _store_outcomes(self) -> None:
        if self._tickets is not None and self._outcomes:
            self._tickets.finish(self._outcomes)
            self._outcomes = {}

    def _rewrite(self, batch: list[_Waiting]) -> list[Written | Exception]:
        effects: list[Effect | Exception] = []

        def plan(state: State) -> tuple[list[Doc], list[str]]:
            self._store_outcomes()
            effects[:] = [self._effect(waiting, state) for waiting in batch]
            possible = [(w, effect) for w, effect in zip(batch, effects, strict=True) if isinstance(effect, Effect)]
            if described := {w.ticket: effect.to_dict() for w, effect in possible if w.ticket is not None}:
                assert self._tickets is not None
                self._tickets.begin(described)
            return [doc for _, effect in possible for doc in effect.docs], [i for _, effect in possible for i in effect.deleted]

        total, newest = rewrite(self._served.state.index.state, plan, SMALL)
        self._served.refresh(now=True)
        size = {"documents": total.documents, "segments": total.segments}
        return [
            Written(replace(effect.change, **size), newest.fingerprint) if isinstance(effect, Effect) else effect
            for effect in effects
        ]

    def _effect(self, waiting: _Waiting, state: State) -> Effect | Exception:
        try:
            effect = waiting.write.effect(state, self._served.name)
        except (RefusedError, FontesError) as error:
            return error
        return effect if waiting.change is None else effect._replace(change=waiting.change)

    def _described(self, result: Written | Exception) -> dict[str, object]:
        if isinstance(result, Written):
            return {"status": "done", "result": asdict(result.change)}
        status, detail = problem_of(result, self._names)
        return {"status": "failed", "problem": {"status": status, "detail": detail}}
