"""A served index: its pipelines over one state, the change to a newer state, and expressions of requests."""

from __future__ import annotations

import ast
import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import FontesError, ParameterError
from ...core.expression import MAX_TEXT
from ...core.hints import nearest
from ...core.part import Part, stages, uses_model, walk
from ...core.run import Run
from ...core.searches import filtered
from ...core.stage import Stage
from ...core.values import Topics
from ...index import Index
from ...index.columns import FacetColumns, facet_columns
from ...lexical.hints import reads_language
from ...reorder import Sort
from ...rewrite.turns import turns_rewriter
from ...storage.caches import Cached
from ...storage.compiled import load, prepare_for_change
from ...suggest import suggest
from ..pipelines import retriever, rewriter_for, warm
from .answers import RefusedError
from .examples import example_queries, overview_of

if TYPE_CHECKING:
    from ...index.state import State

log = logging.getLogger("fontes.server")
CACHED_STAGES = 256  # ready pipelines that a state caches
PAUSE_FACTOR = 2  # pause after a change of state, in units of its duration
SAFE_STAGES = frozenset(
    {"bm25", "learned_sparse", "ql", "tfidf", "as_typed", "causal_feedback", "cut", "deduplicate", "fuse", "last_turns", "raw"}
    | {"query", "rm3", "tolerance", "weighted_turns", "boost", "collapse"}
)
"""Parts that every expression may have: they need no model and no file, and their work is bounded."""

Retriever = Stage[Topics, Run]
Rewriter = Stage[Topics, Topics]
Order = tuple[str, bool]  # a column, and whether it is descending


class ExpressionReader:
    """Reads the expressions of requests.

    A part that names a model or a file is refused unless it also occurs in the server's own expressions.

    Args:
        texts: The server's own expressions.
        limit: Maximum whole number in an expression, such as a depth or a number of documents.
    """

    def __init__(self, texts: Iterable[str], limit: int) -> None:
        self._limit = limit
        self._loaded = {ast.dump(node) for text in texts for node in _ast_nodes(text) if isinstance(node, ast.Call)}

    def is_free(self, text: str) -> bool:
        """Whether no part of an expression may run a model."""
        return all(_called_name(node) in SAFE_STAGES for node in _ast_nodes(text) if isinstance(node, ast.Call))

    def stage(self, text: str, index: Index) -> Retriever:
        """Build the stage of an expression.

        Raises:
            RefusedError: The expression has a part that the server has not loaded, or too large a number.
            ParameterError: The expression is invalid.
            PipelineError: The expression is not a stage from topics to a run.
        """
        try:
            for node in _ast_nodes(text):
                if isinstance(node, ast.Constant) and type(node.value) is int and node.value > self._limit:
                    raise RefusedError(422, f"a number in a pipeline may be {self._limit:,} at most here")
                name = _called_name(node)
                if name in stages and name not in SAFE_STAGES and ast.dump(node) not in self._loaded:
                    raise RefusedError(403, f"{name} with these parameters is not among what this server has loaded")
        except RecursionError:
            raise ParameterError("the pipeline is nested too deeply") from None
        return retriever(index, text)


def _called_name(node: ast.AST) -> str:
    """Name of the function that a node calls; "" for other nodes."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _ast_nodes(text: str) -> list[ast.AST]:
    """Nodes of an expression; none if it is invalid, for which `retriever` raises an error."""
    if len(text) > MAX_TEXT:
        return []
    try:
        return list(ast.walk(ast.parse(text.replace("\n", " ").strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


@dataclass(frozen=True)
class ReadyPipeline:
    """A pipeline with a request's filter and depth, whether it runs a model, and whether a stage reads the query language."""

    stage: Retriever
    has_model: bool
    reads_language: bool


