"""Batched searching: a queue, and threads that turn requests into JSON responses."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ...core.errors import PipelineError
from ...core.run import Ranking
from ...core.values import Topic, Topics
from ...core.work import Progress, ProgressCallback
from ...index import Index
from ...lexical import Lexical
from ...lexical.hints import has_operators
from ...lexical.language import QueryLanguage
from ...lexical.tolerance import tolerant
from ..results import facets_as_json, least_total_of, rankings_as_json, total_of, why_empty
from .answers import Body, IndexName, PipelineName, busy, json_bytes
from .health import Metrics
from .served import ExpressionReader, ReadyPipeline, Retriever, ServedIndex

BINS = 20  # maximum bins of a histogram


Syntax = Annotated[
    Literal["plain", "query"], Field(description="How the text of a topic is read: as words, or in the query language.")
]
Tolerance = Annotated[
    Literal["off", "auto", "typing"] | None,
    Field(
        description="How misspelt words are searched: alone (off), with their neighbours (auto), and the last word as the "
        "beginning of one (typing); by default as the server was told (--tolerance)."
    ),
]
Columns = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: [name.strip() for name in value.split(",") if name.strip()] if type(value) is str else value),
]


class SearchOptions(Body):
    """Options of a search: the fields of requests, from addresses, bodies and tools."""

    index: IndexName = None
    pipeline: PipelineName = None
    where: str | None = Field(default=None, description="Condition on the documents' metadata, such as year >= 2020.")
    k: int = Field(default=10, description="Maximum number of hits of a topic.")
    offset: int = Field(default=0, ge=0, description="Number of best hits to leave out, for the next page.")
    count: bool = Field(default=False, description="Whether to count all documents that match, beyond 1,000 too.")
    sort: str | None = Field(
        default=None, description="Column of dates or numbers that orders the hits, in place of the score."
    )
    descending: bool = Field(
        default=False, description="Whether the greatest value of the column, or the newest date, is first."
    )
    syntax: Syntax = "plain"
    tolerance: Tolerance = None
    facets: Columns = Field(default=(), description="Columns whose values are counted.")
    histograms: Columns = Field(default=(), description="Columns of numbers or dates that are counted in bins.")
    facet_query: str = Field(default="", description="Text that the counted values of facets contain.")
    explain: bool = Field(default=False, description="Whether to explain the score of each hit.")
    text: bool = Field(default=False, description="Whether to return the whole text of each hit.")
    snippets: bool = Field(default=True, description="Whether to return the passage of each hit that matches best.")


_options_of = attrgetter(*(name for name in SearchOptions.model_fields if name not in ("index", "pipeline")))


@dataclass(frozen=True)
class SearchRequest:
    """Topics to search for in an index.

    Args:
        served: The index.
        pipeline: Name of the pipeline, or an expression.
        options: The options, with which limits agree.
        topics: The topics.
        several: Whether the answer is a list of results.
        has_model: Whether the pipeline runs a model; for an expression, whether a part may run one.
    """

    served: ServedIndex
    pipeline: str
    options: SearchOptions
    topics: tuple[Topic, ...] = ()
    several: bool = False
    has_model: bool = False

    def ready(self, expressions: ExpressionReader | None) -> ReadyPipeline:
        """The pipeline with the filter, order and depth of the options; errors as of `ServedState.pipeline`."""
        options = self.options
        order = (options.sort, options.descending) if options.sort else None
        return self.served.state.pipeline(self.pipeline, options.where or None, options.offset + options.k, expressions, order)


Future = asyncio.Future[bytes]
Work = Callable[[list[SearchRequest]], Sequence[bytes | Exception]]


class BatchQueue:
    """Queue, on one event loop, from which threads take requests with equal options as one batch.

    A request starts at once if a thread is free. While all threads are busy, requests wait; the next free thread takes up to
    `size` waiting requests with equal options. Different options take turns.

    Args:
        work: Returns the results of a batch, in order; an exception among them is raised for that request alone.
        pool: The threads.
        threads: Maximum number of batches in progress.
        size: Maximum number of requests of a batch.
    """

    def __init__(self, work: Work, pool: ThreadPoolExecutor, threads: int, size: int) -> None:
        self._work = work
        self._size = size
        self._free = threads
        self._pool = pool
        self._waiting: OrderedDict[Hashable, deque[tuple[SearchRequest, Future]]] = OrderedDict()
        self._scheduled = False

    def __len__(self) -> int:
        """Number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    async def result(self, request: SearchRequest) -> bytes:
        """Result of a request; a request that is cancelled while it waits is dropped."""
        loop = asyncio.get_running_loop()
        future: Future = loop.create_future()
        group = (request.served, request.pipeline, *_options_of(request.options))
        self._waiting.setdefault(group, deque()).append((request, future))
        self._schedule(loop)
        return await future

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start batches in the next round of the loop, if a thread is free and requests wait."""
        if self._free and self._waiting and not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._start, loop)  # after all requests that arrived in the same round of the loop

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start batches until no thread is free or no request waits."""
        self._scheduled = False
        while self._free and self._waiting:
            group, waiting = self._waiting.popitem(last=False)
            batch: list[tuple[SearchRequest, Future]] = []
            while waiting and len(batch) < self._size:
                request, future = waiting.popleft()
                if not future.done():
                    batch.append((request, future))
            if waiting:
                self._waiting[group] = waiting
            if batch:
                self._free -= 1
                search = loop.run_in_executor(self._pool, self._work, [request for request, _ in batch])
                search.add_done_callback(partial(self._finish, loop, batch))

    def _finish(self, loop: asyncio.AbstractEventLoop, batch: list[tuple[SearchRequest, Future]], search: Any) -> None:
        """Hand the results of a batch to its requests, and free its thread."""
        self._free += 1
        error = RuntimeError("the server ends") if search.cancelled() else search.exception()
        results = [error] * len(batch) if error else search.result()
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._schedule(loop)


