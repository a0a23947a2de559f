"""Killed, interrupted, out of disk, two at once: an index is always the old one or the new one, and nothing is left behind."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.old_and_new import NEW, OLD, leftovers, state
from support.processes import full_disk, in_a_child, kill, small_disk
from support.small import small_batches
from support.small_collections import files

from fontes.core import FontesError
from fontes.index import Index
from fontes.index.files import MANIFEST

# File system operations that a build makes, as Python's audit hooks name them.
OPERATIONS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "fcntl.flock", "shutil.rmtree"}
LARGE = """
    import random, sys
    from fontes.index import Index, build
    build.BATCH = 1 << 20
    def docs():
        draw = random.Random(7)
        for n in range(60_000):
            yield f"n{n}", " ".join(f"w{int(draw.paretovariate(0.5)) % 40_000}" for _ in range(50))
    Index.build([("warm", "up")], sys.argv[1] + ".warm", overwrite=True)
    print("ready", flush=True)
    Index.build(docs(), sys.argv[1], overwrite=True, memory="8M", analyzer="whitespace")
    print("done", flush=True)
"""


def at_operation(number: int, folder: Path, what: Callable[[], object], *, until: str = "") -> list[str]:
    """Does `what` before the operation of this number that names something inside `folder`; the list then names it."""
    count = 0
    done: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event not in OPERATIONS or count < 0:
            return
        if event == until:
            count = -1
            return
        if event == "fcntl.flock" or str(folder) in str(arguments[0]):
            count += 1
            if count == number:
                done.append(event)
                what()

    sys.addaudithook(hook)
    return done


def interrupt() -> None:
    raise KeyboardInterrupt


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that runs `script`; returns when it has printed a line."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.fixture(scope="module", autouse=True)
def old(tmp_path_factory) -> Path:
    """An index of OLD; after it everything that the tests run is compiled."""
    path = tmp_path_factory.mktemp("old") / "x"
    Index.build(NEW, path)
    Index.build(OLD, path, memory="2K", threads=1, overwrite=True)
    assert state(path) == "old"
    return path


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    small_batches(monkeypatch, 6_000)


every = pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])


@every
@pytest.mark.parametrize(
    ("before", "options"),
    [
        pytest.param("none", {}, marks=pytest.mark.slow),
        ("old", {}),
        pytest.param("old", {"separate": True, "positions": True}, marks=pytest.mark.slow),
    ],
    ids=["none", "old", "old, fields and positions"],
)
def test_a_killed_build_leaves_the_last_state_and_the_next_build_cleans_up(tmp_path, before, options, every, old):
    outcomes, number = [], 1 - every
    while True:
        number += every
        folder = tmp_path / str(number)
        folder.mkdir()
        if before == "old":
            shutil.copytree(old, folder / "x")

        def work(number=number, folder=folder):
            at_operation(number, folder, kill)
            Index.build(NEW, folder / "x", overwrite=True, threads=1, memory="2K", **options)

        status = in_a_child(work)
        outcomes.append(state(folder / "x"))
        if status == 0:
            break
        assert status == -signal.SIGKILL
        if number % 4 != 1:
            continue
        Index.build(NEW, folder / "x", overwrite=True, threads=1, memory="2K", **options)
        assert state(folder / "x") == "new"
        assert [p.name for p in folder.iterdir()] == ["x"]
        assert len(list((folder / "x").iterdir())) == 2
    assert outcomes[0] == before
    assert outcomes[-1] == "new"
    assert set(outcomes) == {before, "new"}
    assert len(outcomes) > 30 // every


@every
@pytest.mark.parametrize(("what", "status"), [(full_disk, 3), pytest.param(interrupt, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("before", [pytest.param("none", marks=pytest.mark.slow), "old"])
def test_a_build_that_fails_at_any_operation_leaves_the_last_state(tmp_path, before, what, status, every, old):
    outcomes, number = [], 1 - every
    while True:
        number += every
        folder = tmp_path / str(number)
        folder.mkdir()
        if before == "old":
            shutil.copytree(old, folder / "x")

        def work(number=number, folder=folder):
            done = at_operation(number, folder, what, until="shutil.rmtree")
            Index.build(NEW, folder / "x", overwrite=True, threads=1, memory="2K")
            if done:
                os._exit(6)  # the build could do without it

        found = in_a_child(work)
        outcomes.append((found, state(folder / "x")))
        assert leftovers(folder) == []
        if found == 0:
            break
    assert outcomes[-1] == (0, "new")
    assert set(outcomes[:-1]) <= {(status, before), (status, "new"), (6, "new")}
    assert sum(outcome == (status, before) for outcome in outcomes) > 30 // every


@pytest.mark.slow
def test_a_large_build_killed_at_any_time_leaves_the_index_before_it(tmp_path):
    draw = random.Random(11)
    path = tmp_path / "x"
    Index.build(OLD, path)
    killed = 0
    for _ in range(4):
        child = start(LARGE, path)
        time.sleep(draw.uniform(0.01, 1.6))
        child.kill()
        out, _ = child.communicate()
        killed += "done" not in out
        index = Index.open(path)
        index.check()
        assert len(index) in ((60_000,) if "done" in out else (30, 60_000))
    assert killed > 0
    Index.build(OLD, path, overwrite=True)
    assert state(path) == "old"
    assert leftovers(tmp_path) == []


@pytest.mark.slow
def test_a_large_build_killed_where_there_was_nothing_leaves_nothing_to_open(tmp_path):
    child = start(LARGE, tmp_path / "x")
    time.sleep(0.3)
    child.kill()
    child.communicate()
    assert not (tmp_path / "x").exists()
    assert len(leftovers(tmp_path)) == 1
    Index.build(NEW, tmp_path / "x")
    assert state(tmp_path / "x") == "new"
    assert leftovers(tmp_path) == []


@pytest.mark.slow
def test_an_interrupted_build_ends_and_leaves_nothing_behind(tmp_path):
    Index.build(OLD, tmp_path / "x")
    before = files(tmp_path / "x")
    child = start(LARGE, tmp_path / "x")
    time.sleep(0.4)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert errors.strip().endswith("KeyboardInterrupt")
    assert files(tmp_path / "x") == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x", "x.warm"]


def is_a_sentence(error: FontesError, path: Path) -> None:
    message = str(error)
    assert str(path) in message
    assert "\n" not in message
    assert "No space left on device" in message


def test_a_full_disk_is_an_error_that_leaves_the_old_index_and_nothing_else(tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        Index.build(OLD, disk / "x")
        before = files(disk)
        docs = ((f"n{n}", f"{random.Random(n).random()} " * 9) for n in range(60_000))
        with pytest.raises(FontesError) as error:
            Index.build(docs, disk / "x", overwrite=True, memory="100K")
        is_a_sentence(error.value, disk / "x")
        assert files(disk) == before
        assert state(disk / "x") == "old"


def test_a_disk_that_is_full_at_any_point_is_an_error_that_leaves_nothing(tmp_path):
    docs = [(f"n{n}", f"{random.Random(n).random()} dog " * 3) for n in range(1_500)]
    failures = 0
    with small_disk(tmp_path / "disk", "1m") as disk:
        for kilobytes in [*range(0, 200, 25), *range(200, 600, 100)]:
            for filler in disk.iterdir():
                filler.unlink()
            status = os.statvfs(disk)
            filler = disk / "filler"
            filler.write_bytes(b"x" * max(0, status.f_bavail * status.f_frsize - kilobytes * 1024))
            try:
                Index.build(docs, disk / "x", memory="1K", threads=1 + kilobytes % 2).check()
            except FontesError as error:
                is_a_sentence(error, disk / "x")
                failures += 1
                assert [p.name for p in disk.iterdir()] == ["filler"]
            else:
                break
    assert failures > 5


def test_a_directory_that_cannot_be_written_is_an_error_of_fontes(tmp_path):
    with contextlib.ExitStack() as stack:
        if os.geteuid() == 0:
            folder = stack.enter_context(small_disk(tmp_path / "disk", "1m"))
            Index.build(OLD, folder / "x")
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        else:
            folder = tmp_path
            Index.build(OLD, folder / "x")
            folder.chmod(0o555)
            stack.callback(folder.chmod, 0o755)
        for name in ("x", "y"):
            with pytest.raises(FontesError) as error:
                Index.build(NEW, folder / name, overwrite=True)
            assert f"{folder / name} cannot be written: " in str(error.value)
        assert state(folder / "x") == "old"
        assert [p.name for p in folder.iterdir()] == ["x"]


def test_every_file_of_a_state_is_flushed_before_its_manifest_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a loss of power would leave a manifest that names files without their content."""
    flushed: set[int] = set()
    replaced: list[str] = []
    plain = Path.replace

    def replace(source: Path, target: Path) -> Path:
        if target.name == MANIFEST:
            files = [file for folder in {source.parent, target.parent} for file in folder.rglob("*.npy")]
            assert all(file.stat().st_ino in flushed for file in [source, *files])
            replaced.append(target.name)
        return plain(source, target)

    monkeypatch.setattr(os, "fsync", lambda file: flushed.add(os.fstat(file).st_ino))
    monkeypatch.setattr(Path, "replace", replace)
    index = Index.build([("a", "red plums"), ("b", "blue plums")], tmp_path / "x", positions=True)
    assert all(file.stat().st_ino in flushed for file in (tmp_path / "x").rglob("*.*"))
    index.add([("c", "red sea")])
    index.delete(["a"])
    index.merge()
    assert replaced == [MANIFEST] * 3