@dataclass(frozen=True)
class ServedState:
    """One state of an index, with pipelines by name. A request uses one state throughout.

    `generation` is the number of states served before.
    """

    index: Index
    pipelines: Mapping[str, Retriever]
    rewriters: Mapping[str, Rewriter]
    generation: int = 0
    _ready: Cached[tuple[str, str | None, int, Order | None], ReadyPipeline] = field(
        default_factory=lambda: Cached(CACHED_STAGES)
    )

    @cached_property
    def models(self) -> dict[str, bool]:
        """Whether each pipeline runs a model."""
        return {name: uses_model(stage) for name, stage in self.pipelines.items()}

    @cached_property
    def facets(self) -> FacetColumns:
        """Columns that suit facets, and columns of links and pictures."""
        return facet_columns(self.index.state)

    @cached_property
    def examples(self) -> list[str]:
        """Queries to begin with."""
        return example_queries(self.index)

    @cached_property
    def overview(self) -> dict[str, object]:
        """Overview of the collection; see `overview_of`."""
        return overview_of(self.index, self.facets)

    def pipeline(
        self, name: str, where: str | None, k: int, expressions: ExpressionReader | None, order: Order | None = None
    ) -> ReadyPipeline:
        """Pipeline of a request.

        Args:
            name: A name, or an expression.
            where: A filter for its retrievers.
            k: Maximum number of documents of a topic.
            expressions: Reads expressions; None if requests may not have any.
            order: A column to sort by, and whether the order is descending; None: the score.

        Raises:
            RefusedError: There is no such pipeline.
            ParameterError: The expression, the filter or the column is invalid.
        """
        self.check_pipeline(name, expressions)

        def make() -> ReadyPipeline:
            stage = self.pipelines.get(name)
            if stage is None:
                assert expressions is not None
                stage = _single_threaded(expressions.stage(name, self.index))
            ranked = stage.without_limit()
            if order is not None:
                column, descending = order
                ranked = ranked >> Sort(self.index, column, descending=descending)
            return ReadyPipeline(filtered(ranked % k, where), uses_model(stage), reads_language(stage))

        return self._ready.get((name, where, k, order), make)

    def check_pipeline(self, name: str, expressions: ExpressionReader | None) -> None:
        """Raise RefusedError for an unknown name, unless requests may have expressions."""
        if name not in self.pipelines and expressions is None:
            raise RefusedError(422, f"there is no pipeline '{name[:200]}'; {nearest(name[:200], self.pipelines)}")

    def pipeline_named(self, name: str | None) -> str:
        """Name of a pipeline, also of one in other capitals; by default the first. An expression stays as it is."""
        if name is None:
            return next(iter(self.pipelines))
        return name if name in self.pipelines else next((each for each in self.pipelines if each.lower() == name.lower()), name)

    def rewriter(self, name: str | None) -> str | None:
        """Name of a rewriter; by default the first, if any. Raises RefusedError for an unknown name."""
        if name is None:
            return next(iter(self.rewriters), None)
        if name not in self.rewriters:
            raise RefusedError(422, f"there is no rewriter '{name[:200]}'; there are {', '.join(self.rewriters) or 'none'}")
        return name

    def over(self, reader: State) -> ServedState:
        """Return these pipelines over another state of the index; models stay loaded."""
        parts: dict[int, tuple[Part, Part]] = {}

        def with_index(part: Part) -> Part:
            return part.with_(index=reader) if part.params().get("index") is self.index.state else part

        def with_state(stages: Mapping[str, Any]) -> dict[str, Any]:
            return {name: stage.map(with_index, parts) for name, stage in stages.items()}

        return ServedState(Index(reader), with_state(self.pipelines), with_state(self.rewriters), self.generation + 1)


