"""Routes of judging. All except the page need a judge's token; no response has scores, ranks or pipelines."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field

from ...core.errors import InputError
from ...core.part import uses_model
from ...core.values import Topic
from ...index import Index
from ..server.answers import Body, DocumentId, Question, RefusedError, json_response, service_of, unauthorized
from ..server.pages import page_file
from .judging import Judging, disagreements, file_content, fill_pools

NOTE = 10_000  # maximum characters of a note
GROUPS = 1_000  # maximum groups of evidence per topic
TopicId = Annotated[str, Field(description="Id of the topic.")]


class GradeBody(Body):
    """A judgment."""

    topic: TopicId
    document: DocumentId
    grade: int = Field(ge=0, le=3, description="0: not relevant, 1: partly, 2: relevant, 3: highly relevant.")
    seconds: float = Field(0.0, ge=0, le=86_400, description="Time for which the judge looked at the document, in seconds.")


class NoteBody(Body):
    """A note on a document."""

    topic: TopicId
    document: DocumentId
    note: str = Field(max_length=NOTE, description="The note; empty to delete it.")


class EvidenceBody(Body):
    """Groups of documents that are evidence together."""

    topic: TopicId
    groups: list[list[str]] = Field(max_length=GROUPS, description="Ids of the documents of each group.")


class SettlementBody(Body):
    """The grade that settles a disagreement."""

    topic: TopicId
    document: DocumentId
    grade: int | None = Field(ge=0, le=3, description="The grade; null to open the disagreement again.")


class TopicBody(Body):
    """A new topic."""

    text: Question
    description: str = Field("", max_length=NOTE, description="The information need in a sentence.")
    narrative: str = Field("", max_length=NOTE, description="What is relevant and what is not.")


routes = APIRouter(tags=["judging"])


def router(judging: Judging) -> APIRouter:
    """Router whose requests use these judgments."""

    def set_judging(request: Request) -> None:
        request.state.judging = judging

    with_judging = APIRouter(dependencies=[Depends(set_judging)])
    with_judging.include_router(routes)
    return with_judging


def judging_of(request: Request) -> Judging:
    """The judgments that a request uses."""
    judging: Judging = request.state.judging
    return judging


def judge_of(request: Request) -> str:
    """Name of the judge whose token a request has; raises RefusedError without a valid token."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    name = judging_of(request).store.judge_of(token.strip()) if scheme.lower() == "bearer" else None
    if name is None:
        raise unauthorized("this needs a judge's token: Authorization: Bearer TOKEN")
    return name


def index_of(request: Request) -> Index:
    """The current state of the index."""
    return service_of(request).served(None).state.index


After = Annotated[str | None, Field(description="Id of a document to leave for later.")]
Judge = Annotated[str, Depends(judge_of)]
Present = Annotated[Index, Depends(index_of)]
Judgments = Annotated[Judging, Depends(judging_of)]


@routes.get("/judge", include_in_schema=False)
def page() -> Response:
    """The judging page."""
    return page_file("judge.html")


@routes.get("/judging/me", response_class=Response)
def me(judging: Judgments, judge: Judge) -> Response:
    """Get the name of this judge, all judges, and the files to export."""
    return json_response({"name": judge, "judges": judging.store.judges(), "exports": judging.exports(judge)})


@routes.get("/judging/topics", response_class=Response)
def topics(judging: Judgments, judge: Judge, index: Present) -> Response:
    """List the topics with the progress of all judges."""
    return json_response({"topics": judging.overview(judge, index)})


@routes.post("/judging/topics", status_code=201, response_class=Response)
async def new_topic(request: Request, judging: Judgments, judge: Judge, index: Present, body: TopicBody) -> Response:
    """Add a topic and fill its pool."""
    service = service_of(request)
    service.check_query(body.text)
    state = service.served(None).state

    def add() -> dict[str, object]:
        topic = judging.store.new_topic(Topic("", body.text.strip(), body.narrative.strip(), body.description.strip()))
        fill_pools(judging.store, state, judging.depth)
        return judging.progress(judge, topic.id, index)

    return json_response(await service.work(add, model=any(map(uses_model, state.pipelines.values()))), 201)


