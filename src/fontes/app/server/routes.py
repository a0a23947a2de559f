"""Routes for search, explanations, rewrites, documents and indexes; and routes that change an index, which need the token."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from ...causal import causes
from ...core.part import uses_model
from ...core.query import Group
from ...core.values import Doc, Explanation, Topic, Topics
from ...formats.records import Fields, doc_from, json_rows
from ...storage.files import InputFile
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
    unauthorized,
)
from .guard import has_secret
from .searching import SearchRequest, matches_in, rewrites, topics_read
from .service import MAX_EXPLAINED

if TYPE_CHECKING:
    from .service import Service


router = APIRouter(tags=["search"])
Syntax = Annotated[
    Literal["plain", "query"], Field(description="How the text of a topic is read: as words, or in the query language.")
]
MatchQuery = Annotated[str | None, Query(description="A query: the answer marks where its words occur in the document.")]


def with_query(values: Any) -> Any:
    """The values of a topic, with `query` parsed to a Group; raises ValueError for an invalid query."""
    if not isinstance(values, dict) or not isinstance(values.get("query"), dict):
        return values
    return {**values, "query": Group.from_dict(values["query"])}


class SearchParameters(Body):
    """Parameters that all searches share."""

    k: int = Field(10, description="Maximum number of hits of a topic.")
    offset: int = Field(0, ge=0, description="Number of best hits to leave out, for the next page.")
    count: bool = Field(False, description="Whether to count all documents that match, beyond 1,000 too.")
    sort: str | None = Field(None, description="Column of dates or numbers that orders the hits, in place of the score.")
    descending: bool = Field(False, description="Whether the greatest value of the column, or the newest date, is first.")
    syntax: Syntax = "plain"
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

    topics: list[Annotated[Topic, BeforeValidator(with_query)]] = Field(min_length=1, description="The topics.")
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
    understood: dict[str, Any] | None = Field(None, description="query, in canonical syntax, and remarks, if read as a query.")
    answer: dict[str, Any] | None = Field(None, description="text, and sentences with citations, if the pipeline answers.")
    operators: bool | None = Field(None, description="True if a plain text has operators of the query language.")
    hits: list[HitOut]
    no_hits: dict[str, str] | None = Field(
        None,
        description="Of a list without hits, cause and sentence: words (no document holds one of the query), stop words, "
        "no words, filter (no document passes it), offset (it is beyond the last hit) or pipeline.",
    )
    total: dict[str, Any] = Field(
        description="value and relation: with eq the number of all documents that match, with gt a smaller number, with gte at "
        "most this number; a reason says why there is none.",
    )
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


class ExamplesOut(BaseModel):
    """Queries to begin with."""

    index: str
    examples: list[str] = Field(description="Up to three queries, each of which finds something.")


class SearchesOut(BaseModel):
    """Response to several topics."""

    index: str
    pipeline: str
    results: list[ResultOut]


def query_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """OpenAPI query parameters for the fields of a model, which FastAPI does not parse: that takes longer than the search."""
    schema = model.model_json_schema()
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in schema["required"], "schema": property_}
            | {"description": property_.pop("description")}
            for name, property_ in schema["properties"].items()
        ]
    }


def responses(model: Any) -> dict[int | str, dict[str, Any]]:
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
        offset=body.offset,
        count=body.count,
        order=(body.sort, body.descending) if body.sort else None,
        syntax=body.syntax,
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


@router.get("/examples", responses=responses(ExamplesOut), response_class=Response)
async def examples(request: Request, index: IndexName = None) -> Response:
    """Suggest queries to begin with, drawn from the documents."""
    service = service_of(request)
    served = service.served(index)
    state = served.state
    queries = [text for text in await service.work(lambda: state.examples) if len(text) <= service.settings.query]
    return json_response({"index": served.name, "examples": queries})


@router.get("/explain", responses=responses(Explanation), response_class=Response)
async def explain(
    request: Request,
    q: Question,
    id: DocumentId,
    syntax: Syntax = "plain",
    pipeline: PipelineName = None,
    index: IndexName = None,
) -> Response:
    """Explain the score of a document for a query: a tree of values, labels and parts."""
    service = service_of(request)
    service.check_query(q)
    options = service.options(index, pipeline, service.settings.k, syntax=syntax)
    options.served.check_document(id)

    def explanation() -> dict[str, Any]:
        (topic,) = topics_read(options.served.state.index, options.syntax, [Topic("1", q)])[0]
        return service.stage(options).explain(topic, id).to_dict()

    return json_response(await service.work(explanation, model=service.has_model(options.served, options.pipeline)))


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

    return json_response(await service.work(tree, model=service.has_model(options.served, options.pipeline)))


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
        served_index = options.served.state.index
        doc = served_index.doc(id)
        matches = (
            {"matches": matches_in(served_index, doc.text, q), "title_matches": matches_in(served_index, doc.title, q)}
            if q
            else {}
        )
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
            "limits": {"query": settings.query, "k": settings.k, "batch": settings.batch, "explained": MAX_EXPLAINED},
            "any_pipeline": settings.any_pipeline,
            "writable": settings.writable,
            **service.described,
        }
    )


LINES = "application/x-ndjson"


class DocumentsBody(Body):
    """Documents to add."""

    documents: list[Doc] = Field(min_length=1, description="The documents.")
    index: IndexName = None
    duplicates: Literal["error", "skip", "replace"] = Field("error", description="How to treat duplicate ids.")


def authorized(request: Request) -> None:
    """Raise RefusedError unless the server is writable and the request has its token."""
    settings = service_of(request).settings
    if not settings.writable:
        raise RefusedError(403, "documents cannot be changed here; fontes serve --writable allows it to clients with a token")
    if not has_secret(dict(request.scope["headers"]), settings.token):
        raise unauthorized("this needs the server's token: Authorization: Bearer TOKEN")


def inline_schema(model: type[Body]) -> dict[str, Any]:
    """JSON schema of a body that FastAPI does not parse, with inlined definitions."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def inline(part: Any) -> Any:
        if isinstance(part, dict):
            if "$ref" in part:
                return inline(definitions[part["$ref"].rpartition("/")[2]])
            return {key: inline(value) for key, value in part.items()}
        return [inline(item) for item in part] if isinstance(part, list) else part

    resolved: dict[str, Any] = inline(schema)
    return resolved