class BatchSearch:
    """Searches for a batch of requests, in any thread.

    Args:
        expressions: Reads expressions of requests; None if they are not allowed.
        metrics: Counters.
        queue: Name of the queue in the counters.
        seconds: Time limit of a batch, checked whenever a stage reports progress.
    """

    def __init__(self, expressions: ExpressionReader | None, metrics: Metrics, queue: str, seconds: float) -> None:
        self._expressions = expressions
        self._seconds = seconds
        self._metrics = metrics
        self._queue = queue

    def __call__(self, requests: list[SearchRequest]) -> Sequence[bytes | Exception]:
        """JSON of the answer, or the exception, for each request of one group."""
        first, deadline = requests[0], time.monotonic() + self._seconds

        def report(progress: Progress | None) -> None:
            if time.monotonic() > deadline:  # all clients have been told that the answer takes too long
                raise busy("the answer takes too long")

        self._metrics.batches.labels(self._queue).observe(sum(len(request.topics) for request in requests))
        try:
            ready = first.ready(self._expressions)
            if ready.has_model:
                self._metrics.model_calls.labels(first.pipeline[:100]).inc()
            topics = [topic for request in requests for topic in request.topics]
            results = iter(_results(first.options, first.served.state.index, ready, topics, report))
            common = {"index": first.served.name, "pipeline": first.pipeline}
            return [
                json_bytes(
                    {**common, "results": [next(results) for _ in request.topics]}
                    if request.several
                    else {**common, **next(results)}
                )
                for request in requests
            ]
        except Exception as error:
            if len(requests) == 1 or time.monotonic() > deadline:
                return [error] * len(requests)
        # One by one, so that each request gets its own error.
        return [result for request in requests for result in self([request])]


def rankings_of(
    stage: Retriever, topics: Sequence[Topic], k: int, report: ProgressCallback | None = None, offset: int = 0
) -> list[Ranking]:
    """Rankings of topics, in order, without the best `offset` documents; ids of topics may be equal."""
    if len(topics) == 1 and isinstance(stage, Lexical):
        return [stage.search(topics[0], k, offset)]
    run = stage(Topics(replace(topic, id=str(number)) for number, topic in enumerate(topics)), progress=report)
    return [ranking.page(offset, partial(stage.count, topic)) for topic, ranking in zip(topics, run.values(), strict=True)]


