"""The addresses that change an index: only of a server that is writable, and only for those who have its token."""

from __future__ import annotations

import hmac
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from .bodies import Additions
from .problems import RefusedError
from .routes_search import Index, check_document, json_of, service_of


def authorized(request: Request) -> None:
    """Raises RefusedError unless the server is writable and the request shows its token."""
    settings = service_of(request).settings
    if not settings.writable:
        raise RefusedError(403, "documents cannot be changed here; fontes serve --writable allows it to those who have a token")
    shown = request.headers.get("authorization", "")
    if not hmac.compare_digest(shown.encode("utf-8", "replace"), f"Bearer {settings.token}".encode()):
        raise RefusedError(401, "this needs the server's token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})


router = APIRouter(prefix="/documents", tags=["documents"], dependencies=[Depends(authorized)])


@router.post("", response_class=Response)
async def add(request: Request, body: Additions) -> Response:
    """Add documents, all of them or none. The answer comes when searches find them."""
    service = service_of(request)
    served = service.served(body.index)
    return json_of(asdict(await service.change(served, "add", body.documents, duplicates=body.duplicates)))


@router.delete("", response_class=Response)
async def delete_several(
    request: Request,
    id: Annotated[list[str], Query(description="The documents' ids.")],
    index: Index = None,
    missing: Annotated[str, Query(description="What is done about ids that are not there: error or skip.")] = "error",
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
