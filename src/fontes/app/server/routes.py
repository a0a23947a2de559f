"""Routes that search: /search, /suggest, /explain, /why, /rewrite, /documents and /indexes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field, ValidationError

from ...causal import causes
from ...core.values import Explanation, Topic, Topics
from .answers import (
    JSON,
    Body,
    DocumentId,
    IndexName,
    PipelineName,
    Question,
    RefusedError,
    RewriterName,
    invalid_in,
    json_response,
    service_of,
)
from .searching import SearchRequest, matches_in, rewrites
from .served import uses_model
from .service import EXPLAINED

if TYPE_CHECKING:
    from .service import Service

router = APIRouter(tags=["search"])
MatchQuery = Annotated[str | None, Query(description="A query: the answer marks where its words occur in the document.")]


class SearchParameters(Body):
    """Parameters that all searches share."""

    k: int = Field(10, description="Maximum number of hits of a topic.")
    pipeline: PipelineName = None
    index: IndexName = None
    where: str | None = Field(None, description="Condition on the documents' metadata, such as year >= 2020.")
    explain: bool = Field(False, description="Whether to explain the score of each hit.")
    text: bool = Field(False, description="Whether to return the whole text of each hit.")
    snippets: bool = Field(True, description="Whether to return the passage of each hit that matches best.")


class SearchQuery(SearchParameters):
    """Parameters of a search for one query."""

    q: Question
    facets: str = Field("", description="Columns whose values are counted, separated by commas.")
    histograms: str = Field("", description="Columns of numbers or dates that are counted in bins, separated by commas.")


class SearchBody(SearchParameters):
    """Topics to search for, with narratives, turns of conversations or weights of terms."""

    topics: list[Topic] = Field(min_length=1, description="The topics.")
    facets: list[str] = Field([], description="Columns whose values are counted.")
    histograms: list[str] = Field([], description="Columns of numbers or dates that are counted in bins.")


class RewriteBody(Body):
    """Topics to rewrite, such as turns of conversations."""

    topics: list[Topic] = Field(min_length=1, description="The topics.")
    index: IndexName = None
    rewriter: RewriterName = None


class HitOut(BaseModel):
    """A hit. Without stored texts it has no title, metadata, snippet and text."""

    rank: int
    id: str
    score: float
    title: str = ""
    metadata: dict[str, Any] = {}
    snippet: dict[str, Any] = Field({}, description="text, and matches: start and end of each match in characters.")
    text: str | None = Field(None, description="The whole text, if requested.")
    explanation: dict[str, Any] | None = Field(None, description="value, label and parts, if requested.")
    rationales: list[dict[str, Any]] | None = Field(None, description="Evidence sentences, if the pipeline selects them.")


class ResultOut(BaseModel):
    """The hits of a topic."""

    topic: str = Field(description="Id of the topic.")
    query: str = Field(description="The text that was searched for.")
    hits: list[HitOut]
    facets: dict[str, list[dict[str, Any]]] | None = Field(
        None, description="By column: value and count, the most frequent first."
    )
    histograms: dict[str, list[dict[str, Any]]] | None = Field(
        None, description="By column: from, to and count, ascending; to is inclusive, except for floats."
    )


class SearchOut(ResultOut):
    """Response to a query."""

    index: str
    pipeline: str


class SuggestionsOut(BaseModel):
    """Response to a query that is being typed."""

    index: str
    query: str = Field(description="The query as it was sent.")
    completions: list[str] = Field(description="The query with its last word completed, the most frequent first.")
    correction: str | None = Field(description="The query with misspelt words corrected; null if there are none.")


class SearchesOut(BaseModel):
    """Response to several topics."""

    index: str
    pipeline: str
    results: list[ResultOut]


def query_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """OpenAPI query parameters from the fields of a model: parsing by FastAPI would take longer than the search."""
    schema = model.model_json_schema()
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in schema["required"], "schema": of_name}
            | {"description": of_name.pop("description")}
            for name, of_name in schema["properties"].items()
        ]
    }


def responses(model: Any) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's description of a response that FastAPI does not serialize."""
    return {200: {"model": model}}


@router.get("/search", responses=responses(SearchOut), response_class=Response, openapi_extra=query_parameters(SearchQuery))
async def search(request: Request) -> Response:
    """Search for one query."""
    return await search_response(service_of(request), request.scope["query_string"])


async def search_response(service: Service, query_string: bytes) -> Response:
    """Response to a search for one query."""
    try:
        query = SearchQuery.model_validate_strings(dict(parse_qsl(query_string.decode("latin-1"), True)))
    except ValidationError as error:
        raise invalid_in("query", error) from None
    service.check_query(query.q)
    facets, histograms = (
        tuple(column.strip() for column in columns.split(",") if column.strip()) for columns in (query.facets, query.histograms)
    )
    return await _search(service, query, SearchRequest((Topic("1", query.q),)), facets, histograms)


@router.post("/search", responses=responses(SearchesOut), response_class=Response)
async def search_topics(request: Request, body: SearchBody) -> Response:
    """Search for several topics, which may have narratives and turns."""
    service = service_of(request)
    service.check_topics(body.topics)
    topics = SearchRequest(tuple(body.topics), several=True)
    return await _search(service, body, topics, tuple(body.facets), tuple(body.histograms))


