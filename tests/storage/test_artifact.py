"""Artifacts: there whole or not at all, known by what they hold, and checked."""

import json
import os
import signal
import stat
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.processes import in_a_child

from fontes.core import FontesError, IndexFormatError
from fontes.storage.arrays import write_array
from fontes.storage.artifact import (
    META,
    Artifact,
    ArtifactKind,
    check_folder,
    commit,
    drafting,
    file_table,
    read_settings,
    seal,
    staging,
)
from fontes.storage.hashes import hash_file, hash_json

KIND = ArtifactKind("test-numbers", 3, "numbers", "count again")
BUSY = FontesError("another process counts")


def made(place: Path, *numbers: int) -> Path:
    with staging(place) as folder:
        write_array(folder, "numbers", np.array(numbers))
        seal(folder, KIND, {"how": "by hand"})
        commit(folder, place)
    return place


def test_an_artifact_has_its_settings_its_files_and_nothing_beside_it(tmp_path: Path) -> None:
    artifact = Artifact(made(tmp_path / "a", 1, 2), KIND)
    assert artifact.arrays.array("numbers", "<i8", None).tolist() == [1, 2]
    assert artifact.meta["how"] == "by hand"
    assert "numbers" in artifact
    assert "letters" not in artifact
    assert artifact.bytes == (tmp_path / "a" / "numbers.npy").stat().st_size
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    artifact.check()
    check_folder(tmp_path / "a")
    assert read_settings(tmp_path / "a") == {"how": "by hand", "bytes": artifact.bytes}


def test_a_file_that_this_user_may_not_read_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path, *arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    folder = made(tmp_path / "a", 1)
    artifact = Artifact(folder, KIND)
    for name in ("open", "read_text"):
        monkeypatch.setattr(Path, name, forbidden)
    for read, file in (
        (lambda: artifact.arrays.array("numbers", "<i8", None), "numbers.npy"),
        (lambda: Artifact(folder, KIND), META),
    ):
        message = rf"{file} cannot be read: Permission denied; let this user read it and the folders above it$"
        with pytest.raises(IndexFormatError, match=message):
            read()


def test_the_metadata_say_format_version_settings_and_of_each_file_bytes_and_hash(tmp_path: Path) -> None:
    folder = made(tmp_path / "a", 1)
    meta = json.loads((folder / META).read_text())
    file = folder / "numbers.npy"
    files = {"numbers.npy": {"bytes": file.stat().st_size, "sha256": hash_file(file)}}
    settings = {"format": "test-numbers", "version": 3, "how": "by hand"}
    assert meta == {**settings, "files": files, "digest": hash_json([settings, files])}


