"""Writes: single documents, parts of them, filters, states, the queue, tickets, and what a killed server keeps."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.serving import DOCS, TOKEN, Running, process, springs, writable

from fontes import Doc, Index
from fontes.app.server import writing
from fontes.app.server.writing import Effect, Tickets, Write
from fontes.index import Change

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with writable(springs(tmp_path)) as running:
        yield running


def outcome(running: Running, location: str) -> dict[str, Any]:
    limit = time.monotonic() + 60
    while (answer := running.get(location))["status"] == "waiting":
        assert time.monotonic() < limit
        time.sleep(0.02)
    return answer


def test_put_makes_a_document_and_replaces_it(server: Running) -> None:
    made = server.client.put("/documents/n1", json={"title": "New", "text": "a new well", "metadata": {"year": 2024}})
    assert made.status_code == 201, made.text
    assert made.json() == {"added": 1, "replaced": 0, "skipped": 0, "deleted": 0, "documents": 6, "segments": 2}
    assert [hit["id"] for hit in server.get("/search?q=well")["hits"]] == ["n1"]
    again = server.client.put("/documents/n1", json=server.get("/documents/n1") | {"text": "an old pump"})
    assert (again.status_code, again.json()["replaced"]) == (200, 1)
    assert server.get("/documents/n1")["metadata"] == {"year": 2024}
    assert server.get("/search?q=well")["hits"] == []
    for odd in ("..", "a/b c?ü"):
        assert server.client.put("/documents", params={"id": odd}, json={"text": "x"}).status_code == 201
        assert server.get("/documents", params={"id": odd})["text"] == "x"


def test_patch_changes_what_it_names_and_metadata_without_analysing_text(server: Running, monkeypatch: Any) -> None:
    analysed: list[Any] = []
    built = writing.rewrite.__globals__["build_segment"]
    monkeypatch.setitem(
        writing.rewrite.__globals__,
        "build_segment",
        lambda docs, *rest, **more: analysed.append(docs) or built(docs, *rest, **more),
    )
    score = server.get("/search?q=geyser")["hits"][0]["score"]
    changed = server.client.patch("/documents/s1", json={"metadata": {"kind": None, "year": 2025}})
    assert (changed.status_code, analysed) == (200, [])
    assert server.get("/documents/s1") == {"id": "s1", "title": DOCS[0].title, "text": DOCS[0].text, "metadata": {"year": 2025}}
    assert server.get("/search?q=geyser&where=year==2025")["hits"][0]["score"] == score
    merge = {"Content-Type": "application/merge-patch+json"}
    assert server.client.patch("/documents/s1", content='{"title": "Pumps"}', headers=merge).status_code == 200
    assert len(analysed) == 1
    assert [hit["id"] for hit in server.get("/search?q=pumps")["hits"]] == ["s1"]
    assert server.problem("PATCH", "/documents/s9", json={}) == (404, "there is no document 's9' in springs")
    assert server.problem("PATCH", "/documents/s1", json={"year": 1})[0] == 422
    several = {"s1": {"metadata": {"year": 1}}, "s2": {"metadata": {"year": 2}}, "s9": {}}
    assert server.problem("PATCH", "/documents", json=several)[0] == 422
    assert server.client.patch("/documents?missing=skip", json=several).json()["replaced"] == 2
    assert [server.get(f"/documents/{doc_id}")["metadata"]["year"] for doc_id in ("s1", "s2", "s3")] == [1, 2, 2020]
    assert server.problem("PATCH", "/documents", json={})[0] == 422


def test_an_unknown_parameter_of_a_change_is_refused_with_the_one_that_is_meant(server: Running) -> None:
    detail = "there is no parameter 'filter'; did you mean 'where'?"
    assert server.problem("DELETE", "/documents?filter=year>1") == (422, detail)


def test_documents_that_pass_a_filter_are_deleted(server: Running) -> None:
    assert server.client.delete("/documents", params={"where": "year >= 2020"}).json()["deleted"] == 2
    assert server.client.delete("/documents", params={"where": "year >= 2020"}).json()["deleted"] == 0
    assert server.get("/indexes")["indexes"][0]["documents"] == 3
    for params in ({}, {"where": " "}, {"where": "year > 1", "id": "s1"}, {"where": "yaer > 1"}):
        assert server.problem("DELETE", "/documents", params=params)[0] == 422


def test_documents_come_as_an_object_an_array_or_json_lines(server: Running) -> None:
    for body, kind in (
        (b'{"id": "n1", "text": "one"}', "application/json"),
        (b'{\n "id": "n1",\n "text": "one"\n}', "application/json"),
        (b'[{"id": "n1", "text": "one"}, {"_id": "n2", "text": "two", "year": 2024}]', "application/json"),
        (b' [{"id": "n1", "text": "one"}]', "application/x-www-form-urlencoded"),
        (b'{"documents": [{"id": "n1", "text": "one"}], "index": "springs"}', "application/json"),
        (b'{"id": "n1", "text": "one"}\n{"id": "n2", "text": "two"}', "application/x-ndjson"),
    ):
        added = server.client.post("/documents", content=body, headers={"Content-Type": kind})
        assert added.status_code == 200, added.text
        assert added.json()["added"] == body.count(b"id")
        assert server.get("/documents/n1")["text"] == "one"
        for doc_id in ("n1", "n2"):
            server.client.delete(f"/documents/{doc_id}")


def test_a_body_with_a_wrong_document_names_it_and_adds_none(server: Running) -> None:
    rows: list[tuple[Any, str]] = [
        ([{"id": "n1", "text": "x"}, {"id": "s1", "text": "x"}], "document 's1' is in the index springs already; nothing"),
        ([{"id": "n1", "text": "x"}, {"id": "n1", "text": "x"}], "document 'n1' is twice in the body; nothing was added"),
        ([{"id": "n1", "text": "x"}, {"id": "n2"}], "the body, document 2: no text"),
        ([{"id": "n1", "text": "x"}, 7], "the body, document 2: a JSON int where an object {…} belongs"),
        ([{"id": "n1", "text": "x"}, {"id": "n2", "text": "x", "year": "soon"}], "document 'n2': its metadata 'year' is 'soon"),
        ([], "the body has no documents"),
        (7, "the body, document 1: a JSON int"),
        ({"documents": 7}, "the body 'documents'"),
    ]  # fmt: skip
    for body, sentence in rows:
        status, detail = server.problem("POST", "/documents", json=body)
        assert (status, detail[: len(sentence)]) == (422, sentence)
    detail = server.problem("POST", "/documents", json={"id": "n1", "words": "x"})[1]
    assert detail == "the body, document 1: no text (a field text, contents, abstract or body); found 'words'"
    assert server.get("/indexes")["indexes"][0]["documents"] == 5


def test_a_write_that_names_a_state_is_refused_after_another_write(server: Running) -> None:
    read = server.client.get("/documents/s1")
    fingerprint = server.get("/indexes")["indexes"][0]["fingerprint"]
    assert read.headers["etag"] == f'"{fingerprint}"'
    stale = {"If-Match": read.headers["etag"]}
    written = server.client.put("/documents/s2", json={"text": "x"}, headers=stale)
    assert written.status_code == 200
    for method, path, body in (
        ("PUT", "/documents/s1", {"text": "x"}),
        ("PATCH", "/documents/s1", {}),
        ("DELETE", "/documents/s1", None),
        ("DELETE", "/documents?where=year>1", None),
        ("POST", "/documents", {"id": "n1", "text": "x"}),
    ):
        status, detail = server.problem(method, path, json=body, headers=stale)
        assert status == 412
        assert detail == "springs is not in the state of If-Match any more; read the document again, with its ETag"
    either = {"If-Match": f"{stale['If-Match']}, {written.headers['etag']}"}
    assert server.client.patch("/documents/s1", json={"title": "x"}, headers=either).status_code == 200
    assert server.client.put("/documents/n1", json={"text": "x"}, headers={"If-None-Match": "*"}).status_code == 201
    assert server.problem("PUT", "/documents/n1", json={"text": "x"}, headers={"If-None-Match": "*"})[0] == 412
    assert server.problem("PUT", "/documents/n2", json={"text": "x"}, headers={"If-Match": "*"})[0] == 412


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[int], threading.Event]]:
    """The number of documents of each commit, and an event that the first one waits for."""
    sizes: list[int] = []
    goes_on = threading.Event()
    real = writing.rewrite

    def counting(opened: Any, plan: Any, most: int) -> Any:
        if not sizes:
            sizes.append(0)
            goes_on.wait(30)

        def planned(state: Any) -> Any:
            docs, deleted = plan(state)
            sizes.append(len(docs) + len(deleted))
            return docs, deleted

        return real(opened, planned, most)

    monkeypatch.setattr(writing, "rewrite", counting)
    yield sizes, goes_on
    goes_on.set()


def send_while_one_waits(
    server: Running, requests: list[tuple[str, str, Any]], goes_on: threading.Event
) -> list[httpx.Response]:
    """The answers to a first write, and to requests that come in this order while it is committed."""
    writes = server.service.writes["springs"]
    with ThreadPoolExecutor(len(requests) + 1) as pool:
        answers = [pool.submit(server.client.put, "/documents/first", json={"text": "first"})]
        while writes._task is None:
            time.sleep(0.01)
        for number, (method, path, body) in enumerate(requests, 1):
            answers.append(pool.submit(server.client.request, method, path, json=body))
            limit = time.monotonic() + 30
            while len(writes) < min(number, writes._limit) and not answers[-1].done():
                assert time.monotonic() < limit
                time.sleep(0.005)
        goes_on.set()
        return [answer.result() for answer in answers]


def test_a_commit_takes_all_writes_that_wait_and_each_gets_its_own_answer(server: Running, commits: Any) -> None:
    sizes, goes_on = commits
    requests: list[tuple[str, str, Any]] = [("PUT", f"/documents/n{n}", {"text": f"well {n}"}) for n in range(8)]
    requests += [
        ("DELETE", "/documents/s1", None),
        ("DELETE", "/documents/s9", None),
        ("PATCH", "/documents/s2", {"title": "x"}),
    ]
    answers = send_while_one_waits(server, requests, goes_on)
    assert [answer.status_code for answer in answers] == [201] * 9 + [200, 404, 200]
    assert sizes == [0, 1, 10]
    assert {answer.json()["documents"] for answer in answers[1:9]} == {5 + 9 - 1}


def test_a_wrong_document_fails_its_own_write_alone(server: Running, commits: Any) -> None:
    _, goes_on = commits
    requests: list[tuple[str, str, Any]] = [("PUT", f"/documents/n{n}", {"text": "x"}) for n in range(3)]
    requests.insert(1, ("PUT", "/documents/bad", {"text": "x", "year": "soon"}))
    answers = send_while_one_waits(server, requests, goes_on)
    assert [answer.status_code for answer in answers] == [201, 201, 422, 201, 201]
    assert "document 'bad'" in answers[2].json()["detail"]


def test_writes_to_one_document_are_made_in_order(server: Running, commits: Any) -> None:
    sizes, goes_on = commits
    requests: list[tuple[str, str, Any]] = [
        ("PUT", "/documents/n1", {"text": "x", "year": 1}),
        ("PATCH", "/documents/n1", {"metadata": {"year": 2}}),
        ("DELETE", "/documents?where=year==2", None),
        ("PUT", "/documents/n1", {"text": "again"}),
    ]
    answers = send_while_one_waits(server, requests, goes_on)
    assert [answer.status_code for answer in answers] == [201, 201, 200, 200, 201]
    assert sizes == [0, 1, 1, 1, 1, 1]
    assert server.get("/documents/n1")["text"] == "again"


def test_a_full_queue_refuses_writes_with_a_time_to_come_again(tmp_path: Path, commits: Any) -> None:
    _, goes_on = commits
    with writable(springs(tmp_path), queue=2) as server:
        requests: list[tuple[str, str, Any]] = [("PUT", f"/documents/n{n}", {"text": "x"}) for n in range(4)]
        answers = send_while_one_waits(server, requests, goes_on)
        assert [answer.status_code for answer in answers] == [201, 201, 201, 503, 503]
        assert answers[3].headers["retry-after"] == "1"
        assert answers[3].json()["detail"] == "2 writes to springs are waiting (--queue); come again"


def test_a_write_that_waited_too_long_is_dropped_and_one_in_a_commit_is_made(tmp_path: Path, commits: Any) -> None:
    _, goes_on = commits
    with writable(springs(tmp_path), seconds=0.5) as server:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(server.client.put, "/documents/n1", json={"text": "x"})
            while server.service.writes["springs"]._task is None:
                time.sleep(0.01)
            second = pool.submit(server.client.put, "/documents/n2", json={"text": "x"})
            assert [first.result().status_code, second.result().status_code] == [503, 503]
            assert "took more than 0.5 seconds" in second.result().json()["detail"]
        goes_on.set()
        assert server.client.put("/documents/n3", json={"text": "x"}, headers=ASYNC).status_code == 202
        outcome(server, "/writes/1")
        assert [server.client.get(f"/documents/n{n}").status_code for n in (1, 2, 3)] == [200, 404, 200]


def test_a_deletion_that_takes_too_long_is_no_incomplete_request(tmp_path: Path, commits: Any) -> None:
    with writable(springs(tmp_path), seconds=0.3) as server:
        status, detail = server.problem("DELETE", "/documents/s1")
        commits[1].set()  # the server ends when its commit has
        assert (status, "took more than 0.3 seconds" in detail) == (503, True)


def test_a_write_waits_for_another_process_that_changes_the_index(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    real, attempts = writing.rewrite, []

    def busy_at_first(*arguments: Any) -> Any:
        attempts.append(1)
        if len(attempts) < 3:
            raise writing.BusyError("it is being changed")
        return real(*arguments)

    monkeypatch.setattr(writing, "rewrite", busy_at_first)
    assert server.client.put("/documents/n1", json={"text": "x"}).status_code == 201
    assert len(attempts) == 3


def test_writes_of_a_divided_commit_are_made_once_beside_another_process(
    server: Running, commits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that cannot be used divides a commit; the index is busy at the second part."""
    _, goes_on = commits
    real, sizes = server.service.writes["springs"]._rewrite, []

    def busy_once(batch: Any) -> Any:
        sizes.append(len(batch))
        if sizes == [1, 4, 2, 2]:
            raise writing.BusyError("it is being changed")
        return real(batch)

    monkeypatch.setattr(server.service.writes["springs"], "_rewrite", busy_once)
    requests: list[tuple[str, str, Any]] = [("POST", "/documents", {"id": f"n{n}", "text": "x"}) for n in range(3)]
    answers = send_while_one_waits(server, [*requests, ("PUT", "/documents/b", {"text": "x", "year": "soon"})], goes_on)
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 422]
    assert sizes == [1, 4, 2, 2, 2, 1, 1]


