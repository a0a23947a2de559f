"""Conversations: a turn is searched in the context of the earlier turns that the client sends."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from ...core.part import uses_model
from ...core.run import Run
from ...core.stage import AnyStage, Pipeline, steps
from ...core.values import Turn
from ...rewrite import Conversation
from ...rewrite.turns import Manual
from ..chat import answer_of
from ..results import ranking_as_json, why_empty
from .answers import Body, IndexName, PipelineName, RewriterName, json_response, service_of
from .searching import SearchOptions, rewrites

MAX_TURNS = 200  # turns of a conversation

router = APIRouter(tags=["conversations"])


class TurnBody(Body):
    """A turn of a conversation, and the turns before it."""

    text: str = Field(description="The question.")
    turns: list[Turn] = Field([], max_length=MAX_TURNS, description="The turns before it, as the last response has them.")
    rewritten: str | None = Field(None, description="The text to search for, in place of what the rewriter makes of it.")
    index: IndexName = None
    pipeline: PipelineName = None
    rewriter: RewriterName = None
    k: int = Field(10, description="Maximum number of hits.")


@router.post("/conversations", response_class=Response)
async def ask(request: Request, body: TurnBody) -> Response:
    """Ask a turn: returns its hits, the text that was searched for, and all turns, to be sent with the next one."""
    service = service_of(request)
    search = service.request(SearchOptions(index=body.index, pipeline=body.pipeline, k=body.k))
    state = search.served.state
    rewriter = state.rewriter(body.rewriter)
    service.check_query(body.text)
    if body.rewritten is not None:
        service.check_query(body.rewritten, "'rewritten'")
    for number, turn in enumerate(body.turns):
        service.check_query(turn.text, f"'turns.{number}.text'")
        service.check_query(turn.manual or turn.text, f"'turns.{number}.manual'")

    def answer() -> dict[str, Any]:
        stage: AnyStage = state.pipeline(search.pipeline, None, body.k, service.expressions).stage
        if body.rewritten is not None:
            retriever_position = next(number for number, step in enumerate(steps(stage)) if step.gives is Run)
            stage = Pipeline((Manual(), *steps(stage)[retriever_position:]))  # without the rewriter of the pipeline
        elif rewriter is not None:
            stage = state.rewriters[rewriter] >> stage
        conversation = Conversation(stage, body.k, turns=body.turns, answer=answer_of(state.index))
        ranking = conversation.ask(Turn(body.text, manual=body.rewritten or ""))
        values = ranking_as_json(ranking, text=True)
        for hit in values["hits"]:
            hit.pop("text", None)
        if not values["hits"]:
            values["no_hits"] = why_empty(ranking, state.index, conversation.stage).to_dict(text=False)
        turns = [asdict(turn) for turn in conversation.turns]
        return {**values, "text": body.text, "rewrites": rewrites(ranking.topic), "turns": turns}

    model = search.has_model or (rewriter is not None and uses_model(state.rewriters[rewriter]))
    return json_response(await service.work(answer, model=model))
