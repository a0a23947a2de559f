"""Fixtures that all rooms use."""

import asyncio
import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support import compiled_code, hostile
from support.standard_input import give_input

import fontes as fontes_package
from fontes.app import cli
from fontes.cluster.joining import OFF

Fontes = Callable[..., tuple[int, str, str]]

# Before torch is loaded, here and in what tests start: the threads of two test processes would wait for each other, spinning.
os.environ.setdefault("OMP_NUM_THREADS", "1")

MAX_NAME = 60  # characters of a text that names a case
FOLDERS = itertools.count()  # numbers of the tests' folders
PASSES = 2  # tests with the browser that `make test` runs of each file

settings.register_profile("fixed", derandomize=True, max_examples=33, database=None, deadline=None)  # the same ones each time
settings.register_profile("fresh", derandomize=False, database=None, deadline=None, print_blob=True)
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Compiled code comes from an earlier run; what is missing is compiled by one process of xdist for both."""
    gc.disable()  # until all tests are imported
    if hasattr(config, "workerinput"):
        compiled_code.compile_once()
        return
    # Tables in the source name Fontes' own parts; entry points of an older installation would be taken for another package's.
    if any(point.group.startswith("fontes.") for point in distribution("fontes").entry_points):
        raise pytest.UsageError("entry points of an older version are installed; pip install --no-deps -e . removes them")
    compiled_code.take_over()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names cases of long texts by their beginning: xdist sends the names, which would be 20 megabytes, between processes."""
    return f"{val[:MAX_NAME]!a}..." if isinstance(val, str | bytes) and len(val) > MAX_NAME else None


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests work out is kept in a folder of their own, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FONTES_CACHE", str(tmp_path_factory.mktemp("fontes-cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No test takes the power from the machine, so files need not be on the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _few_models() -> Iterator[None]:
    """Of the models that no test uses any more few are kept: there are hundreds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fontes.neural.models.hub.CACHE_BYTES", 128 << 20)
        yield


@pytest.fixture(autouse=True)
def _own_interrupts() -> Iterator[None]:
    """Interrupts are Python's own in each test: shells let background jobs ignore them, and commands catch them."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(autouse=True)
def _own_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests without a browser see no event loop: that of the browser stays for good in the thread of all tests."""
    running = None if "browser" in request.fixturenames else asyncio._get_running_loop()
    if running is not None:
        asyncio._set_running_loop(None)
    yield
    if running is not None:
        asyncio._set_running_loop(running)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder of the test. That of pytest looks through the folders of all tests before, which takes longer with each."""
    folder = tmp_path_factory.getbasetemp() / f"{next(FOLDERS)}-{request.function.__name__[:30]}"
    folder.mkdir()
    return folder


@pytest.fixture
def fontes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fontes:
    """Runs a command in this process, on what `stdin` gives; gives its exit code, output and errors."""

    def run(*arguments: object, stdin: str | bytes = "") -> tuple[int, str, str]:
        given = stdin if isinstance(stdin, bytes) else stdin.encode()
        give_input(monkeypatch, given)
        monkeypatch.setattr(sys, "argv", ["fontes", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The one browser of a process; two would share an event loop, which playwright refuses."""
    from support.pages import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def ray(_own_cache: None) -> Iterator[str]:
    """The address of the one Ray of the tests, with two processors, which this process has joined; starting takes seconds."""
    library = pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # the paths of its sockets must be short
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    with pytest.MonkeyPatch.context() as patch:
        for name in OFF:
            patch.setenv(name, "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([*importable(), os.environ.get("PYTHONPATH", "")]))
        library.init("local", num_cpus=2, object_store_memory=100_000_000, _temp_dir=folder, **quiet)
        yield library.get_runtime_context().gcs_address
        library.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def importable() -> list[str]:
    """Where the processes of a cluster find Fontes as it is tested, and `support`."""
    return [str(Path(fontes_package.__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file share a process of xdist, which makes their fixtures once; so do all files with a browser or Ray.

    Of the tests of a file that use the browser the first alone are quick, and none that use Ray.
    """
    groups = {item.path: f"{item.path.parent.name}/{item.path.stem}" for item in items}
    passes = Counter[Path]()
    for item in items:
        for fixture in {"browser", "ray"}.intersection(getattr(item, "fixturenames", ())):
            groups[item.path] = fixture
            if item.get_closest_marker("slow") is None:
                passes[item.path] += fixture == "browser"
                if fixture == "ray" or passes[item.path] > PASSES:
                    item.add_marker(pytest.mark.slow)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item.path]))


def pytest_collection_finish() -> None:
    """Leaves the modules and cases, millions of objects, out of all garbage collections."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # searches for garbage take a tenth of the time otherwise
    gc.enable()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public collections beside the checkout, or the one that FONTES_SHARED names."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    folder = Path(os.environ.get("FONTES_SHARED") or beside)
    if not folder.is_dir():
        pytest.skip(f"the public collections are not at {folder}; FONTES_SHARED can name their folder")
    return folder


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of xdist hands what it counted to the one that tells, which keeps what was compiled."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["hostile"] = dict(hostile.COUNTS)
    else:
        compiled_code.keep()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds what a process of xdist counted."""
    hostile.COUNTS.update(getattr(node, "workeroutput", {}).get("hostile", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What came of the hostile files and texts."""
    if counts := hostile.summary():
        terminalreporter.write_line(counts)
