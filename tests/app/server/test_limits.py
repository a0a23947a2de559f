"""What the server refuses, each with a status and a sentence."""

import json
import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from support.each import each
from support.serving import Running, process, serving, springs

from fontes import Index
from fontes.app.server.routes import SearchBody, SearchQuery
from fontes.app.server.settings import TOKEN as VARIABLE, ServerSettings, named_expressions, secret_of
from fontes.core.errors import ParameterError

TOKEN = "a token of many letters"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def server(path: Path):
    with serving(path, query=100, k=20, batch=3, body=2000) as running:
        yield running


LONG = "x" * 101
TOO_LONG = "the query has 101 characters; this server takes 100 (--query)"
TURN = {"text": "water"}
TEXT_TOO_LONG = f"'turns.0.text'{TOO_LONG.removeprefix('the query')}"
MANUAL_TOO_LONG = f"'turns.0.manual'{TOO_LONG.removeprefix('the query')}"
CLOSED = "documents cannot be changed here; fontes serve --writable allows it to clients with a token"
FOUR = [{"id": str(n), "text": "x"} for n in range(4)]
ONE = {"id": "1", "text": "x"}
NAMES, BODY_NAMES = (f"there are {', '.join(model.model_fields)}" for model in (SearchQuery, SearchBody))


@each(
    ("address", "status", "sentence"),
    [
        ("/search", 422, "the parameter 'q': field required"),
        ("/search?q=", 422, "the query is empty"),
        (f"/search?q={LONG}", 422, TOO_LONG),
        ("/search?q=x&k=21", 422, "k is 21; this server gives 1 to 20 hits (--k)"),
        ("/search?q=x&k=0", 422, "k is 0; this server gives 1 to 20 hits (--k)"),
        ("/search?q=x&k=many", 422, "the parameter 'k': input should be a valid integer, unable to parse string as an integer"),
        ("/search?q=x&what=y", 422, f"there is no parameter 'what'; {NAMES}"),
        ("/search?q=x&limit=3", 422, "there is no parameter 'limit'; did you mean 'k'?"),
        ("/search?q=x&size=3", 422, "there is no parameter 'size'; did you mean 'k'?"),
        ("/search?q=x&n=3", 422, "there is no parameter 'n'; did you mean 'k'?"),
        ("/search?q=x&top_k=3", 422, "there is no parameter 'top_k'; did you mean 'k'?"),
        ("/search?query=x", 422, "there is no parameter 'query'; did you mean 'q'?"),
        ("/search?q=x&filter=year>2000", 422, "there is no parameter 'filter'; did you mean 'where'?"),
        ("/search?q=x&page=2", 422, "there is no parameter 'page'; did you mean 'offset'?"),
        ("/search?q=x&sort_by=year", 422, "there is no parameter 'sort_by'; did you mean 'sort'?"),
        ("/search?q=x&sort=-year", 422, "sort: there is no column '-year'; did you mean 'year', with descending?"),
        ("/search?q=x&sort=year:desc", 422, "sort: there is no column 'year:desc'; did you mean 'year', with descending?"),
        ("/search?q=x&sort=year:asc", 422, "sort: there is no column 'year:asc'; did you mean 'year'?"),
        ("/search?q=x&sort=%2Byear", 422, "sort: there is no column '+year'; did you mean 'year'?"),
        ("/suggest?query=x", 422, "there is no parameter 'query'; did you mean 'q'?"),
        ("/suggest?q=x&limit=3", 422, "there is no parameter 'limit'; did you mean 'k'?"),
        ("/why?q=x", 422, "there is no parameter 'q'; did you mean 'event'?"),
        ("/search?q=x&pipeline=tfidf()", 422, "there is no pipeline 'tfidf()'; there are bm25"),
        ("/search?q=x&pipeline=bm52", 422, "there is no pipeline 'bm52'; did you mean 'bm25'?"),
        ("/search?q=x&index=y", 404, "there is no index 'y'; there are springs"),
        ("/search?q=x&facets=colour", 422, "there is no column 'colour'; there are kind, year"),
        (f"/search?q=x&where={LONG}", 422, "the filter has 101 characters; 100 are taken (--query)"),
        ("/documents/s9", 404, "there is no document 's9' in springs"),
        ("/documents/..%2F..%2Fetc%2Fpasswd", 404, "there is no document '../../etc/passwd' in springs"),
        ("/suggest?q=x&k=0", 422, "the parameter 'k': input should be greater than or equal to 1"),
        ("/suggest?q=%20", 422, "the query is empty"),
        (f"/suggest?q={LONG}", 422, "the query has 101 characters; this server takes 100 (--query)"),
        ("/suggest?q=x&index=y", 404, "there is no index 'y'; there are springs"),
        ("/explain?q=x&id=s9", 404, "there is no document 's9' in springs"),
        ("/why?event=x&depth=9", 422, "the parameter 'depth': input should be less than or equal to 5"),
        ("/nothing", 404, "there is nothing at this address; /docs lists all addresses"),
    ],
)
def test_a_question_beyond_the_limits_is_refused_in_a_sentence(
    server: Running, address: str, status: int, sentence: str
) -> None:
    assert server.problem("GET", address) == (status, sentence)


