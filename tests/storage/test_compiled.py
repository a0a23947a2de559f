"""Loops that wait to be compiled: what one question takes is run by Python, more loads Numba, and both give the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.older import packed

from fontes import Index
from fontes.index.kernels import unpack_in_numpy, unpack_postings
from fontes.storage import compiled

SEARCH = """
import json, sys
from fontes import Index
from fontes.storage import compiled
index = Index.open(sys.argv[1])
runs, loaded = [], []
for turn in range(2):
    for stage in (index.bm25(), index.tfidf(), index.bm25(where="year >= 2001")):
        for query in ("the café of a cat's house", "dogs dogs 3.5 cats", "zzz"):
            runs.append([(hit.id, hit.score) for hit in stage.search(query, 7)])
    loaded.append("numba" in sys.modules)
    compiled.load()
print(json.dumps([runs, loaded]))
"""

LOOPS = """
from fontes.storage.compiled import inner, kernel

@kernel(steps=lambda n: n)
def squares(n):
    total = 0
    for i in range(n):
        total += square(i)
    return total

@inner()
def square(i):
    return i * i
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    words = ["the", "a", "cat", "cats", "dog", "dogs", "house", "café", "3.5", "’s", "naïve", "zebra"]
    draw = np.random.default_rng(1)
    docs = [
        {"_id": f"d{i}", "text": " ".join(draw.choice(words, draw.integers(1, 9))), "year": int(2000 + i % 3)}
        for i in range(300)
    ]
    index = Index.build(docs, tmp_path_factory.mktemp("compiled") / "i.index", columns={"year": "integer"})
    return str(index.path)


def test_one_question_loads_no_compiler_and_finds_the_same(path: str) -> None:
    runs, loaded = json.loads(subprocess.run([sys.executable, "-c", SEARCH, path], capture_output=True, check=True).stdout)
    assert loaded == [False, True]
    half = len(runs) // 2
    assert runs[:half] == runs[half:]
    assert [len(run) for run in runs[:half]] == [7, 7, 0] * 3


def begin_anew(monkeypatch: pytest.MonkeyPatch, **state: Any) -> None:
    """Let the loops be as in a new process, in which nothing is loaded."""
    new = {"_waiting": [], "_callbacks": [], "_steps_left": 0, "_loaded": False, "_loader": None}
    for name, value in (new | state).items():
        monkeypatch.setattr(compiled, name, value)


def test_numba_is_loaded_when_python_has_taken_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_anew(monkeypatch, _steps_left=100)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    started = []
    monkeypatch.setattr(compiled, "_load_in_thread", lambda: started.append(threading.current_thread().name))
    assert compiled.affordable(60)
    assert not compiled.affordable(compiled.PAUSE + 1)
    assert not started
    assert compiled.affordable(60)  # a thread loads it meanwhile
    for thread in threading.enumerate():
        if thread.name == "fontes-loader":
            thread.join()
    assert started == ["fontes-loader"]
    assert compiled.affordable(60)
    assert not compiled.affordable(compiled.PAUSE + 1)
    assert not compiled.is_loaded()


def test_loops_count_as_loaded_when_all_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or another thread, as of a server's first request, imports one that is not compiled yet, and keeps it."""
    seen = []

    def compile_loop(function: Any) -> Any:
        seen.append(compiled.is_loaded())
        return function

    begin_anew(monkeypatch, _compiled=compile_loop, _waiting=[(compile_loop, {}, None)])
    compiled.load()
    assert (seen, compiled.is_loaded()) == ([False], True)


@pytest.mark.slow
def test_a_loop_that_was_run_by_python_is_compiled_later_and_so_are_its_parts(tmp_path: Any) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import loops; from fontes.storage import compiled\n"
        "print(loops.squares(10), compiled.is_loaded(), type(loops.square).__name__)\n"
        "print(loops.squares(10**6), compiled.is_loaded(), type(loops.square).__name__)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True).stdout
    total = sum(i * i for i in range(10**6))
    assert printed.splitlines() == ["285 False function", f"{total} True CPUDispatcher"]


