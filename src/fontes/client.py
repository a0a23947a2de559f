"""A client of `fontes serve`: a stage that searches there, with the methods of an index that change documents."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from http.client import HTTPException
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .core.errors import FontesError, InputError, ParameterError, PipelineError
from .core.run import Run
from .core.searches import at_most
from .core.stage import Stage, topic_of
from .core.values import Doc, Explanation, Topic, Topics
from .core.work import Progress, ProgressCallback, reporter
from .formats.records import json_line

if TYPE_CHECKING:
    from .index import Change

KEYS = ("FONTES_TOKEN", "FONTES_KEY")  # environment variables
BUSY = (429, 503)  # statuses of requests to repeat
PAUSE, MAX_PAUSE = 0.1, 30.0  # seconds before the first repetition, and at most
MAX_ROWS = 10_000  # hits of one request
ADDRESS = 4_000  # bytes of the ids in an address; servers and proxies take 8,000 or more in all
LINES = "application/x-ndjson"
PARTS = ("narrative", "description", "weights", "metadata")  # of a topic, besides id, text, turns and query


@dataclass(frozen=True)
class Client(Stage[Topics, Run], name="client"):
    """Searches an index that `fontes serve` has, and changes its documents.

    As a stage it stands wherever a retriever does; its runs equal those of the server's pipeline over the index.

    Args:
        url: Address of the server, such as "http://127.0.0.1:8080"; https for TLS.
        pipeline: Name of a pipeline of the server; "" for its first.
        index_name: Name of the index; "" for the server's first.
        where: Filter on metadata: no other document is returned.
        k: Documents kept per topic.
        sort: Column of dates or numbers that orders the documents, in place of the score; None for the score.
        descending: With `sort`, whether the greatest value, or the newest date, is first.
        tolerance: How misspelt words are searched: "off", "auto" or "typing".
        timeout: Seconds to wait for an answer.
        retries: How often a request that may be repeated is sent again, when the server is busy or cannot be reached.
        api_key: The server's key, or its token to change documents; "" for that of FONTES_TOKEN or FONTES_KEY.
    """

    depth_field: ClassVar[str] = "k"
    url: str
    pipeline: str = ""
    index_name: str = ""
    where: str | None = None
    k: int = 1000
    sort: str | None = field(default=None, kw_only=True)
    descending: bool = field(default=False, kw_only=True)
    tolerance: str = field(default="off", kw_only=True)
    timeout: float = field(default=60.0, repr=False, kw_only=True)
    retries: int = field(default=3, repr=False, kw_only=True)
    api_key: str = field(default="", repr=False, compare=False, kw_only=True)

    def check(self) -> None:
        """Raise ParameterError for an invalid address or number."""
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://")):
            raise ParameterError(f"the url of a server begins with http:// or https://, not {self.url!r}")
        if not self.timeout > 0 or self.retries < 0:
            raise ParameterError("timeout must be above 0, and retries 0 or more")

    def check_needs(self) -> None:
        """Raise FontesError if the server cannot be reached, or has no such index or pipeline."""
        self.check()
        facts = next((facts for facts in self._served["indexes"] if self.index_name in ("", facts["name"])), None)
        if facts is None:
            names = ", ".join(facts["name"] for facts in self._served["indexes"])
            raise ParameterError(f"{self.url} has no index '{self.index_name}'; it has {names}")
        pipelines = [pipeline["name"] for pipeline in facts["pipelines"]]
        if self.pipeline not in ("", *pipelines) and not self._served["any_pipeline"]:
            raise ParameterError(f"{self.url} has no pipeline '{self.pipeline}'; it has {', '.join(pipelines)}")

    def apply(self, topics: Topics, /) -> Run:
        report = reporter()
        self.check_needs()
        size = max(1, min(self._served["limits"]["batch"], MAX_ROWS // self.k))
        start, states = time.perf_counter(), [self.fingerprint_now()]
        scores: dict[str, list[tuple[str, float]]] = {}
        remaining = (topic for topic in topics.values() if topic.text.strip() or topic.weights is not None or topic.query)
        while batch := list(islice(remaining, size)):
            for topic, result in zip(batch, self._search(batch, k=self.k), strict=True):
                scores[topic.id] = [(hit["id"], hit["score"]) for hit in result["hits"]]
            report(Progress("searching", len(scores), len(topics), time.perf_counter() - start))
        if len(topics) > size:
            states.append(self.fingerprint_now())
        run = Run.of(scores, topics)
        return run.with_(documents=self, provenance={"servers": {self.url: list(dict.fromkeys(states))}})

    def count(self, query: str | Topic, up_to: int | None = None) -> int:
        (result,) = self._search([topic_of(query)], k=1, count=True)
        if result["total"]["relation"] != "eq":
            raise PipelineError(result["total"].get("reason") or f"{self.url} has no number of matches")
        return at_most(int(result["total"]["value"]), up_to)

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        topic = topic_of(query)
        if topic.weights is not None or topic.query is not None or topic.turns:
            raise PipelineError("client explains scores of queries that are texts, without weights, clauses and turns")
        return _explanation(
            self._json(
                "GET", "/explain", self._named(q=topic.text, id=doc_id, pipeline=self.pipeline, tolerance=self.tolerance)
            )
        )

    def add(
        self, docs: str | Path | Iterable[object], *, duplicates: str = "error", progress: ProgressCallback | None = None
    ) -> Change:
        """Add documents, as `Index.add` does, in requests of as many as the server takes, each made completely or not at all.

        Args:
            docs: As for `Index.build`.
            duplicates: How to treat duplicate ids: "error", "skip" or "replace".
            progress: Called after each request.

        Raises:
            InputError: A document cannot be used, or an id exists already; the documents before those of its request are added.
            FontesError: The server cannot be reached, or refuses the request.
        """
        from .datasets import corpus_of
        from .formats import read_corpus

        address, start = f"/documents?{urlencode(self._named(duplicates=duplicates))}", time.perf_counter()
        changes: list[Change] = []
        report = progress or reporter()
        corpus: Iterable[Doc] = read_corpus(corpus_of(docs) if isinstance(docs, str) else docs)
        for content in _bodies(corpus, self._served["limits"]["body"]):
            changes.append(self._change("POST", address, content, LINES, repeat=duplicates != "error"))
            report(Progress("adding", sum(each.added for each in changes), None, time.perf_counter() - start))
        return self._total(changes)

    def update(self, changes: Mapping[str, Mapping[str, object]], *, missing: str = "error") -> Change:
        """Change parts of documents in one step, as `Index.update` does.

        Args:
            changes: As for `Index.update`.
            missing: How to treat unknown ids: "error" or "skip".

        Raises:
            InputError: An id is not in the index, or a change cannot be made; nothing was changed.
            FontesError: The server cannot be reached, or refuses the request.
        """
        address = f"/documents?{urlencode(self._named(missing=missing))}"
        return self._change("PATCH", address, json.dumps(changes).encode(), "application/json")

    def delete(self, ids: str | Iterable[str] = (), *, where: str | None = None, missing: str = "error") -> Change:
        """Delete documents, as `Index.delete` does; a request holds as many ids as the server takes.

        With missing="error" no request is sent again: ids that the first one deleted would be missing.

        Args:
            ids: One id or several.
            where: A filter, in place of ids: all documents that pass it are deleted.
            missing: How to treat unknown ids: "error" or "skip".

        Raises:
            InputError: An id is not in the index, or the filter is invalid; the ids before those of its request are deleted.
            ParameterError: There are ids and a filter.
            FontesError: The server cannot be reached, or refuses the request.
        """
        ids = [ids] if isinstance(ids, str) else list(ids)
        if where is not None and ids:
            raise ParameterError("delete takes ids, or a filter (where), not both")
        parts: list[dict[str, object]] = [{"id": part} for part in self._parts(ids)] if where is None else [{"where": where}]
        repeat = where is not None or missing == "skip"  # else an id that the first request deleted would be an error
        addresses = [f"/documents?{urlencode(self._named(missing=missing, **part), True)}" for part in parts]
        return self._total([self._change("DELETE", address, repeat=repeat) for address in addresses])

    def _parts(self, ids: Iterable[str]) -> Iterator[list[str]]:
        """Yield as many ids as a request to the server, and its address, may have."""
        part: list[str] = []
        size, limit = 0, self._served["limits"]["batch"]
        for doc_id in ids:
            added = len(urlencode({"id": doc_id})) + 1
            if part and (len(part) == limit or size + added > ADDRESS):
                yield part
                part, size = [], 0
            part.append(doc_id)
            size += added
        if part:
            yield part

    def doc(self, doc_id: str) -> Doc:
        """Return the document with this id; raise InputError for an unknown one."""
        values = self._json("GET", "/documents", self._named(id=doc_id))
        return Doc(values["id"], values["text"], values["title"], values["metadata"])

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """Return the documents with these ids, in this order; raise InputError for an unknown one."""
        return [self.doc(doc_id) for doc_id in ids]

    def fingerprint_now(self) -> str:
        """Return the fingerprint of the state of the index that the server has now."""
        indexes = self._json("GET", "/ready", {})["indexes"]
        return str(indexes[self.index_name or next(iter(indexes))]["fingerprint"])

    def key(self) -> str | None:
        """Return None: no run of a server is stored, as its index and its pipelines may change."""
        return None

    @cached_property
    def _served(self) -> dict[str, Any]:
        """Indexes and limits of the server.

        Raises:
            FontesError: It is no server of this version of Fontes.
        """
        served: dict[str, Any] = self._json("GET", "/indexes", {})
        theirs, ours = str(served.get("fontes", "an older one")), version("fontes")
        if theirs.split(".")[:2] != ours.split(".")[:2]:
            raise FontesError(f"{self.url} has Fontes {theirs}, and this is {ours}: install the same version here or there")
        return served

    def _named(self, **values: object) -> dict[str, object]:
        """Parameters of a request, with the name of the index, and without empty ones."""
        return {key: value for key, value in {"index": self.index_name, **values}.items() if value not in ("", None)}

    def _search(self, topics: Sequence[Topic], **options: object) -> list[dict[str, Any]]:
        order = {"sort": self.sort, "descending": self.descending} if self.sort else {}
        body = self._named(
            pipeline=self.pipeline, where=self.where, tolerance=self.tolerance, snippets=False, **order, **options
        )
        content = json.dumps({**body, "topics": [_topic_values(topic) for topic in topics]}).encode()
        results: list[dict[str, Any]] = self._json("POST", "/search", {}, content)["results"]
        return results

    def _change(self, method: str, address: str, content: bytes | None = None, kind: str = "", repeat: bool = True) -> Change:
        from .index import Change

        return Change(**self._request(method, address, content, kind, repeat))

    def _total(self, changes: Sequence[Change]) -> Change:
        """Sum of the changes, with the size of the index after the last."""
        from .index import Change

        sums = {name: sum(getattr(change, name) for change in changes) for name in ("added", "replaced", "skipped", "deleted")}
        last = changes[-1] if changes else Change()
        return Change(**sums, documents=last.documents, segments=last.segments)

    def _json(self, method: str, path: str, parameters: Mapping[str, object], content: bytes | None = None) -> Any:
        address = f"{path}?{urlencode(parameters)}" if parameters else path
        return self._request(method, address, content, "application/json", True)

    def _request(self, method: str, address: str, content: bytes | None, kind: str, repeat: bool) -> Any:
        """Send a request and return the values of its answer; it is sent again only if that does no harm (`repeat`)."""
        for attempt in range(self.retries + 1):
            try:
                return self._sent(method, address, content, kind)
            except _BusyError as error:
                if attempt == self.retries or not repeat:
                    raise error.problem from None
                time.sleep(min(error.seconds or PAUSE * 2**attempt, MAX_PAUSE))
        raise AssertionError

    def _sent(self, method: str, address: str, content: bytes | None, kind: str) -> Any:
        key = self.api_key or next(filter(None, map(os.environ.get, KEYS)), "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        headers |= {"Content-Type": kind} if content is not None else {}
        request = Request(self.url.rstrip("/") + address, content, headers, method=method)
        try:
            with build_opener(_NoRedirects).open(request, timeout=self.timeout) as response:
                return json.loads(response.read())
        except HTTPError as error:
            raise self._problem(error) from None
        except TimeoutError:
            raise _BusyError(f"{self.url} does not answer within {self.timeout:g} seconds (timeout=)") from None
        except (OSError, HTTPException) as error:  # a URLError is an OSError
            reason = getattr(error, "reason", error)
            raise _BusyError(f"{self.url} cannot be reached ({reason}); is fontes serve running there?") from None
        except ValueError:
            raise FontesError(f"{self.url} answers, but not as fontes serve does; is it the address of a server?") from None

    def _problem(self, error: HTTPError) -> Exception:
        """The error of a refused request, with the server's sentence."""
        try:
            detail = json.loads(error.read())["detail"]
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            detail = f"{error.code} {error.reason}; is it the address of fontes serve?"
        problem = f"{self.url}: {detail}"
        if error.code in BUSY:
            seconds = error.headers.get("Retry-After", "")
            return _BusyError(problem, float(seconds) if seconds.isdecimal() else 0.0)
        if error.code in (401, 403):
            problem += f" (api_key=, or {' or '.join(KEYS)} in the environment)"
        return FontesError(problem) if error.code >= 500 else InputError(problem)


