"""The client of a server: equal runs, the methods of an index, and what it does when a server is busy, old or away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.serving import DOCS, Running, serving, springs

import fontes as ft
from fontes.client import Client
from fontes.core import FontesError, InputError, ParameterError, PipelineError, Topic, Topics
from fontes.gate import ServerArm
from fontes.index import Change

TOKEN = "a token of many letters"
TOPICS = Topics(
    [
        Topic("1", "hot water spring", narrative="where it comes from"),
        Topic("2", "cold"),
        Topic("3", "nothing of it"),
        Topic("4", "", weights={"water": 1.5, "oasi": 0.1}),
        Topic("6", " "),
        Topic("5", "", query=ft.core.query.Group.from_dict({"must": [{"term": "water"}], "should": [{"term": "karst"}]})),
    ]
)
PIPELINES = {"bm25": "bm25()", "best": "bm25() % 4 >> mmr()", "mixed": "0.3 * tfidf() + 0.7 * ql()"}


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Running]:
    with serving(path, pipelines=PIPELINES, batch=2, key="a key of many letters") as running:
        yield running


def client(server: Running, *arguments: Any, **options: Any) -> Client:
    return Client(server.address, *arguments, api_key="a key of many letters", **options)


@each("name", PIPELINES)
@each("where", [None, "kind == 'hot'"])
def test_runs_equal_those_of_the_index_to_the_digit(server: Running, path: Path, name: str, where: str | None) -> None:
    index = ft.Index.open(path)
    local = ft.core.searches.filtered(ft.pipeline(PIPELINES[name], index), where)
    run, expected = client(server, name, where=where)(TOPICS), local(TOPICS)
    assert run.to_dict() == expected.to_dict()
    assert list(run.to_columns()["doc_id"]) == list(expected.to_columns()["doc_id"])
    assert run.scores.tobytes() == expected.scores.tobytes()
    assert run.provenance["servers"] == {server.address: [index.fingerprint]}
    assert run["1"].docs() == index.docs(run["1"].ids)
    single, other = (
        client(server, name, where=where).search("hot water", k=1, offset=1),
        local.search("hot water", k=1, offset=1),
    )
    assert (list(single), single.scores.tolist()) == (list(other), other.scores.tolist())


def test_a_client_stands_in_pipelines_comparisons_and_the_gate(server: Running, path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("FONTES_KEY", "a key of many letters")
    index, remote = ft.Index.open(path), client(server)
    assert (remote % 3 >> ft.pipeline("mmr()", index))(TOPICS).to_dict() == (index.bm25() % 3 >> ft.pipeline("mmr()", index))(
        TOPICS
    ).to_dict()
    text = f'0.5 * client("{server.address}", pipeline="best") + 0.5 * tfidf()'
    assert repr(ft.pipeline(text, index)) == text
    topics, qrels = {"1": "hot water", "2": "cold"}, {"1": {"s2": 1}, "2": {"s3": 1}}
    systems = {"tfidf": index.tfidf(), "there": remote}
    report = ft.compare(systems, topics, qrels, ["nDCG@10"], cache=False, allow_empty=True)
    assert report.mean("there", "nDCG@10") == ft.evaluate(index.bm25()(topics), qrels, ["nDCG@10"])["nDCG@10"] > 0
    arm = ServerArm(server=server.address)
    assert arm.run(Topics.of(topics), 3).to_dict() == (index.bm25() % 3)(topics).to_dict()
    with arm.asking(2) as ask:
        assert ask(Topic("1", "hot water")).ids == tuple(index.bm25().search("hot water", k=2).ids)


@pytest.mark.parametrize("options", [{"where": "year >= 2020"}, {"sort": "year"}, {"sort": "year", "descending": True}])
def test_options_of_a_search_are_those_of_the_index(server: Running, path: Path, options: dict[str, Any]) -> None:
    remote, local = (stage.search("water spring", k=3, **options) for stage in (client(server), ft.Index.open(path).bm25()))
    assert (remote.ids, remote.scores.tolist(), remote.total) == (local.ids, local.scores.tolist(), local.total)
    narrowed = client(server, where="kind == 'hot'").search("water spring", where="year >= 2020")
    assert narrowed.ids == ["s2"]


def test_a_client_counts_and_explains_as_the_index_does(server: Running, path: Path) -> None:
    index, remote = ft.Index.open(path), client(server)
    assert remote.search("water", k=1).total == index.bm25().search("water", k=1).total == remote.count("water")
    assert remote.explain("hot water", "s2") == index.bm25().explain("hot water", "s2")
    with pytest.raises(PipelineError, match="explains scores of queries that are texts"):
        remote.explain(TOPICS["4"], "s2")
    assert remote.doc("a/b?c=1") == DOCS[3]
    assert remote.docs(["ü 5", "s1"]) == [DOCS[4], DOCS[0]]


def test_a_client_changes_documents_as_the_index_does(tmp_path: Path) -> None:
    path = springs(tmp_path)
    with serving(path, writable=True, token=TOKEN, body=400, batch=2) as running:
        remote = Client(running.address, api_key=TOKEN)
        new = [ft.Doc(f"n{n}", f"well {n}", "Wells", {"year": 1990 + n}) for n in range(9)]
        assert remote.add(new) == Change(9, 0, 0, 0, 14, running.get("/indexes") and len(ft.Index.open(path).leaves))
        assert remote.add([("n1", "a pump"), ("n9", "a pump")], duplicates="replace").replaced == 1
        assert remote.update({"n2": {"metadata": {"year": 1}}, "n3": {"title": "x"}}).replaced == 2
        assert remote.update({"n2": {}, "z": {}}, missing="skip").skipped == 1
        assert remote.delete(["n1", "n3", "n4"]).deleted == 3
        assert remote.delete("z", missing="skip").skipped == 1
        assert remote.delete(where="year < 1990").deleted == 1
        index = ft.Index.open(path)
        assert set(index.ids) == {*(doc.id for doc in DOCS), "n0", "n5", "n6", "n7", "n8", "n9"}
        assert remote.docs(["n5"]) == [new[5]]
        with pytest.raises(InputError, match="document 's1' is in the index springs already"):
            remote.add([("s1", "x")])
        with pytest.raises(InputError, match="there is no document 'z' in springs"):
            remote.delete("z")
        with pytest.raises(ParameterError, match="ids, or a filter"):
            remote.delete("s1", where="year > 1")
        with pytest.raises(InputError, match=r"the request's body has more than 400 bytes \(--body\)"):
            remote.add([("big", "x" * 500)])


@each(
    ("options", "error", "sentence"),
    [
        ({"api_key": "wrong"}, InputError, r"this needs the server's key: .*\(api_key=, or FONTES_TOKEN or FONTES_KEY"),
        ({"pipeline": "worst"}, ParameterError, "has no pipeline 'worst'; it has bm25, best, mixed"),
        ({"index_name": "books"}, ParameterError, "has no index 'books'; it has springs"),
        ({"k": 5000}, InputError, "k is 5000; this server gives 1 to 1,000 hits"),
        ({"where": "yaer > 1"}, InputError, "there is no column 'yaer'"),
    ],
)  # fmt: skip
def test_a_search_that_cannot_be_made_names_the_cause(
    server: Running, options: dict[str, Any], error: type[FontesError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        Client(**{"url": server.address, "api_key": "a key of many letters", **options})(TOPICS)


class Script(BaseHTTPRequestHandler):
    """Answers by a list of status, headers and body; keeps what it was asked."""

    answers: list[tuple[int, dict[str, str], Any]] = []  # noqa: RUF012
    asked: list[tuple[str, str]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path))
        status, headers, body = self.answers.pop(0)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def script() -> Iterator[str]:
    Script.asked, Script.answers = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


BUSY = (503, {"Retry-After": "7"}, {"detail": "2 writes to springs are waiting (--queue); come again"})
SERVED = (200, {}, {"fontes": ft.__version__, "limits": {"body": 1000, "batch": 10}, "indexes": [], "any_pipeline": False})


def test_a_request_that_may_be_repeated_is_sent_again_when_the_server_says(script: str, monkeypatch: Any) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("fontes.client.time.sleep", pauses.append)
    change = (200, {}, Change(deleted=1).__dict__)
    Script.answers = [SERVED, BUSY, (429, {}, b"slow down"), change]
    assert Client(script).delete("d1", missing="skip") == Change(deleted=1)
    assert pauses == [7.0, 0.2]
    Script.answers = [SERVED, BUSY]
    with pytest.raises(FontesError, match=r"2 writes to springs are waiting \(--queue\); come again"):
        Client(script).add([("d1", "x")])  # which might be there twice
    Script.answers = [SERVED, BUSY]
    with pytest.raises(FontesError, match="are waiting"):
        Client(script).delete("d1")  # which might be missing the second time, since the first request has deleted it
    Script.answers = [SERVED, BUSY, (200, {}, Change(added=1).__dict__)]
    assert Client(script).add([("d1", "x")], duplicates="replace").added == 1
    Script.answers = [SERVED, BUSY, BUSY]
    with pytest.raises(FontesError, match="are waiting"):
        Client(script, retries=1).delete("d1", missing="skip")
    assert pauses == [7.0, 0.2, 7.0, 7.0]


def test_ids_to_delete_are_sent_in_addresses_that_servers_take(script: str) -> None:
    answers = [(200, {}, Change(deleted=n).__dict__) for n in (3, 3, 1)]
    Script.answers = [SERVED, *answers]
    assert Client(script).delete([f"{number}" + "é" * 200 for number in range(7)]).deleted == 7
    assert all(len(address) < 8_000 for _, address in Script.asked)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, {}, b"<html>"), "answers, but not as fontes serve does; is it the address of a server?"),
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "302 Found; is it the address of fontes serve?"),
        ((404, {}, b"not here"), "404 Not Found; is it the address of fontes serve?"),
        ((200, {}, {"indexes": []}), f"has Fontes an older one, and this is {ft.__version__}: install the same version"),
        ((200, {}, {"fontes": "99.1.0"}), f"has Fontes 99.1.0, and this is {ft.__version__}: install the same version"),
    ],
)
def test_what_is_no_server_of_this_version_is_said(script: str, answer: Any, sentence: str) -> None:
    Script.answers = [answer]
    with pytest.raises(FontesError, match=sentence.replace("?", r"\?")):
        Client(script).search("water")


def test_a_key_is_in_no_text_and_no_provenance(server: Running) -> None:
    remote = client(server)
    assert "many letters" not in f"{remote!r} {remote('water').provenance} {remote.text}"