@each(
    ("address", "body", "status", "sentence"),
    [
        ("/search", {"topics": []}, 422, "the body 'topics': list should have at least 1 item after validation, not 0"),
        ("/search", {"topics": [ONE, ONE]}, 422, "two topics have the same id"),
        ("/search", {"topics": ["x"]}, 422, "the body 'topics.0': an object {…} belongs there"),
        ("/search", {"topics": FOUR}, 422, "there are 4 topics; a request has 3 at most (--batch)"),
        ("/search", {"topics": [ONE], "more": 1}, 422, f"there is no parameter 'more'; {BODY_NAMES}"),
        ("/search", {"topics": [ONE], "size": 1}, 422, "there is no parameter 'size'; did you mean 'k'?"),
        ("/search", {"query": "x"}, 422, "there is no parameter 'query'; did you mean 'topics'?"),
        ("/search", {"topics": [{**ONE, "text": LONG}]}, 422, TOO_LONG),
        ("/search", {"topics": [{**ONE, "turns": [{"text": LONG}]}]}, 422, TOO_LONG),
        ("/search", {"topics": [{**ONE, "text": "\ud800"}]}, 422, "the query has half of a character (a lone surrogate)"),
        ("/rewrite", {"topics": [ONE], "rewriter": "x"}, 422, "there is no rewriter 'x'; there are weighted_turns()"),
        ("/conversations", {"text": LONG}, 422, TOO_LONG),
        ("/conversations", {"text": "x", "turns": [{"text": LONG}]}, 422, TEXT_TOO_LONG),
        ("/conversations", {"text": "x", "turns": [TURN, {"text": " "}]}, 422, "'turns.1.text' is empty"),
        ("/conversations", {"text": "x", "turns": [{**TURN, "manual": LONG}]}, 422, MANUAL_TOO_LONG),
        ("/conversations", {"text": "x", "rewritten": ""}, 422, "'rewritten' is empty"),
        ("/conversations", {"text": "x", "pipeline": "x"}, 422, "there is no pipeline 'x'; there are bm25"),
        ("/documents", {"documents": [ONE]}, 403, CLOSED),
    ],
)  # fmt: skip
def test_a_body_beyond_the_limits_is_refused_in_a_sentence(
    server: Running, address: str, body: object, status: int, sentence: str
) -> None:
    content = json.dumps(body)
    assert server.problem("POST", address, content=content, headers={"Content-Type": "application/json"}) == (status, sentence)


@each("body", [b"", b"{", b"[1", b"nothing", b"\xff\xfe", b'{"topics": ' + b"[" * 900, b"NaN", b"null", b"[]", b'"x"'])
def test_a_body_that_is_no_json_is_refused_in_a_sentence(server: Running, body: bytes) -> None:
    status, sentence = server.problem("POST", "/search", content=body, headers={"Content-Type": "application/json"})
    assert status in (400, 422)
    assert sentence.startswith("the body")
    assert server.get("/search", params={"q": "water"})["hits"]


def test_a_body_that_is_not_marked_as_json_is_refused_with_the_header_to_send(server: Running) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d sends
    status, sentence = server.problem("POST", "/search", content=b'{"topics": [{"id": "1", "text": "x"}]}', headers=form)
    assert (status, sentence) == (422, "the body is not marked as JSON; send Content-Type: application/json")


def test_a_body_that_is_too_large_is_refused_with_and_without_its_length(server: Running) -> None:
    sentence = "the request's body has more than 2,000 bytes (--body)"
    assert server.problem("POST", "/search", content=b"x" * 2001) == (413, sentence)
    pieces = (b"x" * 100 for _ in range(100))
    assert server.problem("POST", "/search", content=pieces, headers={"Content-Type": "application/json"}) == (413, sentence)