class _BusyError(Exception):
    """A failure that may pass, and the seconds to wait; 0 if the server does not say."""

    def __init__(self, problem: str, seconds: float = 0.0) -> None:
        super().__init__(problem)
        self.problem, self.seconds = FontesError(problem), seconds


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which would carry the key to another address."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _topic_values(topic: Topic) -> dict[str, object]:
    values: dict[str, object] = {"id": topic.id, "text": topic.text, "turns": [asdict(turn) for turn in topic.turns]}
    values |= {part: getattr(topic, part) for part in PARTS}
    values |= {"query": None if topic.query is None else topic.query.to_dict()}
    return {key: value for key, value in values.items() if value or key in ("id", "text")}


def _explanation(values: Mapping[str, Any]) -> Explanation:
    return Explanation(values["value"], values["label"], tuple(map(_explanation, values["parts"])))


def _bodies(docs: Iterable[Doc], size: int) -> Iterator[bytes]:
    """Yield documents as JSON lines, in pieces of up to `size` bytes; a document that is larger is a piece by itself."""
    lines: list[bytes] = []
    filled = 0
    for doc in docs:
        row = {"_id": doc.id, "title": doc.title, "text": doc.text, "metadata": dict(doc.metadata)}
        line = json_line(row)
        if lines and filled + len(line) > size:
            yield b"".join(lines)
            lines, filled = [], 0
        lines.append(line)
        filled += len(line)
    if lines:
        yield b"".join(lines)