class ServedIndex:
    """An index that is served.

    Args:
        path: Directory of the index.
        name: Name in requests.
        pipelines: Expressions by name; the first is the default of requests.
        rewriters: Expressions of rewriters by name; if empty, the default rewriter of the first pipeline.

    Attributes:
        state: The state that answers new requests.
        seconds: Duration of the last change of state.
        trouble: Reason why a newer state cannot be served, or "".
    """

    def __init__(self, path: Path, name: str, pipelines: Mapping[str, str], rewriters: Mapping[str, str]) -> None:
        self.path = path
        self.name = name
        index = Index.open(path)
        retrievers = {pipeline_name: _single_threaded(retriever(index, text)) for pipeline_name, text in pipelines.items()}
        if not rewriters:
            default = rewriter_for(next(iter(retrievers.values())))
            rewriters = {} if default is None else {default: default}
        self.texts = {*pipelines.values(), *rewriters.values()}
        turn_rewriters = {rewriter_name: turns_rewriter(text, index, "--rewriter") for rewriter_name, text in rewriters.items()}
        self.state = ServedState(index, retrievers, turn_rewriters)
        self.seconds = 0.0
        self.trouble = ""
        self._next_check = 0.0  # when to look for a newer state
        self._lock = threading.Lock()

    def to_dict(self) -> dict[str, object]:
        """Description as JSON values."""
        state = self.state

        def describe(stages: Mapping[str, Part]) -> list[dict[str, object]]:
            return [{"name": name, "text": repr(stage), "model": uses_model(stage)} for name, stage in stages.items()]

        return {
            "name": self.name,
            "documents": len(state.index),
            "generation": state.generation,
            "fingerprint": state.index.fingerprint,
            "fields": list(state.index.fields),
            "columns": state.index.columns,
            "facets": state.facets.facets,
            "links": state.facets.links,
            "pictures": state.facets.pictures,
            "pipelines": describe(state.pipelines),
            "rewriters": describe(state.rewriters),
        }

    def check_document(self, doc_id: str) -> None:
        """Raise RefusedError for an unknown id."""
        if doc_id not in self.state.index:
            raise RefusedError(404, f"there is no document '{doc_id[:200]}' in {self.name}")

    def warm(self) -> None:
        """Load the models and compile the kernels of all pipelines."""
        load()
        for stage in self.state.pipelines.values():
            warm(stage)
        prepare_for_change()

    def warm_suggestions(self) -> None:
        """Count the words for suggestions, so that no request has to wait for it."""
        with contextlib.suppress(FontesError, OSError):  # requests for suggestions report the problem
            suggest(self.state.index, "mispselt")

    def refresh(self, now: bool = False) -> bool:
        """Load the newest state and serve it once it is warm; return whether there was a newer one.

        Args:
            now: Check at once. Otherwise a check follows a change of state only after a pause, which limits the load.
        """
        with self._lock:
            if not now and time.monotonic() < self._next_check:
                return False
            previous, start = self.state, time.perf_counter()
            try:
                reader = previous.index.state.refreshed()
                if reader is previous.index.state:
                    self.trouble = ""
                    return False
                state = previous.over(reader)
                for part in {id(part): part for stage in state.pipelines.values() for part in _retrievers(stage)}.values():
                    warm(part)
                suggest(state.index, "")
            except (FontesError, OSError) as error:
                if str(error) != self.trouble:
                    log.warning("%s: a newer state cannot be served: %s", self.name, error)
                self.trouble = str(error)
                return False
            self.state, self.trouble = state, ""
            self.seconds = time.perf_counter() - start
            self._next_check = time.monotonic() + PAUSE_FACTOR * self.seconds
            return True


def _retrievers(stage: Retriever) -> Iterator[Retriever]:
    """Yield the retrievers of a pipeline that search an index."""
    for part in walk(stage):
        if isinstance(part, Stage) and (part.takes, part.gives) == (Topics, Run) and "index" in part.params():
            yield part


def _single_threaded(stage: Retriever) -> Retriever:
    """The stage with one thread for each request: other requests use the other cores."""

    def with_one_thread(part: Part) -> Part:
        return part.with_(threads=1) if "threads" in part.params() and part.params()["threads"] is None else part

    return stage.map(with_one_thread)