BODY = {"required": True, "content": {JSON: {"schema": inline_schema(DocumentsBody)}, LINES: {"schema": {"type": "string"}}}}
changing = APIRouter(prefix="/documents", tags=["documents"], dependencies=[Depends(authorized)])


@changing.post("", response_class=Response, openapi_extra={"requestBody": BODY})
async def add(
    request: Request,
    index: IndexName = None,
    duplicates: Annotated[
        Literal["error", "skip", "replace"], Query(description="How to treat duplicate ids in a body of JSON lines.")
    ] = "error",
) -> Response:
    """Add documents, all of them or none. The response comes when searches find them.

    A body of Content-Type application/json is an object with `documents`; any other body is JSON lines as `fontes index` reads
    them.
    """
    service, content = service_of(request), await request.body()
    docs: Sequence[Doc]
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON:
        body = _parse_body(content)
        docs, index, duplicates = body.documents, body.index or index, body.duplicates
    else:
        docs = await service.work(_parse_lines, content)
    return json_response(asdict(await service.change(service.served(index), "add", docs, duplicates=duplicates)))


def _parse_lines(content: bytes) -> list[Doc]:
    source = InputFile("the body", io.BytesIO(content))
    docs = [doc_from(row, Fields(), source.name, number) for number, row in json_rows(source)]
    if not docs:
        raise RefusedError(422, 'the body has no documents; send one JSON object a line, such as {"_id": "1", "text": "…"}')
    return docs


def _parse_body(content: bytes) -> DocumentsBody:
    try:
        return DocumentsBody.model_validate(json.loads(content))
    except json.JSONDecodeError as error:
        raise RefusedError(
            422, f"the body is no JSON ({error.msg}, character {error.pos}); JSON lines have Content-Type: {LINES}"
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise RefusedError(400, "the body cannot be read") from None
    except ValidationError as error:
        raise invalid_in("body", error) from None


@changing.delete("", response_class=Response)
async def delete_several(
    request: Request,
    id: Annotated[list[str], Query(description="Ids of the documents.")],
    index: IndexName = None,
    missing: Annotated[str, Query(description="How to treat ids that are not in the index: error or skip.")] = "error",
) -> Response:
    """Delete documents, all of them or none."""
    service = service_of(request)
    if len(id) > service.settings.batch:
        raise RefusedError(422, f"there are {len(id):,} documents; a request has {service.settings.batch:,} at most (--batch)")
    return json_response(asdict(await service.change(service.served(index), "delete", id, missing=missing)))


@changing.delete("/{id:path}", response_class=Response)
async def delete(request: Request, id: DocumentId, index: IndexName = None) -> Response:
    """Delete a document."""
    service = service_of(request)
    served = service.served(index)
    served.check_document(id)
    return json_response(asdict(await service.change(served, "delete", [id])))
