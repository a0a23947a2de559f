"""The addresses of judging. Each but the page wants a judge's token, and none gives scores, ranks or pipelines."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field

from ...core.errors import InputError
from ...core.values import Topic
from ...index import Index
from ..server.answers import Body, RefusedError, json_response, service_of
from ..server.pages import page_file
from ..server.served import uses_model
from .agreement import disagreements
from .export import content
from .judging import Judging
from .pool import fill

NOTE = 10_000  # characters of a note
GROUPS = 1_000  # of a topic's evidence
TopicId = Annotated[str, Query(description="The topic's id.")]
DocumentId = Annotated[str, Query(description="The document's id.")]


class Grade(Body):
    """A judgment."""

    topic: str = Field(description="The topic's id.")
    document: str = Field(description="The document's id.")
    grade: int = Field(ge=0, le=3, description="0: not relevant, 1: partly, 2: relevant, 3: highly.")
    seconds: float = Field(0.0, ge=0, le=86_400, description="How long the document was looked at.")


class Note(Body):
    """A note on a document."""

    topic: str = Field(description="The topic's id.")
    document: str = Field(description="The document's id.")
    note: str = Field(max_length=NOTE, description="The note; empty for none.")


class Evidence(Body):
    """Documents that are evidence together."""

    topic: str = Field(description="The topic's id.")
    groups: list[list[str]] = Field(max_length=GROUPS, description="The ids of the documents of each group.")


class Settlement(Body):
    """The grade that holds where judges differ."""

    topic: str = Field(description="The topic's id.")
    document: str = Field(description="The document's id.")
    grade: int | None = Field(ge=0, le=3, description="The grade; null for none any more.")


class NewTopic(Body):
    """A topic that is typed."""

    text: str = Field(description="A question or keywords.")
    description: str = Field("", max_length=NOTE, description="The need in a sentence.")
    narrative: str = Field("", max_length=NOTE, description="What is relevant and what is not.")


routes = APIRouter(tags=["judging"])


def router(judging: Judging) -> APIRouter:
    """The addresses.

    Args:
        judging: What they are of.
    """

    def bring(request: Request) -> None:
        request.state.judging = judging

    whole = APIRouter(dependencies=[Depends(bring)])
    whole.include_router(routes)
    return whole


def judging_of(request: Request) -> Judging:
    """What a request is about."""
    judging: Judging = request.state.judging
    return judging


def judge_of(request: Request) -> str:
    """Whose token a request shows; raises RefusedError where it shows none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    name = judging_of(request).store.judge_of(token.strip()) if scheme.lower() == "bearer" else None
    if name is None:
        raise RefusedError(401, "this needs a judge's token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
    return name


def index_of(request: Request) -> Index:
    """The present state of the index."""
    return service_of(request).served(None).state.index


Judge = Annotated[str, Depends(judge_of)]
Present = Annotated[Index, Depends(index_of)]
Here = Annotated[Judging, Depends(judging_of)]


@routes.get("/judge", include_in_schema=False)
def page() -> Response:
    """The page."""
    return page_file("judge.html")


@routes.get("/judging/me", response_class=Response)
def me(judging: Here, judge: Judge) -> Response:
    """Whose token it is, who judges, and what can be exported."""
    return json_response({"name": judge, "judges": judging.store.judges(), "exports": judging.exports(judge)})


@routes.get("/judging/topics", response_class=Response)
def topics(judging: Here, judge: Judge, index: Present) -> Response:
    """The topics, and how far each judge is with them."""
    return json_response({"topics": judging.overview(judge, index)})


@routes.post("/judging/topics", status_code=201, response_class=Response)
async def new_topic(request: Request, judging: Here, judge: Judge, index: Present, body: NewTopic) -> Response:
    """Add a topic, and make its pool."""
    service = service_of(request)
    service.check_query(body.text)
    state = service.served(None).state

    def added() -> dict[str, Any]:
        topic = judging.store.new_topic(Topic("", body.text.strip(), body.narrative.strip(), body.description.strip()))
        fill(judging.store, state, judging.depth)
        return judging.progress(judge, topic.id, index)

    return json_response(await service.work(added, model=any(map(uses_model, state.pipelines.values()))), 201)


@routes.get("/judging/next", response_class=Response)
def following(judging: Here, judge: Judge, index: Present, topic: TopicId, after: str | None = None) -> Response:
    """The document to judge next; with `after`, the one that follows that, which is left for later."""
    return json_response(judging.following(judge, topic, index, after))


@routes.get("/judging/document", response_class=Response)
def document(judging: Here, judge: Judge, index: Present, topic: TopicId, id: DocumentId) -> Response:
    """A document of a pool, with this judge's grade and note."""
    progress = judging.progress(judge, topic, index)
    return json_response({"topic": progress, "document": judging.shown(judge, topic, id, index)})


@routes.post("/judging/grades", response_class=Response)
def judged(judging: Here, judge: Judge, index: Present, body: Grade) -> Response:
    """Keep a grade, on disk, and then give the next document."""
    if (body.topic, body.document) in judging.store.settled():
        raise RefusedError(409, "the grade of this document is settled; where judges differ it can be settled anew")
    judging.store.judge(judge, body.topic, body.document, body.grade, body.seconds)
    return json_response(judging.following(judge, body.topic, index, body.document))


@routes.post("/judging/undo", response_class=Response)
def undo(judging: Here, judge: Judge, index: Present) -> Response:
    """Take the last judgment back, and give its document."""
    last = judging.store.undo(judge)
    if last is None:
        raise RefusedError(409, "there is no judgment to take back")
    topic, last_document = last
    shown = judging.shown(judge, topic, last_document, index) if last_document in index else None
    return json_response({"topic": judging.progress(judge, topic, index), "document": shown})


@routes.post("/judging/notes", status_code=204, response_class=Response)
def note(judging: Here, judge: Judge, body: Note) -> Response:
    """Keep a note on a document."""
    judging.store.note(judge, body.topic, body.document, body.note.strip())
    return Response(status_code=204)


@routes.get("/judging/judged", response_class=Response)
def mine(judging: Here, judge: Judge, index: Present, topic: TopicId) -> Response:
    """What this judge has judged for a topic, the latest first, and the groups of evidence."""
    return json_response(judging.judged(judge, topic, index))


@routes.post("/judging/evidence", status_code=204, response_class=Response)
def evidence(judging: Here, judge: Judge, index: Present, body: Evidence) -> Response:
    """Keep the groups of documents that are evidence together, in place of those before."""
    judging.progress(judge, body.topic, index)
    judging.store.set_evidence(judge, body.topic, body.groups)
    return Response(status_code=204)


@routes.get("/judging/agreement", response_class=Response)
def compared(judging: Here, judge: Judge, index: Present) -> Response:
    """How far judges agree, and where grades and evidence differ in topics that this judge has finished."""
    return json_response(judging.compared(judge, index))


@routes.post("/judging/settled", status_code=204, response_class=Response)
def settle(judging: Here, judge: Judge, index: Present, body: Settlement) -> Response:
    """Settle the grade of a document that judges grade differently."""
    open_to_judge = disagreements(judging.store, judging.compared(judge, index)["finished"])
    if (body.topic, body.document) not in [(one["topic"], one["document"]) for one in open_to_judge]:
        raise RefusedError(409, "there is nothing to settle: judges do not differ here, or this topic is not finished")
    judging.store.settle(judge, body.topic, body.document, body.grade)
    return Response(status_code=204)


@routes.get("/judging/export/{name}", response_class=Response)
def exported(
    judging: Here, judge: Judge, name: Annotated[str, Path(description="The file, as /judging/me lists them.")]
) -> Response:
    """Topics and judgments as files: this judge's, those that are agreed, those that are settled."""
    if name not in judging.exports(judge):
        raise RefusedError(404, f"there is no '{name[:100]}' to export")
    try:
        whole = b"".join(content(judging.store, name))
    except InputError as error:
        raise RefusedError(409, str(error)) from None
    kind = "application/x-ndjson" if name.endswith(".jsonl") else "text/plain; charset=utf-8"
    return Response(whole, media_type=kind, headers={"Content-Disposition": "attachment"})