async def _search(
    service: Service, body: SearchParameters, topics: SearchRequest, facets: tuple[str, ...], histograms: tuple[str, ...]
) -> Response:
    options = service.options(
        body.index,
        body.pipeline,
        body.k,
        where=body.where or None,
        facets=facets,
        histograms=histograms,
        explain=body.explain,
        text=body.text,
        snippets=body.snippets,
    )
    return Response(await service.search(options, topics), media_type=JSON)


@router.get("/suggest", responses=responses(SuggestionsOut), response_class=Response)
async def suggest(
    request: Request,
    q: Annotated[str, Query(description="A query, as far as it was typed.")],
    k: Annotated[int, Query(description="Maximum number of completions.", ge=1, le=100)] = 8,
    index: IndexName = None,
) -> Response:
    """Complete the last word of a query, and correct misspelt words."""
    service = service_of(request)
    service.check_query(q)
    served = service.served(index)
    suggestions = await service.work(served.state.index.suggest, q, k)
    return json_response({"index": served.name, "query": q, **asdict(suggestions)})


@router.get("/explain", responses=responses(Explanation), response_class=Response)
async def explain(
    request: Request, q: Question, id: DocumentId, pipeline: PipelineName = None, index: IndexName = None
) -> Response:
    """Explain the score of a document for a query: a tree of values, labels and parts."""
    service = service_of(request)
    service.check_query(q)
    options = service.options(index, pipeline, service.settings.k)
    options.served.check_document(id)
    return json_response(
        await service.work(lambda: service.stage(options).explain(q, id).to_dict(), model=service.has_model(options))
    )


@router.get("/why", response_class=Response)
async def why(
    request: Request,
    event: Annotated[str, Query(description="An event, in a few words.")],
    depth: Annotated[int, Query(description="Length of a chain of causes.", ge=1, le=5)] = 3,
    breadth: Annotated[int, Query(description="Number of causes of an event.", ge=1, le=10)] = 3,
    k: Annotated[int, Query(description="Number of documents to read for each event.", ge=1, le=100)] = 20,
    weak: Annotated[bool, Query(description="Whether to accept weak signals too: after, following, amid.")] = False,
    leads: Annotated[int, Query(description="Number of related documents to show where no cause is stated.", ge=0, le=20)] = 0,
    pipeline: PipelineName = None,
    index: IndexName = None,
) -> Response:
    """Find the causes of an event that documents state, and the causes of these: a tree with its sources. English only."""
    service = service_of(request)
    service.check_query(event)
    options = service.options(index, pipeline, min(k, service.settings.k))

    def tree() -> dict[str, Any]:
        return causes(service.stage(options), event, depth, breadth, k=options.k, weak=weak, leads=leads).to_dict()

    return json_response(await service.work(tree, model=service.has_model(options)))


@router.post("/rewrite", response_class=Response)
async def rewrite(request: Request, body: RewriteBody) -> Response:
    """Rewrite topics, such as turns of conversations, so that each is understood by itself."""
    service = service_of(request)
    service.check_topics(body.topics)
    state = service.served(body.index).state
    name = state.rewriter(body.rewriter)
    if name is None:
        raise RefusedError(422, "this server has no rewriter (--rewriter)")
    stage = state.rewriters[name]
    rewritten = await service.work(lambda: stage(Topics(body.topics)), model=uses_model(stage))
    topics = [{"id": topic.id, "text": topic.text, "rewrites": rewrites(topic)} for topic in rewritten.values()]
    return json_response({"rewriter": name, "topics": topics})


@router.get("/documents", response_class=Response, tags=["documents"])
async def document_of_any_id(request: Request, id: DocumentId, q: MatchQuery = None, index: IndexName = None) -> Response:
    """Get a document. Works for every id: browsers drop "." and ".." from a path."""
    return await document(request, id, q, index)


@router.get("/documents/{id:path}", response_class=Response, tags=["documents"])
async def document(request: Request, id: DocumentId, q: MatchQuery = None, index: IndexName = None) -> Response:
    """Get a document; with a query, also where its words occur."""
    service = service_of(request)
    options = service.options(index, None)
    options.served.check_document(id)
    if q:
        service.check_query(q)

    def values() -> dict[str, Any]:
        own = options.served.state.index
        doc = own.doc(id)
        matches = {"matches": matches_in(own, doc.text, q), "title_matches": matches_in(own, doc.title, q)} if q else {}
        return {"id": doc.id, "title": doc.title, "text": doc.text, "metadata": dict(doc.metadata), **matches}

    return json_response(await service.work(values))


@router.get("/indexes", response_class=Response)
async def indexes(request: Request) -> Response:
    """List the indexes with their columns, facets, pipelines and rewriters, and the limits of this server."""
    service = service_of(request)
    settings = service.settings
    return json_response(
        {
            "indexes": await service.work(lambda: [served.to_dict() for served in service.indexes.values()]),
            "limits": {"query": settings.query, "k": settings.k, "batch": settings.batch, "explained": EXPLAINED},
            "any_pipeline": settings.any_pipeline,
            "writable": settings.writable,
            **service.described,
        }
    )
