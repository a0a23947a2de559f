"""Conversations: routes, and a store with limits of number and time."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from ...core.part import uses_model
from ...core.run import Run
from ...core.stage import Pipeline, Stage, steps
from ...core.values import Turn
from ...rewrite import Conversation
from ...rewrite.turns import Manual
from ..chat import answer_of
from ..results import ranking_as_json
from .answers import Body, IndexName, PipelineName, RefusedError, RewriterName, json_response, service_of
from .searching import SearchOptions, rewrites
from .served import ExpressionReader

MAX_TURNS = 200  # turns of a conversation

router = APIRouter(prefix="/conversations", tags=["conversations"])


class ConversationBody(Body):
    """Options of the searches of a conversation."""

    index: IndexName = None
    pipeline: PipelineName = None
    rewriter: RewriterName = None
    k: int = Field(10, description="Maximum number of hits of a turn.")


class TurnBody(Body):
    """A turn of a conversation."""

    text: str = Field(description="The question.")
    rewritten: str | None = Field(None, description="The text to search for, in place of what the rewriter makes of it.")
    replace: bool = Field(False, description="Whether to replace the last turn.")


@dataclass
class StoredConversation:
    """A conversation, with its search options and the name of its rewriter."""

    id: str
    options: SearchOptions
    rewriter: str | None
    turns: tuple[Turn, ...] = ()
    last: float = field(default_factory=time.monotonic)  # time of the last request
    lock: threading.Lock = field(default_factory=threading.Lock)

    def to_dict(self) -> dict[str, Any]:
        """The conversation as JSON values."""
        turns = [
            {"text": turn.text, "query": turn.automatic, "answer_id": turn.answer_id, "edited": bool(turn.manual)}
            for turn in self.turns
        ]
        options = {"index": self.options.served.name, "pipeline": self.options.pipeline, "rewriter": self.rewriter}
        return {"id": self.id, **options, "turns": turns}

    def uses_model(self) -> bool:
        """Whether its rewriter runs a model."""
        return self.rewriter is not None and uses_model(self.options.served.state.rewriters[self.rewriter])

    def ask(self, turn: TurnBody, expressions: ExpressionReader | None) -> dict[str, Any]:
        """Search for a turn; return the JSON values of its answer.

        Raises:
            RefusedError: Another turn is being searched, there are too many turns, or there is no turn to replace.
            FontesError: The search failed; the turn is not stored.
        """
        if not self.lock.acquire(blocking=False):
            raise RefusedError(409, "another turn of this conversation is being searched; wait for its answer")
        try:
            if turn.replace and not self.turns:
                raise RefusedError(409, "nothing was asked yet, so there is no turn to replace")
            if len(self.turns) >= MAX_TURNS + turn.replace:
                raise RefusedError(409, f"a conversation has {MAX_TURNS} turns at most; begin another one")
            return self._ask(turn, expressions)
        finally:
            self.last = time.monotonic()
            self.lock.release()

    def _ask(self, turn: TurnBody, expressions: ExpressionReader | None) -> dict[str, Any]:
        state, options = self.options.served.state, self.options
        stage: Stage[Any, Any] = state.pipeline(options.pipeline, options.where, options.k, expressions).stage
        if turn.rewritten is not None:
            retriever_position = next(number for number, step in enumerate(steps(stage)) if step.gives is Run)
            stage = Pipeline((Manual(), *steps(stage)[retriever_position:]))  # without the rewriter of the pipeline
        elif self.rewriter is not None:
            stage = state.rewriters[self.rewriter] >> stage
        previous = self.turns[:-1] if turn.replace else self.turns
        conversation = Conversation(stage, options.k, id="1", turns=previous, answer=answer_of(state.index))
        ranking = conversation.ask(Turn(turn.text, manual=turn.rewritten or ""))
        self.turns = conversation.turns
        values = ranking_as_json(ranking, text=True)
        for hit in values["hits"]:
            hit.pop("text", None)
        return {**values, "turn": len(self.turns), "text": turn.text, "rewrites": rewrites(ranking.topic)}


class ConversationStore:
    """Up to `size` conversations, in the order of last use, each deleted `seconds` after its last request."""

    def __init__(self, size: int, seconds: float) -> None:
        self._size = size
        self._seconds = seconds
        self._conversations: OrderedDict[str, StoredConversation] = OrderedDict()

    def __len__(self) -> int:
        return len(self._conversations)

    def new(self, options: SearchOptions, rewriter: str | None) -> StoredConversation:
        """Create a conversation."""
        self.expire()
        while len(self._conversations) >= self._size:
            self._conversations.popitem(last=False)
        conversation = StoredConversation(secrets.token_urlsafe(16), options, rewriter)
        self._conversations[conversation.id] = conversation
        return conversation

    def get(self, conversation_id: str) -> StoredConversation:
        """Get a conversation and restart its time limit; raises RefusedError if it does not exist."""
        self.expire()
        if conversation_id not in self._conversations:
            raise RefusedError(404, "there is no such conversation, or no more; POST /conversations begins one")
        self._conversations.move_to_end(conversation_id)
        self._conversations[conversation_id].last = time.monotonic()
        return self._conversations[conversation_id]

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation; raises RefusedError if it does not exist."""
        self.get(conversation_id)
        del self._conversations[conversation_id]

    def expire(self) -> None:
        """Delete expired conversations."""
        now = time.monotonic()
        while self._conversations:
            oldest = next(iter(self._conversations.values()))
            if now - oldest.last < self._seconds:
                return
            self._conversations.popitem(last=False)


@router.post("", status_code=201, response_class=Response)
async def begin(request: Request, body: ConversationBody) -> Response:
    """Begin a conversation."""
    service = service_of(request)
    options = service.options(body.index, body.pipeline, body.k)
    rewriter = options.served.state.rewriter(body.rewriter)
    return json_response(service.conversations.new(options, rewriter).to_dict(), 201)


@router.get("/{id}", response_class=Response)
async def turns(request: Request, id: str) -> Response:
    """Get the turns of a conversation."""
    return json_response(service_of(request).conversations.get(id).to_dict())


@router.post("/{id}/turns", response_class=Response)
async def ask(request: Request, id: str, body: TurnBody) -> Response:
    """Ask a turn: returns its hits, and the text that was searched for."""
    service = service_of(request)
    conversation = service.conversations.get(id)
    for text in (body.text, body.rewritten):
        if text is not None:
            service.check_query(text)
    model = service.has_model(conversation.options.served, conversation.options.pipeline) or conversation.uses_model()
    return json_response(await service.work(conversation.ask, body, service.expressions, model=model))


@router.delete("/{id}", status_code=204, response_class=Response)
async def end(request: Request, id: str) -> Response:
    """Delete a conversation."""
    service_of(request).conversations.delete(id)
    return Response(status_code=204)
