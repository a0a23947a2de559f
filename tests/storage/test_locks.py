"""The lock of a folder: one process or thread at a time, no file for it, and gone with the process."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from support.processes import in_a_child

from fontes.core import FontesError
from fontes.storage.system import locked

BUSY = FontesError("somebody is in the way")


def test_a_lock_keeps_others_out_and_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(FontesError, match="somebody is in the way"), locked(tmp_path, BUSY):
            pass
        assert in_a_child(lambda: locked(tmp_path, BUSY).__enter__()) == 3
        assert list(tmp_path.iterdir()) == []
    with locked(tmp_path, BUSY):
        pass


def test_a_lock_goes_with_the_process_that_is_killed(tmp_path: Path) -> None:
    def die() -> None:
        with locked(tmp_path, BUSY):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(die) == -signal.SIGKILL
    with locked(tmp_path, BUSY):
        pass


def test_who_waits_comes_in_when_the_lock_is_free(tmp_path: Path) -> None:
    order: list[str] = []

    def wait() -> None:
        with locked(tmp_path):
            order.append("second")

    with locked(tmp_path):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_the_lock_of_a_folder_that_is_renamed_stays_that_folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with locked(tmp_path / "a"):
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "a").mkdir()
        with locked(tmp_path / "a", BUSY):
            pass
        with pytest.raises(FontesError, match="in the way"), locked(tmp_path / "b", BUSY):
            pass


def test_a_folder_that_is_not_there_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked(tmp_path / "nowhere"):
        pass
