"""Caches: the one folder of the user's, and values in memory that are made once and shared by threads."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fontes.storage.caches import Cached, DiskCache, LazyAttribute, cache_folder


def test_the_cache_is_the_folder_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of Linux")
def test_the_cache_is_else_in_the_systems_folder_for_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTES_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fontes"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "fontes"


def test_runs_scores_and_precisions_are_all_in_the_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fontes.experiments.systems import Cache
    from fontes.neural.models import compute
    from fontes.rerank.reranker import default_file

    monkeypatch.setenv("FONTES_CACHE", str(tmp_path))
    assert (Cache().folder, default_file(), compute._NOTES.file) == (
        tmp_path / "runs",
        tmp_path / "scores.sqlite",
        tmp_path / "precision.json",
    )


def test_the_folders_used_longest_ago_go_until_the_rest_fit(tmp_path: Path) -> None:
    for age, name in enumerate("abcd", 1):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_bytes(bytes(100))
        os.utime(tmp_path / name, (age, age))
    cache = DiskCache("", 200, at=tmp_path)
    cache.use(tmp_path / "a")
    cache.trim()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "d"]
    cache.limit = 0
    cache.trim()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    DiskCache("", at=tmp_path / "missing").trim()
    cache.use(tmp_path / "missing")


def test_a_value_is_made_once_and_those_used_longest_ago_go() -> None:
    made: list[str] = []
    cached: Cached[str, str] = Cached(2)

    def value(key: str) -> str:
        return cached.get(key, lambda: (made.append(key), key.upper())[1])

    assert [value(key) for key in "aabac"] == list("AABAC")
    assert made == ["a", "b", "c"]
    assert "a" in cached
    assert "b" not in cached
    assert len(cached) == 2
    assert value("b") == "B"
    assert made == ["a", "b", "c", "b"]
    cached.clear()
    assert len(cached) == 0


def test_none_is_a_value_like_others() -> None:
    made: list[int] = []
    cached: Cached[str, None] = Cached()
    for _ in range(3):
        cached.get("x", lambda: made.append(1))
    assert made == [1]


def test_what_fails_is_raised_and_tried_again() -> None:
    cached: Cached[str, int] = Cached()
    with pytest.raises(ZeroDivisionError):
        cached.get("x", lambda: 1 // 0)
    assert "x" not in cached
    assert cached.get("x", lambda: 7) == 7


def test_the_value_asked_for_last_is_the_same_until_the_cache_is_cleared() -> None:
    cached: Cached[str, list[int]] = Cached(1)
    first = cached.get("a", lambda: [1])
    assert cached.get("a", lambda: [2]) is first
    assert "a" in cached
    assert cached.get("b", lambda: [3]) == [3]
    assert "a" not in cached
    cached.clear()
    assert "b" not in cached
    assert cached.get("b", lambda: [4]) == [4]


def test_a_value_that_is_dropped_is_made_again() -> None:
    cached: Cached[str, list[int]] = Cached()
    cached.get("a", lambda: [1])
    cached.drop("a")
    cached.drop("b")
    assert "a" not in cached
    assert cached.get("a", lambda: [2]) == [2]


def test_threads_that_ask_for_one_value_get_the_same_object_made_once() -> None:
    made: list[int] = []
    cached: Cached[int, object] = Cached()

    def make() -> object:
        made.append(1)
        time.sleep(0.01)
        return object()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            values = list(pool.map(lambda n: cached.get(n % 4, make), range(64)))
    finally:
        sys.setswitchinterval(interval)
    assert len(made) == 4
    assert all(len(set(map(id, values[first::4]))) == 1 for first in range(4))


def test_who_asks_for_another_value_does_not_wait() -> None:
    cached: Cached[str, str] = Cached()
    started, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        assert go_on.wait(30)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(cached.get, "slow", slow)
        assert started.wait(30)
        assert cached.get("quick", lambda: "quick") == "quick"
        go_on.set()
        assert result.result(30) == "slow"


class Owner:
    pass


def test_a_cached_value_goes_with_its_object() -> None:
    made: list[Owner] = []
    attached: LazyAttribute[Owner, list[Owner]] = LazyAttribute("test", lambda owner: (made.append(owner), [owner])[1])
    one, other = Owner(), Owner()
    assert attached.of(one) is attached.of(one)
    assert attached.of(one) == [one]
    assert attached.of(other) == [other]
    assert made == [one, other]
    gone = weakref.ref(one)
    made.clear()
    del one
    gc.collect()
    assert gone() is None
