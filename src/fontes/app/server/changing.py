"""Routes that change documents, which need the token: PUT, PATCH, POST and DELETE, and the tickets of writes."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...core.values import Doc
from ...formats.records import Fields, doc_from, json_rows
from ...storage.files import InputFile
from .answers import (
    JSON,
    Body,
    DocumentId,
    IndexName,
    Problem,
    RefusedError,
    header,
    invalid_in,
    json_response,
    known_parameters,
    service_of,
    unauthorized,
)
from .guard import has_secret
from .writing import Write

LINES, MERGE = "application/x-ndjson", "application/merge-patch+json"
ASYNC = "respond-async"
IfMatch = Annotated[
    str | None,
    Header(
        description="ETag of an answer: the write is made only if the index has not changed since. * : if the document exists."
    ),
]
IfNoneMatch = Annotated[str | None, Header(description="*: the document is written only if there is none with its id.")]
Prefer = Annotated[
    str | None,
    Header(
        description="respond-async (RFC 7240): an answer before the commit, when the write is on the disk: 202 with a ticket."
    ),
]
Duplicates = Literal["error", "skip", "replace"]
Missing = Annotated[Literal["error", "skip"], Query(description="How to treat ids that are not in the index.")]
DuplicatesQuery = Annotated[Duplicates, Query(description="How to treat duplicate ids.")]


class DocumentIn(BaseModel):
    """A document, as `fontes index` reads it from a line of JSON: other keys are metadata too."""

    model_config = ConfigDict(extra="allow")
    text: str = Field(description="The text.")
    title: str = Field("", description="The title.")
    metadata: dict[str, object] = Field({}, description="Any JSON values by name.")


class NewDocument(DocumentIn):
    """A document with its id."""

    id: str | int = Field(description="Its id, also as _id.")


class DocumentPatch(Body):
    """Changes of a document (RFC 7396): what is left out stays."""

    title: str = Field("", description="The new title.")
    text: str = Field("", description="The new text.")
    metadata: dict[str, object] = Field({}, description="Keys with new values, or null to remove them.")


class DocumentsBody(Body):
    """Documents to add."""

    documents: list[dict[str, object]] = Field(min_length=1, description="The documents.")
    index: IndexName = None
    duplicates: Duplicates | None = Field(None, description="How to treat duplicate ids; error if omitted.")


class ChangeOut(BaseModel):
    """Result of a write."""

    added: int = Field(description="Documents added, with those in place of others.")
    replaced: int = Field(description="Of these, documents in place of others.")
    skipped: int = Field(description="Documents not added, or ids not deleted, because of skip.")
    deleted: int = Field(description="Documents deleted.")
    documents: int = Field(description="Documents of the index after the commit, which may have made other writes too.")
    segments: int = Field(description="Segments of the index after it.")


class ProblemOfWrite(BaseModel):
    """Why an accepted write was not made."""

    status: int = Field(description="HTTP status that it would have had.")
    detail: str = Field(description="One sentence: the cause, and what to do.")


class TicketOut(BaseModel):
    """An accepted write."""

    ticket: int
    index: str
    status: Literal["waiting", "done", "failed"]
    result: ChangeOut | None = None
    problem: ProblemOfWrite | None = None


STATE = {"ETag": header("The state of the index after the commit.")}
RETRY = {"Retry-After": header("Seconds to wait.")}
RESPONSES: dict[int | str, dict[str, object]] = {
    200: {"model": ChangeOut, "description": "The write is committed, and searches find it.", "headers": STATE},
    202: {
        "model": TicketOut,
        "description": "The write is on the disk and will be tried, even if the server is killed.",
        "headers": {"Location": header("Address of the ticket."), "Preference-Applied": header(ASYNC)},
    },
    412: {"model": Problem, "description": "The index or the document is not in the state that the request names."},
    503: {"model": Problem, "description": "Too many writes wait, or the commit takes too long.", "headers": RETRY},
}
CREATED = {**RESPONSES, 201: {**RESPONSES[200], "description": "The same, for a document that was not there."}}


def authorized(request: Request) -> None:
    """Raise RefusedError unless the server is writable and the request has its token."""
    settings = service_of(request).settings
    if not settings.writable:
        raise RefusedError(403, "documents cannot be changed here; fontes serve --writable allows it to clients with a token")
    if not has_secret(dict(request.scope["headers"]), settings.token):
        raise unauthorized("this needs the server's token: Authorization: Bearer TOKEN")


def _body(schemas: dict[str, object]) -> dict[str, object]:
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind, schema in schemas.items()}}}


def _schema_of(model: type[BaseModel]) -> dict[str, object]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


MODELS: tuple[type[BaseModel], ...] = (DocumentIn, NewDocument, DocumentPatch, DocumentsBody)
SCHEMAS = {model.__name__: model.model_json_schema() for model in MODELS}
"""Schemas of bodies, for the OpenAPI document: FastAPI does not parse them."""
for _changed in SCHEMAS["DocumentPatch"]["properties"].values():
    _changed.pop("default")  # which generated clients would send
SCHEMAS["DocumentsBody"]["properties"]["documents"]["items"] = _schema_of(NewDocument)
SEVERAL = {"type": "array", "minItems": 1, "items": _schema_of(NewDocument)}
DOCUMENTS = {"anyOf": [_schema_of(NewDocument), SEVERAL, _schema_of(DocumentsBody)]}
DOCUMENT, PATCH = _schema_of(DocumentIn), _schema_of(DocumentPatch)
PATCHES = {"type": "object", "minProperties": 1, "additionalProperties": PATCH}
router = APIRouter(tags=["documents"], dependencies=[Depends(authorized), Depends(known_parameters)])


@router.post(
    "/documents",
    response_class=Response,
    responses=RESPONSES,
    openapi_extra=_body({JSON: DOCUMENTS, LINES: {"type": "string"}}),
)
async def add(
    request: Request,
    index: IndexName = None,
    duplicates: DuplicatesQuery = "error",
    if_match: IfMatch = None,
    prefer: Prefer = None,
) -> Response:
    """Add documents, all of them or none: one JSON object, an array, an object with `documents`, or JSON lines."""
    service, content = service_of(request), await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == JSON or content.lstrip()[:1] == b"["
    docs, options = await service.work(_parse_json if is_json else _parse_lines, content)
    write = Write(docs, options.get("duplicates") or duplicates, states=_states(if_match))
    return await _answer(request, write, options.get("index") or index, prefer)


@router.put("/documents", response_class=Response, responses=CREATED, openapi_extra=_body({JSON: DOCUMENT}))
@router.put("/documents/{id:path}", response_class=Response, responses=CREATED, openapi_extra=_body({JSON: DOCUMENT}))
async def put(
    request: Request,
    id: DocumentId,
    index: IndexName = None,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    prefer: Prefer = None,
) -> Response:
    """Write a document, in place of the one with its id, if any."""
    row = _object(await request.body())
    body_ids = [str(row.pop(key)) for key in ("_id", "id") if key in row]
    if any(key != id for key in body_ids):
        raise RefusedError(
            422, f"the body has the id '{body_ids[0][:200]}', the address '{id[:200]}'; leave it out of the body"
        )
    doc = doc_from({"_id": id, **row}, Fields(), "the body", 1, "document")
    if if_none_match not in (None, "*"):
        raise RefusedError(422, "If-None-Match is * here: the document is written only if there is none with its id")
    exists = False if if_none_match else True if _is_any(if_match) else None
    write = Write((doc,), exists=exists, states=_states(if_match))
    return await _answer(request, write, index, prefer, created=True)


@router.patch("/documents", response_class=Response, responses=RESPONSES, openapi_extra=_body({JSON: PATCHES}))
async def patch_several(
    request: Request, index: IndexName = None, missing: Missing = "error", if_match: IfMatch = None, prefer: Prefer = None
) -> Response:
    """Change parts of documents, all of them or none: an object with the changes of each by its id."""
    patches = _object(await request.body())
    if not patches:
        raise RefusedError(422, 'the body has no changes; send an object such as {"ID": {"metadata": {"price": 3}}}')
    return await _answer(request, Write(patches=patches, missing=missing, states=_states(if_match)), index, prefer)


@router.patch(
    "/documents/{id:path}", response_class=Response, responses=RESPONSES, openapi_extra=_body({MERGE: PATCH, JSON: PATCH})
)
async def patch(
    request: Request, id: DocumentId, index: IndexName = None, if_match: IfMatch = None, prefer: Prefer = None
) -> Response:
    """Change parts of a document. If they are metadata that are not indexed, its text is not analysed again."""
    write = Write(patches={id: _object(await request.body())}, states=_states(if_match))
    return await _answer(request, write, index, prefer)


@router.delete("/documents", response_class=Response, responses=RESPONSES)
async def delete_several(
    request: Request,
    id: Annotated[Sequence[str], Query(description="Ids of the documents.")] = (),
    where: Annotated[
        str | None, Query(description="A filter, in place of ids: all documents that pass it are deleted.")
    ] = None,
    index: IndexName = None,
    missing: Missing = "error",
    if_match: IfMatch = None,
    prefer: Prefer = None,
) -> Response:
    """Delete documents by their ids, all of them or none, or those that pass a filter."""
    settings = service_of(request).settings
    if bool(id) == bool(where and where.strip()):
        raise RefusedError(422, "name documents by id=, or by a filter, where=; not by both, and not all by none")
    if len(id) > settings.batch:
        raise RefusedError(422, f"there are {len(id):,} documents; a request has {settings.batch:,} at most (--batch)")
    if where is not None and len(where) > settings.query:
        raise RefusedError(422, f"the filter has {len(where):,} characters; {settings.query:,} are taken (--query)")
    write = Write(ids=tuple(id), missing=missing, where=where or None, states=_states(if_match))
    return await _answer(request, write, index, prefer)


@router.delete("/documents/{id:path}", response_class=Response, responses=RESPONSES)
async def delete(
    request: Request, id: DocumentId, index: IndexName = None, if_match: IfMatch = None, prefer: Prefer = None
) -> Response:
    """Delete a document."""
    return await _answer(request, Write(ids=(id,), states=_states(if_match)), index, prefer)


@router.get("/writes/{ticket}", response_class=Response, responses={200: {"model": TicketOut}})
async def ticket(request: Request, ticket: int, index: IndexName = None) -> Response:
    """Ask for an accepted write: whether it waits, is done, or has failed. The last 1,000 tickets are kept."""
    service = service_of(request)
    served = service.served(index)
    outcome = await service.writes[served.name].outcome(ticket) if 0 < ticket < 1 << 63 else None
    if outcome is None:
        raise RefusedError(404, f"there is no ticket {ticket} of writes to {served.name}, or not any more")
    return json_response({"ticket": ticket, "index": served.name, "status": "waiting", **outcome})


async def _answer(request: Request, write: Write, index: str | None, prefer: str | None, created: bool = False) -> Response:
    """Answer to a write: after its commit, or at once with a ticket if the client prefers that and it can be stored."""
    service = service_of(request)
    served = service.served(index)
    writes = service.writes[served.name]
    preferences = [preference.partition(";")[0].strip().lower() for preference in (prefer or "").split(",")]
    if ASYNC in preferences and writes.has_tickets:
        number = await writes.accept(write)
        response = json_response({"ticket": number, "index": served.name, "status": "waiting"}, HTTPStatus.ACCEPTED)
        response.headers["Location"] = f"{request.scope['root_path']}/writes/{number}?index={quote(served.name)}"
        response.headers["Preference-Applied"] = ASYNC
        return response
    change, fingerprint = await writes.result(write)
    response = json_response(asdict(change), HTTPStatus.CREATED if created and not change.replaced else HTTPStatus.OK)
    response.headers["ETag"] = f'"{fingerprint}"'
    return response


def _is_any(etags: str | None) -> bool:
    return (etags or "").strip() == "*"


def _states(etags: str | None) -> tuple[str, ...]:
    """Fingerprints of the states in a header If-Match."""
    if etags is None or _is_any(etags):
        return ()
    return tuple(etag.strip().removeprefix("W/").strip('"') for etag in etags.split(","))


def _parse_lines(content: bytes) -> tuple[tuple[Doc, ...], dict[str, object]]:
    source = InputFile("the body", io.BytesIO(content))
    docs = tuple(doc_from(row, Fields(), source.name, number) for number, row in json_rows(source))
    if not docs:
        raise RefusedError(422, 'the body has no documents; send one JSON object a line, such as {"_id": "1", "text": "…"}')
    return docs, {}


def _parse_json(content: bytes) -> tuple[tuple[Doc, ...], dict[str, Any]]:
    value, options = _json(content), {}
    rows = value if isinstance(value, list) else [value]
    if isinstance(value, dict) and "documents" in value:
        try:
            body = DocumentsBody.model_validate(value)
        except ValidationError as error:
            raise invalid_in("body", error) from None
        rows, options = body.documents, {"index": body.index, "duplicates": body.duplicates}
    if not rows:
        raise RefusedError(422, 'the body has no documents; send an array such as [{"id": "1", "text": "…"}]')
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise RefusedError(422, f"the body, document {number}: a JSON {type(row).__name__} where an object {{…}} belongs")
    return tuple(doc_from(row, Fields(), "the body", number, "document") for number, row in enumerate(rows, 1)), options


def _object(content: bytes) -> dict[str, object]:
    value = _json(content)
    if not isinstance(value, dict):
        raise RefusedError(422, f"the body is a JSON {type(value).__name__}; an object {{…}} belongs there")
    return value


def _json(content: bytes) -> object:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise RefusedError(
            422, f"the body is no JSON ({error.msg}, character {error.pos}); JSON lines have Content-Type: {LINES}"
        ) from None
    except (ValueError, RecursionError):
        raise RefusedError(400, "the body cannot be read") from None
