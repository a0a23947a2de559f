"""Scoring of settings, locally or by actors of a cluster; inner stages that no setting changes run once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import Qrels, Run, Stage, Topics
from ..core.part import Part, walk
from ..core.precision import precisions_of, settled
from ..core.progress import Report
from ..measures.agreement import check_agreement
from ..measures.evaluation import measured
from ..measures.measure import Measure
from .result import Trial
from .space import Maker, Setting

Floats = NDArray[np.float64]
Study = Callable[["Scoring"], list[int]]


class Scoring:
    """Scores settings on all topics, each once.

    Args:
        maker: Makes a stage from a setting.
        topics: The topics.
        qrels: The judgments.
        measure: The measure.
        precisions: Precisions of models that do not fix theirs; see `core.precision.settled`.
    """

    def __init__(
        self, maker: Maker, topics: Topics, qrels: Qrels, measure: Measure, precisions: dict[str, str] | None = None
    ) -> None:
        self.trials: list[Trial] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[str, Floats] = {}
        self._maker, self._memory, self._qrels, self._measure = maker, RunMemory(topics), qrels, measure
        self._precisions = precisions or {}

    def number(self, setting: Setting) -> int:
        """Return the trial number of a setting, scoring it if it is new."""
        key = _key(setting)
        if key not in self._numbers:
            values = self._known.pop(key) if key in self._known else self.values(self._maker(setting))
            self._numbers[key] = len(self.trials)
            self.trials.append(Trial(dict(setting), values))
        return self._numbers[key]

    def know(self, setting: Setting, values: Floats) -> None:
        """Record values of a setting that were computed elsewhere."""
        self._known[_key(setting)] = values

    def values(self, stage: Any) -> Floats:
        """Return the measure of each topic under a stage."""
        # A cutoff that is no whole number is a recall, as in IPrec@0.1, and needs the whole run.
        depth = self._measure.cutoff
        if self._precisions:
            stage = settled(stage, self._precisions)
        cut = stage % depth if isinstance(depth, int) else stage
        run = self._memory.reusing(cut)(self._memory.topics)
        # Without documents, a run with nothing judged may have a poor setting or another collection.
        if run.documents is not None:
            check_agreement(run, self._qrels)
        return measured(run, self._qrels, [self._measure]).array(self._measure)

    def best(self, pool: Iterable[int], topics: NDArray[np.bool_]) -> Trial:
        """Return the first trial of the pool with the greatest mean over these topics."""
        return max((self.trials[i] for i in sorted(set(pool))), key=lambda trial: float(trial.values[topics].mean()))

    def stage(self, setting: Setting) -> Any:
        """Return the stage of a setting."""
        return self._maker(setting)

    def makes_again(self, setting: Setting) -> Callable[[], Scoring]:
        """Return a function that makes an equal scoring in another process, with the model precision used here."""
        precisions = precisions_of(self._maker(setting))
        return partial(Scoring, self._maker, self._memory.topics, self._qrels, self._measure, precisions)


class ScoringActors:
    """Actors that score settings for a search; `actors` is the package that works on a cluster."""

    def __init__(self, search: Scoring, actors: ModuleType) -> None:
        self._search, self._actors = search, actors

    def value(self, settings: Sequence[Setting]) -> None:
        """Score settings and record their values in the search."""
        unique = list({_key(setting): setting for setting in settings}.values())
        if unique:
            for setting, values in zip(unique, self._spread(_valued, unique, unique[0]), strict=True):
                self._search.know(setting, values)

    def studied(self, studies: Sequence[Study], example: Setting) -> list[list[int]]:
        """Return the trials of independent studies; the setting `example` determines the model precision."""
        pools = []
        for trials in self._spread(_studied, studies, example):
            for setting, values in trials:
                self._search.know(setting, values)
            pools.append([self._search.number(setting) for setting, _ in trials])
        return pools

    def _spread(self, function: Callable[[Scoring, Any], Any], parts: Sequence[Any], example: Setting) -> list[Any]:
        make, stage = self._search.makes_again(example), self._search.stage(example)
        results: list[Any] = self._actors.map_with(make, function, parts, "tuning", stage)
        return results


def _valued(search: Scoring, setting: Setting) -> Floats:
    from ..lexical.impacts import in_memory

    with in_memory():
        return search.trials[search.number(setting)].values


def _studied(search: Scoring, study: Study) -> list[tuple[Setting, Floats]]:
    from ..lexical.impacts import in_memory

    with in_memory():
        numbers = study(search)
    return [(search.trials[number].params, search.trials[number].values) for number in numbers]


def _key(setting: Setting) -> str:
    return repr(sorted(setting.items()))


RUNS = 8  # cached runs; a stage that no setting changes is used every time, and stays


class RunMemory:
    """Cache of runs of stages over fixed topics; evicts the least recently used."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        # The stages are kept with their runs, so that their ids are not reused.
        self._runs: OrderedDict[int, tuple[Stage[Any, Run], Run]] = OrderedDict()

    def run(self, stage: Stage[Any, Run]) -> Run:
        """Return the run of a stage."""
        if id(stage) not in self._runs:
            self._runs[id(stage)] = (stage, stage(self.topics))
            if len(self._runs) > RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(id(stage))
        return self._runs[id(stage)][1]

    def reusing(self, stage: Stage[Any, Any]) -> Stage[Any, Any]:
        """Return a copy with memoized inner retrieval stages, or the stage itself if it has none."""
        reused = stage.map(self._remembered)
        assert isinstance(reused, Stage)
        return stage if isinstance(reused, MemoizedStage) else reused

    def _remembered(self, part: Part) -> Part:
        if not isinstance(part, Stage) or part.takes is not Topics or part.gives is not Run:
            return part
        return part if any(isinstance(inner, MemoizedStage) for inner in walk(part)) else MemoizedStage(part, self)


@dataclass(frozen=True, eq=False, repr=False)
class MemoizedStage(Stage[Topics, Run]):
    """A stage whose run is cached in a `RunMemory`."""

    stage: Stage[Topics, Run]
    memory: RunMemory = field(repr=False)

    def apply(self, topics: Topics, progress: Report, /) -> Run:
        return self.memory.run(self.stage) if topics is self.memory.topics else self.stage(topics)