def test_a_write_is_made_whose_ticket_was_on_the_disk_too_late_for_its_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later start of the server would make it after newer writes."""
    real = Tickets.accept

    def slow(tickets: Tickets, write: Any) -> int:
        time.sleep(1)
        return real(tickets, write)

    monkeypatch.setattr(Tickets, "accept", slow)
    with writable(springs(tmp_path), seconds=0.5) as server:
        assert server.client.put("/documents/n1", json={"text": "x"}, headers=ASYNC).status_code == 503
        limit = time.monotonic() + 10
        while server.client.get("/writes/1").json()["status"] != "done":
            assert time.monotonic() < limit
            time.sleep(0.02)
        assert server.get("/documents/n1")["text"] == "x"


def test_writes_that_are_on_their_way_to_the_disk_count_in_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, goes_on = Tickets.accept, threading.Event()

    def slow(tickets: Tickets, write: Any) -> int:
        goes_on.wait(10)
        return real(tickets, write)

    monkeypatch.setattr(Tickets, "accept", slow)
    with writable(springs(tmp_path), queue=1) as server, ThreadPoolExecutor(2) as pool:
        both = [pool.submit(server.client.put, f"/documents/n{n}", json={"text": "x"}, headers=ASYNC) for n in (1, 2)]
        while not any(answer.done() for answer in both):
            time.sleep(0.01)
        goes_on.set()
        assert sorted(answer.result().status_code for answer in both) == [202, 503]


def test_no_commit_follows_one_whose_outcome_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The write of a full disk waits still; if a new process made it again, it would undo the writes that came after it."""
    path, real, full = springs(tmp_path), Tickets.finish, threading.Event()

    def finish(tickets: Tickets, outcomes: Any) -> None:
        if full.is_set():
            raise writing.FontesError("the tickets of writes cannot be stored (database or disk is full); nothing was changed")
        real(tickets, outcomes)

    monkeypatch.setattr(Tickets, "finish", finish)
    with writable(path) as server:
        full.set()
        ticket = server.client.put("/documents/s1", json={"text": "first"}, headers=ASYNC).headers["location"]
        status, detail = server.problem("PUT", "/documents/s1", json={"text": "second"})
        assert (status, server.get("/documents/s1")["text"]) == (500, "first")
        assert "disk is full" in detail
        assert server.get(ticket)["status"] == "waiting"
        assert "disk is full" in caplog.text
        full.clear()
        assert server.client.put("/documents/s1", json={"text": "third"}).status_code == 200
        assert server.get(ticket)["status"] == "done"
    with writable(path) as server:
        assert server.client.put("/documents/n1", json={"text": "x"}).status_code == 201
        assert server.get("/documents/s1")["text"] == "third"