def test_numpy_unpacks_postings_as_the_loop_does() -> None:
    """Here the bytes are damaged in each way in turn."""
    draw = np.random.default_rng(2)
    documents = 70_000
    lists = [np.sort(draw.choice(documents, size, replace=False)) for size in (1, 5, 400, 3, 69_000, 1)]
    df = np.array([len(docs) for docs in lists])
    bounds = np.concatenate([[0], np.cumsum(df)])
    docs = np.concatenate(lists).astype(np.int32)
    tfs = np.where(draw.random(len(docs)) < 0.6, 1, draw.integers(1, 400, len(docs))).astype(np.int32)
    postings = list(zip(docs.tolist(), tfs.tolist(), strict=True))
    parts = [packed(postings[a:b]) for a, b in pairwise(bounds.tolist())]
    byte_bounds = np.cumsum([0, *map(len, parts)])
    out = np.array([byte for part in parts for byte in part], dtype=np.uint8)
    arguments = (byte_bounds[:-1], byte_bounds[1:], df, documents)

    def unpacked(unpack: Any, buffer: Any) -> Any:
        got = np.empty(len(docs), np.int32), np.empty(len(docs), np.int32)
        return (got[0].tolist(), got[1].tolist()) if unpack(buffer, *arguments, *got) else None

    assert unpacked(unpack_in_numpy, out) == unpacked(unpack_postings, out) == (docs.tolist(), tfs.tolist())
    for at in [*range(14), *draw.integers(0, len(out), 10).tolist()]:
        for value in (0, 1, 2, 127, 128, 255):
            damaged = out.copy()
            damaged[at] = value
            assert unpacked(unpack_in_numpy, damaged) == unpacked(unpack_postings, damaged)