def test_other_names_and_other_sites_are_refused(server: Running, path: Path) -> None:
    host, port = server.place
    assert server.problem("GET", "/search?q=x", headers={"Host": "evil.example"}) == (
        421, "this server is not called 'evil.example' (--name)"
    )  # fmt: skip
    for origin in ("http://evil.example", "null", f"http://{host}:1"):
        assert server.problem("GET", "/search?q=x", headers={"Origin": origin}) == (
            403,
            "the request comes from a page of another site (--origin)",
        )
    own = server.client.get("/search?q=x", headers={"Origin": f"http://{host}:{port}"})
    assert own.status_code == 200
    assert not [name for name in own.headers if name.startswith("access-control")]
    assert server.client.get("/search?q=x", headers={"Host": f"localhost:{port}"}).status_code == 200
    with serving(path, hosts=("papers.example",)) as running:
        assert running.client.get("/search?q=x", headers={"Host": "papers.example"}).status_code == 200


@each("address", ["/", "/search?q=x", "/nothing", "/search", "/documents/s1"])
def test_every_answer_has_the_headers_that_guard_a_browser(server: Running, address: str) -> None:
    headers = server.client.get(address, headers={"X-Request-Id": "mine-1"}).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
    assert headers["x-request-id"] == "mine-1"
    assert len(server.client.get(address, headers={"X-Request-Id": "no id\x09at all"}).headers["x-request-id"]) == 16


def slowly(running: Running, seconds: float) -> None:
    """Makes each search take so long."""
    work = running.service._lexical._work

    def waiting(requests):
        time.sleep(seconds)
        return work(requests)

    running.service._lexical._work = waiting


def test_requests_beyond_those_at_once_are_to_come_again(path: Path) -> None:
    with serving(path, max_concurrency=2) as running:
        slowly(running, 0.5)
        with httpx.Client(base_url=running.address, timeout=30) as other:
            threads = [threading.Thread(target=other.get, args=("/search?q=water",)) for _ in range(2)]
            for thread in threads:
                thread.start()
            time.sleep(0.2)
            response = running.client.get("/search?q=water")
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            assert response.json()["detail"] == "2 requests are being worked on (--max-concurrency); come again"
            assert running.get("/health") == {"status": "ok"}
            for thread in threads:
                thread.join()
        assert running.client.get("/search?q=water").status_code == 200
        assert 'fontes_refused_total{limit="max_concurrency"} 1.0' in running.client.get("/metrics").text


def test_a_request_that_takes_too_long_is_refused(path: Path) -> None:
    with serving(path, seconds=0.3) as running:
        slowly(running, 0.5)
        response = running.client.get("/search?q=water")
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert response.json()["detail"] == "the answer took more than 0.3 seconds (--seconds); ask for less, or later"


def test_documents_are_changed_by_those_who_have_the_token(tmp_path: Path) -> None:
    index = springs(tmp_path)
    new = {"documents": [{"id": "n1", "text": "a new well", "title": "Wells", "metadata": {"year": 2024}}]}
    with serving(index, writable=True, token=TOKEN) as running:
        for headers in (
            {},
            {"Authorization": f"Bearer {TOKEN}x"},
            {"Authorization": TOKEN},
            {"Authorization": "Bearer é".encode()},
        ):
            assert running.problem("POST", "/documents", json=new, headers=headers)[0] == 401
        assert running.get("/search", params={"q": "well"})["hits"] == []
        added = running.client.post("/documents", json=new, headers=WITH_TOKEN)
        assert (added.status_code, added.json()["added"], added.json()["documents"]) == (200, 1, 6)
        assert [hit["id"] for hit in running.get("/search", params={"q": "well"})["hits"]] == ["n1"]
        again = running.problem("POST", "/documents", json=new, headers=WITH_TOKEN)
        assert again[0] == 422
        assert again[1].startswith("document 'n1' is in the index springs already")
        assert str(tmp_path) not in again[1]
        assert running.client.post("/documents", json={**new, "duplicates": "skip"}, headers=WITH_TOKEN).json()["skipped"] == 1
        assert running.problem("DELETE", "/documents/n1")[0] == 401
        assert running.client.delete("/documents/n1", headers=WITH_TOKEN).json()["deleted"] == 1
        assert running.problem("DELETE", "/documents/n1", headers=WITH_TOKEN)[0] == 404
        assert running.client.delete("/documents?id=s1&id=s2", headers=WITH_TOKEN).json()["documents"] == 3
        assert running.problem("DELETE", "/documents?id=s3&id=s9", headers=WITH_TOKEN)[0] == 422
        assert running.get("/search", params={"q": "geyser"})["hits"] == []
        assert running.get("/indexes")["indexes"][0]["generation"] == 3
    assert len(Index.open(index)) == 3


def test_the_token_comes_from_a_file_or_the_environment_and_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert secret_of(file, VARIABLE) == TOKEN
    monkeypatch.setenv("FONTES_TOKEN", TOKEN + "2")
    assert secret_of(None, VARIABLE) == TOKEN + "2"


