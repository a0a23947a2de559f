"""The ASGI application: the routes of a service, responses to errors, and the guard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ...core.errors import FontesError, ParameterError
from . import changing, conversations, health, pages, routes
from .answers import Problem, RefusedError, invalid, problem_response
from .guard import Guard
from .service import Service

REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": {"model": Problem, "description": "Why the request was refused"}}


def application(service: Service, routers: Sequence[APIRouter] = ()) -> Guard:
    """ASGI application of a service, with additional routers such as the one for judging."""
    routers = (routes.router, health.router, pages.router, changing.router, conversations.router, *routers)
    app = plain_application(service, routers)
    schema = app.openapi
    app.openapi = lambda: pages.with_examples(schema(), service)  # type: ignore[method-assign]
    return Guard(DirectSearch(app, service), service.settings, service.metrics, service.names)


def plain_application(
    service: Service,
    routers: Sequence[APIRouter],
    context: AbstractAsyncContextManager[object] | None = None,
    openapi_url: str | None = "/openapi.json",
) -> FastAPI:
    """Application with these routers, without the guard.

    Args:
        service: The service, which runs while the application does.
        routers: The routers.
        context: Entered when the application starts, and left when it ends.
        openapi_url: Path of the OpenAPI document; None to serve none.

    Raises:
        ParameterError: The root path begins like a path of a router.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(service.run())
        try:
            async with context or contextlib.nullcontext():
                yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            service.close()

    app = FastAPI(
        title="Fontes",
        version=version("fontes"),
        description="Document retrieval: search, explanations, causes and conversations.",
        redirect_slashes=False,  # a redirect would need the scheme and host that a proxy hides
        openapi_url=openapi_url,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,
    )
    app.state.service = service
    for router in routers:
        app.include_router(router)
    used = {route.path.split("/")[1] for router in routers for route in router.routes if isinstance(route, Route)}
    if (prefix := f"{service.settings.root_path}/".split("/")[1]) in used - {""}:
        raise ParameterError(f"--root-path: /{prefix} is an address of the server itself; choose another prefix")

    async def problem(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            error = invalid(list(error.errors()), isinstance(error.body, bytes))
        response = problem_response(error, service.names)
        if response.status_code == 500:
            request.scope["failure"] = error  # for the log
        return response

    for kind in (HTTPException, FontesError, RequestValidationError, Exception):
        app.add_exception_handler(kind, problem)
    return app


class DirectSearch:
    """Answers `GET /search`, the most frequent request, without FastAPI: equal bytes in two thirds of the time."""

    def __init__(self, app: FastAPI, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http" or scope["path"] != f"{scope['root_path']}/search" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        scope["path_template"] = "/search"
        try:
            response = await routes.search_response(self._service, scope["query_string"])
        except (RefusedError, FontesError) as error:
            response = problem_response(error, self._service.names)
            scope["failure"] = error if response.status_code == 500 else None
        await response(scope, receive, send)
