"""A server whose index changes while it searches, and one that ends."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import httpx
import pytest
from support.serving import process, serving, springs

from fontes import Doc, Index


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

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        index = Index.open(path)
        for n in range(5):
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


def test_an_index_that_cannot_be_read_any_more_is_served_on_and_said_so(tmp_path: Path) -> None:
    path = springs(tmp_path)
    with serving(path, refresh=0.05) as running:
        shutil.move(path, tmp_path / "away")
        until(lambda: "trouble" in running.get("/ready")["indexes"]["springs"])
        assert running.get("/search?q=geyser")["hits"][0]["id"] == "s1"
        shutil.move(tmp_path / "away", path)
        until(lambda: "trouble" not in running.get("/ready")["indexes"]["springs"])


@pytest.mark.parametrize("ending", ["terminate", "send_signal"])
def test_a_server_that_is_to_end_finishes_what_runs(tmp_path: Path, ending: str) -> None:
    import signal

    path = springs(tmp_path)
    with process(path, "--quiet", "--seconds", "300", "--drain", "300") as (running, server):
        answers: list[int] = []

        def ask() -> None:
            with httpx.Client(base_url=server.address, timeout=300) as client:
                topics = [{"id": str(n), "text": "hot water spring"} for n in range(50)]
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