@each(
    "changes", [{"k": 0}, {"batch": 0}, {"seconds": 0.0}, {"seconds": -1.0}, {"port": -1}, {"port": 70_000}, {"writable": True}]
)
def test_settings_that_make_no_sense_are_refused(changes: dict) -> None:
    with pytest.raises(ParameterError):
        ServerSettings(**changes)


def test_pipelines_are_named_or_are_their_own_names() -> None:
    assert named_expressions(["fast=bm25(k1=0.9)", "tfidf()", "bm25(k1=0.5)"]) == {
        "fast": "bm25(k1=0.9)", "tfidf()": "tfidf()", "bm25(k1=0.5)": "bm25(k1=0.5)"
    }  # fmt: skip


def test_what_fails_inside_is_told_to_the_log_alone(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(path) as running:

        def failing(requests):
            raise RuntimeError("a secret of the server")

        running.service._lexical._work = failing
        response = running.client.get("/search?q=water")
        assert response.status_code == 500
        assert "secret" not in response.text
        assert response.json()["detail"].endswith("under the id in the header X-Request-Id")
        limit = time.monotonic() + 30
        while not (lines := [r.getMessage() for r in caplog.records if "a secret" in r.getMessage()]):
            assert time.monotonic() < limit
            time.sleep(0.02)
        line = json.loads(lines[0])
        assert line["request"] == response.headers["x-request-id"]
        assert "RuntimeError: a secret of the server" in line["error"]


@pytest.mark.slow
def test_a_server_that_cannot_start_says_so_in_a_sentence(path: Path, tmp_path: Path, fontes) -> None:
    with serving(path) as running:
        port = str(running.place[1])
        # In a process of its own: a browser of other tests may run an event loop in this one.
        command = [sys.executable, "-m", "fontes", "serve", str(path), "--port", port]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (
            1,
            f"fontes: the server cannot listen at 127.0.0.1, port {port}: is it an address of this machine, and free?\n",
        )
    for arguments, sentence in (
        ([path, "--pipeline", "bm52()"], "there is no stage 'bm52'"),
        ([path, "--pipeline", "raw()"], "needs a stage from Topics to Run"),
        ([path, "--writable"], "--writable needs a token"),
        ([path, path], "another index is called 'springs' too"),
        ([tmp_path], "is not an index"),
    ):
        code, _, errors = fontes("serve", *arguments)
        assert code == 1
        assert sentence in errors
        assert len(errors.splitlines()) == 1


@pytest.mark.parametrize("logged", [False, True])
def test_the_log_has_a_line_of_json_a_request_and_queries_only_where_asked(
    path: Path, caplog: pytest.LogCaptureFixture, logged: bool
) -> None:
    with caplog.at_level(logging.INFO, "fontes.server"), serving(path, log_queries=logged) as running:
        running.client.get("/search?q=karst", headers={"X-Request-Id": "one"})
    messages = [record.getMessage() for record in caplog.records if record.name == "fontes.server"]
    (line,) = [line for line in map(json.loads, messages) if line["request"] == "one"]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/search", 200)
    assert ("karst" in " ".join(messages)) is logged


@pytest.mark.slow
@pytest.mark.parametrize("logged", [False, True])
def test_a_process_writes_its_log_to_standard_error(path: Path, logged: bool) -> None:
    with process(path, *["--log-queries"] * logged) as (running, server):
        server.client.get("/search?q=karst", headers={"X-Request-Id": "one"})
        running.terminate()
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    (line,) = [line for line in lines if line.get("request") == "one"]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/search", 200)
    assert ("karst" in errors) is logged


def test_the_documents_of_an_answer_have_a_greatest_size(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [{"id": str(n), "text": "water"} for n in range(3)]
    size = len(httpx.get(f"{server.address}/search", params={"q": "water", "k": 20}).content)
    monkeypatch.setattr("fontes.app.results.MAX_ANSWER_BYTES", size)
    assert httpx.get(f"{server.address}/search", params={"q": "water", "k": 20}).status_code == 200
    monkeypatch.setattr("fontes.app.results.MAX_ANSWER_BYTES", 300)
    assert httpx.get(f"{server.address}/search", params={"q": "water", "k": 1}).status_code == 200
    for response in (
        httpx.get(f"{server.address}/search", params={"q": "water", "k": 20}),
        httpx.post(f"{server.address}/search", json={"topics": topics, "k": 3}),
    ):
        assert response.status_code == 422
        assert "documents of the answer have" in response.json()["detail"]
        assert response.json()["detail"].endswith("more than 300; give a smaller k")


def test_a_refusal_is_a_short_sentence() -> None:
    from fontes.app.server.answers import RefusedError

    assert len(str(RefusedError(422, f"there is no pipeline '{'x' * 100_000}'").detail)) == 2_000
