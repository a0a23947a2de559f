"""What Windows needs in place of POSIX's ways, tried here as far as another system can."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fontes.core import FontesError
from fontes.storage import system
from fontes.storage.artifact import commit, drafting, staging
from fontes.storage.system import locked

BUSY = FontesError("busy")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Ways of Windows; the folder of its locks."""
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(system, "WINDOWS", True)
    monkeypatch.setattr(system, "exchange", lambda one, other: False)
    monkeypatch.setattr("fontes.storage.artifact.exchange", lambda one, other: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    return tmp_path / "temp" / "fontes-locks"


def test_a_folder_is_locked_by_a_file_named_after_it(windows: Path, tmp_path: Path) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    other.mkdir()
    with locked(folder, BUSY):
        assert len(list(windows.iterdir())) == 1
        with pytest.raises(FontesError, match="busy"), locked(tmp_path / "temp" / ".." / "a", BUSY):
            pass
        with locked(other, BUSY):
            folder.rename(tmp_path / "c")  # no open file inside is in the way
    with pytest.raises(FileNotFoundError), locked(folder, BUSY):
        pass


def test_an_artifact_is_staged_drafted_and_replaced_there(windows: Path, tmp_path: Path) -> None:
    place = tmp_path / "artifact"
    for content in ("old", "new"):
        with staging(place) as folder:
            (folder / "file").write_text(content)
            commit(folder, place)
        assert (place / "file").read_text() == content
    with drafting(tmp_path / "draft", BUSY) as draft:
        with pytest.raises(FontesError, match="busy"), drafting(tmp_path / "draft", BUSY):
            pass
        commit(draft, tmp_path / "draft")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["artifact", "draft", "temp"]


def test_a_rename_waits_until_nobody_reads_the_target(windows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, attempts, rename = tmp_path / "source", [], Path.replace
    source.write_text("new")
    monkeypatch.setattr(system, "RETRY_PAUSE", 0)

    def busy(self: Path, target: Path) -> Path:
        attempts.append(target)
        if len(attempts) < readers:
            raise PermissionError
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", busy)
    readers = 3
    system.replace(source, tmp_path / "target")
    assert ((tmp_path / "target").read_text(), len(attempts)) == ("new", 3)
    readers = 1_000
    with pytest.raises(PermissionError):
        system.replace(tmp_path / "target", source)


def test_folders_are_swapped_at_once_where_the_system_can(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    (other / "inside").mkdir(parents=True)
    if system.exchange(one, other):
        assert (one / "inside").is_dir()
    assert not system.exchange(one, tmp_path / "missing")


def test_a_process_is_alive_until_it_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert system.is_alive(process.pid)
        assert system.is_alive(os.getpid())
        process.communicate(b"\n")
    assert not system.is_alive(process.pid)
    assert not system.is_alive(2**70)
