"""The log of calls: one JSON object per line, appended at once; and the documents that a session has seen."""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ...core.errors import InputError, InputWarning
from .budget import Answer

SESSION_PAUSE = timedelta(minutes=30)  # after a longer pause a client begins a new session
MAX_ARGUMENT = 4_000  # maximum characters of a logged argument
MAX_ARGUMENTS = 10  # maximum logged arguments of a call, more than any tool has
MAX_NAME = 100  # maximum characters of a logged name
NAME = re.compile(r"[^\w.-]+")
MAX_SESSIONS = 1_000  # remembered sessions
MAX_DOCUMENTS = 1_000  # remembered documents of a session and an index


@dataclass(frozen=True)
class LoggedCall:
    """A call.

    Args:
        time: Time at which the call ended, in UTC.
        session: Name of the session.
        client: Name and version of the client.
        tool: Name of the tool.
        arguments: Arguments, long ones shortened; of a call with more than any tool has, the first.
        documents: Ids of the documents in the answer, in order.
        index: Name of the index.
        fingerprint: Fingerprint of the state of the index that answered.
        pipeline: Name of the pipeline.
        expression: Expression of the pipeline.
        tokens: Estimated tokens of the answer.
        ms: Duration in milliseconds.
        error: The sentence of a failed call, "cancelled", or "".
    """

    time: datetime
    session: str
    client: str
    tool: str
    arguments: dict[str, object]
    documents: tuple[str, ...]
    index: str
    fingerprint: str
    pipeline: str
    expression: str
    tokens: int
    ms: float
    error: str


_CALL_ADAPTER = TypeAdapter(LoggedCall)


class CallLog:
    """A new log file in a folder, readable by its owner only; raises InputError if it cannot be created."""

    def __init__(self, folder: Path) -> None:
        now = datetime.now(UTC)
        self.session = f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        self.path = folder / f"calls-{self.session}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except OSError as error:
            raise InputError(f"{folder}: the log cannot be made there ({error.strerror or error})") from None
        self._lock, self._size = threading.Lock(), 0

    def write(self, session: str, client: str, tool: str, arguments: Mapping[str, object], answer: Answer | None) -> None:
        """Append a call; `answer` is None for a cancelled call. OSError if it cannot be written, and then no part of it is."""
        logged = answer or Answer("cancelled", True)
        call = LoggedCall(
            time=datetime.now(UTC),
            session=session[:MAX_NAME],
            client=client[:MAX_NAME],
            tool=tool[:MAX_NAME],
            arguments={
                name[:MAX_NAME]: value if len(str(value)) <= MAX_ARGUMENT else str(value)[:MAX_ARGUMENT]
                for name, value in islice(arguments.items(), MAX_ARGUMENTS)
            },
            documents=logged.documents,
            index=logged.index[:MAX_NAME],
            fingerprint=logged.fingerprint,
            pipeline=logged.pipeline,
            expression=logged.expression,
            tokens=logged.tokens if answer else 0,
            ms=round(1000 * logged.seconds, 1),
            error=logged.text if logged.is_error else "",
        )
        line = json.dumps({**asdict(call), "time": call.time.isoformat(timespec="milliseconds")}).encode() + b"\n"
        with self._lock:
            if os.fstat(self._file).st_size > self._size:  # a part of a line, from a full disk
                os.ftruncate(self._file, self._size)
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file, self._size)
                raise
            self._size += len(line)

    def close(self) -> None:
        """Close the file; remove it if nothing was written."""
        empty = os.fstat(self._file).st_size == 0
        os.close(self._file)
        if empty:
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Session:
    """The calls of a session in order of time; `id` has only characters that topic ids may have."""

    id: str
    calls: tuple[LoggedCall, ...]


def read_log(path: Path) -> list[Session]:
    """Return the sessions of a log (a folder, or one of its files) in the order of their first calls.

    An unfinished last line is left out, as are lines that are not calls, with an InputWarning that counts them. Raises
    InputError if there is no log, or no line is a call.
    """
    files = sorted(path.glob("calls-*.jsonl")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise InputError(f"{path}: there is no log of calls; fontes mcp INDEX --log {path} writes one")
    by_name: dict[str, list[LoggedCall]] = {}
    for call in sorted((call for file in files for call in _read_calls(file)), key=lambda call: call.time):
        by_name.setdefault(call.session, []).append(call)
    sessions: list[Session] = []
    ids: set[str] = set()
    for name, calls in by_name.items():
        for number, part in enumerate(_split_at_pauses(calls), 1):
            base = NAME.sub("_", name).strip("_") or "session"
            unique = base if number == 1 else f"{base}_{number}"
            while unique in ids:
                unique += "_"
            ids.add(unique)
            sessions.append(Session(unique, tuple(part)))
    if not sessions:
        raise InputError(f"{path}: the log has no call yet")
    return sorted(sessions, key=lambda session: session.calls[0].time)


def _split_at_pauses(calls: list[LoggedCall]) -> Iterator[list[LoggedCall]]:
    """Split the calls of a session name, in order of time, at pauses longer than `SESSION_PAUSE`."""
    start = 0
    for i in range(1, len(calls)):
        if calls[i].time - calls[i - 1].time > SESSION_PAUSE:
            yield calls[start:i]
            start = i
    yield calls[start:]


def _read_calls(file: Path) -> Iterator[LoggedCall]:
    """Yield the calls of a log file; warn of lines that are not calls."""
    problems: list[str] = []
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: the log cannot be read ({error.strerror or error})") from None
    lines = content.split(b"\n")[:-1]  # an unfinished last line is left out
    for number, line in enumerate(lines, 1):
        try:
            call = _CALL_ADAPTER.validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            problems.append(f"{file}, line {number}: not a logged call ({': '.join([*map(str, first['loc']), first['msg']])})")
        else:
            yield call
    if problems and len(problems) == len(lines):
        raise InputError(problems[0])
    if problems:
        counted = f"one of {len(problems):,} lines that are" if len(problems) > 1 else "a line that is"
        warnings.warn(InputWarning(f"{problems[0]}; {counted} left out"), stacklevel=2)


class ShownDocuments:
    """Documents by session and index; the oldest are forgotten beyond the limits, and a session after a pause as in the log.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, tuple[float, dict[str, dict[str, None]]]] = OrderedDict()

    def of(self, session: str, index: str) -> Set[str]:
        """Return the ids of an index's documents that a session has shown."""
        last, by_index = self._sessions.get(session, (0.0, {}))
        if self._clock() - last > SESSION_PAUSE.total_seconds():
            return frozenset()
        return by_index.get(index, {}).keys()

    def add(self, session: str, index: str, doc_ids: Iterable[str]) -> None:
        """Remember documents of an answer."""
        last, by_index = self._sessions.pop(session, (0.0, {}))
        if self._clock() - last > SESSION_PAUSE.total_seconds():
            by_index = {}
        doc_ids = tuple(doc_ids)
        if doc_ids:
            shown = by_index.setdefault(index, {})
            for doc_id in doc_ids:
                shown.pop(doc_id, None)
                shown[doc_id] = None
            for doc_id in list(shown)[: max(0, len(shown) - MAX_DOCUMENTS)]:
                del shown[doc_id]
        self._sessions[session] = self._clock(), by_index
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
