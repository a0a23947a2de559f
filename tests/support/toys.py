"""Parts of a few lines, under names that texts know while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fontes.core import Run, Stage, Topics
from fontes.core.part import Part, stages
from fontes.core.work import Progress, reporter


@dataclass(frozen=True)
class Shelf:
    """What stands for an index."""

    name: str = "shelf"
    fingerprint: str = "f00"

    def __len__(self) -> int:
        return 10  # no more than `Find` finds by default


@dataclass(frozen=True)
class Model(Part):
    """A model that a stage is given.

    Args:
        path: Where it is.
        length: How much it reads.
        device: Where it runs.
    """

    path: str
    length: int | None = None
    device: str | None = field(default=None, repr=False)

    @property
    def fingerprint(self) -> str:
        return f"{self.path}{self.length}"


@dataclass(frozen=True)
class Find(Stage[Topics, Run]):
    """Finds the same documents for each topic. It is not clever.

    Args:
        k1: Their scores are multiplied
            by this.
        k: How many documents a topic gets at most.
    """

    depth_field: ClassVar[str] = "k"
    index: Any
    k1: float = field(default=1.0, metadata={"range": (0.5, 1.5, 0.5)})
    k: int = 10
    threads: int | None = field(default=None, repr=False)

    def apply(self, topics: Topics, /) -> Run:
        reporter()(Progress("finding", len(topics), len(topics), 1.0, "topics"))
        scores = {f"d{n}": self.k1 * (12 - n) for n in range(12)}
        return Run.of(dict.fromkeys(topics, scores), topics).top(self.k)

    def check(self) -> None:
        from fontes.core import ParameterError

        if self.k1 < 0:
            raise ParameterError(f"k1 must be 0 or more, not {self.k1}")


@dataclass(frozen=True)
class Read(Stage[Run, Run]):
    """Scores each document by its number.

    Args:
        model: What reads.
        factor: What scores are multiplied by.
    """

    model: Model = field(metadata={"string": "toy_model"})
    factor: int = 1

    def apply(self, run: Run, /) -> Run:
        return Run.of({t: {hit.id: self.factor * int(hit.id[1:]) for hit in run[t]} for t in run}, run.topics)


@dataclass(frozen=True)
class Ask(Stage[Topics, Topics]):
    """Leaves topics as they are."""

    def apply(self, topics: Topics, /) -> Topics:
        return topics


@dataclass(frozen=True)
class Join(Stage[Any, Run]):
    """Gives what its first stage gives.

    Args:
        stages: The stages.
        method: How.
    """

    variadic: ClassVar[str] = "stages"
    stages: tuple[Stage[Any, Run], ...]
    method: str = "first"

    @property
    def takes(self) -> type[Any]:
        return self.stages[0].takes

    def apply(self, value: Any, /) -> Run:
        return self.stages[0](value)


TOYS = {"toy_model": Model, "toy_find": Find, "toy_read": Read, "toy_ask": Ask, "toy_join": Join}
for _name, _cls in TOYS.items():
    _cls.name = _name  # not by the keyword, which would leave them in the registry for all other tests


@contextmanager
def toys() -> Iterator[None]:
    """The toys are registered meanwhile."""
    with stages.restored():
        for name, cls in TOYS.items():
            stages.add(name, cls)
        yield
