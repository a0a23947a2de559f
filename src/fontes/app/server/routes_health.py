"""The addresses for operators, and the files of the page: /health, /ready, /metrics, /, /docs."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request, Response

from .examples import command, examples_of
from .metrics import MEDIA
from .problems import RefusedError, busy
from .routes_search import json_of, service_of
from .service import Service

router = APIRouter(tags=["service"])
FILES = resources.files(__package__) / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@router.get("/health", response_class=Response)
async def health(request: Request) -> Response:
    """That the process lives."""
    return json_of({"status": "ok"})


@router.get("/ready", response_class=Response)
async def ready(request: Request) -> Response:
    """Whether all models are loaded, and which states are served."""
    service = service_of(request)
    if not service.ready:
        raise busy("the server is getting ready")
    of_index = {
        served.name: {
            "generation": served.state.generation,
            "fingerprint": served.state.index.fingerprint,
            **({"trouble": "a newer state cannot be served; the log says why"} if served.trouble else {}),
        }
        for served in service.indexes.values()
    }
    return json_of({"status": "ready", "indexes": of_index})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """What Prometheus reads."""
    return Response(service_of(request).metrics.text(), media_type=MEDIA)


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """The page."""
    return file_of_page("index.html")


@router.get("/page/{name}", include_in_schema=False)
async def file(name: str) -> Response:
    """A file of the page."""
    return file_of_page(name)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The addresses with their parameters, as a page that fetches nothing from elsewhere."""
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme
    base = f"{scheme}://{request.headers['host']}{request.scope['root_path']}"
    return Response(_described(request.app.openapi(), service_of(request), base), media_type=TYPES[".html"])


def file_of_page(name: str) -> Response:
    """A file of the page as an answer; raises RefusedError where there is none."""
    known = {entry.name: entry for entry in FILES.iterdir() if entry.is_file()}
    kind = TYPES.get("." + name.rpartition(".")[2])
    if name not in known or kind is None:
        raise RefusedError(404, "there is no such page")
    return Response(known[name].read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})


def _described(openapi: dict[str, Any], service: Service, base: str) -> str:
    examples = examples_of(service)
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        "<title>Fontes: the API</title><link rel='icon' href='data:,'><link rel='stylesheet' href='page/docs.css'>",
        "<main><h1>The API of this server</h1><p>As OpenAPI: <a href='openapi.json'>openapi.json</a></p>",
    ]
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            parts.append(
                f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation.get('description', ''))}</p>"
            )
            rows = [(p["name"], p["in"], p["schema"], p.get("description", "")) for p in operation.get("parameters", ())]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            model = openapi["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            rows += [
                (name, "body", schema, schema.get("description", "")) for name, schema in model.get("properties", {}).items()
            ]
            if rows:
                parts.append("<table><tr><th>Name<th>In<th>Type<th>Description</tr>")
                parts += [
                    f"<tr><td><code>{escape(name)}</code><td>{escape(place)}<td>{escape(_type(schema))}<td>{escape(what)}</tr>"
                    for name, place, schema, what in rows
                ]
                parts.append("</table>")
            for example in examples.get((method, path), ()):
                parts.append(f"<pre><code>{escape(command(method, path, example, base, service))}</code></pre>")
    return "".join([*parts, "</main></html>"])


def _type(schema: dict[str, Any]) -> str:
    """A schema in a word or two."""
    kinds = [_type(option) for option in schema.get("anyOf", ())] or [
        str(schema.get("type") or schema.get("$ref", "").rpartition("/")[2] or "any")
    ]
    default = f", {json.dumps(schema['default'])} if left out" if schema.get("default") not in (None, [], "") else ""
    return " or ".join(kind for kind in kinds if kind not in ("", "null")) + default
