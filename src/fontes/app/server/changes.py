"""Routes that change an index, on a writable server and with its token."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field, ValidationError

from ...core.values import Doc
from ...formats.records import Fields, doc_from, json_rows
from ...storage.files import InputFile
from .answers import JSON, Body, DocumentId, IndexName, RefusedError, invalid_in, json_response, service_of, unauthorized
from .guard import has_secret

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
        return [inline(each) for each in part] if isinstance(part, list) else part

    resolved: dict[str, Any] = inline(schema)
    return resolved


BODY = {"required": True, "content": {JSON: {"schema": inline_schema(DocumentsBody)}, LINES: {"schema": {"type": "string"}}}}
router = APIRouter(prefix="/documents", tags=["documents"], dependencies=[Depends(authorized)])


@router.post("", response_class=Response, openapi_extra={"requestBody": BODY})
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
        body = _parsed(content)
        docs, index, duplicates = body.documents, body.index or index, body.duplicates
    else:
        docs = await service.work(_parsed_lines, content)
    return json_response(asdict(await service.change(service.served(index), "add", docs, duplicates=duplicates)))


def _parsed_lines(content: bytes) -> list[Doc]:
    source = InputFile("the body", io.BytesIO(content))
    docs = [doc_from(row, Fields(), source.name, number) for number, row in json_rows(source)]
    if not docs:
        raise RefusedError(422, 'the body has no documents; send one JSON object a line, such as {"_id": "1", "text": "…"}')
    return docs


def _parsed(content: bytes) -> DocumentsBody:
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


@router.delete("", response_class=Response)
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


@router.delete("/{id:path}", response_class=Response)
async def delete(request: Request, id: DocumentId, index: IndexName = None) -> Response:
    """Delete a document."""
    service = service_of(request)
    served = service.served(index)
    served.check_document(id)
    return json_response(asdict(await service.change(served, "delete", [id])))
