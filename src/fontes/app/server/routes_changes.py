"""The addresses that change an index: on a writable server, for clients that have its token."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import ValidationError

from ...core.values import Doc
from ...formats.records import Fields, doc_from, json_rows
from ...storage.files import Source
from .bodies import Additions, schema_of
from .guard import shows
from .problems import RefusedError, of_validation, unauthorized
from .routes_search import Index, check_document, json_of, service_of

JSON, LINES = "application/json", "application/x-ndjson"
BODY = {"required": True, "content": {JSON: {"schema": schema_of(Additions)}, LINES: {"schema": {"type": "string"}}}}


def authorized(request: Request) -> None:
    """Raises RefusedError unless the server is writable and the request shows its token."""
    settings = service_of(request).settings
    if not settings.writable:
        raise RefusedError(403, "documents cannot be changed here; fontes serve --writable allows it to clients with a token")
    if not shows(dict(request.scope["headers"]), settings.token):
        raise unauthorized("this needs the server's token: Authorization: Bearer TOKEN")


router = APIRouter(prefix="/documents", tags=["documents"], dependencies=[Depends(authorized)])


@router.post("", response_class=Response, openapi_extra={"requestBody": BODY})
async def add(
    request: Request,
    index: Index = None,
    duplicates: Annotated[
        Literal["error", "skip", "replace"], Query(description="How to treat duplicate ids, for a body of JSON lines.")
    ] = "error",
) -> Response:
    """Add documents, all of them or none. The answer comes when searches find them.

    A body of Content-Type application/json is an object with `documents`; any other is JSON lines as `fontes index` reads them.
    """
    service, content = service_of(request), await request.body()
    docs: Sequence[Doc]
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON:
        body = _additions(content)
        docs, index, duplicates = body.documents, body.index or index, body.duplicates
    else:
        docs = await service.work(documents_in, content)
    return json_of(asdict(await service.change(service.served(index), "add", docs, duplicates=duplicates)))


def documents_in(content: bytes) -> list[Doc]:
    """The documents in JSON lines, as `fontes index` reads them.

    Raises:
        InputError: With the line, for what is no document.
        RefusedError: There is none.
    """
    source = Source("the body", io.BytesIO(content))
    docs = [doc_from(row, Fields(), source.name, number) for number, row in json_rows(source)]
    if not docs:
        raise RefusedError(422, 'the body has no documents; send one JSON object a line, such as {"_id": "1", "text": "…"}')
    return docs


def _additions(content: bytes) -> Additions:
    try:
        return Additions.model_validate(json.loads(content))
    except json.JSONDecodeError as error:
        raise RefusedError(
            422, f"the body is no JSON ({error.msg}, character {error.pos}); JSON lines have Content-Type: {LINES}"
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise RefusedError(400, "the body cannot be read") from None
    except ValidationError as error:
        raise RefusedError(422, of_validation([{**one, "loc": ("body", *one["loc"])} for one in error.errors()])) from None


@router.delete("", response_class=Response)
async def delete_several(
    request: Request,
    id: Annotated[list[str], Query(description="The documents' ids.")],
    index: Index = None,
    missing: Annotated[str, Query(description="How to treat ids that are not in the index: error or skip.")] = "error",
) -> Response:
    """Delete documents, all of them or none."""
    service = service_of(request)
    if len(id) > service.settings.batch:
        raise RefusedError(422, f"there are {len(id):,} documents; a request has {service.settings.batch:,} at most (--batch)")
    return json_of(asdict(await service.change(service.served(index), "delete", id, missing=missing)))


@router.delete("/{id:path}", response_class=Response)
async def delete(request: Request, id: Annotated[str, Path(description="The document's id.")], index: Index = None) -> Response:
    """Delete a document."""
    service = service_of(request)
    kind = service.kind(index, None)
    check_document(kind, id)
    return json_of(asdict(await service.change(kind.served, "delete", [id])))
