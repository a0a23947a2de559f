"""Settings that are scored, here or by actors of a cluster; inner stages that a setting leaves as they are run once."""

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
    """Scores settings, each once, by the values of all topics.

    Args:
        maker: Makes a stage of a setting.
        topics: The topics.
        qrels: The judgments.
        measure: The measure.
        precisions: Precisions of models that leave theirs open: see `core.precision.settled`.
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
        """The number of the trial of a setting, which is scored if it is new."""
        key = _key(setting)
        if key not in self._numbers:
            values = self._known.pop(key) if key in self._known else self.values(self._maker(setting))
            self._numbers[key] = len(self.trials)
            self.trials.append(Trial(dict(setting), values))
        return self._numbers[key]

    def know(self, setting: Setting, values: Floats) -> None:
        """Takes the values of a setting from elsewhere."""
        self._known[_key(setting)] = values

    def values(self, stage: Any) -> Floats:
        """The measure of each topic under a stage."""
        # A cutoff that is no whole number is a recall, as in IPrec@0.1, and needs the whole run.
        depth = self._measure.cutoff
        if self._precisions:
            stage = settled(stage, self._precisions)
        cut = stage % depth if isinstance(depth, int) else stage
        run = self._memory.reusing(cut)(self._memory.topics)
        # Without its documents, a run that finds nothing judged may be of a poor setting, or of another collection.
        if run.documents is not None:
            check_agreement(run, self._qrels)
        return measured(run, self._qrels, [self._measure]).array(self._measure)

    def best(self, pool: Iterable[int], topics: NDArray[np.bool_]) -> Trial:
        """The first trial of the pool with the greatest mean over these topics."""
        return max((self.trials[i] for i in sorted(set(pool))), key=lambda trial: float(trial.values[topics].mean()))

    def stage(self, setting: Setting) -> Any:
        """The stage of a setting."""
        return self._maker(setting)

    def makes_again(self, setting: Setting) -> Callable[[], Scoring]:
        """A function that makes an equal scoring in another process, with models in the precision used here."""
        precisions = precisions_of(self._maker(setting))
        return partial(Scoring, self._maker, self._memory.topics, self._qrels, self._measure, precisions)


class ScoringActors:
    """Actors that score settings for a search; `actors` is the package that works on a cluster."""

    def __init__(self, search: Scoring, actors: ModuleType) -> None:
        self._search, self._actors = search, actors

    def value(self, settings: Sequence[Setting]) -> None:
        """Tells the search the values of settings."""
        unique = list({_key(setting): setting for setting in settings}.values())
        if unique:
            for setting, values in zip(unique, self._spread(_valued, unique, unique[0]), strict=True):
                self._search.know(setting, values)

    def studied(self, studies: Sequence[Study], example: Setting) -> list[list[int]]:
        """The trials of studies, each of which sees its own alone; with one setting that the precision of models is of."""
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


RUNS = 8  # that are remembered; a stage that no setting changes is asked for every time, and stays


class RunMemory:
    """The runs that a few stages gave for some topics, the least recently used dropped first."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        # The stages stay with their runs, so that no other object gets their identity.
        self._runs: OrderedDict[int, tuple[Stage[Any, Run], Run]] = OrderedDict()

    def run(self, stage: Stage[Any, Run]) -> Run:
        """The run of a stage for the topics."""
        if id(stage) not in self._runs:
            self._runs[id(stage)] = (stage, stage(self.topics))
            if len(self._runs) > RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(id(stage))
        return self._runs[id(stage)][1]

    def reusing(self, stage: Stage[Any, Any]) -> Stage[Any, Any]:
        """A copy whose inner stages from topics to a run are memoized; the stage itself where it has none."""
        reused = stage.map(self._remembered)
        assert isinstance(reused, Stage)
        return stage if isinstance(reused, MemoizedStage) else reused

    def _remembered(self, part: Part) -> Part:
        if not isinstance(part, Stage) or part.takes is not Topics or part.gives is not Run:
            return part
        return part if any(isinstance(inner, MemoizedStage) for inner in walk(part)) else MemoizedStage(part, self)


@dataclass(frozen=True, eq=False, repr=False)
class MemoizedStage(Stage[Topics, Run]):
    """A stage that runs once for the memory's topics."""

    stage: Stage[Topics, Run]
    memory: RunMemory = field(repr=False)

    def apply(self, topics: Topics, progress: Report, /) -> Run:
        return self.memory.run(self.stage) if topics is self.memory.topics else self.stage(topics)
