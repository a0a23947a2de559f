"""Loops that wait to be compiled: what one question takes is run by Python, more loads Numba, and both give the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from fontes import Index
from fontes.index.kernels import unpack_plainly, unpack_postings
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


def test_numba_is_loaded_when_python_has_taken_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_left", 100)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert compiled.affordable(60)
    assert not compiled.affordable(60)
    assert compiled.affordable(40)


def test_a_loop_that_was_run_by_python_is_compiled_later_and_so_are_its_parts(tmp_path: Any) -> None:
    (tmp_path / "loops.py").write_text(
        "from fontes.storage.compiled import inner, kernel\n"
        "@kernel(steps=lambda n: n)\n"
        "def squares(n):\n    total = 0\n    for i in range(n):\n        total += square(i)\n    return total\n"
        "@inner()\n"
        "def square(i):\n    return i * i\n"
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import loops; from fontes.storage import compiled\n"
        "print(loops.squares(10), compiled.is_loaded(), type(loops.square).__name__)\n"
        "print(loops.squares(10**6), compiled.is_loaded(), type(loops.square).__name__)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True).stdout
    total = sum(i * i for i in range(10**6))
    assert printed.splitlines() == ["285 False function", f"{total} True CPUDispatcher"]


def test_numpy_unpacks_postings_as_the_loop_does() -> None:
    """The bytes are written out by hand in tests/index/test_kernels.py; here they are damaged in each way in turn."""
    from fontes.index.kernels import pack_postings

    draw = np.random.default_rng(2)
    documents = 70_000
    lists = [np.sort(draw.choice(documents, size, replace=False)) for size in (1, 5, 400, 3, 69_000, 1)]
    df = np.array([len(docs) for docs in lists])
    bounds = np.concatenate([[0], np.cumsum(df)])
    docs = np.concatenate(lists).astype(np.int32)
    tfs = np.where(draw.random(len(docs)) < 0.6, 1, draw.integers(1, 400, len(docs))).astype(np.int32)
    out, byte_bounds, cf = np.empty(10 * len(docs), np.uint8), np.zeros(len(df) + 1, np.int64), np.zeros(len(df), np.int64)
    out = out[: pack_postings(bounds, docs, tfs, out, byte_bounds, cf)]
    arguments = (byte_bounds[:-1], byte_bounds[1:], df, documents)

    def unpacked(unpack: Any, buffer: Any) -> Any:
        got = np.empty(len(docs), np.int32), np.empty(len(docs), np.int32)
        return (got[0].tolist(), got[1].tolist()) if unpack(buffer, *arguments, *got) else None

    assert unpacked(unpack_plainly, out) == unpacked(unpack_postings, out) == (docs.tolist(), tfs.tolist())
    for at in [*range(14), *draw.integers(0, len(out), 60).tolist()]:
        for value in (0, 1, 2, 127, 128, 255):
            damaged = out.copy()
            damaged[at] = value
            assert unpacked(unpack_plainly, damaged) == unpacked(unpack_postings, damaged)


def test_the_first_build_on_a_machine_says_that_it_compiles(tmp_path: Any) -> None:
    code = (
        "from fontes.app.progress import reporting\n"
        "from fontes.text import tokenizers\n"
        "with reporting(compiling=True):\n    pass\n"
        "import pathlib; place = pathlib.Path(tokenizers._scan.stats.cache_path); place.mkdir(parents=True, exist_ok=True)\n"
        "(place / 'tokenizers._scan-1.nbc').touch()\n"
        "with reporting(compiling=True):\n    pass\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ended.stderr.splitlines() == ["Compiling the kernels, once: this takes some fifteen seconds."]
