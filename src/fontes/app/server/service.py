"""The service behind the routes: indexes and queues."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from ...core.errors import FontesError, ParameterError
from ...core.strings import SURROGATE
from ...core.values import Topic
from ...core.work import processors
from ...index.columns.facets import ORDERED
from .answers import RefusedError
from .health import Metrics
from .searching import BatchQueue, BatchSearch, SearchOptions, SearchRequest
from .served import ExpressionReader, Retriever, ServedIndex
from .settings import ServerSettings
from .writing import WriteQueue

T = TypeVar("T")
log = logging.getLogger("fontes.server")
PIPELINES = {"bm25": "bm25()"}
LEXICAL_BATCH, MODEL_BATCH = 64, 16  # requests that are searched together
MAX_EXPLAINED = 100  # maximum hits with explanations
OTHER_THREADS = 8  # for all work except searches
LARGE_ARRAY = 1 << 20  # bytes from which an array gets its own memory pages
MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in glibc's malloc.h
NICENESS = 5


class Service:
    """Indexes and pipelines, and the threads that search them.

    Args:
        paths: Directories of the indexes; the first is the default of requests.
        settings: The settings.
        pipelines: Expressions by name; BM25 if empty.
        rewriters: Expressions of turn rewriters by name; if empty, the default rewriter of the first pipeline.

    Raises:
        FontesError: An index cannot be opened, or a pipeline is invalid.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        settings: ServerSettings,
        pipelines: Mapping[str, str] | None = None,
        rewriters: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings
        self.indexes: dict[str, ServedIndex] = {}
        for path in paths:
            name = path.absolute().stem
            if name in self.indexes:
                raise ParameterError(f"{path}: another index is called '{name}' too; requests name indexes by their folders")
            self.indexes[name] = ServedIndex(path, name, pipelines or PIPELINES, rewriters or {})
        if not self.indexes:
            raise ParameterError("there is no index to serve")
        self.metrics = Metrics()
        self.ready = False
        self.described: dict[str, object] = {}  # additional values in the response of /indexes
        texts = {text for served in self.indexes.values() for text in served.texts}
        self.expressions = ExpressionReader(texts, max(settings.k, 1000)) if settings.any_pipeline else None
        threads = processors()
        self._pools = {
            "search": ThreadPoolExecutor(threads, "search"),
            "models": ThreadPoolExecutor(1, "models"),
            "others": ThreadPoolExecutor(OTHER_THREADS, "others"),
            "states": ThreadPoolExecutor(1, "states", initializer=_lower_priority),
            "merges": ThreadPoolExecutor(1, "merges", initializer=_lower_priority),
        }
        self._lexical = BatchQueue(self._batch_search("lexical"), self._pools["search"], threads, LEXICAL_BATCH)
        self._models = BatchQueue(self._batch_search("models"), self._pools["models"], 1, MODEL_BATCH)
        merge = partial(self._run_in, "merges")
        self.writes = {
            name: WriteQueue(served, settings.queue, self.work, merge, self.names) for name, served in self.indexes.items()
        }
        self._register_gauges()

    @property
    def names(self) -> dict[str, str]:
        """Names of the indexes by path, for messages to clients."""
        return {
            path: served.name for served in self.indexes.values() for path in (str(served.path), str(served.path.absolute()))
        }

    def served(self, name: str | None) -> ServedIndex:
        """Index by name, by default the first. Raises RefusedError for an unknown name."""
        if name is None:
            return next(iter(self.indexes.values()))
        if name not in self.indexes:
            raise RefusedError(404, f"there is no index '{name[:200]}'; there are {', '.join(self.indexes)}")
        return self.indexes[name]

    def request(self, options: SearchOptions, *topics: Topic, several: bool = False) -> SearchRequest:
        """A search with these options; raises RefusedError if one exceeds a limit or is an unknown name."""
        served, limits, k = self.served(options.index), self.settings, options.k
        if options.tolerance is None:
            options = options.model_copy(update={"tolerance": limits.tolerance})
        name = served.state.pipeline_named(options.pipeline)
        if options.explain and k > MAX_EXPLAINED:
            raise RefusedError(422, f"at most {MAX_EXPLAINED} hits come with explanations; k is {k}")
        if options.where is not None and len(options.where) > limits.query:
            raise RefusedError(422, f"the filter has {len(options.where):,} characters; {limits.query:,} are taken (--query)")
        for column in options.histograms:
            if (kind := served.state.index.columns.get(column, "date")) not in ORDERED:
                raise RefusedError(
                    422, f"column '{column[:200]}' holds {kind} values, which have no histogram; ask for its facets"
                )
        if not 1 <= k <= limits.k:
            raise RefusedError(422, f"k is {k}; this server gives 1 to {limits.k:,} hits (--k)")
        if options.offset + k > limits.k:
            raise RefusedError(
                422, f"offset {options.offset:,} with k {k:,} goes beyond the best {limits.k:,} hits, this server's limit (--k)"
            )
        served.state.check_pipeline(name, self.expressions)
        return SearchRequest(served, name, options, topics, several, self._has_model(served, name))

    def check_query(self, text: str, name: str = "the query") -> None:
        """Raise RefusedError for a query that is too long, empty, or not encodable; the error calls it by its name."""
        if len(text) > self.settings.query:
            raise RefusedError(422, f"{name} has {len(text):,} characters; this server takes {self.settings.query:,} (--query)")
        if not text.strip():
            raise RefusedError(422, f"{name} is empty")
        if SURROGATE.search(text):
            raise RefusedError(422, f"{name} has half of a character (a lone surrogate)")

    def check_topics(self, topics: list[Topic]) -> None:
        """Raise RefusedError for too many topics, duplicate ids, or a text that `check_query` refuses."""
        if len(topics) > self.settings.batch:
            raise RefusedError(
                422, f"there are {len(topics):,} topics; a request has {self.settings.batch:,} at most (--batch)"
            )
        for topic in topics:
            texts = (topic.text,) if topic.text or (topic.weights is None and topic.query is None) else ()
            for text in (*texts, *(turn.text for turn in topic.turns)):
                self.check_query(text)
        if len({topic.id for topic in topics}) < len(topics):
            raise RefusedError(422, "two topics have the same id")

    def stage(self, request: SearchRequest) -> Retriever:
        """Pipeline of a search."""
        return request.ready(self.expressions).stage

    def _has_model(self, served: ServedIndex, pipeline: str) -> bool:
        if (loaded := served.state.models.get(pipeline)) is not None:
            return loaded
        return self.expressions is None or not self.expressions.is_free(pipeline)

    async def search(self, request: SearchRequest) -> bytes:
        """JSON of the answer to a request."""
        return await (self._models if request.has_model else self._lexical).result(request)

    async def work(self, function: Callable[..., T], *arguments: object, model: bool = False) -> T:
        """Call a function in a thread: in the thread of the models if it needs a model."""
        return await self._run_in("models" if model else "others", function, *arguments)

    async def _run_in(self, pool: str, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pools[pool], function, *arguments)

    async def run(self) -> None:
        """Load everything, then serve newer states of the indexes, until cancelled."""
        for name, writes in self.writes.items() if self.settings.writable else ():
            try:
                writes.open()
            except FontesError as error:
                log.warning("%s: writes are answered only after their commit: %s", name, error)
            writes.start()
        for served in self.indexes.values():
            await self.work(served.warm)
            await self.work(self._warm_up, served)
            await self.work(served.warm_suggestions)
        gc.collect()
        gc.freeze()  # these objects stay; scanning them for garbage would take a fifth of the time
        self.ready = True
        while True:
            await asyncio.sleep(self.settings.refresh or 3600)
            if self.settings.refresh:
                for served in self.indexes.values():
                    if await self._run_in("states", served.refresh):
                        await self._run_in("states", _trim_memory)

    def _batch_search(self, queue: str) -> BatchSearch:
        return BatchSearch(self.expressions, self.metrics, queue, self.settings.seconds)

    def _warm_up(self, served: ServedIndex) -> None:
        """Call each pipeline with all options, so that no request has to wait for compilation."""
        index = served.state.index
        part = next((part for part in index.state.parts if len(part.terms)), None)
        if part is None:
            return
        topic = Topic("1", part.terms[int(part.df.argmax())])
        columns = tuple(index.columns)
        any_value = " or ".join(f"metadata[{column!r}] is None" for column in columns) or None
        search = self._batch_search("rehearsal")
        for name in served.state.pipelines:
            for where in {None, any_value, any_value and f"not ({any_value})"}:
                search([SearchRequest(served, name, SearchOptions(where=where, facets=columns), (topic,))] * 2)
                search([SearchRequest(served, name, SearchOptions(where=where, explain=True), (topic,))])

    def close(self) -> None:
        """End the threads."""
        for writes in self.writes.values():
            writes.stop()
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=True)
        for writes in self.writes.values():
            writes.close()

    def _register_gauges(self) -> None:
        """Let the metrics read queues and states."""
        watch = self.metrics.watch
        watch("queue", lambda: len(self._lexical), "lexical")
        watch("queue", lambda: len(self._models), "models")
        watch("queue", lambda: sum(map(len, self.writes.values())), "writes")
        for name, served in self.indexes.items():
            self._register_index(name, served)

    def _register_index(self, name: str, served: ServedIndex) -> None:
        self.metrics.watch("generation", lambda: served.state.generation, name)
        self.metrics.watch("documents", lambda: len(served.state.index), name)


def return_large_arrays() -> None:
    """Make glibc return freed arrays of at least 1 MiB to the system.

    By default glibc keeps freed blocks of up to 32 MiB, and a server whose index changes would grow with each state.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_ARRAY)


def _trim_memory() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _lower_priority() -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