def test_a_failure_of_an_accepted_write_is_logged(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: Any) -> Any:
        raise ZeroDivisionError("no sense")

    monkeypatch.setattr(writing, "rewrite", failing)
    ticket = server.client.put("/documents/n1", json={"text": "x"}, headers=ASYNC).headers["location"]
    assert outcome(server, ticket)["problem"]["status"] == 500
    assert "springs: the write with the ticket 1 failed" in caplog.text
    assert "no sense" in caplog.text


def test_metadata_that_are_too_deep_for_a_ticket_are_refused(server: Running) -> None:
    content = b'{"metadata": {"a": %s}}' % (b"[" * 900 + b"]" * 900)
    status, detail = server.problem("PATCH", "/documents/s1", content=content, headers=ASYNC)
    assert (status, detail) == (422, "the metadata are nested too deeply")


def test_an_id_with_half_a_character_is_found_again(server: Running) -> None:
    for number in range(2):
        content = b'{"_id": "\\ud800", "text": "x", "year": %d}' % number
        assert server.client.post("/documents?duplicates=replace", content=content).json()["replaced"] == number
    answer = server.client.patch("/documents", content=b'{"\\ud800": {"metadata": {"year": 2}}}')
    assert (answer.status_code, server.get("/documents?id=\ufffd")["metadata"]) == (200, {"year": 2})
    Index.open(server.service.indexes["springs"].path).update({"\ud800": {"title": "Half"}})


