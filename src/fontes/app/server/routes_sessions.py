"""The addresses of conversations."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from .bodies import NewConversation, NewTurn
from .routes_search import json_of, service_of
from .served import uses_model

router = APIRouter(prefix="/conversations", tags=["conversations"])


@router.post("", status_code=201, response_class=Response)
async def begin(request: Request, body: NewConversation) -> Response:
    """Begin a conversation."""
    service = service_of(request)
    kind = service.kind(body.index, body.pipeline, body.k)
    rewriter = service.rewriter(kind.served.state, body.rewriter)
    return json_of(service.talks.new(kind, rewriter).to_dict(), 201)


@router.get("/{id}", response_class=Response)
async def shown(request: Request, id: str) -> Response:
    """What was said in a conversation."""
    return json_of(service_of(request).talks.of(id).to_dict())


@router.post("/{id}/turns", response_class=Response)
async def ask(request: Request, id: str, body: NewTurn) -> Response:
    """Ask a turn: its hits, and what was searched for it."""
    service = service_of(request)
    talk = service.talks.of(id)
    for text in (body.text, body.rewritten):
        if text is not None:
            service.check_query(text)
    model = service.has_model(talk.kind) or (
        talk.rewriter is not None and uses_model(talk.kind.served.state.rewriters[talk.rewriter])
    )
    return json_of(await service.work(talk.ask, body.text, body.rewritten, body.replace, service.free, model=model))


@router.delete("/{id}", status_code=204, response_class=Response)
async def end(request: Request, id: str) -> Response:
    """Forget a conversation."""
    service_of(request).talks.end(id)
    return Response(status_code=204)
