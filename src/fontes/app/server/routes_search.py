"""The addresses that search: /search, /explain, /why, /rewrite, /documents/{id}, /indexes."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError

from ...causal import causes
from ...core.stage import Stage
from ...core.values import Explanation, Topic, Topics
from ...index.columns.facets import ORDERED
from .bodies import Rewrite, Search, SearchesOut, SearchOut, SearchQuery, described
from .problems import RefusedError, of_validation
from .searching import SearchOptions, SearchRequest, as_json, matches_in
from .served import uses_model
from .service import Service
from .sessions import rewrites

router = APIRouter(tags=["search"])
JSON = "application/json"
EXPLAINED = 100  # hits that come with explanations
Index = Annotated[str | None, Query(description="The index; the first where none is named.")]
Pipeline = Annotated[str | None, Query(description="The pipeline, by its name; the first where none is named.")]
Words = Annotated[str | None, Query(description="A query whose words are looked for in it.")]
Question = Annotated[str, Query(description="A question or keywords.")]


def service_of(request: Request) -> Service:
    """The service that a request is for."""
    service: Service = request.app.state.service
    return service


def json_of(values: Any, status: int = 200) -> Response:
    """Values as an answer."""
    return Response(as_json(values), status, media_type=JSON)


def answers(model: Any) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an answer that is made by hand."""
    return {200: {"model": model}}


@router.get("/search", responses=answers(SearchOut), response_class=Response, openapi_extra=described(SearchQuery))
async def search(request: Request) -> Response:
    """Search for one query."""
    return await searched(service_of(request), request.scope["query_string"])


async def searched(service: Service, query_string: bytes) -> Response:
    """The answer to a search for one query, out of the parameters as they stand in the address."""
    try:
        query = SearchQuery.model_validate_strings(dict(parse_qsl(query_string.decode("latin-1"), True)))
    except ValidationError as error:
        raise RefusedError(422, of_validation([{**one, "loc": ("query", *one["loc"])} for one in error.errors()])) from None
    service.check_query(query.q)
    facets, histograms = (
        tuple(column.strip() for column in columns.split(",") if column.strip()) for columns in (query.facets, query.histograms)
    )
    more: dict[str, Any] = {"where": query.where or None, "facets": facets, "histograms": histograms}
    more |= {"explain": query.explain, "text": query.text, "snippets": query.snippets}
    kind = asked_for(service, query.index, query.pipeline, query.k, **more)
    return Response(await service.search(kind, SearchRequest((Topic("1", query.q),))), media_type=JSON)


@router.post("/search", responses=answers(SearchesOut), response_class=Response)
async def search_topics(request: Request, body: Search) -> Response:
    """Search for several topics, which may have narratives and turns."""
    service = service_of(request)
    check_topics(service, body.topics)
    kind = asked_for(
        service,
        body.index,
        body.pipeline,
        body.k,
        where=body.where or None,
        facets=tuple(body.facets),
        histograms=tuple(body.histograms),
        explain=body.explain,
        text=body.text,
        snippets=body.snippets,
    )
    return Response(await service.search(kind, SearchRequest(tuple(body.topics), several=True)), media_type=JSON)


@router.get("/explain", responses=answers(Explanation), response_class=Response)
async def explain(
    request: Request,
    q: Question,
    id: Annotated[str, Query(description="A document's id.")],
    pipeline: Pipeline = None,
    index: Index = None,
) -> Response:
    """How the score of a document for a query comes about: a tree of values, labels and parts."""
    service = service_of(request)
    service.check_query(q)
    kind = service.kind(index, pipeline, service.settings.k)
    check_document(kind, id)
    return json_of(await service.work(lambda: stage_of(service, kind).explain(q, id).to_dict(), model=service.has_model(kind)))


@router.get("/why", response_class=Response)
async def why(
    request: Request,
    event: Annotated[str, Query(description="What happened, in a few words.")],
    depth: Annotated[int, Query(description="How many causes in a row.", ge=1, le=5)] = 3,
    breadth: Annotated[int, Query(description="How many causes of an event.", ge=1, le=10)] = 3,
    k: Annotated[int, Query(description="How many documents are read for each event.", ge=1, le=100)] = 20,
    weak: Annotated[bool, Query(description="Also read after, following, amid.")] = False,
    leads: Annotated[int, Query(description="Documents to add where no cause is stated.", ge=0, le=20)] = 0,
    pipeline: Pipeline = None,
    index: Index = None,
) -> Response:
    """The causes of an event as the documents state them, and theirs: a tree with its sources. English only."""
    service = service_of(request)
    service.check_query(event)
    kind = service.kind(index, pipeline, min(k, service.settings.k))

    def tree() -> dict[str, Any]:
        return causes(stage_of(service, kind), event, depth, breadth, k=kind.k, weak=weak, leads=leads).to_dict()

    return json_of(await service.work(tree, model=service.has_model(kind)))


