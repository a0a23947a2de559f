"""Stages and how they join: `>>`, `%`, `*`, `+`."""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from .checks import check_whole
from .errors import ParameterError, PipelineError
from .pairs import Pairs
from .run import Ranking, Run
from .values import Explanation, Topic, Topics

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Stage(ABC, Generic[A, B]):
    """A step from `Topics` or `Run` to `Topics` or `Run`.

    A subclass is a frozen dataclass: its fields are its parameters, and its constructor does nothing but store them. It
    names what it takes and gives in `takes` and `gives` and does its work in `apply`.
    """

    takes: ClassVar[type[Any]]
    gives: ClassVar[type[Any]]

    @abstractmethod
    def apply(self, given: A) -> B:
        """The work of the stage; callers use the stage itself as a function."""

    def __call__(self, given: object) -> B:
        """Run the stage. `given` is what the stage takes, or anything that `Topics.of` or `Run.of` accepts."""
        taken: Any = (Topics if takes(self) is Topics else Run).of(given)
        start = time.perf_counter()
        result: Any = self.apply(taken)
        if isinstance(result, Run):
            seconds = time.perf_counter() - start
            result = result.with_(provenance={**result.provenance, "system": repr(self), "seconds": seconds})
        return result  # type: ignore[no-any-return]

    def search(self, query: str | Topic, k: int = 10) -> Ranking:
        """The best `k` documents for one query."""
        require(self, Topics, Run, "search")
        topic = query if isinstance(query, Topic) else Topic("1", query)
        run: Any = (self % k)(topic)
        ranking: Ranking = run[topic.id]
        return ranking

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """How the score of the document comes about. Raises PipelineError where the stage cannot tell."""
        raise PipelineError(f"{name(self)} cannot explain its scores")

    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]

    def with_(self, **changes: Any) -> Self:
        """A copy with other parameters. Raises ParameterError for a name that is none."""
        known = self.params()
        for key in changes:
            if key not in known:
                raise ParameterError(f"{name(self)} has no parameter '{key}'; it has {', '.join(known) or 'none'}")
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def key(self) -> str | None:
        """What this stage does, in a string that is the same in every process: its class and its parameters.

        By it `compare` keeps runs on disk. None, which means that they are not kept, for a class outside of Fontes, whose code
        may change, and where a parameter is anything but a number, a string, None, a tuple of such, a stage with a key, or an
        object with a `fingerprint`, such as an index. A stage of your own may return a string that changes whenever its
        results could.
        """
        cls = type(self)
        if cls.__module__.partition(".")[0] != __name__.partition(".")[0] or not dataclasses.is_dataclass(cls):
            return None
        parts = [_key(value) for value in self.params().values()]
        known = [part for part in parts if part is not None]
        return f"{cls.__module__}.{cls.__qualname__}({', '.join(known)})" if len(known) == len(parts) else None

    def cut(self, k: int) -> Stage[A, B] | None:
        """This stage, giving `k` documents a topic by itself, or None if it cannot; `stage % k` asks for it."""
        return None

    def __rshift__(self, after: Stage[B, C]) -> Stage[A, C]:
        if not isinstance(after, Stage):
            return NotImplemented
        if gives(self) is not takes(after):
            raise PipelineError(
                f"{name(self)} gives {gives(self).__name__}, but {name(after)} takes {takes(after).__name__}; "
                f"{name(self)} >> {name(after)} does not fit"
            )
        if isinstance(after, Cut):
            return self % after.k  # type: ignore[return-value]
        return Pipeline(_steps(self) + _steps(after))

    def __mod__(self, k: int) -> Stage[A, B]:
        k = check_depth(k)
        if gives(self) is not Run:
            raise PipelineError(f"{name(self)} gives Topics; % k cuts a Run")
        return self.cut(k) or Pipeline((*_steps(self), Cut(k)))

    def __mul__(self: Stage[A, Run], weight: float) -> Stage[A, Run]:
        if not isinstance(weight, (int, float)) or isinstance(weight, bool):
            return NotImplemented
        if gives(self) is not Run:
            raise PipelineError(f"{name(self)} gives Topics; * weights the scores of a Run")
        return Scaled(self, float(weight))

    __rmul__ = __mul__

    def __add__(self: Stage[A, Run], other: Stage[A, Run]) -> Stage[A, Run]:
        if not isinstance(other, Stage):
            return NotImplemented
        if gives(self) is not Run or gives(other) is not Run or takes(self) is not takes(other):
            raise PipelineError(
                f"+ sums the scores of two stages that take the same and give Run; {name(self)} goes from "
                f"{takes(self).__name__} to {gives(self).__name__}, "
                f"{name(other)} from {takes(other).__name__} to {gives(other).__name__}"
            )
        return Sum((*_terms(self), *_terms(other)))


@dataclass(frozen=True)
class Cut(Stage[Run, Run]):
    """Keeps the best `k` documents of each topic."""

    takes = Run
    gives = Run
    k: int

    def apply(self, given: Run) -> Run:
        return given.top(self.k)

    def cut(self, k: int) -> Cut:
        return Cut(min(k, self.k))