def _results(
    options: SearchOptions,
    index: Index,
    ready: ReadyPipeline,
    topics: Sequence[Topic],
    report: Callable[[Progress | None], None],
) -> list[dict[str, object]]:
    """JSON values of the results, one for each topic."""
    stage = ready.stage
    topics, readings = topics_read(index, options.syntax, topics, ready.reads_language)
    if options.tolerance not in (None, "off"):
        topics = topics_tolerated(stage, index, options.tolerance, topics)
    rankings = rankings_of(stage, topics, options.k, report, options.offset)
    report(None)
    results = rankings_as_json(rankings, text=True, snippets=options.snippets)
    for topic, reading, ranking, values in zip(topics, readings, rankings, results, strict=True):
        values["topic"] = topic.id
        values.update(reading)
        for hit in values["hits"]:
            if not options.text:
                hit.pop("text", None)
            if options.explain:
                report(None)
                hit["explanation"] = stage.explain(topic, hit["id"]).to_dict()
        counts = _counts(options, index, stage, topic, ranking) if options.facets or options.histograms else {}
        values["total"] = counts.pop("total", None) or (total_of(ranking) if options.count else least_total_of(ranking, stage))
        values.update(counts)
        if not values["hits"]:
            values["no_hits"] = why_empty(ranking, index, stage).to_dict(options.text)
    return results


def _counts(options: SearchOptions, index: Index, stage: Retriever, topic: Topic, ranking: Ranking) -> dict[str, object]:
    """Counts of values and bins among all matching documents, with their total; among the hits if the stage cannot match."""
    facets: Callable[..., dict[str, dict[Any, int]]]
    result: dict[str, object] = {}
    try:
        docs = stage.matches(topic)
        facets = partial(index.facets, docs=docs)
        result["total"] = {"value": len(docs), "relation": "eq"}
    except PipelineError:
        facets = ranking.facets
    if options.facets:
        text = _plain(options.facet_query)
        result["facets"] = facets_as_json(
            {
                column: {value: count for value, count in counts.items() if text in _plain(str(value))} if text else counts
                for column, counts in facets(*options.facets).items()
            }
        )
    if options.histograms:
        result["histograms"] = {
            column: [{"from": low, "to": high, "count": count} for (low, high), count in bins.items()]
            for column, bins in facets(*options.histograms, bins=BINS).items()
        }
    return result


def _plain(text: str) -> str:
    """A text without capitals and accents."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character)).casefold()


def topics_read(
    index: Index, syntax: str, topics: Sequence[Topic], reads_language: bool = False
) -> tuple[list[Topic], list[dict[str, object]]]:
    """Topics as parsed in the syntax of a request, and values for the answer about each.

    The values are "understood", the parsed query, or "operators", if a plain text has operators of the query language.

    Args:
        index: The index that is searched.
        syntax: "plain" or "query", as in the request.
        topics: The topics.
        reads_language: Whether a stage of the pipeline reads the query language.
    """
    if syntax == "plain":
        have_operators = [not reads_language and has_operators(topic.text, index.state) for topic in topics]
        return list(topics), [{"operators": True} if has_any else {} for has_any in have_operators]
    language = QueryLanguage(index)
    pairs = [language.read(topic) for topic in topics]
    readings: list[dict[str, object]] = [
        {} if parsed is None else {"understood": {"query": parsed.canonical, "remarks": list(parsed.remarks)}}
        for _, parsed in pairs
    ]
    return [topic for topic, _ in pairs], readings


def topics_tolerated(stage: Retriever, index: Index, tolerance: str | None, topics: Sequence[Topic]) -> list[Topic]:
    """Topics with neighbours of their words, if the tolerance of a request asks for them.

    Args:
        stage: The stage that searches; where it reads the query language, topics are read so first.
        index: The index that is searched.
        tolerance: As in the request.
        topics: The topics.
    """
    if tolerance in (None, "off") or (tolerance_stage := tolerant(stage, index, tolerance)) is None:
        return list(topics)
    return [tolerance_stage(topic)[topic.id] for topic in topics]


def matches_in(index: Index, text: str, query: str) -> list[list[int]]:
    """Start and end, in characters, of the words of a text that match a query."""
    vocabulary = replace(index.analyzer, words=(1, 1)).vocabulary()
    return [[start, end] for start, end, _ in vocabulary.spans(text, index.analyzer(query))]


def rewrites(topic: Topic) -> list[dict[str, object]]:
    """Versions of a topic, from the typed text to the query, each with its text and the weights of its terms, if any."""
    versions = [topic]
    while versions[-1].origin is not None:
        versions.append(versions[-1].origin)
    return [
        {"text": version.text, **({} if version.weights is None else {"weights": dict(version.weights)})}
        for version in reversed(versions)
    ]
