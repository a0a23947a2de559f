"""What the tests let a cluster do: functions that its processes import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from fontes.core.errors import InputError


def square(number: int) -> int:
    return number * number


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


def die_once_holding(counter: Counter, place: tuple[str, int]) -> int:
    return die_once(place)


def refuse_to_load() -> Counter:
    raise InputError("the model 'x' is not there")