def test_a_client_may_have_a_ticket_in_place_of_waiting(server: Running) -> None:
    accepted = server.client.put("/documents/n1", json={"text": "a well"}, headers=ASYNC)
    assert (accepted.status_code, accepted.headers["preference-applied"]) == (202, "respond-async")
    assert accepted.json() == {"ticket": 1, "index": "springs", "status": "waiting"}
    change = {"added": 1, "replaced": 0, "skipped": 0, "deleted": 0, "documents": 6, "segments": 2}
    assert outcome(server, accepted.headers["location"]) == {
        "ticket": 1,
        "index": "springs",
        "status": "done",
        "result": change,
    }
    refused = server.client.patch("/documents/s9", json={}, headers={"Prefer": "return=minimal, Respond-Async; x"})
    assert outcome(server, refused.headers["location"])["problem"] == {
        "status": 404,
        "detail": "there is no document 's9' in springs",
    }
    assert server.problem("GET", "/writes/3")[0] == 404
    assert httpx.get(f"{server.address}/writes/1").status_code == 401


def test_a_server_makes_the_writes_that_a_killed_one_had_accepted(tmp_path: Path) -> None:
    """Also one whose commit was made, but not noted: it is not made twice, and has the numbers of its commit."""
    path = springs(tmp_path)
    tickets = Tickets(path)
    doc = Doc("n1", "a well", "", {"year": 2024})
    for write in (Write((doc,), "error"), Write((Doc("n2", "x"),), "error"), Write(ids=("s1",)), Write(ids=("s9",))):
        tickets.accept(asdict(write))
    tickets.begin({1: Effect([doc], [], Change(1)).to_dict(), 3: Effect([], ["s1"], Change(0, 0, 0, 1)).to_dict()})
    tickets.close()
    Index.open(path).add([doc])
    with writable(path) as server:
        answers = [outcome(server, f"/writes/{ticket}") for ticket in range(1, 5)]
        assert [answer["status"] for answer in answers] == ["done", "done", "done", "failed"]
        assert [answer.get("result", {}).get("added") for answer in answers] == [1, 1, 0, None]
        assert answers[2]["result"]["deleted"] == 1
        assert server.get("/documents/n1")["metadata"] == {"year": 2024}
        assert server.get("/indexes")["indexes"][0]["documents"] == 6
    Index.open(path).check(deep=True)