@routes.get("/judging/next", response_class=Response)
def following(judging: Judgments, judge: Judge, index: Present, topic: TopicId, after: After = None) -> Response:
    """Get the next document to judge. `after` names a document to leave for later."""
    return json_response(judging.following(judge, topic, index, after))


@routes.get("/judging/document", response_class=Response)
def document(judging: Judgments, judge: Judge, index: Present, topic: TopicId, id: DocumentId) -> Response:
    """Get a document of a pool, with this judge's grade and note."""
    progress = judging.progress(judge, topic, index)
    return json_response({"topic": progress, "document": judging.shown(judge, topic, id, index)})


@routes.post("/judging/grades", response_class=Response)
def judged(judging: Judgments, judge: Judge, index: Present, body: GradeBody) -> Response:
    """Store a grade. The response, which has the next document, comes when the grade is on disk."""
    if (body.topic, body.document) in judging.store.settled():
        raise RefusedError(409, "the grade of this document is settled; settle it again among the disagreements")
    judging.store.judge(judge, body.topic, body.document, body.grade, body.seconds)
    return json_response(judging.following(judge, body.topic, index, body.document))


@routes.post("/judging/undo", response_class=Response)
def undo(judging: Judgments, judge: Judge, index: Present) -> Response:
    """Undo the last judgment. The response has its document."""
    last = judging.store.undo(judge)
    if last is None:
        raise RefusedError(409, "there is no judgment to undo")
    topic, last_document = last
    shown = judging.shown(judge, topic, last_document, index) if last_document in index else None
    return json_response({"topic": judging.progress(judge, topic, index), "document": shown})


@routes.post("/judging/notes", status_code=204, response_class=Response)
def note(judging: Judgments, judge: Judge, body: NoteBody) -> Response:
    """Store a note on a document."""
    judging.store.note(judge, body.topic, body.document, body.note.strip())
    return Response(status_code=204)


@routes.get("/judging/judged", response_class=Response)
def mine(judging: Judgments, judge: Judge, index: Present, topic: TopicId) -> Response:
    """List this judge's judgments for a topic, the latest first, and groups of evidence."""
    return json_response(judging.judged(judge, topic, index))


@routes.post("/judging/evidence", status_code=204, response_class=Response)
def evidence(judging: Judgments, judge: Judge, index: Present, body: EvidenceBody) -> Response:
    """Store the groups of documents that are evidence together, in place of earlier groups."""
    judging.progress(judge, body.topic, index)
    judging.store.set_evidence(judge, body.topic, body.groups)
    return Response(status_code=204)


@routes.get("/judging/agreement", response_class=Response)
def compared(judging: Judgments, judge: Judge, index: Present) -> Response:
    """Get the agreement of judges, and their differences in the topics that this judge has finished."""
    return json_response(judging.compared(judge, index))


@routes.post("/judging/settled", status_code=204, response_class=Response)
def settle(judging: Judgments, judge: Judge, index: Present, body: SettlementBody) -> Response:
    """Settle the grade of a document on which judges disagree."""
    open_to_judge = disagreements(judging.store, judging.compared(judge, index)["finished"])
    if (body.topic, body.document) not in [(difference["topic"], difference["document"]) for difference in open_to_judge]:
        raise RefusedError(409, "there is nothing to settle: judges do not differ here, or this topic is not finished")
    judging.store.settle(judge, body.topic, body.document, body.grade)
    return Response(status_code=204)


@routes.get("/judging/export/{name}", response_class=Response)
def exported(
    judging: Judgments, judge: Judge, name: Annotated[str, Path(description="Name of the file; /judging/me lists them.")]
) -> Response:
    """Export topics, or judgments of this judge, agreed or settled ones, as a file."""
    if name not in judging.exports(judge):
        raise RefusedError(404, f"there is no '{name[:100]}' to export")
    try:
        content = b"".join(file_content(judging.store, name))
    except InputError as error:
        raise RefusedError(409, str(error)) from None
    kind = "application/x-ndjson" if name.endswith(".jsonl") else "text/plain; charset=utf-8"
    return Response(content, media_type=kind, headers={"Content-Disposition": "attachment"})
