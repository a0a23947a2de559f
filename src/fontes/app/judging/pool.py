"""Pools: the best documents of several pipelines, in an order that says nothing of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from ...core.progress import Progress, Report, silent
from ...core.values import Topic
from ..server.searching import rankings_of
from ..server.served import ServedState
from .store import Store

TOGETHER = 32  # topics that are searched, and whose pools are saved, together


def fill(store: Store, state: ServedState, depth: int, report: Report = silent) -> None:
    """Adds to the pool of each topic the best documents of each pipeline. What was there stays.

    Args:
        store: The judgments.
        state: The pipelines.
        depth: How many documents each pipeline gives.
        report: Is told how far it is.
    """
    fingerprint = state.index.fingerprint
    for name, pipeline in state.pipelines.items():
        lacking = store.unpooled(fingerprint, repr(pipeline), depth)
        stage, start, done = pipeline % depth, time.perf_counter(), 0
        for topics in _parts(lacking.values()):
            rankings = zip(topics, rankings_of(stage, topics, depth), strict=True)
            ids = {topic.id: list(islice(ranking.ids, depth)) for topic, ranking in rankings}
            store.add_pools(ids, fingerprint, repr(pipeline), depth)
            done += len(topics)
            report(Progress(f"pooling with {name}", done, len(lacking), time.perf_counter() - start, "topics"))


def shuffled(judge: str, topic: str, documents: Iterable[str]) -> list[str]:
    """The order in which a judge sees documents: always the same, another for each judge and topic, and one in which documents
    that come later leave the others where they are.

    Args:
        judge: The judge's name.
        topic: The topic's id.
        documents: Their ids.
    """

    def place(document: str) -> bytes:
        return hashlib.sha256("\0".join((judge, topic, document)).encode("utf-8", "surrogatepass")).digest()

    return sorted(documents, key=place)


def _parts(topics: Iterable[Topic]) -> Iterator[list[Topic]]:
    topics = iter(topics)
    while part := list(islice(topics, TOGETHER)):
        yield part
