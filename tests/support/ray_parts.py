"""What the tests let a cluster do: functions that its processes import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from support.counting_encoder import Counting
from support.hashed_encoder import Hashed

from fontes.cluster import segments
from fontes.core import Run, Stage
from fontes.core.errors import InputError
from fontes.core.values import Doc
from fontes.core.work import Progress, reporter, resources, thread_count


def square(number: int) -> int:
    return number * number


def threads_here(number: int) -> tuple[int, object]:
    return thread_count(), resources().ray


def threads_of_holder(counter: Counter, number: int) -> tuple[int, object]:
    return threads_here(number)


def refuse(number: int) -> int:
    raise InputError(f"document '{number}' is odd")


def die_once(place: tuple[str, int]) -> int:
    """Kills its own process the first time that it is called with a folder."""
    folder, number = place
    mark = Path(folder) / f"died-{number}"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait(place: tuple[str, int]) -> int:
    folder, number = place
    (Path(folder) / f"begun-{number}").touch()
    time.sleep(60)
    return number


class Counter:
    """Knows how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0


def process_and_sum(counter: Counter, number: int) -> tuple[int, int]:
    counter.asked += 1
    return os.getpid(), number + 100


def reported_and_sum(counter: Counter, number: int) -> int:
    reporter()(Progress("inside", 1, 1, 0.0))
    return number


def die_once_holding(counter: Counter, place: tuple[str, int]) -> int:
    return die_once(place)


def refuse_to_load() -> Counter:
    raise InputError("the model 'x' is not there")


@dataclass(frozen=True, repr=False)
class DyingEncoder(Counting):
    """Kills its process once, in the middle of a block, after some blocks."""

    after: int = 1

    def __repr__(self) -> str:
        return repr(Counting())

    def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
        died = Path(f"{self.log}.died")
        if not died.exists() and Path(self.log).exists() and len(Path(self.log).read_text().split()) >= 8 * self.after:
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_documents(docs)


@dataclass(frozen=True, repr=False)
class InTurn(Counting):
    """Refuses a document; knows another model in processes other than that of a number."""

    broken: str = ""
    process: int = 0

    def __repr__(self) -> str:
        return repr(Counting())

    def __getattribute__(self, name: str) -> object:
        if name == "fingerprint" and (process := object.__getattribute__(self, "process")):
            return "counting" if process == os.getpid() else "another"
        return super().__getattribute__(name)

    def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
        if self.broken in [doc.id for doc in docs]:
            raise InputError(f"document '{self.broken}' is broken")
        return super().encode_documents(docs)


@dataclass(frozen=True, repr=False)
class Slow(Counting):
    """Takes its time, so that there is a middle."""

    def __repr__(self) -> str:
        return repr(Counting())

    def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
        vectors = super().encode_documents(docs)
        time.sleep(0.3)
        return vectors


@dataclass(frozen=True)
class NotHere(Hashed):
    """Encodes documents in other processes than one alone."""

    process: int = field(default=0, repr=False)

    def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
        assert os.getpid() != self.process
        return super().encode_documents(docs)


@dataclass(frozen=True)
class SlowStage(Stage[Run, Run]):
    """Writes down its topics, takes its time with each, and gives the three best documents."""

    log: str = ""

    def apply(self, run: Run, /) -> Run:
        for topic in run.topics:
            with Path(self.log).open("a") as file:
                file.write(f"{topic}\n")
            time.sleep(0.2)
        return run.top(3)


def part_that_dies_once(part: segments.DocumentPart) -> segments.FinishedSegment:
    """Kills its process when the first segment is written and not yet finished."""
    return _dying_once(part.folder, "part", lambda: segments.make_part(part))


def merge_that_dies_once(merge: segments.Merge) -> segments.FinishedSegment:
    return _dying_once(merge.folder, "merge", lambda: segments.make_merge(merge))


def counted_part(part: segments.DocumentPart) -> segments.FinishedSegment:
    """Writes down that it was called, and whether there was something to do."""
    finished = segments.make_part(part)
    (part.folder.parent / f"{'before' if finished.reused else 'new'}-{part.name}").touch()
    return finished


def slow_part(part: segments.DocumentPart) -> segments.FinishedSegment:
    """Takes its time, after it has said so."""
    (part.folder.parent / f"begun-{part.name}-{os.getpid()}").touch()
    time.sleep(1.5)
    return counted_part(part)


def _dying_once(folder: Path, name: str, work) -> segments.FinishedSegment:  # type: ignore[no-untyped-def]
    mark = folder.parent / f"died-{name}"
    if mark.exists():
        return work()  # type: ignore[no-any-return]
    mark.touch()
    segments.seal = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
    return work()  # type: ignore[no-any-return]
