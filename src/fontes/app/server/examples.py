"""Example requests for OpenAPI and /docs. They are made from the documents that are served, so that they work as they stand."""

from __future__ import annotations

import copy
import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from .service import Service

WORD = re.compile(r"\w+")
WORDS = 6  # of an example query
TALK = "/conversations/{id}"


@dataclass(frozen=True)
class Example:
    """A request.

    Args:
        query: Its parameters by name; `id` of an address with {id} is part of the path.
        body: Its body as JSON values; None for none.
        lines: Its body as JSON lines, in place of `body`.
    """

    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    lines: tuple[Any, ...] = ()


def examples_of(service: Service) -> dict[tuple[str, str], list[Example]]:
    """The examples by method, in lower case, and path as OpenAPI has them."""
    settings, state = service.settings, service.served(None).state
    index = state.index
    doc_id = next((own for own in index.ids[:100] if own not in (".", "..")), "1")
    text = ""
    if len(index) and index.has_texts:
        doc = index.doc(doc_id)
        text = " ".join(WORD.findall(doc.title or doc.text)[:WORDS])[: settings.query]
    query = text or (index.terms[int(index.df.argmax())] if len(index.terms) else "water")
    topics, k = [{"id": "1", "text": query}], min(3, settings.k)
    examples = {
        ("get", "/search"): [Example({"q": query, "k": k})],
        ("post", "/search"): [Example(body={"topics": topics, "k": k})],
        ("get", "/explain"): [Example({"q": query, "id": doc_id})],
        ("get", "/why"): [Example({"event": query})],
        ("get", "/documents"): [Example({"id": doc_id})],
        ("get", "/documents/{id}"): [Example({"id": doc_id, "q": query})],
        ("get", "/indexes"): [Example()],
        ("get", "/health"): [Example()],
        ("get", "/ready"): [Example()],
        ("get", "/metrics"): [Example()],
        ("post", "/conversations"): [Example(body={})],
        ("get", TALK): [Example()],
        ("post", f"{TALK}/turns"): [Example(body={"text": query})],
        ("delete", TALK): [Example()],
    }
    if state.rewriters:
        examples["post", "/rewrite"] = [Example(body={"topics": topics})]
    if settings.writable:
        new = [{"id": f"example-{number}", "title": "A new document", "text": query} for number in (1, 2)]
        examples["post", "/documents"] = [
            Example(body={"documents": new, "duplicates": "replace"}),
            Example({"duplicates": "replace"}, lines=tuple({"_id": doc["id"], "text": doc["text"]} for doc in new)),
        ]
        examples["delete", "/documents"] = [Example({"id": "example-1", "missing": "skip"})]
        examples["delete", "/documents/{id}"] = [Example({"id": "example-2"})]
    return examples


def with_examples(schema: dict[str, Any], service: Service) -> dict[str, Any]:
    """An OpenAPI document with the examples of its parameters and bodies."""
    schema = copy.deepcopy(schema)
    for (method, path), (example, *_) in examples_of(service).items():
        operation = schema["paths"][path][method]
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in example.query:
                parameter["example"] = example.query[parameter["name"]]
        if example.body is not None:
            operation["requestBody"]["content"]["application/json"]["example"] = example.body
    return schema


def command(method: str, path: str, example: Example, base: str, service: Service) -> str:
    """The example as a command of a shell.

    Args:
        method: The method in lower case.
        path: The address as OpenAPI has it.
        example: The request.
        base: The address of the server, without a slash at its end.
        service: The service, whose settings say which secret the request needs.
    """
    query, words, before = dict(example.query), ["curl", "-s"], ""
    if path.startswith("/documents") and method != "get":
        words += ["-H", '"Authorization: Bearer $FONTES_TOKEN"']
    elif service.settings.key:
        words += ["-H", '"Authorization: Bearer $FONTES_KEY"']
    if path.startswith(TALK):
        begin = [*words, "-H", "'Content-Type: application/json'", "-d", "'{}'", shlex.quote(f"{base}/conversations")]
        before = f"ID=$({' '.join(begin)} | cut -d '\"' -f 4)\n"
        address = shlex.quote(f"{base}/conversations/") + '"$ID"' + path.removeprefix(TALK)
    else:
        if "{id}" in path:
            path = path.replace("{id}", quote(query.pop("id"), safe=""))
        address = shlex.quote(f"{base}{path}" + (f"?{urlencode(query)}" if query else ""))
    if example.lines:
        before = f"printf '%s\\n' {' '.join(shlex.quote(json.dumps(row, ensure_ascii=False)) for row in example.lines)} | "
        words += ["--data-binary", "@-"]
    elif example.body is not None:
        words += ["-H", "'Content-Type: application/json'", "-d", shlex.quote(json.dumps(example.body, ensure_ascii=False))]
    elif method != "get":
        words += ["-X", method.upper()]
    return f"{before}{' '.join(words)} {address}"
