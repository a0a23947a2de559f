"""Searching for requests: those of one kind together, each to the JSON that it would get alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from ...core.progress import Progress, Report, silent
from ...core.run import Ranking
from ...core.stage import Stage
from ...core.values import Topic, Topics
from ...index import Index
from ...lexical import Lexical
from ..results import rankings_as_json
from .expressions import Guarded
from .metrics import Metrics
from .problems import busy
from .served import Served, uses_model

VALUES = 100  # of a facet, the most frequent ones
BINS = 20  # of a histogram at most


@dataclass(frozen=True)
class SearchOptions:
    """What requests must have in common to be searched together.

    Args:
        served: The index.
        pipeline: The name of the pipeline, or an expression.
        where: A filter.
        k: Hits of a topic.
        facets: Columns whose values are counted.
        histograms: Columns of numbers or dates that are counted in bins.
        explain: Whether hits come with the explanations of their scores.
        text: Whether hits come with the documents' whole texts.
        snippets: Whether hits come with the pieces of the texts that fit best.
    """

    served: Served
    pipeline: str
    where: str | None = None
    k: int = 10
    facets: tuple[str, ...] = ()
    histograms: tuple[str, ...] = ()
    explain: bool = False
    text: bool = False
    snippets: bool = True


@dataclass(frozen=True)
class SearchRequest:
    """One request.

    Args:
        topics: Its topics.
        several: Whether its answer is a list of results, or the one result.
    """

    topics: tuple[Topic, ...]
    several: bool = False


class Searcher:
    """Works on batches of requests, in any thread.

    Args:
        free: What reads expressions of requests; None where there may be none.
        metrics: Where batches are counted.
        queue: What they call the queue.
        seconds: How long a batch may take; then it ends where its stages next tell how far they are.
    """

    def __init__(self, free: Guarded | None, metrics: Metrics, queue: str, seconds: float) -> None:
        self._free = free
        self._seconds = seconds
        self._metrics = metrics
        self._queue = queue

    def __call__(self, kind: SearchOptions, requests: list[SearchRequest]) -> Sequence[bytes | Exception]:
        """For each request the JSON of its answer, or what was raised for it."""
        state, ends = kind.served.state, time.monotonic() + self._seconds

        def report(progress: Progress | None) -> None:
            if time.monotonic() > ends:  # all who asked have been answered that it takes too long
                raise busy("the answer takes too long")

        self._metrics.batches.labels(self._queue).observe(sum(len(request.topics) for request in requests))
        try:
            stage = state.pipeline(kind.pipeline, kind.where, kind.k, self._free)
            if uses_model(stage):
                self._metrics.model_calls.labels(kind.pipeline[:100]).inc()
            topics = [topic for request in requests for topic in request.topics]
            results = iter(results_of(kind, stage, topics, report))
            of = {"index": kind.served.name, "pipeline": kind.pipeline}
            return [
                as_json(
                    {**of, "results": [next(results) for _ in request.topics]} if request.several else {**of, **next(results)}
                )
                for request in requests
            ]
        except Exception as error:
            if len(requests) == 1 or time.monotonic() > ends:
                return [error] * len(requests)
        return [result for request in requests for result in self(kind, [request])]  # so that each gets its own error


def rankings_of(stage: Stage[Topics, Any], topics: Sequence[Topic], k: int, report: Report = silent) -> list[Ranking]:
    """The rankings of topics, whose ids need not differ, in their order."""
    if len(topics) == 1 and isinstance(stage, Lexical):
        return [stage.search(topics[0], k)]
    run = stage(Topics(replace(topic, id=str(number)) for number, topic in enumerate(topics)), progress=report)
    return list(run.values())


def results_of(
    kind: SearchOptions, stage: Stage[Topics, Any], topics: Sequence[Topic], report: Callable[[Progress | None], None]
) -> list[dict[str, Any]]:
    """The JSON values of each topic's hits."""
    rankings = rankings_of(stage, topics, kind.k, report)
    report(None)
    results = rankings_as_json(rankings, text=True, snippets=kind.snippets)
    for topic, ranking, values in zip(topics, rankings, results, strict=True):
        values["topic"] = topic.id
        for hit in values["hits"]:
            if not kind.text:
                hit.pop("text", None)
            if kind.explain:
                report(None)
                hit["explanation"] = stage.explain(topic, hit["id"]).to_dict()
        if kind.facets:
            counts = ranking.facets(*kind.facets)
            values["facets"] = {
                column: [{"value": value, "count": count} for value, count in islice(of_column.items(), VALUES)]
                for column, of_column in counts.items()
            }
        if kind.histograms:
            values["histograms"] = {
                column: [{"from": low, "to": high, "count": count} for (low, high), count in of_column.items()]
                for column, of_column in ranking.facets(*kind.histograms, bins=BINS).items()
            }
    return results


def matches_in(index: Index, text: str, query: str) -> list[list[int]]:
    """Where words of a query are in a text, as first character and end."""
    vocabulary = replace(index.analyzer, words=(1, 1)).vocabulary()
    return [[start, end] for start, end, _ in vocabulary.spans(text, index.analyzer(query))]


def as_json(values: Any) -> bytes:
    """JSON in UTF-8; what UTF-8 cannot hold is escaped, and numbers that are none are null."""
    try:
        return to_json(values, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(values, default=str).encode()
