"""Files of the pages, and /docs: the routes, with example requests that work on the server's own documents."""

from __future__ import annotations

import copy
import json
import re
import shlex
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response

from .answers import JSON, RefusedError, service_of
from .changing import SCHEMAS
from .guard import POLICY
from .service import Service

router = APIRouter(include_in_schema=False)
FILES = resources.files(__package__) / "page"
HTML = "text/html; charset=utf-8"
TYPES = {"html": HTML, "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
WORD = re.compile(r"\w+")
QUERY_WORDS = 6  # maximum words of an example query


@router.get("/")
async def search_page(request: Request) -> Response:
    """The search page, which may show pictures of other hosts if a served index has a column of their addresses."""
    service, response = service_of(request), page_file("index.html")
    if await service.work(lambda: any(served.state.facets.pictures for served in service.indexes.values())):
        response.headers["content-security-policy"] = POLICY.replace("img-src", "img-src https: http:")
    return response


@router.get("/page/{name}")
async def file(name: str) -> Response:
    """A file of the pages."""
    return page_file(name)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The addresses with their parameters and examples, as a page that loads nothing from other hosts."""
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme
    base = f"{scheme}://{request.headers['host']}{request.scope['root_path']}"
    return Response(_docs_page(request.app.openapi(), service_of(request), base), media_type=HTML)


def page_file(name: str) -> Response:
    """Response with a file of the pages; raises RefusedError if there is no such file."""
    files = {entry.name: entry for entry in FILES.iterdir() if entry.is_file()}
    media = TYPES.get(name.rpartition(".")[2])
    if name not in files or media is None:
        raise RefusedError(404, "there is no such page")
    return Response(files[name].read_bytes(), media_type=media, headers={"Cache-Control": "no-cache"})


@dataclass(frozen=True)
class ExampleRequest:
    """A request that works on the documents of this server.

    Args:
        query: Parameters by name; `id` replaces {id} in a path.
        body: JSON values of the body; None for no body.
        lines: Values of a body of JSON lines, in place of `body`.
    """

    query: dict[str, Any] = field(default_factory=dict)
    body: object = None
    lines: tuple[object, ...] = ()


def example_requests(service: Service) -> dict[tuple[str, str], list[ExampleRequest]]:
    """Example requests by method, in lower case, and path as in OpenAPI."""
    settings, state = service.settings, service.served(None).state
    index = state.index
    doc_id = next((candidate for candidate in index.ids[:100] if candidate not in (".", "..")), "1")
    text = ""
    if len(index) and index.has_texts:
        doc = index.doc(doc_id)
        text = " ".join(WORD.findall(doc.title or doc.text)[:QUERY_WORDS])[: settings.query]
    query = text or (index.terms[int(index.df.argmax())] if len(index.terms) else "water")
    topics, k = [{"id": "1", "text": query}], min(3, settings.k)
    examples = {
        ("get", "/search"): [ExampleRequest({"q": query, "k": k})],
        ("post", "/search"): [ExampleRequest(body={"topics": topics, "k": k})],
        ("get", "/suggest"): [ExampleRequest({"q": query[: max(3, len(query) - 2)].rstrip()})],
        ("get", "/explain"): [ExampleRequest({"q": query, "id": doc_id})],
        ("get", "/why"): [ExampleRequest({"event": query})],
        ("get", "/documents"): [ExampleRequest({"id": doc_id})],
        ("get", "/documents/{id}"): [ExampleRequest({"id": doc_id, "q": query})],
        ("post", "/conversations"): [ExampleRequest(body={"text": query})],
        **{("get", path): [ExampleRequest()] for path in ("/indexes", "/examples", "/health", "/ready", "/metrics")},
    }
    if state.rewriters:
        examples["post", "/rewrite"] = [ExampleRequest(body={"topics": topics})]
    if settings.writable:
        documents = [{"id": f"example-{number}", "title": "A new document", "text": query} for number in (1, 2)]
        examples["post", "/documents"] = [
            ExampleRequest(body={"documents": documents, "duplicates": "replace"}),
            ExampleRequest(
                {"duplicates": "replace"}, lines=tuple({"_id": doc["id"], "text": doc["text"]} for doc in documents)
            ),
        ]
        examples["put", "/documents"] = [ExampleRequest({"id": "example-1"}, documents[0])]
        examples["put", "/documents/{id}"] = [ExampleRequest({"id": "example-2"}, documents[1])]
        examples["patch", "/documents"] = [ExampleRequest({"missing": "skip"}, {"example-1": {"title": "A newer document"}})]
        examples["patch", "/documents/{id}"] = [ExampleRequest({"id": "example-2"}, {"metadata": {"price": 3}})]
        examples["delete", "/documents"] = [ExampleRequest({"id": "example-1", "missing": "skip"})]
        examples["delete", "/documents/{id}"] = [ExampleRequest({"id": "example-2"})]
    return examples


def with_examples(schema: dict[str, Any], service: Service) -> dict[str, object]:
    """Add schemas of bodies, and examples of parameters and bodies, to an OpenAPI document."""
    schema = copy.deepcopy(schema)
    schema["components"]["schemas"] |= SCHEMAS
    for (method, path), (example, *_) in example_requests(service).items():
        operation = schema["paths"][path][method]
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in example.query:
                parameter["example"] = example.query[parameter["name"]]
        if example.body is not None:
            operation["requestBody"]["content"][JSON]["example"] = example.body
    return schema


def _curl(method: str, path: str, example: ExampleRequest, base: str, service: Service) -> str:
    """The example as a shell command; `base` is the server's address, without a slash at its end."""
    query, words, prefix = dict(example.query), ["curl", "-s"], ""
    if path.startswith("/documents") and method != "get":
        words += ["-H", '"Authorization: Bearer $FONTES_TOKEN"']
    elif service.settings.key:
        words += ["-H", '"Authorization: Bearer $FONTES_KEY"']
    if "{id}" in path:
        path = path.replace("{id}", quote(query.pop("id"), safe=""))
    address = shlex.quote(f"{base}{path}" + (f"?{urlencode(query)}" if query else ""))
    if example.lines:
        prefix = f"printf '%s\\n' {' '.join(shlex.quote(json.dumps(row, ensure_ascii=False)) for row in example.lines)} | "
        words += ["--data-binary", "@-"]
    elif example.body is not None:
        words += ["-X", method.upper()] if method != "post" else []
        words += ["-H", f"'Content-Type: {JSON}'", "-d", shlex.quote(json.dumps(example.body, ensure_ascii=False))]
    elif method != "get":
        words += ["-X", method.upper()]
    return f"{prefix}{' '.join(words)} {address}"


def _docs_page(openapi: dict[str, Any], service: Service, base: str) -> str:
    """HTML of /docs: each route with its parameters and example commands."""
    examples = example_requests(service)
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        "<title>Fontes API</title><link rel='icon' href='data:,'><link rel='stylesheet' href='page/docs.css'>",
        "<main><h1>API of this server</h1><p>As OpenAPI: <a href='openapi.json'>openapi.json</a></p>",
    ]
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            parts.append(
                f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation.get('description', ''))}</p>"
            )
            rows = [(p["name"], p["in"], p["schema"], p.get("description", "")) for p in operation.get("parameters", ())]
            body = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
            body = body.get("anyOf", [body])[-1]
            model = openapi["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], body)
            rows += [
                (name, "body", schema, schema.get("description", "")) for name, schema in model.get("properties", {}).items()
            ]
            if rows:
                parts.append("<table><tr><th>Name<th>In<th>Type<th>Description</tr>")
                parts += [
                    f"<tr><td><code>{escape(name)}</code><td>{escape(location)}"
                    f"<td>{escape(_type(schema))}<td>{escape(description)}</tr>"
                    for name, location, schema, description in rows
                ]
                parts.append("</table>")
            for example in examples.get((method, path), ()):
                parts.append(f"<pre><code>{escape(_curl(method, path, example, base, service))}</code></pre>")
    return "".join([*parts, "</main></html>"])


def _type(schema: dict[str, Any]) -> str:
    """Type and default of a parameter, as text."""
    kinds = [_type(option) for option in schema.get("anyOf", ())] or [
        str(schema.get("type") or schema.get("$ref", "").rpartition("/")[2] or "any")
    ]
    default = f", {json.dumps(schema['default'])} if omitted" if schema.get("default") not in (None, [], "") else ""
    return " or ".join(kind for kind in kinds if kind not in ("", "null")) + default
