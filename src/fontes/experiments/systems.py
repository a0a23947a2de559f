"""The systems of a comparison, and the runs they make: each prefix of a pipeline is run once, and found again on disk."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core import InputError, ParameterError, Pipeline, PipelineError, Run, Stage, Topics
from ..core.progress import Report
from ..core.stage import Cut, Scaled, Sum
from ..core.values import Documents
from ..fusion import Fusion
from ..storage.hashes import hash_json
from .cache import Cache, key_of, topic_facts

ENDINGS = (".gz", ".run", ".trec", ".txt", ".tsv", ".res")
Steps = tuple[Stage[Any, Any], ...]


@dataclass(frozen=True)
class Made:
    """A run and how it came about."""

    run: Run
    description: str = ""
    """What the stage prints, or the file."""
    seconds: float | None = None
    """Of all its steps together, when they were run; None where nobody measured."""
    candidates: Run | None = None
    """What the last reranker was given."""
    cached: bool = False


def named(systems: object) -> dict[str, object]:
    """The systems by name. In a list a file is called by its stem, a stage by what it prints.

    Raises ParameterError where there is none, where two have one name, and for what is no mapping and no list.
    """
    if isinstance(systems, Mapping):
        given = [(str(name), system) for name, system in systems.items()]
    elif isinstance(systems, Iterable) and not isinstance(systems, (str, bytes, Run)):
        given = [(_name(system, number), system) for number, system in enumerate(systems, 1)]
    else:
        raise ParameterError(
            f"systems are given in a mapping from name to system, or in a list, not as {type(systems).__name__}"
        )
    names = [name for name, _ in given]
    clashing = {name for name in names if names.count(name) > 1}
    # Files of one name in several folders are told apart by their paths.
    given = [(os.fspath(s) if name in clashing and isinstance(s, (str, os.PathLike)) else name, s) for name, s in given]
    if not given:
        raise ParameterError(
            "there is no system to compare; give stages or runs, in a mapping from name to system or in a list"
        )
    result: dict[str, object] = {}
    for name, system in given:
        if name in result:
            raise ParameterError(f"two systems are called '{name}'; give a mapping from name to system")
        result[name] = system
    return result


def stem(path: str | os.PathLike[str]) -> str:
    """The name of a file without its folder and the usual endings of runs."""
    name = Path(path).name
    for ending in ENDINGS:
        if len(name) > len(ending):
            name = name.removesuffix(ending)
    return name


def run_all(systems: Mapping[str, object], topics: Topics | None, cache: Cache | None) -> dict[str, Made]:
    """The runs of all systems, each made, read or taken as it is.

    Raises PipelineError for a stage that does not go from topics to a run, InputError where a stage has no topics to run on
    and for files and values that are no runs.
    """
    for name, system in systems.items():
        if not isinstance(system, Stage):
            continue
        if system.takes is not Topics or system.gives is not Run:
            raise PipelineError(
                f"system '{name}' takes {system.takes.__name__} and gives {system.gives.__name__}; "
                "only what goes from Topics to Run can be compared"
            )
        if topics is None:
            raise InputError(f"system '{name}' is a stage and needs topics to run on; give them")
    searches = Searches(topics or Topics(), cache)
    made = {name: _made(name, system, searches) for name, system in systems.items()}
    if cache is not None:
        cache.trim()
    return made


def _made(name: str, system: object, searches: Searches) -> Made:
    if isinstance(system, Stage):
        return searches.made(system)
    if isinstance(system, Made):
        return system
    if isinstance(system, (str, os.PathLike)):
        from ..formats import read_run

        return Made(read_run(os.fspath(system)), os.fspath(system))
    try:
        run = Run.of(system)
    except InputError as error:
        raise InputError(f"system '{name}': {error}") from None
    seconds = run.provenance.get("seconds")
    return Made(run, str(run.provenance.get("system", "")), float(seconds) if isinstance(seconds, (int, float)) else None)


@dataclass(frozen=True)
class Output:
    """What some stages gave, and in how many seconds."""

    value: Topics | Run
    seconds: float
    cached: bool = False


class Searches:
    """Applies stages to topics, each prefix of a pipeline once.

    Prefixes are the same where their stages have the same `key`, or are the same objects; runs of stages that all have keys
    are kept in the cache.
    """

    def __init__(
        self,
        topics: Topics,
        cache: Cache | None,
        tell: Callable[[str], None] | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> None:
        """`tell` is called with a line about each step before it is run, `progress` by rerankers with a `Progress`."""
        self.topics = topics
        self.cache = cache
        self.tell = tell or (lambda line: None)
        self.progress = progress
        self._outputs: dict[tuple[str | int, ...], Output] = {(): Output(topics, 0.0)}

    def made(self, stage: Stage[Any, Any]) -> Made:
        """The run of a stage."""
        steps = _steps(stage)
        output = self.output(steps)
        assert isinstance(output.value, Run)
        # Cut shows nothing new; the reranker before it does.
        end = next(i for i in range(len(steps), 0, -1) if not isinstance(steps[i - 1], Cut))
        candidates = None
        if steps[end - 1].takes is Run and steps[end - 1].gives is Run:
            given = self.output(steps[: end - 1]).value
            candidates = given if isinstance(given, Run) else None
        return Made(output.value, repr(stage), output.seconds, candidates, output.cached)

    def output(self, steps: Steps) -> Output:
        """What the steps give, from memory, from the cache, or new."""
        identity = tuple(stage.key() or id(stage) for stage in steps)
        if identity not in self._outputs:
            self._outputs[identity] = self._stored(steps, identity) or self._new(steps, identity)
        return self._outputs[identity]

    def _new(self, steps: Steps, identity: tuple[str | int, ...]) -> Output:
        before = self.output(steps[:-1])
        if isinstance(steps[-1], Cut):  # costs nothing and is not worth a file
            return Output(steps[-1](before.value), before.seconds, before.cached)
        last, seconds = self._with_parts_done(steps[-1], steps[:-1])
        self.tell(f"running {type(steps[-1]).__name__} on {len(self.topics):,} topic{'s' * (len(self.topics) != 1)}")
        start = time.perf_counter()
        rerank = getattr(last, "rerank", None)
        value = rerank(before.value, self.progress) if rerank and self.progress else last(before.value)
        seconds += before.seconds + time.perf_counter() - start
        if isinstance(value, Run):
            described = {"system": " >> ".join(map(repr, steps)), "seconds": seconds}
            value = value.with_(provenance={**value.provenance, **described})
            key = self._key(identity)
            if self.cache is not None and key is not None:
                self.cache.store(key, value, self.topics)
        return Output(value, seconds)

    def _stored(self, steps: Steps, identity: tuple[str | int, ...]) -> Output | None:
        key = self._key(identity)
        if self.cache is None or key is None or steps[-1].gives is not Run or isinstance(steps[-1], Cut):
            return None
        run = self.cache.load(key, self.topics, _documents(steps))
        return None if run is None else Output(run, float(run.provenance["seconds"]), cached=True)

    def _key(self, identity: tuple[str | int, ...]) -> str | None:
        keys = [part for part in identity if isinstance(part, str)]
        return key_of(self._topics_digest, keys) if len(keys) == len(identity) else None

    @cached_property
    def _topics_digest(self) -> str:
        return hash_json([topic_facts(topic) for topic in self.topics.values()])

    def _with_parts_done(self, stage: Stage[Any, Any], before: Steps) -> tuple[Stage[Any, Any], float]:
        """A weighted stage, a sum or a fusion whose parts have been run, and how many seconds these took."""
        match stage:
            case Scaled():
                done, seconds = self._done(stage.stage, before)
                return Scaled(done, stage.weight), seconds
            case Sum():
                # A sum weights its parts itself, so what is run is the part without its weight.
                parts = [self._with_parts_done(p if isinstance(p, Scaled) else Scaled(p, 1.0), before) for p in stage.stages]
                return Sum(tuple(part for part, _ in parts)), sum(seconds for _, seconds in parts)
            case Fusion():
                parts = [self._done(part, before) for part in stage.stages]
                return stage.with_(stages=tuple(part for part, _ in parts)), sum(seconds for _, seconds in parts)
        return stage, 0.0

    def _done(self, stage: Stage[Any, Run], before: Steps) -> tuple[Stage[Any, Any], float]:
        output = self.output((*before, *_steps(stage)))
        assert isinstance(output.value, Run)
        return _Done(output.value, stage.takes), output.seconds - self.output(before).seconds


@dataclass(frozen=True)
class _Done(Stage[Any, Run]):
    """A stage that has been run."""

    run: Run
    taken: type[Any]

    @property
    def takes(self) -> type[Any]:
        return self.taken

    def apply(self, given: Any, progress: Report, /) -> Run:
        return self.run


def _name(system: object, number: int) -> str:
    if isinstance(system, (str, os.PathLike)):
        return stem(system)
    if isinstance(system, Stage):
        return repr(system)
    return str(system.provenance.get("system", number)) if isinstance(system, Run) else f"run {number}"


def _steps(stage: Stage[Any, Any]) -> Steps:
    return stage.stages if isinstance(stage, Pipeline) else (stage,)


def _documents(steps: Iterable[Any]) -> dict[str, Documents]:
    """By fingerprint, what the stages have that leads to documents."""
    found: dict[str, Documents] = {}
    for step in steps:
        if isinstance(step, Stage):
            found.update(_documents(getattr(step, f.name) for f in dataclasses.fields(step)))  # type: ignore[arg-type]
        elif isinstance(step, tuple):
            found.update(_documents(step))
        elif hasattr(step, "docs") and isinstance(getattr(step, "fingerprint", None), str):
            found[step.fingerprint] = step
    return found
