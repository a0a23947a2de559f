"""The application: the routes of a service, its problems, and the guard before them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...core.errors import FontesError
from . import routes_changes, routes_health, routes_search, routes_talks
from .direct import Direct
from .guard import Guard
from .problems import Problem, of_validation, problem, problem_of
from .service import Service

REFUSALS = {"4XX": {"model": Problem, "description": "What is wrong, in a sentence"}}


def application(service: Service, routers: Sequence[APIRouter] = ()) -> Guard:
    """The application of a service, as a server of ASGI takes it.

    Args:
        service: The service.
        routers: More addresses, such as those of judging.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(service.run())
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            service.close()

    app = FastAPI(
        title="Fontes",
        version=version("fontes"),
        description="Document retrieval: search, explanations, causes, conversations.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,  # type: ignore[arg-type]
    )
    app.state.service = service
    for router in (routes_search.router, routes_health.router, routes_changes.router, routes_talks.router, *routers):
        app.include_router(router)

    async def refused(request: Request, error: Exception) -> Response:
        return problem_of(error, service.names)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(422, of_validation(list(error.errors())))

    for kind in (HTTPException, FontesError, Exception):
        app.add_exception_handler(kind, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    return Guard(Direct(app, service), service.settings, service.metrics, service.names)
