"""Counts what a piece of work does: calls of Python functions in all its threads, reads of entry points, opened files."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import fontes

SOURCE = Path(fontes.__file__).parent.as_posix()
METADATA = "importlib/metadata/__init__.py"
_recording: list[Counts] = []


class Counts:
    """Counts of one block.

    Attributes:
        calls: Calls of Python functions, by file and name.
        files: Paths of the opened files, in order.
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.files: list[str] = []

    @property
    def total(self) -> int:
        """Number of all calls."""
        return self.calls.total()

    @property
    def own(self) -> tuple[int, int]:
        """Number of the calls of functions of Fontes, and of its files that have them."""
        calls = {key: n for key, n in self.calls.items() if key[0].startswith(SOURCE)}
        return sum(calls.values()), len({file for file, _ in calls})

    @property
    def entry_points(self) -> int:
        """Number of reads of the entry points of all installed packages."""
        return sum(n for (file, name), n in self.calls.items() if file.endswith(METADATA) and name == "entry_points")

    def most(self, n: int = 20) -> str:
        """The most frequent calls, for a message."""
        return "\n".join(f"{count:6} {file}:{name}" for (file, name), count in self.calls.most_common(n))


def profile(frame: FrameType, event: str, argument: Any) -> None:
    """Count a call; threads that shall be counted are started with it."""
    if event == "call" and _recording:
        _recording[-1].calls[frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name] += 1


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _recording:
        _recording[-1].files.append(str(arguments[0]))


sys.addaudithook(_audit)  # for good; it does nothing outside of a block


@contextmanager
def counted_threads() -> Iterator[None]:
    """Let the threads that are started in the block be counted."""
    threading.setprofile(profile)
    yield
    threading.setprofile(None)  # type: ignore[arg-type]


@contextmanager
def counted() -> Iterator[Counts]:
    """Count what the block does in this thread, and in threads that were started in `counted_threads`."""
    counts, before = Counts(), sys.getprofile()
    gc.collect()
    gc.disable()  # finalizers are no work of the block
    _recording.append(counts)
    sys.setprofile(profile)
    try:
        yield counts
    finally:
        sys.setprofile(before)
        _recording.remove(counts)
        gc.enable()
