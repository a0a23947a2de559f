"""The application: the routes of a service, its problems, and the guard before them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from ...core.errors import FontesError, ParameterError
from . import routes_changes, routes_health, routes_search, routes_sessions
from .direct import Direct
from .examples import with_examples
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
        redirect_slashes=False,  # a redirect would need the scheme and host that a proxy hides
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,  # type: ignore[arg-type]
    )
    app.state.service = service
    routers = (routes_search.router, routes_health.router, routes_changes.router, routes_sessions.router, *routers)
    for router in routers:
        app.include_router(router)
    taken = {route.path.split("/")[1] for router in routers for route in router.routes if isinstance(route, Route)}
    if (first := f"{service.settings.root_path}/".split("/")[1]) in taken - {""}:
        raise ParameterError(f"--root-path: /{first} is an address of the server itself; choose another prefix")

    async def refused(request: Request, error: Exception) -> Response:
        return problem_of(error, service.names)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(422, of_validation(list(error.errors())))

    for kind in (HTTPException, FontesError, Exception):
        app.add_exception_handler(kind, refused)
    schema = app.openapi
    app.openapi = lambda: with_examples(schema(), service)  # type: ignore[method-assign]
    app.add_exception_handler(RequestValidationError, invalid)
    return Guard(Direct(app, service), service.settings, service.metrics, service.names)
