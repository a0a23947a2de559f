"""Routes for search, explanations, rewrites, documents and indexes."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from ...causal import causes
from ...core.part import uses_model
from ...core.query import Group
from ...core.values import Explanation, Topic, Topics
from ...suggest import suggest as suggestions_for
from .answers import (
    JSON,
    Body,
    DocumentId,
    IndexName,
    PipelineName,
    Question,
    RefusedError,
    RewriterName,
    header,
    invalid_in,
    json_response,
    known_parameters,
    service_of,
)
from .searching import SearchOptions, Syntax, Tolerance, matches_in, rewrites, topics_read, topics_tolerated
from .service import MAX_EXPLAINED

if TYPE_CHECKING:
    from .service import Service


router = APIRouter(tags=["search"], dependencies=[Depends(known_parameters)])
MatchQuery = Annotated[str | None, Query(description="A query: the answer marks where its words occur in the document.")]


def with_query(values: object) -> object:
    """The values of a topic, with `query` parsed to a Group; raises ValueError for an invalid query."""
    if not isinstance(values, dict) or not isinstance(values.get("query"), dict):
        return values
    return {**values, "query": Group.from_dict(values["query"])}


class SearchQuery(SearchOptions):
    """Options of a search for one query."""

    q: Question


class SearchBody(SearchOptions):
    """Topics to search for, with narratives, turns of conversations or weights of terms."""

    topics: list[Annotated[Topic, BeforeValidator(with_query)]] = Field(min_length=1, description="The topics.")


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
    metadata: dict[str, object] = {}
    snippet: dict[str, object] = Field({}, description="text, and matches: start and end of each match in characters.")
    text: str | None = Field(None, description="The whole text, if requested.")
    explanation: dict[str, object] | None = Field(None, description="value, label and parts, if requested.")
    rationales: list[dict[str, object]] | None = Field(None, description="Evidence sentences, if the pipeline selects them.")


class ResultOut(BaseModel):
    """The hits of a topic."""

    topic: str = Field(description="Id of the topic.")
    query: str = Field(description="The text that was searched for.")
    understood: dict[str, object] | None = Field(
        None, description="query, in canonical syntax, and remarks, if read as a query."
    )
    answer: dict[str, object] | None = Field(None, description="text, and sentences with citations, if the pipeline answers.")
    tolerated: list[dict[str, object]] | None = Field(
        None,
        description="Words that were searched with others: word, start and end in characters, kind (edit or prefix), weight, "
        "terms, and also: word, term, edits and weight of each, the likeliest first.",
    )
    operators: bool | None = Field(None, description="True if a plain text has operators of the query language.")
    hits: list[HitOut]
    no_hits: dict[str, object] | None = Field(
        None,
        description="Of a list without hits, cause and sentence: words (no document holds one of the query), stop words, "
        "no words, filter (no document passes it), offset (it is beyond the last hit), refused or pipeline. Of a refused "
        "query, which nothing in the collection answers, also the nearest documents.",
    )
    total: dict[str, object] = Field(
        description="value and relation: with eq the number of all documents that match, with gt a smaller number, with gte at "
        "most this number; a reason says why there is none."
    )
    facets: dict[str, list[dict[str, object]]] | None = Field(
        None, description="By column: value and count, the most frequent first."
    )
    histograms: dict[str, list[dict[str, object]]] | None = Field(
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


class ExamplesOut(BaseModel):
    """Overview of a collection: queries to begin with, the newest documents, and the columns."""

    index: str
    examples: list[str] = Field(description="Up to three queries, each of which finds something.")
    newest: list[dict[str, object]] = Field(
        description="id, title, column and value of the newest documents, by a date or a year."
    )
    columns: list[dict[str, object]] = Field(description="name, type, and from and to or the most frequent values, of columns.")


class DocumentOut(BaseModel):
    """A document."""

    id: str
    title: str
    text: str
    metadata: dict[str, object]
    matches: list[list[int]] | None = Field(None, description="Start and end of the query's words in the text, in characters.")
    title_matches: list[list[int]] | None = Field(None, description="The same in the title.")


class SearchesOut(BaseModel):
    """Response to several topics."""

    index: str
    pipeline: str
    results: list[ResultOut]


def query_parameters(model: type[BaseModel]) -> dict[str, object]:
    """OpenAPI query parameters for the fields of a model, which FastAPI does not parse: that takes longer than the search."""
    schema = model.model_json_schema()
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in schema["required"], "schema": property_}
            | {"description": property_.pop("description")}
            | ({"style": "form", "explode": False} if property_.get("type") == "array" else {})  # separated by commas
            for name, property_ in schema["properties"].items()
        ]
    }


DOCUMENT: dict[int | str, dict[str, object]] = {
    200: {"model": DocumentOut, "headers": {"ETag": header("The state of the index; see If-Match.")}}
}


def responses(model: object) -> dict[int | str, dict[str, object]]:
    """OpenAPI description of a response that FastAPI does not serialize."""
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
    return await _search(service, query, Topic("1", query.q))


@router.post("/search", responses=responses(SearchesOut), response_class=Response)
async def search_topics(request: Request, body: SearchBody) -> Response:
    """Search for several topics, which may have narratives and turns."""
    service = service_of(request)
    service.check_topics(body.topics)
    return await _search(service, body, *body.topics, several=True)


async def _search(service: Service, options: SearchOptions, *topics: Topic, several: bool = False) -> Response:
    return Response(await service.search(service.request(options, *topics, several=several)), media_type=JSON)


@router.get("/suggest", responses=responses(SuggestionsOut), response_class=Response)
async def suggest(
    request: Request,
    q: Annotated[str, Query(description="A query, as far as it was typed.")],
    k: Annotated[int, Query(description="Maximum number of completions.", ge=1, le=100)] = 8,
    where: Annotated[str | None, Query(description="Condition on metadata: each completion finds documents with it.")] = None,
    index: IndexName = None,
) -> Response:
    """Complete the last word of a query by what stands in documents with the other words, and correct misspelt words."""
    service = service_of(request)
    service.check_query(q)
    served = service.request(SearchOptions(index=index, where=where)).served
    suggestions = await service.work(suggestions_for, served.state.index, q, k, where or None)
    return json_response({"index": served.name, "query": q, **asdict(suggestions)})


@router.get("/examples", responses=responses(ExamplesOut), response_class=Response)
async def examples(request: Request, index: IndexName = None) -> Response:
    """Describe the collection: its newest documents, its columns, and queries to begin with, drawn from the documents."""
    service = service_of(request)
    served = service.served(index)
    state = served.state
    queries = [text for text in await service.work(lambda: state.examples) if len(text) <= service.settings.query]
    return json_response({"index": served.name, "examples": queries, **await service.work(lambda: state.overview)})


@router.get("/explain", responses=responses(Explanation), response_class=Response)
async def explain(
    request: Request,
    q: Question,
    id: DocumentId,
    syntax: Syntax = "plain",
    tolerance: Tolerance = None,
    pipeline: PipelineName = None,
    index: IndexName = None,
) -> Response:
    """Explain the score of a document for a query: a tree of values, labels and parts."""
    service = service_of(request)
    service.check_query(q)
    options = SearchOptions(index=index, pipeline=pipeline, k=service.settings.k, syntax=syntax, tolerance=tolerance)
    search = service.request(options)
    search.served.check_document(id)

    def explanation() -> dict[str, object]:
        stage, state = service.stage(search), search.served.state
        topics = topics_read(state.index, syntax, [Topic("1", q)])[0]
        (topic,) = topics_tolerated(stage, state.index, search.options.tolerance, topics)
        return stage.explain(topic, id).to_dict()

    return json_response(await service.work(explanation, model=search.has_model))


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
    search = service.request(SearchOptions(index=index, pipeline=pipeline, k=min(k, service.settings.k)))

    def tree() -> dict[str, object]:
        return causes(service.stage(search), event, depth, breadth, k=search.options.k, weak=weak, leads=leads).to_dict()

    return json_response(await service.work(tree, model=search.has_model))


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


@router.get("/documents", responses=DOCUMENT, response_class=Response, tags=["documents"])
@router.get("/documents/{id:path}", responses=DOCUMENT, response_class=Response, tags=["documents"])
async def document(request: Request, id: DocumentId, q: MatchQuery = None, index: IndexName = None) -> Response:
    """Get a document; with a query, also where its words occur. `?id=` takes any id: browsers drop "." and ".." of a path."""
    service = service_of(request)
    served = service.served(index)
    served.check_document(id)
    if q:
        service.check_query(q)

    served_index = served.state.index

    def values() -> dict[str, object]:
        doc = served_index.doc(id)
        matches = (
            {"matches": matches_in(served_index, doc.text, q), "title_matches": matches_in(served_index, doc.title, q)}
            if q
            else {}
        )
        return {"id": doc.id, "title": doc.title, "text": doc.text, "metadata": dict(doc.metadata), **matches}

    response = json_response(await service.work(values))
    response.headers["ETag"] = f'"{served_index.fingerprint}"'
    return response


@router.get("/indexes", response_class=Response)
async def indexes(request: Request) -> Response:
    """List the indexes with their columns, facets, pipelines and rewriters, and the limits of this server."""
    service = service_of(request)
    settings = service.settings
    return json_response(
        {
            "indexes": await service.work(lambda: [served.to_dict() for served in service.indexes.values()]),
            "limits": {name: getattr(settings, name) for name in ("query", "body", "k", "batch")}
            | {"explained": MAX_EXPLAINED},
            "any_pipeline": settings.any_pipeline,
            "writable": settings.writable,
            "fontes": version("fontes"),
            **service.described,
        }
    )
