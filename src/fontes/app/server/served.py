"""An index as it is served: its pipelines over one state at a time, and the going over to a newer one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import FontesError
from ...core.part import Part, walk
from ...core.run import Run
from ...core.stage import Stage
from ...core.values import Topics
from ...index import Index
from ...index.columns import facet_columns
from ...lexical.impacts import in_memory
from ...rewrite.turns import turns_rewriter
from ...storage.caches import Cached
from ...storage.compiled import load
from ..pipelines import filtered, retriever, rewriter_for, warm
from .expressions import Guarded
from .problems import RefusedError

if TYPE_CHECKING:
    from ...index.state import State

STAGES = 256  # pipelines with filters or of requests that a state keeps
PATIENCE = 2  # times the seconds that a new state took to get ready pass before the next one
Retriever = Stage[Topics, Run]
Rewriter = Stage[Topics, Topics]


@dataclass(frozen=True)
class ServedState:
    """One state of an index, with the pipelines over it. A request uses one from its beginning to its end.

    Args:
        index: The index; nobody changes what it reads.
        pipelines: The stages by name.
        rewriters: The stages that rewrite turns, by name.
        generation: How many states were served before it.
    """

    index: Index
    pipelines: Mapping[str, Retriever]
    rewriters: Mapping[str, Rewriter]
    generation: int = 0
    _made: Cached[tuple[str, str | None, int], Retriever] = field(default_factory=lambda: Cached(STAGES))

    @cached_property
    def models(self) -> dict[str, bool]:
        """For each pipeline whether it runs a model."""
        return {name: uses_model(stage) for name, stage in self.pipelines.items()}

    @cached_property
    def facets(self) -> tuple[list[str], list[str]]:
        """The columns that are worth a facet, and those that hold links."""
        return facet_columns(self.index.state)

    def pipeline(self, name: str, where: str | None, k: int, free: Guarded | None) -> Retriever:
        """The pipeline that a request names.

        Args:
            name: A name, or an expression.
            where: A filter that its retrievers get.
            k: How many documents a topic gets at most.
            free: What reads expressions; None where requests may bring none.

        Raises:
            RefusedError: There is no such pipeline.
            ParameterError: The expression or the filter cannot be read.
        """
        if name not in self.pipelines and free is None:
            raise RefusedError(422, f"there is no pipeline '{name[:200]}'; there are {', '.join(self.pipelines)}")

        def make() -> Retriever:
            stage = self.pipelines.get(name)
            if stage is None:
                assert free is not None
                stage = _single(free.stage(name, self.index))
            return filtered(stage, where) % k

        return self._made.get((name, where, k), make)

    def over(self, reader: State) -> ServedState:
        """The same pipelines over another state of the index; models stay as they are."""
        parts: dict[int, tuple[Part, Part]] = {}

        def moved(part: Part) -> Part:
            return part.with_(index=reader) if part.params().get("index") is self.index.state else part

        def all_of(stages: Mapping[str, Any]) -> dict[str, Any]:
            return {name: stage.map(moved, parts) for name, stage in stages.items()}

        return ServedState(Index(reader), all_of(self.pipelines), all_of(self.rewriters), self.generation + 1)


class Served:
    """An index that is served.

    Args:
        path: Its directory.
        name: What requests call it.
        pipelines: Expressions by name; the first is used where a request names none.
        rewriters: Expressions of rewriters by name; none for the one that suits the first pipeline.

    Attributes:
        state: What requests that come now are answered from.
        seconds: How long the last state took to get ready.
        trouble: Why there is a newer state that is not served; empty where there is none.
    """

    def __init__(self, path: Path, name: str, pipelines: Mapping[str, str], rewriters: Mapping[str, str]) -> None:
        self.path = path
        self.name = name
        index = Index.open(path)
        stages = {of_pipeline: _single(retriever(index, text)) for of_pipeline, text in pipelines.items()}
        if not rewriters:
            suits = rewriter_for(next(iter(stages.values())))
            rewriters = {} if suits is None else {suits: suits}
        self.texts = {*pipelines.values(), *rewriters.values()}
        of_turns = {of_rewriter: turns_rewriter(text, index, "--rewriter") for of_rewriter, text in rewriters.items()}
        self.state = ServedState(index, stages, of_turns)
        self.seconds = 0.0
        self.trouble = ""
        self._next = 0.0  # when a newer state may be looked for
        self._lock = threading.Lock()

    def to_dict(self) -> dict[str, Any]:
        """What it is, as JSON values."""
        state = self.state
        return {
            "name": self.name,
            "documents": len(state.index),
            "generation": state.generation,
            "fingerprint": state.index.fingerprint,
            "fields": list(state.index.fields),
            "columns": state.index.columns,
            "facets": state.facets[0],
            "links": state.facets[1],
            "pipelines": [
                {"name": name, "text": repr(stage), "model": uses_model(stage)} for name, stage in state.pipelines.items()
            ],
            "rewriters": [
                {"name": name, "text": repr(stage), "model": uses_model(stage)} for name, stage in state.rewriters.items()
            ],
        }

    def warm(self) -> None:
        """Loads the models and compiles the kernels of all pipelines."""
        load()
        for stage in self.state.pipelines.values():
            warm(stage)

    def refresh(self, now: bool = False) -> bool:
        """Goes over to the newest state, once it is as ready for requests as the one before.

        Args:
            now: Look at once; else not before some time after the last change, so that getting ready takes a part of the
                processor alone.

        Returns:
            Whether there was a newer one.
        """
        with self._lock:
            if not now and time.monotonic() < self._next:
                return False
            before, start = self.state, time.perf_counter()
            try:
                reader = before.index.state.refreshed()
                if reader is before.index.state:
                    self.trouble = ""
                    return False
                state = before.over(reader)
                with in_memory(lists=True):
                    for part in {id(part): part for stage in state.pipelines.values() for part in retrievers(stage)}.values():
                        warm(part)
            except (FontesError, OSError) as error:
                self.trouble = str(error)
                return False
            self.state, self.trouble = state, ""
            self.seconds = time.perf_counter() - start
            self._next = time.monotonic() + PATIENCE * self.seconds
            return True

    def change(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Adds or deletes documents, and goes over to what comes of it: whoever hears of the change is answered from it.

        Args:
            name: The method of `Index`.
            *arguments: What it takes.
            **options: And by name.
        """
        change = getattr(Index(self.state.index.state.refreshed()), name)(*arguments, **options)
        self.refresh(now=True)
        return change


def retrievers(stage: Retriever) -> Iterator[Retriever]:
    """What in a pipeline searches an index, and gets ready for each of its states; models stay as they are."""
    for part in walk(stage):
        if isinstance(part, Stage) and (part.takes, part.gives) == (Topics, Run) and "index" in part.params():
            yield part


def uses_model(stage: Stage[Any, Any]) -> bool:
    """Whether a stage runs a pretrained model."""
    return any(hasattr(type(part), "fingerprint") for part in walk(stage))


def _single(stage: Retriever) -> Retriever:
    """The stage with one thread for each request: requests that come together keep the others busy."""

    def with_one(part: Part) -> Part:
        return part.with_(threads=1) if "threads" in part.params() and part.params()["threads"] is None else part

    return stage.map(with_one)  # type: ignore[return-value]
