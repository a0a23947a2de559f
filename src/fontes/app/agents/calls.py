"""Calls of the tools: checked arguments, searches through the service, and answers within their budget."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ...causal import causes
from ...core.errors import FontesError, ParameterError
from ...core.hints import nearest
from ...core.run import Run
from ...core.values import Doc, Topic, Topics, text_of
from ...core.work import Progress, work
from ...index import Index
from ...index.columns import filter_of
from ...index.columns.facets import ORDERED
from ...passages import Rationales
from ...rewrite.reasoning import REASONING
from ...suggest import suggest
from ..results import why_empty
from ..server.answers import RefusedError, busy, problem_of
from ..server.searching import BINS, SearchOptions, SearchRequest, topics_read, topics_tolerated
from ..server.served import ServedState
from ..server.service import Service
from .budget import MORE_TOKENS, Answer, as_json, cut, fit, shortened, tokens_of
from .log import ShownDocuments
from .near_duplicates import groups_of, reason
from .tools import MIN_TOKENS, NOTHING, TOOLS, Arguments, Evidence, Explain, Facets, Read, Search, Similar, Why

log = logging.getLogger("fontes.server")
SENTENCES = 3  # evidence sentences of a document
VALUES = 12  # maximum values of a column in an answer
OVERHEAD = 40  # tokens of an explanation besides the tree
COLUMNS = 50  # maximum columns of a card
MAX_COUNTED_HITS = 100  # hits that are counted for facets, if the pipeline cannot count all matches
ALL_SHOWN = "this session has shown all {:,} hits; use other words, or seen='keep'"
MAX_VALUE_LENGTH = 80  # maximum characters of metadata values shown with a hit


@dataclass(frozen=True)
class Reply:
    """Values of an answer, ids of its documents in order, name of its pipeline, and the state of the index."""

    values: dict[str, object]
    documents: tuple[str, ...] = ()
    pipeline: str = ""
    state: ServedState | None = None


class Tools:
    """The tools, over the indexes of a service; with `wait`, calls wait until the service has loaded everything."""

    def __init__(self, service: Service, wait: bool = False) -> None:
        self.service = service
        self.shown = ShownDocuments()
        """Documents of answers that clients have received."""
        self._wait = wait
        self._calls: dict[str, Callable[..., Any]] = {
            "search": self._search,
            "read": self._read,
            "similar": self._similar,
            "facets": self._facets,
            "why": self._why,
            "explain": self._explain,
            "evidence": self._evidence,
        }

    async def call(self, name: str, arguments: Mapping[str, object], session: str | None = None) -> Answer:
        """Call a tool. Errors become answers with a remedy; only cancellation raises.

        Args:
            name: Name of the tool.
            arguments: Its arguments.
            session: Name of the session whose documents `seen` is about; None if the caller has no session of its own.
        """
        start, checked = time.perf_counter(), None
        try:
            if name not in TOOLS:
                raise ParameterError(f"there is no tool '{name[:100]}'; there are {', '.join(TOOLS)}")
            checked = _validated(name, arguments)
            if self._wait:
                await self._wait_until_loaded()
            async with asyncio.timeout(self.service.settings.seconds):
                more = {"session": session} if isinstance(checked, Search) else {}
                reply: Reply = await self._calls[name](checked, **more)
        except TimeoutError:
            limit = f"{self.service.settings.seconds:g} seconds"
            text, is_error, reply = f"no answer within {limit}; ask for less (a smaller k or depth), or again", True, Reply({})
        except Exception as error:
            text, is_error, reply = problem_of(error, self.service.names)[1], True, Reply({})
            if not isinstance(error, (FontesError, RefusedError)):
                log.error("the tool %s failed: %s: %s", name, type(error).__name__, error, exc_info=error)
                text = "the server failed at this call, and its owner can read why; try other arguments"
        else:
            text, is_error = as_json(reply.values), False
        if is_error:
            text = cut(text, MIN_TOKENS if checked is None else checked.tokens)
        index = "" if checked is None else self._index_of(checked)
        stage = reply.state.pipelines.get(reply.pipeline) if reply.state else None
        return Answer(
            text,
            is_error,
            documents=reply.documents,
            index=index,
            fingerprint=reply.state.index.fingerprint if reply.state else "",
            pipeline=reply.pipeline,
            expression=repr(stage) if stage else reply.pipeline,
            seconds=time.perf_counter() - start,
        )

    def _index_of(self, call: Arguments) -> str:
        return call.index or next(iter(self.service.indexes))

    async def _wait_until_loaded(self) -> None:
        """Wait until everything is loaded; the time does not count towards the time limit of the call."""
        deadline = time.monotonic() + self.service.settings.seconds
        while not self.service.ready:
            if time.monotonic() > deadline:
                raise busy(
                    "the server is still loading, which the first start after an installation does for a minute; call again"
                )
            await asyncio.sleep(0.02)

    def card(self, name: str) -> dict[str, object]:
        """Return the card of an index: documents, columns, pipelines and size."""
        served = self.service.served(name)
        state, described = served.state, served.to_dict()
        index = state.index
        values = index.facets(*state.facets.facets) if state.facets.facets else {}
        example_ids = (
            [index.ids[number] for number in range(0, len(index), max(1, len(index) // 5))][:5] if index.has_texts else []
        )
        return {
            "name": name,
            "documents": len(index),
            "tokens": int(index.state.tokens),
            "bytes": index.info()["bytes"],
            "state": state.generation,
            "fingerprint": index.fingerprint,
            "fields": list(index.fields),
            "columns": {
                column: {
                    "type": kind,
                    **(
                        {"values": [str(value)[:MAX_VALUE_LENGTH] for value in list(values[column])[:5]]}
                        if column in values
                        else {}
                    ),
                }
                for column, kind in list(index.columns.items())[:COLUMNS]
            },
            "pipelines": described["pipelines"],
            "examples": [
                {"id": doc.id, "title": doc.title[:MAX_VALUE_LENGTH] or doc.text[:MAX_VALUE_LENGTH]}
                for doc in index.docs(example_ids)
            ],
            "limits": {"query": self.service.settings.query, "k": self.service.settings.k},
        }

    async def _search(self, call: Search, session: str | None) -> Reply:
        topic, shown = self._topic(call), frozenset[str]()
        if call.seen != "keep":
            if session is None:
                raise RefusedError(
                    422,
                    f"seen='{call.seen}' needs a session, and this connection has none: leave seen out; "
                    "the client can name a session in _meta, as fontes/session",
                )
            if call.seen == "drop" and call.offset:
                raise ParameterError("seen='drop' goes without offset: the same call again gives the next hits")
            shown = frozenset(self.shown.of(session, self._index_of(call)))
        more = len(shown) if call.seen == "drop" else 0
        answer, state = await self._rank(call, topic, call.offset + call.k + more)
        return await self.service.work(self._hits, call, call.query, answer, state, "", shown)

    def _topic(self, call: Search | Explain) -> Topic:
        """The topic of a query, with the reasoning, if any, in its metadata."""
        self.service.check_query(call.query)
        if call.reasoning is None:
            return Topic("1", call.query)
        self.service.check_query(call.reasoning, "the reasoning")
        return Topic("1", call.query, metadata={REASONING: call.reasoning})

    async def _similar(self, call: Similar) -> Reply:
        served = self.service.served(call.index)
        self._check_document(served.state, call.id, served.name)
        doc = await self.service.work(served.state.index.doc, call.id)
        text = text_of(doc)[: self.service.settings.query]
        if not text.strip():
            raise ParameterError(f"document '{call.id}' has no text to compare with; search with words instead")
        answer, state = await self._rank(call, Topic("1", text), call.k + 1)
        return await self.service.work(self._hits, call, text, answer, state, call.id)

    async def _rank(self, call: Search | Similar, topic: Topic, k: int) -> tuple[dict[str, object], ServedState]:
        """The service's answer to a search, and the state that was searched."""
        max_hits = self.service.settings.k
        if isinstance(call, Search) and call.offset >= max_hits:
            raise RefusedError(
                422, f"offset is {call.offset:,}; this server gives the first {max_hits:,} hits: search with other words"
            )
        search = self._request(call, k, topic, text=True)
        state = search.served.state
        return json.loads(await self.service.search(search)), state

    def _hits(
        self,
        call: Search | Similar,
        query: str,
        answer: dict[str, Any],
        state: ServedState,
        excluded_id: str,
        shown: Set[str] = frozenset(),
    ) -> Reply:
        """The hits of an answer, without the document `excluded_id`, with near-duplicates listed at their first hit.

        Documents in `shown` are left out, or come last and short, as `seen` says.
        """
        no_hits = answer.get("no_hits", {})
        others = (hit for hit in answer["hits"] or no_hits.get("nearest", ()) if hit["id"] != excluded_id)
        hits = [hit | {"rank": rank} for rank, hit in enumerate(others, 1)]
        offset, seen = (call.offset, call.seen) if isinstance(call, Search) else (0, "keep")
        number_of_hits = len(hits)
        if seen == "drop":
            hits = [hit for hit in hits if hit["id"] not in shown][: call.k]
        leaders = groups_of([f"{hit.get('title', '')} {hit.get('text', '')}" for hit in hits])
        also: dict[int, list[str]] = {}
        for i, leader in enumerate(leaders):
            if leader != i:
                also.setdefault(leader, []).append(hits[i]["id"])
        leading = [i for i, leader in enumerate(leaders) if leader == i and offset <= i < offset + call.k]
        leading.sort(key=lambda i: hits[i]["id"] in shown)
        columns = state.index.columns

        def items() -> Iterator[dict[str, Any]]:
            for i in leading:
                hit = hits[i]
                if hit["id"] in shown:
                    item = {"rank": hit["rank"], "id": hit["id"], "title": hit.get("title"), "seen": True, "also": also.get(i)}
                    yield {key: value for key, value in item.items() if value}
                    continue
                metadata = {
                    column: value
                    for column, value in hit.get("metadata", {}).items()
                    if column in columns and value not in (None, "", []) and len(str(value)) <= MAX_VALUE_LENGTH
                }
                sentences = [rationale["text"] for rationale in hit.get("rationales") or ()]
                item = {
                    "rank": hit["rank"],
                    "id": hit["id"],
                    "title": hit.get("title"),
                    "why": reason(state.index, query, hit) if not excluded_id else f"score {hit['score']:.4g}",
                    "snippet": " … ".join(sentences) or hit.get("snippet", {}).get("text"),
                    "metadata": metadata,
                    "also": also.get(i),
                }
                yield {key: value for key, value in item.items() if value}

        def more(count: int) -> str | None:
            if not isinstance(call, Search):
                return None if count == len(leading) else "raise tokens"
            if seen == "drop":
                return "the same call again" if count < len(leading) or len(hits) == call.k else None
            if rest := [i for i in leading[count:] if hits[i]["id"] not in shown]:
                return f"offset={min(rest)}"
            end = offset + call.k
            return f"offset={end}" if len(answer["hits"]) >= end else None

        head: dict[str, object] = {"index": answer["index"], "pipeline": answer["pipeline"], "state": state.generation}
        if "understood" in answer:
            head["understood"] = shortened(answer["understood"], call.tokens // 4)
        if "tolerated" in answer:
            words = {word["word"]: [also["word"] for also in word["also"]] for word in answer["tolerated"]}
            head["tolerated"] = shortened(words, call.tokens // 4)
        last = hits[-1]["rank"] if len(hits) == call.k else number_of_hits
        if seen == "drop" and last > len(hits):
            head["left_out"] = last - len(hits)
        name = "nearest" if "nearest" in no_hits else "hits"
        if name == "nearest":
            head["hint"] = no_hits["sentence"]
        elif not hits:
            head["hint"] = ALL_SHOWN.format(number_of_hits) if number_of_hits else self._hint(state.index, query, call.where)
        values = fit(head, name, items(), call.tokens, more)
        return Reply(values, tuple(_ids(values[name])), answer["pipeline"], state)

    def _hint(self, index: Index, query: str, where: str | None) -> str:
        """Advice for a search without hits."""
        correction = suggest(index, query).correction
        hints = [f"try '{correction}'"] if correction else []
        hints += ["without `where`, or check its values with facets"] if where else []
        return "nothing matches: " + "; ".join([*hints, "use other or fewer words"])

    async def _read(self, call: Read) -> Reply:
        served = self.service.served(call.index)
        state = served.state
        self._check_document(state, call.id, served.name)

        def read_part() -> Reply:
            doc: Doc = state.index.doc(call.id)
            if call.start and call.start >= len(doc.text):
                raise ParameterError(f"start is {call.start:,}, and document '{call.id}' has {len(doc.text):,} characters")
            metadata = {column: value for column, value in doc.metadata.items() if len(str(value)) <= MAX_VALUE_LENGTH}
            values: dict[str, object] = {"id": doc.id, "title": doc.title}
            if metadata and not call.start:
                values["metadata"] = metadata
            values = shortened(values, call.tokens // 2)
            remaining = call.tokens - tokens_of(as_json(values)) - MORE_TOKENS
            text = cut(doc.text[call.start :], max(remaining, 1))
            while tokens_of(as_json(text)) > max(remaining, 8):  # with the escapes of JSON
                text = cut(text, tokens_of(text) * 7 // 8)
            end = call.start + len(text)
            values |= {"characters": [call.start, end, len(doc.text)], "text": text}
            if end < len(doc.text):
                values["more"] = f"start={end}"
            return Reply(values, (doc.id,), state=state)

        return await self.service.work(read_part)

    async def _facets(self, call: Facets) -> Reply:
        served = self.service.served(call.index)
        state, columns = served.state, tuple(dict.fromkeys(call.columns)) or tuple(served.state.facets.facets)
        if not columns:
            raise ParameterError(f"{served.name} has no columns to count; search it with words")
        ordered = tuple(column for column in columns if state.index.columns.get(column) in ORDERED)
        plain = tuple(column for column in columns if column not in ordered)
        if call.query is None:
            counts = await self.service.work(_count_values, state, call.where, plain, ordered)
        else:
            self.service.check_query(call.query)
            topic, k = Topic("1", call.query), MAX_COUNTED_HITS  # a lexical pipeline counts all documents that match
            search = self._request(call, k, topic, facets=plain, histograms=ordered, snippets=False)
            answer = json.loads(await self.service.search(search))
            counts = {column: {row["value"]: row["count"] for row in rows} for column, rows in answer.get("facets", {}).items()}
            for column, bins in answer.get("histograms", {}).items():
                counts[column] = {_range(row["from"], row["to"]): row["count"] for row in bins if row["count"]}
        items = [
            {
                "column": column,
                "type": state.index.columns[column],
                "values": {str(value)[:MAX_VALUE_LENGTH]: count for value, count in list(values.items())[:limit]},
                **({"others": len(values) - limit} if len(values) > limit else {}),
            }
            for column, values in sorted(counts.items(), key=lambda item: columns.index(item[0]))
            for limit in [BINS if column in ordered else VALUES]
        ]

        def more(shown: int) -> str | None:
            return f"columns={json.dumps([item['column'] for item in items[shown:]])}" if shown < len(items) else None

        values = fit({"index": served.name, "documents": len(state.index)}, "columns", items, call.tokens, more)
        return Reply(values, state=state)

    async def _why(self, call: Why) -> Reply:
        self.service.check_query(call.event)
        search = self._request(call, 20)

        def find_causes() -> Reply:
            stage = self.service.stage(search)
            chain = causes(stage, call.event, call.depth, k=search.options.k, weak=call.weak, leads=1)
            items: list[dict[str, object]] = []
            waiting = [(cause, call.event) for cause in reversed(chain.causes)]
            while waiting:
                cause, effect = waiting.pop()
                source = cause.sources[0]
                item = {
                    "cause": cause.text,
                    "of": effect,
                    "why": "a lead: no document states it" if cause.lead else f"stated ({source.cue})",
                    "id": source.doc_id,
                    "title": source.title,
                    "date": source.date,
                    "sentence": source.sentence,
                    "also": [other.doc_id for other in cause.sources[1:]],
                }
                items.append({key: value for key, value in item.items() if value})
                waiting += [(earlier, cause.text) for earlier in reversed(cause.causes)]
            head: dict[str, object] = {"pipeline": search.pipeline}
            if not items:
                head["hint"] = "no document states a cause; try weak=true, other words for the event, or search"
            values = fit(head, "causes", items, call.tokens, lambda shown: "raise tokens" if shown < len(items) else None)
            return Reply(values, tuple(dict.fromkeys(_ids(values["causes"]))), search.pipeline, search.served.state)

        return await self._work_cancellably(find_causes, search.has_model)

    async def _explain(self, call: Explain) -> Reply:
        typed = self._topic(call)
        search = self._request(call, self.service.settings.k)
        self._check_document(search.served.state, call.id, search.served.name)

        def explain() -> Reply:
            stage, index = self.service.stage(search), search.served.state.index
            topics = topics_read(index, search.options.syntax, [typed])[0]
            (topic,) = topics_tolerated(stage, index, search.options.tolerance, topics)
            lines = str(stage.explain(topic, call.id)).splitlines()
            remaining, text = call.tokens - OVERHEAD - tokens_of(call.id), ""
            lines_shown = 0
            for line in lines:
                if tokens_of(as_json(f"{text}{line}\n")) > remaining and lines_shown:
                    break
                text += f"{line}\n"
                lines_shown += 1
            values: dict[str, object] = {"id": call.id, "pipeline": search.pipeline, "score": text.rstrip("\n")}
            if lines_shown < len(lines):
                values["more"] = f"{len(lines) - lines_shown} further lines: raise tokens"
            return Reply(values, (call.id,), search.pipeline, search.served.state)

        return await self.service.work(explain, model=search.has_model)

    async def _evidence(self, call: Evidence) -> Reply:
        self.service.check_query(call.claim)
        search = self._request(call, call.k)
        if call.id is not None:
            self._check_document(search.served.state, call.id, search.served.name)

        def find_sentences() -> Reply:
            topic, index = Topic("1", call.claim), search.served.state.index
            refusal = None
            if call.id is None:
                stage = self.service.stage(search)
                run = stage(Topics([topic]))
                if not run.rows and (refusal := why_empty(run["1"], index, stage)).nearest is not None:
                    run = Run.of({"1": {hit.id: hit.score for hit in refusal.nearest}}, Topics([topic])).with_(documents=index)
            else:
                run = Run.of({"1": {call.id: 1.0}}, Topics([topic])).with_(documents=index)
            documents: object = run.documents
            if not hasattr(documents, "rationales"):
                run = Rationales(n=SENTENCES)(run.with_(documents=index))
                documents = run.documents
            items = []
            for hit, doc in zip(run["1"], index.docs(run["1"].ids), strict=True):
                rationales = sorted(documents.rationales("1", hit.id), key=lambda rationale: -rationale.score)
                items += [
                    {
                        "id": hit.id,
                        "title": doc.title,
                        "sentence": rationale.number,
                        "score": round(rationale.score, 2),
                        "text": rationale.text,
                    }
                    for rationale in rationales
                ]
            items.sort(key=lambda item: -item["score"])
            titled: set[str] = set()
            for item in items:
                if item["id"] in titled or not item["title"]:
                    del item["title"]
                titled.add(item["id"])
            head: dict[str, object] = {"index": search.served.name, "pipeline": search.pipeline}
            if refusal is not None and refusal.nearest is not None:
                head["hint"] = refusal.sentence
            elif not items:
                head["hint"] = "no sentence has a word of the claim; use other words, or read the document"
            head["note"] = "sentences about the claim, for or against it: read them"
            values = fit(head, "sentences", items, call.tokens, lambda n: "raise tokens" if n < len(items) else None)
            ids = dict.fromkeys(item["id"] for item in values["sentences"])
            return Reply(values, tuple(ids), search.pipeline, search.served.state)

        return await self._work_cancellably(find_sentences, search.has_model)

    async def _work_cancellably(self, function: Callable[[], Reply], model: bool) -> Reply:
        """Run a function in a thread; if the call is cancelled, the function ends at its next progress report."""
        ended = threading.Event()

        def report(progress: Progress) -> None:
            if ended.is_set():
                raise busy("the call was cancelled")

        def run() -> Reply:
            with work(progress=report):
                return function()

        try:
            return await self.service.work(run, model=model)
        finally:
            ended.set()

    def _request(self, call: Arguments, k: int, *topics: Topic, **options: Any) -> SearchRequest:
        """The search that a call asks for, with at most k hits, as far as the server gives so many."""
        arguments = call.model_dump(include={"index", "pipeline", "where", "syntax"})
        return self.service.request(SearchOptions(**arguments, k=min(k, self.service.settings.k), **options), *topics)

    def _check_document(self, state: ServedState, doc_id: str, name: str) -> None:
        if doc_id not in state.index:
            raise RefusedError(404, f"there is no document '{doc_id[:200]}' in {name} now; take ids from a new search")


def _count_values(
    state: ServedState, where: str | None, plain: tuple[str, ...], ordered: tuple[str, ...]
) -> dict[str, dict[Any, int]]:
    """Counts of values of `plain` columns and of ranges of `ordered` columns, among the documents that pass the filter."""
    passing = filter_of(state.index.state, where)
    docs = None if passing is None else passing.docs
    bins = state.index.facets(*ordered, docs=docs, bins=BINS)
    histograms = {
        column: {_range(low, high): count for (low, high), count in ranges.items() if count} for column, ranges in bins.items()
    }
    return state.index.facets(*plain, docs=docs) | histograms


def _ids(items: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the ids of hits or causes, each followed by its near-duplicates or further sources."""
    for item in items:
        yield item["id"]
        yield from item.get("also", ())


def _range(low: object, high: Any) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _is_absent(tool: type[Arguments], name: str, value: object) -> bool:
    """Whether a value of an argument means none, as models write it: null or, if it is optional, a text of `NOTHING`."""
    field = tool.model_fields.get(name)
    is_nothing = isinstance(value, str) and value.strip().lower() in NOTHING
    return value is None or (is_nothing and field is not None and not field.is_required())


def _validated(name: str, arguments: Mapping[str, object]) -> Arguments:
    """Validate the arguments of a tool; raise ParameterError for the first invalid one."""
    tool = TOOLS[name]
    try:
        return tool.model_validate({key: value for key, value in arguments.items() if not _is_absent(tool, key, value)})
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "arguments"
        if first["type"] == "extra_forbidden":
            problem = f"{name} has no argument '{location[:100]}'; {nearest(location, [*tool.model_fields])}"
        elif first["type"] == "missing":
            problem = f"{name} needs the argument '{location}'"
        else:
            problem = f"{name}: {location}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ParameterError(problem) from None