def test_an_artifact_may_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        folder = made(tmp_path / "a", 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750


def test_an_artifact_replaces_one_that_is_there(tmp_path: Path) -> None:
    first = Artifact(made(tmp_path / "a", 1), KIND)
    numbers = first.arrays.array("numbers", "<i8", None)
    made(tmp_path / "a", 2)
    assert Artifact(tmp_path / "a", KIND).arrays.array("numbers", "<i8", None).tolist() == [2]
    assert numbers.tolist() == [1]  # those who have the old one open keep it
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    made(tmp_path / "a", 1)

    def fail() -> None:
        with staging(tmp_path / "a") as folder:
            write_array(folder, "numbers", np.array([2]))
            raise error

    with pytest.raises(error):
        fail()
    assert Artifact(tmp_path / "a", KIND).arrays.array("numbers", "<i8", None).tolist() == [1]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_staged_files_of_a_killed_process_go_and_of_a_running_one_stay(tmp_path: Path) -> None:
    def die() -> None:
        with staging(tmp_path / "a"):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(die) == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    with staging(tmp_path / "a") as running:
        assert list(tmp_path.iterdir()) == [running]
        made(tmp_path / "a", 1)
        assert sorted(tmp_path.iterdir()) == sorted([running, tmp_path / "a"])


def test_what_is_damaged_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    folder = made(tmp_path / "a", 1, 2)
    file = folder / "numbers.npy"
    sound, meta = file.read_bytes(), (folder / META).read_text()
    artifact = Artifact(folder, KIND)
    file.write_bytes(sound[:-1] + b"\x07")
    with pytest.raises(IndexFormatError, match=r"numbers\.npy has changed; count again"):
        artifact.check()
    file.write_bytes(sound[:-1])
    with pytest.raises(
        IndexFormatError, match=rf"numbers\.npy has {len(sound) - 1} bytes instead of {len(sound)}; count again"
    ):
        Artifact(folder, KIND)
    file.unlink()
    with pytest.raises(IndexFormatError, match=r"numbers\.npy is missing; count again"):
        Artifact(folder, KIND)
    with pytest.raises(IndexFormatError, match=r"numbers\.npy cannot be read .*; count again"):
        artifact.check()
    (folder / META).write_text(meta.replace("test-numbers", "letters"))
    with pytest.raises(IndexFormatError, match=r"has no numbers of Fontes: its format is 'letters'; count again"):
        Artifact(folder, KIND)
    changed = meta.replace("by hand", "by ear")
    for text in (changed, "", "[]", "{}", "null", '{"format": "test-numbers", "files": 3, "digest": 1}'):
        (folder / META).write_text(text)
        with pytest.raises(IndexFormatError, match=r"artifact\.json is damaged; count again"):
            Artifact(folder, KIND)
        with pytest.raises(IndexFormatError, match="--overwrite"):
            check_folder(folder)
        assert read_settings(folder) == {}


def test_another_version_of_a_format_is_an_error_that_names_both(tmp_path: Path) -> None:
    made(tmp_path / "a", 1)
    with pytest.raises(IndexFormatError, match=r"has numbers of the format 3, older than the 4 that .* reads; count again"):
        Artifact(tmp_path / "a", replace(KIND, version=4))


def test_work_goes_on_in_a_draft_and_one_process_at_a_time_has_it(tmp_path: Path) -> None:
    place = tmp_path / "a"

    def die() -> None:
        with drafting(place, BUSY) as draft:
            (draft / "begun").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(die) == -signal.SIGKILL
    with drafting(place, BUSY) as draft:
        assert (draft / "begun").read_text() == "half"
        with pytest.raises(FontesError, match="another process counts"), drafting(place, BUSY):
            pass
        (draft / "begun").unlink()
        write_array(draft, "numbers", np.array([5]))
        seal(draft, KIND, {}, "*.npy")
        commit(draft, place)
    assert Artifact(place, KIND).arrays.array("numbers", "<i8", None).tolist() == [5]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_an_empty_draft_is_removed_and_an_error_inside_is_raised(tmp_path: Path) -> None:
    with drafting(tmp_path / "a", BUSY):
        pass
    assert list(tmp_path.iterdir()) == []

    def missing_model() -> None:
        with drafting(tmp_path / "a", BUSY):
            raise FileNotFoundError("model.bin")

    with pytest.raises(FileNotFoundError, match=r"model\.bin"):
        missing_model()


def test_threads_that_make_one_artifact_at_once_leave_a_whole_one(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(10):
                made(tmp_path / "a", number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    check_folder(tmp_path / "a")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_draft_that_another_process_removes_while_it_is_opened_is_made_again(tmp_path, monkeypatch):
    mkdir, calls = os.mkdir, []

    def removed(path, mode=0o777):
        calls.append(path)
        if len(calls) == 1:
            raise FileExistsError(path)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", removed)
    with drafting(tmp_path / "x", FontesError("busy")) as draft:
        assert draft.is_dir()
    assert len(calls) == 2


def test_a_draft_beside_a_place_whose_folder_is_gone_is_an_error_and_not_waited_for(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone"), drafting(tmp_path / "gone" / "x", FontesError("busy")):
        pass


def test_files_are_flushed_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes hardly longer than one; one after the other, a commit of one document waits a dozen times."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x")
    together = threading.Barrier(2)
    monkeypatch.setattr(os, "fsync", lambda file: together.wait(10))
    assert list(file_table(tmp_path)) == ["a", "b"]
