"""Documents that the answers of a session have shown, in memory: for searches that leave them out or demote them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Set

from .log import SESSION_PAUSE

MAX_SESSIONS = 1_000  # remembered sessions
MAX_DOCUMENTS = 1_000  # remembered documents of a session and an index


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
