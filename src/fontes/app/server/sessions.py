"""Conversations that the server keeps: for a time, and at most so many."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ...core.run import Run
from ...core.stage import Pipeline, Stage, steps
from ...core.values import Topic, Turn
from ...rewrite import Conversation
from ...rewrite.turns import Manual
from ..chat import answer_of
from ..results import ranking_as_json
from .expressions import Guarded
from .problems import RefusedError
from .searching import SearchOptions

MAX_TURNS = 200  # turns of a conversation


@dataclass
class Session:
    """One conversation.

    Args:
        id: What requests call it; nobody can guess it.
        kind: What its turns are searched with.
        rewriter: The name of what rewrites them; None for nothing.
        turns: What was said.
        last: When.
        lock: Is taken while a turn is searched.
    """

    id: str
    kind: SearchOptions
    rewriter: str | None
    turns: tuple[Turn, ...] = ()
    last: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def to_dict(self) -> dict[str, Any]:
        """The conversation as JSON values."""
        turns = [
            {"text": turn.text, "query": turn.automatic, "answer_id": turn.answer_id, "edited": bool(turn.manual)}
            for turn in self.turns
        ]
        kind = self.kind
        return {"id": self.id, "index": kind.served.name, "pipeline": kind.pipeline, "rewriter": self.rewriter, "turns": turns}

    def ask(self, text: str, rewritten: str | None, replace: bool, free: Guarded | None) -> dict[str, Any]:
        """Searches a turn.

        Args:
            text: What is asked.
            rewritten: What is searched in place of what the rewriter would make of it; None for that.
            replace: Whether it takes the place of the last turn.
            free: What reads expressions of requests.

        Raises:
            RefusedError: Another turn is being searched, there are too many, or there is none to replace.
            FontesError: The pipeline raises it; the turn is not remembered.
        """
        if not self.lock.acquire(blocking=False):
            raise RefusedError(409, "another turn of this conversation is being searched; wait for its answer")
        try:
            if replace and not self.turns:
                raise RefusedError(409, "nothing was asked yet, so there is no turn to replace")
            if len(self.turns) >= MAX_TURNS + replace:
                raise RefusedError(409, f"a conversation has {MAX_TURNS} turns at most; begin another one")
            return self._asked(text, rewritten, replace, free)
        finally:
            self.last = time.monotonic()
            self.lock.release()

    def _asked(self, text: str, rewritten: str | None, replace: bool, free: Guarded | None) -> dict[str, Any]:
        state, kind = self.kind.served.state, self.kind
        stage: Stage[Any, Any] = state.pipeline(kind.pipeline, kind.where, kind.k, free)
        if rewritten is not None:
            first = next(number for number, step in enumerate(steps(stage)) if step.gives is Run)
            stage = Pipeline((Manual(), *steps(stage)[first:]))  # without a rewriter of its own
        elif self.rewriter is not None:
            stage = state.rewriters[self.rewriter] >> stage
        before = self.turns[:-1] if replace else self.turns
        conversation = Conversation(stage, kind.k, id="1", turns=before, answer=answer_of(state.index))
        ranking = conversation.ask(Turn(text, manual=rewritten or ""))
        self.turns = conversation.turns
        values = ranking_as_json(ranking, text=True)
        for hit in values["hits"]:
            hit.pop("text", None)
        return {**values, "turn": len(self.turns), "text": text, "rewrites": rewrites(ranking.topic)}


class Sessions:
    """The conversations of a server.

    Args:
        most: How many are kept; one more, and that of the longest silence goes.
        seconds: How long one is kept after its last turn.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._talks: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._talks)

    def new(self, kind: SearchOptions, rewriter: str | None) -> Session:
        """A new conversation."""
        self.forget()
        while len(self._talks) >= self._most:
            self._talks.popitem(last=False)
        talk = Session(secrets.token_urlsafe(16), kind, rewriter)
        self._talks[talk.id] = talk
        return talk

    def of(self, talk_id: str) -> Session:
        """The conversation with this id, which was used now.

        Raises:
            RefusedError: There is none, or no more.
        """
        self.forget()
        if talk_id not in self._talks:
            raise RefusedError(404, "there is no such conversation, or no more; POST /conversations begins one")
        self._talks.move_to_end(talk_id)
        self._talks[talk_id].last = time.monotonic()
        return self._talks[talk_id]

    def end(self, talk_id: str) -> None:
        """Forgets a conversation; raises as `of`."""
        self.of(talk_id)
        del self._talks[talk_id]

    def forget(self) -> None:
        """Forgets those whose time is over."""
        now = time.monotonic()
        while self._talks:
            talk = next(iter(self._talks.values()))
            if now - talk.last < self._seconds:
                return
            self._talks.popitem(last=False)


def rewrites(topic: Topic) -> list[dict[str, Any]]:
    """What became of a topic, from what was typed to what was searched: texts, and the weights of terms where there are any."""
    forms = [topic]
    while forms[-1].origin is not None:
        forms.append(forms[-1].origin)
    return [
        {"text": form.text, **({} if form.weights is None else {"weights": dict(form.weights)})} for form in reversed(forms)
    ]