@router.post("/rewrite", response_class=Response)
async def rewrite(request: Request, body: Rewrite) -> Response:
    """Rewrite topics, such as turns of conversations, so that each stands by itself."""
    service = service_of(request)
    check_topics(service, body.topics)
    state = service.served(body.index).state
    name = service.rewriter(state, body.rewriter)
    if name is None:
        raise RefusedError(422, "this server has no rewriter (--rewriter)")
    stage = state.rewriters[name]
    rewritten = await service.work(lambda: stage(Topics(body.topics)), model=uses_model(stage))
    topics = [{"id": topic.id, "text": topic.text, "rewrites": rewrites(topic)} for topic in rewritten.values()]
    return json_of({"rewriter": name, "topics": topics})


@router.get("/documents", response_class=Response, tags=["documents"])
async def document_of_any_id(
    request: Request,
    id: Annotated[str, Query(description="The document's id.")],
    q: Words = None,
    index: Index = None,
) -> Response:
    """A document, whatever its id: "." and ".." do not get through browsers as parts of a path."""
    return await document(request, id, q, index)


@router.get("/documents/{id:path}", response_class=Response, tags=["documents"])
async def document(
    request: Request,
    id: Annotated[str, Path(description="The document's id.")],
    q: Words = None,
    index: Index = None,
) -> Response:
    """A document; with a query, where its words are."""
    service = service_of(request)
    kind = service.kind(index, None)
    check_document(kind, id)
    if q:
        service.check_query(q)

    def values() -> dict[str, Any]:
        own = kind.served.state.index
        doc = own.doc(id)
        places = {"matches": matches_in(own, doc.text, q), "title_matches": matches_in(own, doc.title, q)} if q else {}
        return {"id": doc.id, "title": doc.title, "text": doc.text, "metadata": dict(doc.metadata), **places}

    return json_of(await service.work(values))


@router.get("/indexes", response_class=Response)
async def indexes(request: Request) -> Response:
    """The indexes with their columns, facets, pipelines and rewriters, and the limits."""
    service = service_of(request)
    settings = service.settings
    return json_of(
        {
            "indexes": await service.work(lambda: [served.to_dict() for served in service.indexes.values()]),
            "limits": {"query": settings.query, "k": settings.k, "batch": settings.batch, "explained": EXPLAINED},
            "any_pipeline": settings.any_pipeline,
            "writable": settings.writable,
            **service.described,
        }
    )


def asked_for(service: Service, index: str | None, pipeline: str | None, k: int, **more: Any) -> SearchOptions:
    """What a search asks for, within the limits; raises RefusedError."""
    if more["explain"] and k > EXPLAINED:
        raise RefusedError(422, f"at most {EXPLAINED} hits come with explanations; k is {k}")
    if more["where"] is not None and len(more["where"]) > service.settings.query:
        raise RefusedError(
            422, f"the filter has {len(more['where']):,} characters; {service.settings.query:,} are taken (--query)"
        )
    types = service.served(index).state.index.columns
    for column in more["histograms"]:
        if types.get(column, "date") not in ORDERED:
            raise RefusedError(
                422, f"column '{column[:200]}' holds {types[column]} values, which have no histogram; ask for its facets"
            )
    return service.kind(index, pipeline, k, **more)


def check_topics(service: Service, topics: list[Topic]) -> None:
    """Raises RefusedError where there are too many topics, or one is too long."""
    if len(topics) > service.settings.batch:
        raise RefusedError(422, f"there are {len(topics):,} topics; a request has {service.settings.batch:,} at most (--batch)")
    for topic in topics:
        for text in (topic.text, *(turn.text for turn in topic.turns)):
            service.check_query(text)
    if len({topic.id for topic in topics}) < len(topics):
        raise RefusedError(422, "two topics have the same id")


def check_document(kind: SearchOptions, doc_id: str) -> None:
    """Raises RefusedError where the index has no such document."""
    if doc_id not in kind.served.state.index:
        raise RefusedError(404, f"there is no document '{doc_id[:200]}' in {kind.served.name}")


def stage_of(service: Service, kind: SearchOptions) -> Stage[Topics, Any]:
    """The stage that a request asks for."""
    return kind.served.state.pipeline(kind.pipeline, kind.where, kind.k, service.free)