def test_a_second_server_of_an_index_gives_no_tickets(tmp_path: Path) -> None:
    path = springs(tmp_path)
    with writable(path) as first, writable(path) as second:
        assert first.client.put("/documents/n1", json={"text": "x"}, headers=ASYNC).status_code == 202
        assert second.client.put("/documents/n2", json={"text": "x"}, headers=ASYNC).status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize("writes", [1, 7, 60])
def test_a_killed_server_keeps_every_write_that_it_has_acknowledged(tmp_path: Path, writes: int) -> None:
    path = springs(tmp_path)
    acknowledged: set[str] = set()
    with process(path, "--writable", "--quiet", FONTES_TOKEN=TOKEN) as (running, server):
        ends = threading.Event()

        def write(thread: int) -> None:
            with httpx.Client(base_url=server.address, timeout=30, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
                for number in range(10_000):
                    doc_id, headers = f"{thread}-{number}", ASYNC if thread % 2 else {}
                    try:
                        answer = client.post("/documents", json={"id": doc_id, "text": f"well {doc_id}"}, headers=headers)
                    except httpx.HTTPError:
                        return
                    assert answer.status_code in (200, 202), answer.text
                    acknowledged.add(doc_id)
                    if ends.is_set():
                        return

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        limit = time.monotonic() + 120
        while len(acknowledged) < writes:
            assert time.monotonic() < limit
            time.sleep(0.001)
        os.kill(running.pid, signal.SIGKILL)
        ends.set()
        for thread in threads:
            thread.join(60)
    with writable(path) as server:
        limit = time.monotonic() + 60
        while len(server.service.writes["springs"]) or not server.service.writes["springs"]._task.done():
            assert time.monotonic() < limit
            time.sleep(0.05)
        index = Index.open(path)
        assert acknowledged <= set(index.ids)
        index.check(deep=True)


def test_openapi_describes_what_writes_take_and_answer(server: Running) -> None:
    """The status, the headers and the keys of each answer."""
    described = server.get("/openapi.json")
    schemas = described["components"]["schemas"]

    def resolved(schema: dict[str, Any]) -> dict[str, Any]:
        return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    etag = server.client.get("/documents/s1").headers["etag"]
    requests: list[tuple[str, str, str, Any, dict[str, str]]] = [
        ("put", "/documents/{id}", "/documents/n1", {"text": "x"}, {}),
        ("put", "/documents/{id}", "/documents/n1", {"text": "x"}, {}),
        ("put", "/documents", "/documents?id=n2", {"text": "x"}, ASYNC),
        ("put", "/documents/{id}", "/documents/n1", {"text": "x"}, {"If-None-Match": "*"}),
        ("patch", "/documents/{id}", "/documents/n1", {"title": "x"}, {}),
        ("patch", "/documents/{id}", "/documents/n1", {"title": "x"}, {"If-Match": etag}),
        ("patch", "/documents", "/documents", {"n1": {}}, {}),
        ("post", "/documents", "/documents", [{"id": "n3", "text": "x"}], {}),
        ("post", "/documents", "/documents", [{"id": "n3", "text": "x"}], {}),
        ("get", "/writes/{ticket}", "/writes/1", None, {}),
        ("get", "/documents/{id}", "/documents/n1", None, {}),
        ("delete", "/documents/{id}", "/documents/n1", None, {}),
        ("delete", "/documents/{id}", "/documents/n1", None, {}),
        ("delete", "/documents", "/documents?where=year>1", None, {}),
    ]
    for method, path, address, body, headers in requests:
        answer = server.client.request(method, address, json=body, headers=headers)
        operation = described["paths"][path][method]
        status = str(answer.status_code)
        response = {"content": {}} | (operation["responses"].get(status) or operation["responses"][f"{status[0]}XX"])
        assert status in operation["responses"] or status in ("404", "422"), (address, status)
        assert all(name in answer.headers for name in response.get("headers", {})), (address, status)
        schema = resolved(next(iter(response["content"].values()))["schema"]) if response["content"] else {}
        if schema.get("properties"):
            assert set(answer.json()) <= set(schema["properties"]), (address, answer.json())
        for name in headers:
            assert name.lower() in {each["name"].lower() for each in operation["parameters"]}
    content = described["paths"]["/documents"]["post"]["requestBody"]["content"]
    assert set(content) == {"application/json", "application/x-ndjson"}
    assert len(content["application/json"]["schema"]["anyOf"]) == 3
