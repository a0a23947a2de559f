"""Problems as RFC 9457 describes them: JSON with a title, a status and one sentence. No traceback leaves the server."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...core.errors import FontesError, InputError, MissingExtraError, ParameterError, PipelineError

MEDIA = "application/problem+json"
BY_STATUS = {
    400: "the body cannot be read",
    404: "there is nothing at this address; /docs lists all addresses",
    405: "method not allowed for this address; /docs lists the methods of each",
}


class Problem(BaseModel):
    """What is wrong with a request, as RFC 9457 describes it."""

    type: str = Field("about:blank", description="That the title says it all.")
    title: str = Field(description="The name of the status.")
    status: int = Field(description="The status.")
    detail: str = Field(description="One sentence: what is at fault, and what to do.")


class RefusedError(HTTPException):
    """A request that is not carried out.

    Args:
        status: The status of the answer.
        detail: The sentence.
        headers: More headers of the answer.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)


def busy(detail: str, seconds: int = 1) -> RefusedError:
    """The refusal of a server under load, with the seconds after which to try again."""
    return RefusedError(503, detail, {"Retry-After": str(seconds)})


def unauthorized(detail: str) -> RefusedError:
    """The refusal of a request without the secret that it needs."""
    return RefusedError(401, detail, {"WWW-Authenticate": "Bearer"})


def problem_body(status: int, detail: str) -> bytes:
    """The JSON of a problem."""
    return to_json(Problem(type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=detail))


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as an answer."""
    return Response(problem_body(status, detail), status, {"Cache-Control": "no-store", **(headers or {})}, MEDIA)


def problem_of(error: Exception, names: Mapping[str, str]) -> Response:
    """The answer to what was raised.

    Args:
        error: What was raised while a request was worked on.
        names: Paths that messages may hold, with what stands in their place: clients need not know them.
    """
    if isinstance(error, HTTPException) and not isinstance(error, RefusedError):
        detail = BY_STATUS.get(error.status_code, str(error.detail))
        return problem(error.status_code, detail, error.headers)
    if isinstance(error, RefusedError):
        return problem(error.status_code, str(error.detail), error.headers)
    if isinstance(error, (InputError, ParameterError, PipelineError)) and not isinstance(error, MissingExtraError):
        return problem(422, without(str(error), names))
    if isinstance(error, FontesError):
        return problem(500, without(str(error), names))
    return problem(500, "the server failed at this request; its log says why, under the id in the header X-Request-Id")


def without(message: str, names: Mapping[str, str]) -> str:
    """A message with names in place of paths, the longest first."""
    for path in sorted(names, key=len, reverse=True):
        message = message.replace(path, names[path])
    return message


def of_validation(errors: list[Any]) -> str:
    """The sentence for a request that is not of the form that it should have; the first thing that is wrong."""
    first: dict[str, Any] = errors[0] if errors else {"loc": (), "msg": "it cannot be read"}
    if first.get("type") == "json_invalid":
        return f"the body is no JSON ({first['ctx']['error']}, character {first['loc'][-1]})"
    place, *inside = [str(part) for part in first["loc"]] or ["request"]
    where = {"query": "the parameter", "body": "the body", "path": "the address", "header": "the header"}.get(place, place)
    named = " '" + ".".join(inside) + "'" if inside else ""
    return str(FontesError(f"{where}{named}: {first['msg'][:1].lower()}{first['msg'][1:]}"))
