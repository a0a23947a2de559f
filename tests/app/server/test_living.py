"""A server whose index changes while it searches, and one that ends."""

import gc
import platform
import shutil
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import httpx
import pytest
from support.serving import process, serving, springs

from fontes import Doc, Index, Topic
from fontes.app.server.health import Metrics
from fontes.app.server.searching import BatchSearch, SearchOptions, SearchRequest
from fontes.app.server.served import ServedIndex


def until(condition, seconds: float = 120) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_the_server_goes_over_to_a_new_state_without_dropping_a_request(tmp_path: Path) -> None:
    path = springs(tmp_path)
    answers: list[httpx.Response] = []
    ends = threading.Event()
    with serving(path, refresh=0.1) as running:

        def ask() -> None:
            with httpx.Client(base_url=running.address, timeout=30) as client:
                while not ends.is_set():
                    answers.append(client.get("/search?q=water&text=1"))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        index = Index.open(path)
        for n in range(3):
            index.add([Doc(f"n{n}", f"water of the well {n}")])
            time.sleep(0.1)
        index.delete("s2")
        index.merge()
        until(lambda: running.get("/ready")["indexes"]["springs"]["fingerprint"] == index.fingerprint)
        ends.set()
        for thread in threads:
            thread.join()
        ids = [hit["id"] for hit in running.get("/search?q=water")["hits"]]
        assert ids == index.bm25().search("water").ids
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) > 1


def test_an_answer_is_of_one_state_and_scores_are_those_of_a_new_index(tmp_path: Path) -> None:
    path = springs(tmp_path)
    with serving(path, refresh=0.05) as running:
        index = Index.open(path)
        index.add([Doc("n1", "water " * 9)])
        index.delete("s1")
        until(lambda: running.get("/indexes")["indexes"][0]["fingerprint"] == index.fingerprint)
        fresh = Index.build(index.docs(index.ids.tolist()), tmp_path / "fresh.index", threads=1)
        hits = running.get("/search?q=hot+water+spring")["hits"]
        assert [(hit["id"], hit["score"]) for hit in hits] == [(h.id, h.score) for h in fresh.bm25().search("hot water spring")]


@pytest.mark.parametrize("text", ["bm25()", "bm25() >> rm3() >> bm25()", "0.5 * tfidf() + 0.5 * ql()"])
def test_what_former_states_had_goes_with_them_without_a_search_for_garbage(tmp_path: Path, text: str) -> None:
    path = springs(tmp_path)
    served, searcher = ServedIndex(path, "springs", {"bm25": text}, {}), BatchSearch(None, Metrics(), "lexical", 30)
    served.warm()
    former: list[weakref.ref[object]] = []
    gc.collect()
    gc.disable()
    try:
        for n in range(3):
            for options in ({}, {"where": "year >= 2020"}, {"facets": ("kind",)}, {"explain": True}):
                request = SearchRequest(served, "bm25", SearchOptions(**options), (Topic("1", "hot water"),))
                (answer,) = searcher([request])
                assert isinstance(answer, bytes) or "explain" in options
            former += [weakref.ref(served.state.index.state), weakref.ref(served.state.index.state.parts[0])]
            Index.open(path).add([Doc(f"n{n}", f"water of the well {n}")])
            assert served.refresh(now=True)
        assert [one() for one in former] == [None] * 6
    finally:
        gc.enable()


MEMORY = """
import sys
import numpy as np
from fontes.app.server.service import return_large_arrays
if sys.argv[1] == "back":
    return_large_arrays()
def anonymous():
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous")) // 1024
before, between = anonymous(), []
for size in (20, 12, 8, 12, 8, 12):  # megabytes
    arrays = [(np.ones(size << 17), between.append(bytearray(100_000))) for _ in range(4)]
    del arrays
print(anonymous() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is of glibc")
@pytest.mark.slow
def test_large_arrays_give_their_memory_back_when_they_go() -> None:
    megabytes = subprocess.run([sys.executable, "-c", MEMORY, "back"], capture_output=True, text=True, check=True).stdout
    assert int(megabytes) < 8


def test_an_index_that_cannot_be_read_any_more_is_served_on_and_said_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = springs(tmp_path)
    with serving(path, refresh=0.05) as running:
        shutil.move(path, tmp_path / "away")
        until(lambda: "trouble" in running.get("/ready")["indexes"]["springs"])
        assert running.get("/search?q=geyser")["hits"][0]["id"] == "s1"
        shutil.move(tmp_path / "away", path)
        until(lambda: "trouble" not in running.get("/ready")["indexes"]["springs"])
    assert caplog.text.count("springs: a newer state cannot be served:") == 1
    assert f"{path} does not exist" in caplog.text


@pytest.mark.parametrize("ending", ["terminate", pytest.param("send_signal", marks=pytest.mark.slow)])
def test_a_server_that_is_to_end_finishes_what_runs(tmp_path: Path, ending: str) -> None:
    import signal

    path = springs(tmp_path)
    with process(path, "--quiet", "--seconds", "300", "--drain", "300") as (running, server):
        answers: list[int] = []

        def ask() -> None:
            with httpx.Client(base_url=server.address, timeout=300) as client:
                topics = [{"id": str(n), "text": "hot water spring"} for n in range(20)]
                answers.append(client.post("/search", json={"topics": topics, "explain": True, "k": 100}).status_code)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        until(lambda: "fontes_requests_at_once 7.0" in server.client.get("/metrics").text or answers)
        running.send_signal(signal.SIGTERM if ending == "terminate" else signal.SIGINT)
        for thread in threads:
            thread.join(300)
        assert running.wait(300) == 0
        assert answers == [200] * 6
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.address}/health")
        assert running.stderr
        assert running.stderr.read() == ""
