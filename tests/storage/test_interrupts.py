"""An interrupt waits for a step that must be whole, and then takes effect."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fontes.storage import artifact, system
from fontes.storage.system import complete, uninterrupted


@pytest.fixture(autouse=True)
def _nothing_complete_yet() -> Iterator[None]:
    before = list(complete)
    complete.clear()
    yield
    complete[:] = before


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_takes_effect_when_the_step_is_done() -> None:
    steps = []

    def work() -> None:
        with uninterrupted(Path("x")):
            press()
            press()
            steps.append("done")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert (steps, complete) == (["done"], [Path("x")])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_steps_inside_a_step_wait_for_the_outer_one() -> None:
    steps = []

    def work() -> None:
        with uninterrupted():
            with uninterrupted(Path("inner")):
                press()
            steps.append("after the inner one")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert (steps, complete) == (["after the inner one"], [Path("inner")])


def test_what_failed_is_not_complete() -> None:
    with pytest.raises(OSError, match="full"), uninterrupted(Path("x")):
        raise OSError("full")
    assert complete == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_step_in_another_thread_just_runs() -> None:
    def work() -> None:
        with uninterrupted(Path("x")):
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert complete == [Path("x")]
    assert system.complete is complete


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_replaces_another_one_in_one_step_or_where_there_is_none_in_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(system.ctypes, "CDLL", lambda _: object())
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    artifact.commit(tmp_path / "new", tmp_path / "old")
    assert [entry.name for entry in tmp_path.iterdir()] == ["old"]
    assert [entry.name for entry in (tmp_path / "old").iterdir()] == ["new"]
    assert complete == [tmp_path / "old"]
