"""JSON responses, and problems by RFC 9457, without tracebacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError, PydanticSerializationError, to_json
from starlette.exceptions import HTTPException

from ...core.errors import FontesError, InputError, MissingExtraError, ParameterError, PipelineError
from ...core.hints import nearest
from ...formats.json_text import json_text

if TYPE_CHECKING:
    from .service import Service

JSON, PROBLEM = "application/json", "application/problem+json"
SERVER_ERROR = "the server failed at this request; its log says why, under the id in the header X-Request-Id"
BY_STATUS = {
    400: "the body cannot be read",
    404: "there is nothing at this address; /docs lists all addresses",
    405: "method not allowed for this address; /docs lists the methods of each",
}
UNKNOWN = "unknown_name"  # type of a validation error whose message is a whole sentence
OBJECTS = {"dataclass_type", "model_type", "model_attributes_type"}  # types of errors for other values than objects
LOCATIONS = {"query": "the parameter", "body": "the body", "path": "the address", "header": "the header"}


# Types that parameters and bodies share.
IndexName = Annotated[str | None, Field(description="Name of the index; the first one if omitted.")]
PipelineName = Annotated[str | None, Field(description="Name of the pipeline; the first one if omitted.")]
RewriterName = Annotated[str | None, Field(description="Name of the rewriter; the first one if omitted.")]
DocumentId = Annotated[str, Field(description="Id of the document.")]
Question = Annotated[str, Field(description="A question or keywords.")]


class Body(BaseModel):
    """Base class of request bodies and query strings, which refuses unknown keys with the name that is meant."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, values: object) -> object:
        if isinstance(values, dict):
            for name in values:
                if name not in cls.model_fields:
                    raise PydanticCustomError(UNKNOWN, "{name}", {"name": unknown(str(name), cls.model_fields)})
        return values


class Problem(BaseModel):
    """A refused or failed request (RFC 9457)."""

    type: str = Field("about:blank", description="Always about:blank: the status says what kind of problem it is.")
    title: str = Field(description="Name of the status.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="One sentence: the cause, and what to do.")


class RefusedError(HTTPException):
    """A refused request.

    Args:
        status: HTTP status.
        detail: Sentence for the client, limited like the message of a FontesError.
        headers: Additional headers.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, str(FontesError(detail)), headers)


def busy(detail: str) -> RefusedError:
    """Refusal because of load, with status 503."""
    return RefusedError(503, detail, {"Retry-After": "1"})


def unauthorized(detail: str) -> RefusedError:
    """Refusal of a request without the required secret."""
    return RefusedError(401, detail, {"WWW-Authenticate": "Bearer"})


def invalid(errors: list[object], unread: bool = False) -> RefusedError:
    """Refusal of a request that pydantic finds invalid, with a sentence about the first error.

    Args:
        errors: The errors.
        unread: Whether the body was not read as JSON, because the request does not say that it is.
    """
    return RefusedError(
        422, f"the body is not marked as JSON; send Content-Type: {JSON}" if unread else _validation_sentence(errors)
    )


def invalid_in(location: str, error: ValidationError) -> RefusedError:
    """Refusal of a request whose "body" or "query" is invalid."""
    return invalid([{**problem, "loc": (location, *problem["loc"])} for problem in error.errors()])


def unknown(name: str, names: Iterable[str]) -> str:
    """The sentence about an unknown parameter."""
    return f"there is no parameter '{name[:100]}'; {nearest(name[:100], names)}"


def known_parameters(request: Request) -> None:
    """Raise RefusedError if a query string has a parameter that its route does not declare."""
    names = [field.alias for field in request.scope["route"].dependant.query_params]
    for name in request.query_params if names else ():
        if name not in names:
            raise RefusedError(422, unknown(name, names))


def header(description: str) -> dict[str, object]:
    """OpenAPI description of a header of a response."""
    return {"description": description, "schema": {"type": "string"}}


def service_of(request: Request) -> Service:
    """Service of a request."""
    service: Service = request.app.state.service
    return service


def json_response(values: object, status: int = 200) -> Response:
    """A JSON response."""
    return Response(json_bytes(values), status, media_type=JSON)


def json_bytes(values: object) -> bytes:
    """Encode as JSON in UTF-8: lone surrogates are escaped; infinities and NaN become null."""
    try:
        return to_json(values, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):
        return json_text(values, default=str).encode()


def problem_bytes(status: int, detail: str) -> bytes:
    """The JSON of a problem."""
    return to_json(Problem(type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=detail))


def problem_of(error: Exception, names: Mapping[str, str]) -> tuple[int, str]:
    """HTTP status and sentence of an exception; arguments as for `problem_response`."""
    if isinstance(error, RefusedError):
        return error.status_code, str(error.detail)
    if isinstance(error, HTTPException):
        return error.status_code, BY_STATUS.get(error.status_code, SERVER_ERROR)
    if not isinstance(error, FontesError):
        return 500, SERVER_ERROR
    detail = str(error)
    for path in sorted(names, key=len, reverse=True):
        detail = detail.replace(path, names[path])
    is_input = isinstance(error, (InputError, ParameterError, PipelineError)) and not isinstance(error, MissingExtraError)
    return 422 if is_input else 500, detail


def problem_response(error: Exception, names: Mapping[str, str]) -> Response:
    """Response to an exception.

    Args:
        error: The exception.
        names: Replacements for paths in its message, which clients should not see.
    """
    status, detail = problem_of(error, names)
    headers = {"Cache-Control": "no-store", **((error.headers or {}) if isinstance(error, HTTPException) else {})}
    return Response(problem_bytes(status, detail), status, headers, PROBLEM)


def _validation_sentence(errors: list[Any]) -> str:
    """A sentence about the first of pydantic's errors."""
    first: dict[str, Any] = errors[0] if errors else {"loc": (), "msg": "it cannot be read"}
    if first.get("type") == "json_invalid":
        return f"the body is no JSON ({first['ctx']['error']}, character {first['loc'][-1]})"
    if first.get("type") == UNKNOWN:
        return str(first["msg"])
    message = "an object {…} belongs there" if first.get("type") in OBJECTS else f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    location, *keys = [str(part) for part in first["loc"]] or ["request"]
    name = f" '{'.'.join(keys)}'" if keys else ""
    return str(FontesError(f"{LOCATIONS.get(location, location)}{name}: {message}"))