def test_the_first_build_on_a_machine_says_that_it_compiles(tmp_path: Any) -> None:
    code = (
        "from fontes.app.output import reporting\n"
        "from fontes.text import tokenizers\n"
        "with reporting(compiling=True):\n    pass\n"
        "import pathlib; place = pathlib.Path(tokenizers._scan.stats.cache_path); place.mkdir(parents=True, exist_ok=True)\n"
        "(place / 'tokenizers._scan-1.nbc').touch()\n"
        "with reporting(compiling=True):\n    pass\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ended.stderr.splitlines() == ["Compiling the kernels, once: this takes up to a minute."]


@pytest.mark.slow
def test_a_change_of_a_loop_reaches_loops_of_other_modules_that_call_it_through_others(tmp_path: Path) -> None:
    """As when a checkout is updated, which writes only some files anew."""
    head = "from fontes.storage.compiled import compiled\n"
    (tmp_path / "outer.py").write_text(
        f"{head}from parts import part\n"
        "@compiled()\ndef whole(x):\n    return between(x)\n"
        "@compiled()\ndef between(x):\n    return part(x)\n"
    )
    code = "import sys; sys.path.insert(0, sys.argv[1]); import outer; print(outer.whole(1))"
    printed = []
    for added in (1, 20):
        (tmp_path / "parts.py").write_text(f"{head}@compiled()\ndef part(x):\n    return x + {added}\n")
        command = [sys.executable, "-c", code, tmp_path]
        printed.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert printed == ["2\n", "21\n"]


FORKS = """
import os, sys; sys.path.insert(0, sys.argv[1])
import numba
for code in sys.argv[2:]:
    if not (child := os.fork()):
        exec(code, {"sys": sys}); sys.stdout.flush(); os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, code
"""
LOADED = {
    "loops that were put back after loading, as by a test that replaces the loops of a module, are still compiled": (
        "import loops; from fontes.storage import compiled\n"
        "before = loops.squares\n"
        "compiled.load(); loops.squares = before\n"
        "print(loops.squares(10), type(before._compiled).__name__)\n",
        "285 CPUDispatcher",
    ),
    "functions are compiled in every module whose loops call them, or a loop that is not on disk cannot be compiled": (
        "import fontes.lexical.bm25, fontes.lexical.retriever; from fontes.storage import compiled\n"
        "parts = {f.__name__: f for f, _, loop in compiled._waiting if loop is None}\n"
        "modules = [module for name, module in sys.modules.items() if name.startswith('fontes.')]\n"
        "def left(): return [(m.__name__, n) for m in modules for n, f in parts.items() if vars(m).get(n) is f]\n"
        "assert ('fontes.lexical.kernel', 'write_best') in left()\n"
        "compiled.load(); print(left())\n",
        "[]",
    ),
    "an interrupted load, as by Ctrl-C in a notebook's first search, can be repeated": (
        "import loops; from fontes.storage import compiled\n"
        "working = compiled._compiled\n"
        "def interrupted(*args, **options): raise KeyboardInterrupt\n"
        "compiled._compiled = interrupted\n"
        "try: compiled.load()\n"
        "except KeyboardInterrupt: compiled._compiled = working\n"
        "print(loops.squares(10**6), compiled.is_loaded())\n",
        f"{sum(i * i for i in range(10**6))} True",
    ),
    "a call with a constant compiles a function no second time": (
        "import constant; from fontes.storage import compiled\n"
        "compiled.load(); print(constant.squares(4), constant.square.signatures)\n",
        "14 [(int64,)]",
    ),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_loops_are_compiled_whatever_befalls_their_loading(tmp_path: Path) -> None:
    """Each case is a fork of one process, in which nothing is loaded but Numba."""
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "constant.py").write_text(LOOPS.replace("total = 0", "total = square(0)"))
    command = [sys.executable, "-c", FORKS, tmp_path, *(code for code, _ in LOADED.values())]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert dict(zip(LOADED, ended.stdout.splitlines(), strict=True)) == {name: said for name, (_, said) in LOADED.items()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_process_that_is_forked_while_a_thread_loads_loops_has_them(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import loops; from fontes.storage import compiled\n"
        "compiled._steps_left = 0; loops.squares(10); assert compiled._loader is not None\n"
        "if not (child := os.fork()):\n"
        "    print(loops.squares(10**6), compiled.is_loaded(), flush=True); os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == (f"{sum(i * i for i in range(10**6))} True\n", "")


def test_what_waits_for_loops_is_forgotten_once_they_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would keep the stage of a search, and the state of its index, alive."""
    begin_anew(monkeypatch)

    class Waiting:
        pass

    stage = Waiting()
    waits = weakref.ref(stage)
    compiled.when_loaded(lambda stage=stage: None)
    del stage
    assert waits() is not None
    compiled.load()
    assert waits() is None


# Folder of compiled code

OTHER = 65_534  # a user who owns nothing and has no home


class Other:
    """A user who can read everything, and write nothing but two folders.

    Attributes:
        own: A folder of this user's alone.
        temporary: A folder that everybody can write to, as /tmp.
    """

    def __init__(self, folder: Path) -> None:
        self.own, self.temporary = folder / "own", folder / "temporary"
        self.own.mkdir(mode=0o700)
        os.chown(self.own, OTHER, OTHER)
        self.temporary.mkdir()
        self.temporary.chmod(0o1777)
        (folder / "loops.py").write_text(LOOPS)
        self.loops = folder

    def python(self, *arguments: object, **variables: object) -> subprocess.CompletedProcess[str]:
        """Runs Python as this user, without a home."""
        keep = "-all,+dac_read_search"
        user = [f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
        caps = [f"--inh-caps={keep}", f"--ambient-caps={keep}", f"--bounding-set={keep}"]
        places = ("HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "CACHE_DIRECTORY", "RUNTIME_DIRECTORY", "NUMBA_CACHE_DIR")
        environment = {name: value for name, value in os.environ.items() if name not in (*places, "FONTES_CACHE")}
        environment |= {"TMPDIR": str(self.temporary)} | {name: str(value) for name, value in variables.items()}
        command = ["setpriv", *user, *caps, sys.executable, *map(str, arguments)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd="/")
        assert ended.returncode == 0, ended.stderr
        return ended


@pytest.fixture
def other() -> Iterator[Other]:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("running a program as another user needs root and setpriv")
    with tempfile.TemporaryDirectory(prefix="fontes-") as folder:
        Path(folder).chmod(0o755)
        yield Other(Path(folder))


COMPILED = "import sys; sys.path.insert(0, sys.argv[1]); import loops; print(loops.squares(10**6), loops.squares.stats)"


@pytest.mark.parametrize(
    "variable",
    [
        pytest.param("CACHE_DIRECTORY", marks=pytest.mark.slow),
        pytest.param("XDG_RUNTIME_DIR", marks=pytest.mark.slow),
        "TMPDIR",
    ],
)
def test_a_user_who_can_write_nowhere_else_keeps_compiled_code_in_a_private_folder(other: Other, variable: str) -> None:
    place = other.temporary if variable == "TMPDIR" else other.own
    name = f"fontes-compiled-{OTHER}" if variable == "TMPDIR" else "fontes-compiled"
    first, second = (other.python("-c", COMPILED, other.loops, **{variable: place}) for _ in range(2))
    said = f"compiled code is cached in {place / name}; NUMBA_CACHE_DIR names another folder\n"
    assert first.stderr == second.stderr == said
    assert (place / name).stat().st_mode & 0o777 == 0o700
    assert list((place / name).rglob("loops.squares*.nbc"))
    assert "cache_misses=Counter({(int64,): 1})" in first.stdout
    assert "cache_hits=Counter({(int64,): 1})" in second.stdout


@pytest.mark.parametrize(
    "planted", [pytest.param("folder", marks=pytest.mark.slow), pytest.param("link", marks=pytest.mark.slow), "writable"]
)
def test_compiled_code_is_not_read_from_a_folder_that_others_can_write(other: Other, planted: str) -> None:
    place = other.temporary / f"fontes-compiled-{OTHER}"
    if planted == "link":
        place.symlink_to(other.own)
    else:
        place.mkdir()
        if planted == "writable":
            os.chown(place, OTHER, OTHER)
        place.chmod(0o777)
    ended = other.python("-c", COMPILED, other.loops)
    assert ended.stderr == "compiled code is not cached, as there is no folder to write it to; NUMBA_CACHE_DIR names one\n"
    assert ended.stdout.startswith(str(sum(i * i for i in range(10**6))))
    assert not list(place.iterdir())


@pytest.mark.slow
def test_a_user_without_a_home_searches_with_a_package_that_is_read_only(other: Other, path: str) -> None:
    index = shutil.copytree(path, other.loops / "i.index")
    code = "import sys; from fontes.storage import compiled; compiled.load(); from fontes.app.cli import main; main()"
    ended = other.python("-c", code, "search", index, "dogs", XDG_RUNTIME_DIR=other.own)
    folder = other.own / "fontes-compiled"
    assert ended.stderr == f"compiled code is cached in {folder}; NUMBA_CACHE_DIR names another folder\n"
    assert len(ended.stdout.splitlines()) >= 10


def test_a_text_is_analysed_by_the_loops_of_a_build() -> None:
    """Whose tables are of one type, so that they are compiled once."""
    code = (
        "import tempfile; from fontes import Doc, Index; from fontes.storage import compiled\n"
        "from fontes.text import folding, porter, tokenizers\n"
        "compiled.load(); index = Index.build([Doc('a', 'red plums'), Doc('b', 'blue plums')], tempfile.mkdtemp() + '/x')\n"
        "index.bm25().search('red plum')\n"
        "loops = (tokenizers._word_end, folding.fold_token, porter._strip)\n"
        "print(*(len(loop._cache._cache_file._load_index()) for loop in loops))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("1 1 1\n", "")


def test_all_loops_are_compiled_in_one_way() -> None:
    """Or one of them asks Numba for a cache where there is none."""
    package = Path(compiled.__file__).parents[1]
    others = {path.name for path in package.rglob("*.py") if "njit" in path.read_text(encoding="utf-8")}
    assert others == {"compiled.py", "pinned.py"}  # `pinned.view` is inlined into loops, which are cached with it