@dataclass(frozen=True, repr=False)
class Pipeline(Stage[Any, Any]):
    """Stages one after the other: what `a >> b` makes."""

    stages: tuple[Stage[Any, Any], ...]

    def apply(self, given: Any) -> Any:
        for stage in self.stages:
            given = stage(given)
        return given

    def cut(self, k: int) -> Stage[Any, Any] | None:
        last = self.stages[-1].cut(k)
        return None if last is None else Pipeline((*self.stages[:-1], *_steps(last)))

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        """How the last stage scores the document, for the topic that the stages before it make of the query."""
        require(self, Topics, Run, "explain")
        topic = query if isinstance(query, Topic) else Topic("1", query)
        *before, last = (stage for stage in self.stages if not isinstance(stage, Cut))
        if before:
            made = Pipeline(tuple(before))(topic)
            topic = (made if isinstance(made, Topics) else made.topics)[topic.id]
        return last.explain(topic, doc_id)

    def __repr__(self) -> str:
        return " >> ".join(map(repr, self.stages))


@dataclass(frozen=True, repr=False)
class Scaled(Stage[Any, Run]):
    """A stage whose scores are multiplied by a weight: what `weight * stage` makes.

    It does not hand `% k` on: two scores that differ may be equal in float32 once they are multiplied.
    """

    gives = Run
    stage: Stage[Any, Run]
    weight: float

    def apply(self, given: Any) -> Run:
        return _summed([self.stage(given)], [self.weight])

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        part = self.stage.explain(query, doc_id)
        return Explanation(self.weight * part.value, f"{self.weight:g} times", (part,))

    def __repr__(self) -> str:
        return f"{self.weight:g} * {_inside(self.stage)}"


@dataclass(frozen=True, repr=False)
class Sum(Stage[Any, Run]):
    """The sum of the scores of several stages: what `a + b` makes.

    A document that a stage does not return gets 0 from it.
    """

    gives = Run
    stages: tuple[Stage[Any, Run], ...]

    def apply(self, given: Any) -> Run:
        runs, weights = [], []
        for stage in self.stages:
            scaled = isinstance(stage, Scaled)
            runs.append(stage.stage(given) if isinstance(stage, Scaled) else stage(given))
            weights.append(stage.weight if scaled else 1.0)  # type: ignore[attr-defined]
        return _summed(runs, weights)

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        parts = tuple(stage.explain(query, doc_id) for stage in self.stages)
        return Explanation(sum(p.value for p in parts), "sum of the stages", parts)

    def __repr__(self) -> str:
        return " + ".join(map(_inside, self.stages))


def takes(stage: Stage[Any, Any]) -> type[Any]:
    """What a stage takes: Topics or Run."""
    match stage:
        case Pipeline():
            return takes(stage.stages[0])
        case Sum():
            return takes(stage.stages[0])
        case Scaled():
            return takes(stage.stage)
    return stage.takes


def gives(stage: Stage[Any, Any]) -> type[Any]:
    """What a stage gives: Topics or Run."""
    return gives(stage.stages[-1]) if isinstance(stage, Pipeline) else stage.gives


def name(stage: Stage[Any, Any]) -> str:
    """The name of a stage in messages."""
    return repr(stage) if isinstance(stage, (Pipeline, Scaled, Sum)) else type(stage).__name__


def check_depth(k: Any) -> int:
    """`k` as an int. Raises ParameterError for anything but a whole number from 1 up."""
    return check_whole("% keeps the best k documents: k", k)


def require(stage: Stage[Any, Any], taken: type[Any], given: type[Any], doing: str) -> None:
    """Raises PipelineError unless `stage` goes from `taken` to `given`."""
    if takes(stage) is not taken or gives(stage) is not given:
        raise PipelineError(
            f"{name(stage)} takes {takes(stage).__name__} and gives {gives(stage).__name__}; "
            f"{doing} needs a stage from {taken.__name__} to {given.__name__}"
        )


def _key(value: Any) -> str | None:
    """A parameter in a string that is the same in every process, or None."""
    if isinstance(value, Stage):
        return value.key()
    if value is None or isinstance(value, (str, Number)):
        return repr(value)
    if isinstance(value, tuple):
        parts = [_key(part) for part in value]
        known = [part for part in parts if part is not None]
        return f"({', '.join(known)})" if len(known) == len(parts) else None
    if callable(getattr(getattr(value, "analyzer", None), "tokenizer", None)):
        return None  # the index knows the name of its analyzer's function, not what it does
    fingerprint = getattr(value, "fingerprint", None)
    return f"{type(value).__qualname__} {fingerprint}" if isinstance(fingerprint, str) else None


def _steps(stage: Stage[Any, Any]) -> tuple[Stage[Any, Any], ...]:
    return stage.stages if isinstance(stage, Pipeline) else (stage,)


def _terms(stage: Stage[Any, Run]) -> tuple[Stage[Any, Run], ...]:
    return stage.stages if isinstance(stage, Sum) else (stage,)


def _inside(stage: Stage[Any, Any]) -> str:
    return f"({stage!r})" if isinstance(stage, (Pipeline, Sum)) else repr(stage)


def _summed(runs: list[Run], weights: list[float]) -> Run:
    """The weighted sum of runs over the same topics, in float64 in the order of the runs."""
    if any(list(run.topics) != list(runs[0].topics) for run in runs):
        raise PipelineError("+ sums runs over the same topics in the same order; one of the stages gives others")
    pairs = Pairs.of(runs)
    total = np.zeros(len(pairs), dtype=np.float64)
    for run, weight, places in zip(runs, weights, pairs.places, strict=True):
        total[places] += weight * run.scores.astype(np.float64)
    return pairs.run(total, {"parts": [run.provenance for run in runs]})
