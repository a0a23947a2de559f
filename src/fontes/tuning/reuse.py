"""Stages that a setting leaves as they are, run once: what they give is used again for the next setting."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ..core import Run, Stage, Topics
from ..core.part import Part, walk
from ..core.progress import Report

RUNS = 8  # that are remembered; a stage that no setting changes is asked for every time, and stays


class Memory:
    """The runs of a few stages for some topics, those used last.

    Attributes:
        topics: The topics.
    """

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        # The stages stay with their runs, so that no other object gets their identity.
        self._runs: OrderedDict[int, tuple[Stage[Any, Run], Run]] = OrderedDict()

    def run(self, stage: Stage[Any, Run]) -> Run:
        """What the stage gives for the topics."""
        if id(stage) not in self._runs:
            self._runs[id(stage)] = (stage, stage(self.topics))
            if len(self._runs) > RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(id(stage))
        return self._runs[id(stage)][1]

    def reusing(self, stage: Stage[Any, Any]) -> Stage[Any, Any]:
        """The same stage, whose inner stages from topics to a run are remembered; for one without any, the stage itself."""
        reused = stage.map(self._remembered)
        assert isinstance(reused, Stage)
        return stage if isinstance(reused, Remembered) else reused

    def _remembered(self, part: Part) -> Part:
        """A stage from topics to a run that has none inside it, remembered; any other part as it is."""
        if not isinstance(part, Stage) or part.takes is not Topics or part.gives is not Run:
            return part
        return part if any(isinstance(inner, Remembered) for inner in walk(part)) else Remembered(part, self)


@dataclass(frozen=True, eq=False, repr=False)
class Remembered(Stage[Topics, Run]):
    """A stage whose run for the memory's topics is made once.

    Args:
        stage: The stage.
        memory: Where its run is.
    """

    stage: Stage[Topics, Run]
    memory: Memory = field(repr=False)

    def apply(self, topics: Topics, progress: Report, /) -> Run:
        return self.memory.run(self.stage) if topics is self.memory.topics else self.stage(topics)
