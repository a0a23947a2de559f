"""The service behind the addresses: indexes, queues and conversations, from start to end."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ...core.errors import ParameterError
from ...core.strings import SURROGATE
from ...core.values import Topic
from .batching import Batcher
from .expressions import Guarded
from .memory import give_way, trim
from .metrics import Metrics
from .problems import RefusedError
from .searching import Searcher, SearchOptions, SearchRequest
from .served import Served, ServedState
from .sessions import Sessions
from .settings import Settings

T = TypeVar("T")
DEFAULT = {"bm25": "bm25()"}
TOPICS = 64  # that are searched together
PAIRS = 16  # topics that go through a model together
OTHERS = 8  # threads for everything that is no search
LOOK = 0.1  # seconds between two looks at whether it is time to refresh


class Service:
    """What a server serves.

    Args:
        paths: The indexes' directories; the first is searched where a request names none.
        settings: The settings.
        pipelines: Expressions by name; none for BM25.
        rewriters: Expressions of rewriters of turns by name; none for the one that suits the first pipeline.

    Attributes:
        settings: The settings.
        indexes: What is served, by name.
        metrics: The counters.
        talks: The conversations.
        ready: Whether all models are loaded.
        described: What else /indexes says.

    Raises:
        FontesError: An index cannot be opened, or a pipeline cannot be read.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        settings: Settings,
        pipelines: Mapping[str, str] | None = None,
        rewriters: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings
        self.indexes: dict[str, Served] = {}
        for path in paths:
            name = path.absolute().stem
            if name in self.indexes:
                raise ParameterError(f"{path}: another index is called '{name}' too; requests name indexes by their folders")
            self.indexes[name] = Served(path, name, pipelines or DEFAULT, rewriters or {})
        if not self.indexes:
            raise ParameterError("there is no index to serve")
        self.metrics = Metrics()
        self.ready = False
        self.described: dict[str, Any] = {}
        self.talks = Sessions(settings.talks, settings.kept)
        texts = {text for served in self.indexes.values() for text in served.texts}
        self.free = Guarded(texts, max(settings.k, 1000)) if settings.any_pipeline else None
        threads = os.cpu_count() or 1
        self._pools = {
            name: ThreadPoolExecutor(number, name) for name, number in (("search", threads), ("models", 1), ("others", OTHERS))
        }
        self._pools["states"] = ThreadPoolExecutor(1, "states", initializer=give_way)
        self._lexical = Batcher(
            Searcher(self.free, self.metrics, "lexical", settings.seconds), self._pools["search"], threads, TOPICS
        )
        self._models = Batcher(Searcher(self.free, self.metrics, "models", settings.seconds), self._pools["models"], 1, PAIRS)
        self._writing = asyncio.Lock()
        self._watch()

    @property
    def names(self) -> dict[str, str]:
        """What stands in place of paths in messages to clients."""
        return {
            shown: served.name for served in self.indexes.values() for shown in (str(served.path), str(served.path.absolute()))
        }

    def served(self, name: str | None) -> Served:
        """The index that a request names; the first for None.

        Raises:
            RefusedError: There is none of this name.
        """
        if name is None:
            return next(iter(self.indexes.values()))
        if name not in self.indexes:
            raise RefusedError(404, f"there is no index '{name[:200]}'; there are {', '.join(self.indexes)}")
        return self.indexes[name]

    def kind(self, index: str | None, pipeline: str | None, k: int = 10, **more: Any) -> SearchOptions:
        """What a request asks for, within the limits.

        Raises:
            RefusedError: It is beyond them, or names what there is not.
        """
        served, limit = self.served(index), self.settings.k
        if not 1 <= k <= limit:
            raise RefusedError(422, f"k is {k}; this server gives 1 to {limit:,} hits (--k)")
        own = served.state.pipelines
        name = next(iter(own)) if pipeline is None else pipeline
        if name not in own and self.free is None:
            raise RefusedError(422, f"there is no pipeline '{name[:200]}'; there are {', '.join(own)}")
        return SearchOptions(served, name, k=k, **more)

    def rewriter(self, state: ServedState, name: str | None) -> str | None:
        """The name of the rewriter of turns that a request names; for None the first, if there is one.

        Raises:
            RefusedError: There is none of this name.
        """
        if name is None:
            return next(iter(state.rewriters), None)
        if name not in state.rewriters:
            raise RefusedError(422, f"there is no rewriter '{name[:200]}'; there are {', '.join(state.rewriters) or 'none'}")
        return name

    def check_query(self, text: str) -> None:
        """Raises RefusedError for a query that is too long, empty, or no text."""
        if len(text) > self.settings.query:
            raise RefusedError(
                422, f"the query has {len(text):,} characters; this server takes {self.settings.query:,} (--query)"
            )
        if not text.strip():
            raise RefusedError(422, "the query is empty")
        if SURROGATE.search(text):
            raise RefusedError(422, "the query has half of a character (a lone surrogate)")

    def has_model(self, kind: SearchOptions) -> bool:
        """Whether what is asked for runs a model."""
        if (own := kind.served.state.models.get(kind.pipeline)) is not None:
            return own
        return self.free is None or not self.free.is_light(kind.pipeline)

    async def search(self, kind: SearchOptions, request: SearchRequest) -> bytes:
        """The JSON of the answer to a request."""
        return await (self._models if self.has_model(kind) else self._lexical).result(kind, request)

    async def work(self, function: Callable[..., T], *arguments: Any, model: bool = False) -> T:
        """What a function gives, in a thread; in that of the models where it needs one."""
        return await self._in("models" if model else "others", function, *arguments)

    async def _in(self, pool: str, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pools[pool], function, *arguments)

    async def change(self, served: Served, name: str, *arguments: Any, **options: Any) -> Any:
        """A change of an index, one after the other; see `Served.change`."""
        async with self._writing:
            return await self.work(partial(served.change, name, *arguments, **options))

    async def run(self) -> None:
        """Gets ready, and then goes over to newer states of the indexes as they come; until it is cancelled."""
        for served in self.indexes.values():
            await self.work(served.warm)
            await self.work(self._rehearse, served)
        gc.collect()
        gc.freeze()  # what is there now stays: to look through it for garbage again and again takes a fifth of the time
        self.ready = True
        while True:
            await asyncio.sleep(self.settings.refresh or 3600)
            if self.settings.refresh:
                for served in self.indexes.values():
                    if await self._in("states", served.refresh):
                        await self._in("states", trim)
            self.talks.forget()

    def _rehearse(self, served: Served) -> None:
        """Asks each pipeline in all ways, so that no request waits for what is compiled; what cannot be asked is left."""
        index = served.state.index
        if not len(index.terms):
            return
        topic = Topic("1", index.terms[int(index.df.argmax())])
        columns = tuple(index.columns)
        any_value = " or ".join(f"metadata[{column!r}] is None" for column in columns) or None
        searcher = Searcher(self.free, self.metrics, "rehearsal", self.settings.seconds)
        for name in served.state.pipelines:
            for where in {None, any_value, any_value and f"not ({any_value})"}:
                searcher(SearchOptions(served, name, where, facets=columns), [SearchRequest((topic,))] * 2)
                searcher(SearchOptions(served, name, where, explain=True), [SearchRequest((topic,))])

    def close(self) -> None:
        """Ends the threads."""
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=True)

    def _watch(self) -> None:
        watch = self.metrics.watch
        watch("queue", lambda: len(self._lexical), "lexical")
        watch("queue", lambda: len(self._models), "models")
        watch("conversations", lambda: len(self.talks))
        for name, served in self.indexes.items():
            watch("generation", lambda served=served: served.state.generation, name)  # type: ignore[misc]
            watch("documents", lambda served=served: len(served.state.index), name)  # type: ignore[misc]
