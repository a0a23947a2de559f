"""Stages that a setting leaves as they are, run once: what they give is used again for the next setting."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ..core import Run, Stage, Topics
from ..core.progress import Report

KEPT = 8  # runs; a stage that no setting changes is asked for every time, and stays


class Memory:
    """The runs of a few stages for some topics, those used last."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        # The stages are kept with their runs, so that no other object gets their identity.
        self._runs: OrderedDict[int, tuple[Stage[Any, Run], Run]] = OrderedDict()

    def run(self, stage: Stage[Any, Run]) -> Run:
        """What the stage gives for the topics."""
        if id(stage) not in self._runs:
            self._runs[id(stage)] = (stage, stage(self.topics))
            if len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        self._runs.move_to_end(id(stage))
        return self._runs[id(stage)][1]

    def reusing(self, stage: Stage[Any, Any]) -> Stage[Any, Any]:
        """The same stage, whose inner stages from topics to a run are remembered; for one without any, the stage itself."""
        changes: dict[str, Any] = {}
        for name, value in stage.params().items():
            if isinstance(value, Stage):
                changes[name] = self._remembered(value)
            elif isinstance(value, tuple) and any(isinstance(inner, Stage) for inner in value):
                changes[name] = tuple(self._remembered(inner) if isinstance(inner, Stage) else inner for inner in value)
        return stage.with_(**changes) if changes else stage

    def _remembered(self, stage: Stage[Any, Any]) -> Stage[Any, Any]:
        within = self.reusing(stage)
        if within is stage and stage.takes is Topics and stage.gives is Run:
            return Remembered(stage, self)
        return within


@dataclass(frozen=True, eq=False)
class Remembered(Stage[Topics, Run]):
    """A stage whose run for the memory's topics is made once."""

    stage: Stage[Topics, Run]
    memory: Memory = field(repr=False)

    def apply(self, given: Topics, progress: Report, /) -> Run:
        return self.memory.run(self.stage) if given is self.memory.topics else self.stage(given)
