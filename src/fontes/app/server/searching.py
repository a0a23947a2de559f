"""Batched searching: a queue, and threads that turn requests into JSON responses."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from ...core.errors import PipelineError
from ...core.progress import Progress, ProgressCallback, silent
from ...core.run import Ranking
from ...core.stage import Stage
from ...core.values import Topic, Topics
from ...index import Index
from ...lexical import Lexical
from ...lexical.hints import has_operators
from ...lexical.language import QueryLanguage
from ..results import least_total_of, rankings_as_json, total_of, why_empty
from .answers import busy, json_bytes
from .health import Metrics
from .served import ExpressionReader, Order, ReadyPipeline, ServedIndex

FACET_VALUES = 100  # maximum values of a facet, the most frequent ones
BINS = 20  # maximum bins of a histogram


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, as in `routes.SearchParameters`; requests with equal options are searched together."""

    served: ServedIndex
    pipeline: str
    where: str | None = None
    k: int = 10
    offset: int = 0
    count: bool = False
    order: Order | None = None
    syntax: str = "plain"
    facets: tuple[str, ...] = ()
    histograms: tuple[str, ...] = ()
    explain: bool = False
    text: bool = False
    snippets: bool = True


@dataclass(frozen=True)
class SearchRequest:
    """A request: its topics, and whether the answer is a list of results."""

    topics: tuple[Topic, ...]
    several: bool = False


Future = asyncio.Future[bytes]
Work = Callable[[SearchOptions, list[SearchRequest]], Sequence[bytes | Exception]]


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
        self._waiting: OrderedDict[SearchOptions, deque[tuple[SearchRequest, Future]]] = OrderedDict()
        self._scheduled = False

    def __len__(self) -> int:
        """Number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    async def result(self, options: SearchOptions, request: SearchRequest) -> bytes:
        """Result of a request; a request that is cancelled while it waits is dropped."""
        loop = asyncio.get_running_loop()
        future: Future = loop.create_future()
        self._waiting.setdefault(options, deque()).append((request, future))
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
            options, waiting = self._waiting.popitem(last=False)
            batch: list[tuple[SearchRequest, Future]] = []
            while waiting and len(batch) < self._size:
                request, future = waiting.popleft()
                if not future.done():
                    batch.append((request, future))
            if waiting:
                self._waiting[options] = waiting
            if batch:
                self._free -= 1
                search = loop.run_in_executor(self._pool, self._work, options, [request for request, _ in batch])
                search.add_done_callback(lambda done, batch=batch: self._finish(loop, done, batch))  # type: ignore[misc]

    def _finish(self, loop: asyncio.AbstractEventLoop, search: Any, batch: list[tuple[SearchRequest, Future]]) -> None:
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

    def __call__(self, options: SearchOptions, requests: list[SearchRequest]) -> Sequence[bytes | Exception]:
        """JSON of the answer, or the exception, for each request."""
        state, deadline = options.served.state, time.monotonic() + self._seconds

        def report(progress: Progress | None) -> None:
            if time.monotonic() > deadline:  # all clients have been told that the answer takes too long
                raise busy("the answer takes too long")

        self._metrics.batches.labels(self._queue).observe(sum(len(request.topics) for request in requests))
        try:
            depth = options.offset + options.k
            ready = state.pipeline(options.pipeline, options.where, depth, self._expressions, options.order)
            if ready.has_model:
                self._metrics.model_calls.labels(options.pipeline[:100]).inc()
            topics = [topic for request in requests for topic in request.topics]
            results = iter(_results(options, ready, topics, report))
            common = {"index": options.served.name, "pipeline": options.pipeline}
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
        return [result for request in requests for result in self(options, [request])]


def rankings_of(
    stage: Stage[Topics, Any], topics: Sequence[Topic], k: int, report: ProgressCallback = silent, offset: int = 0
) -> list[Ranking]:
    """Rankings of topics, in order, without the best `offset` documents; ids of topics may be equal."""
    if len(topics) == 1 and isinstance(stage, Lexical):
        return [stage.search(topics[0], k, offset)]
    run = stage(Topics(replace(topic, id=str(number)) for number, topic in enumerate(topics)), progress=report)
    return [ranking.page(offset, partial(stage.count, topic)) for topic, ranking in zip(topics, run.values(), strict=True)]


def _results(
    options: SearchOptions, ready: ReadyPipeline, topics: Sequence[Topic], report: Callable[[Progress | None], None]
) -> list[dict[str, Any]]:
    """JSON values of the results, one for each topic."""
    stage = ready.stage
    topics, readings = topics_read(options.served.state.index, options.syntax, topics, ready.reads_language)
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
        counts = _counts(options, stage, topic, ranking) if options.facets or options.histograms else {}
        values["total"] = counts.pop("total", None) or (total_of(ranking) if options.count else least_total_of(ranking, stage))
        values.update(counts)
        if not values["hits"]:
            values["no_hits"] = why_empty(ranking, options.served.state.index, stage)._asdict()
    return results


def _counts(options: SearchOptions, stage: Stage[Topics, Any], topic: Topic, ranking: Ranking) -> dict[str, Any]:
    """Counts of values and bins among all matching documents, with their total; among the hits if the stage cannot match."""
    facets: Callable[..., dict[str, dict[Any, int]]]
    result: dict[str, Any] = {}
    try:
        docs = stage.matches(topic)
        facets = partial(options.served.state.index.facets, docs=docs)
        result["total"] = {"value": len(docs), "relation": "eq"}
    except PipelineError:
        facets = ranking.facets
    if options.facets:
        result["facets"] = {
            column: [{"value": value, "count": count} for value, count in islice(counts.items(), FACET_VALUES)]
            for column, counts in facets(*options.facets).items()
        }
    if options.histograms:
        result["histograms"] = {
            column: [{"from": low, "to": high, "count": count} for (low, high), count in bins.items()]
            for column, bins in facets(*options.histograms, bins=BINS).items()
        }
    return result


def topics_read(
    index: Index, syntax: str, topics: Sequence[Topic], reads_language: bool = False
) -> tuple[list[Topic], list[dict[str, Any]]]:
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
    readings = [
        {} if parsed is None else {"understood": {"query": parsed.canonical, "remarks": list(parsed.remarks)}}
        for _, parsed in pairs
    ]
    return [topic for topic, _ in pairs], readings


def matches_in(index: Index, text: str, query: str) -> list[list[int]]:
    """Start and end, in characters, of the words of a text that match a query."""
    vocabulary = replace(index.analyzer, words=(1, 1)).vocabulary()
    return [[start, end] for start, end, _ in vocabulary.spans(text, index.analyzer(query))]


def rewrites(topic: Topic) -> list[dict[str, Any]]:
    """Versions of a topic, from the typed text to the query, each with its text and the weights of its terms, if any."""
    versions = [topic]
    while versions[-1].origin is not None:
        versions.append(versions[-1].origin)
    return [
        {"text": version.text, **({} if version.weights is None else {"weights": dict(version.weights)})}
        for version in reversed(versions)
    ]
