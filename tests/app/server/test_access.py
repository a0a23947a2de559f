"""Access to a server: under a path of a proxy, by HEAD, from other sites, with a key, and with documents as JSON lines."""

import asyncio
import gzip
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.each import each
from support.proxies import PREFIX, proxy
from support.serving import Running, process, serving, springs

from fontes import Doc, Index
from fontes.app.server import guard
from fontes.app.server.guard import Guard
from fontes.app.server.health import Metrics
from fontes.app.server.pages import example_requests
from fontes.app.server.service import Service
from fontes.app.server.settings import KEY, ServerSettings, secret_of
from fontes.core.errors import InputError

TOKEN, SECRET = "a token of many letters", "a key of many letters"
SITE = "https://app.example.org"


@pytest.fixture(scope="module")
def plain(path: Path) -> Iterator[Running]:
    with serving(path) as running:
        yield running


@pytest.mark.parametrize("strips", [True, False])
@pytest.mark.slow
def test_a_server_answers_under_a_path_of_a_proxy(path: Path, strips: bool) -> None:
    with serving(path, root_path=PREFIX) as running, proxy(running, strips) as address, httpx.Client() as client:
        base = f"{address}{PREFIX}"
        assert client.get(f"{base}/search?q=water").json() == running.get("/search?q=water")
        assert client.get(f"{base}/documents/a/b%3Fc=1").json()["id"] == "a/b?c=1"
        assert client.get(f"{base}/openapi.json").json()["servers"] == [{"url": PREFIX}]
        assert f"{PREFIX}/search?q=" in client.get(f"{base}/docs").text
        if not strips:
            moved = client.get(base)
            assert (moved.status_code, moved.headers["location"]) == (308, f"{PREFIX}/")
        for page in ("/", "/docs"):
            for link in ("page/page.css", "page/main.js", "page/docs.css", "openapi.json"):
                text = client.get(base + page).text
                assert f'"/{link}' not in text
                assert f"'/{link}" not in text


def test_paths_outside_the_prefix_are_unchanged_and_an_address_is_no_prefix(path: Path) -> None:
    with serving(path, root_path="/doc") as running:
        assert running.get("/documents/s1")["id"] == "s1"
        assert running.get("/doc/documents/s1")["id"] == "s1"
        assert running.problem("GET", "/doc/doc/documents/s1")[0] == 404
        assert running.problem("GET", "/docx/documents/s1")[0] == 404


@each(
    "address",
    ["/", "/page/page.css", "/docs", "/openapi.json", "/search?q=water", "/documents/s1", "/documents?id=s1", "/indexes",
     "/health", "/ready", "/metrics", "/explain?q=water&id=s2", "/suggest?q=wat", "/search", "/documents/s9", "/nothing"],
)  # fmt: skip
def test_head_is_get_without_the_body(plain: Running, address: str) -> None:
    got, head = (plain.client.request(method, address) for method in ("GET", "HEAD"))
    assert head.content == b""
    assert head.status_code == got.status_code
    same = ("content-type", "content-length", "content-security-policy", "x-frame-options")
    if address == "/metrics":
        same = ("content-type",)
    assert [head.headers.get(name) for name in same] == [got.headers.get(name) for name in same]
    assert plain.get("/health") == {"status": "ok"}  # on the same connection


def test_head_is_counted_and_logged_as_head(path: Path) -> None:
    with serving(path) as running:
        running.client.head("/search?q=water")
        line = 'fontes_requests_total{method="HEAD",path="/search",status="200"} 1.0'
        assert line in running.client.get("/metrics").text
        assert running.client.head("/documents?id=s1", headers={"Host": "evil.example"}).status_code == 421


def preflight(method: str = "POST", headers: str = "authorization,content-type", site: str = SITE) -> dict[str, str]:
    return {"Origin": site, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}


def test_pages_of_allowed_origins_may_ask_and_read(path: Path) -> None:
    with serving(path, origins=(SITE,), key=SECRET) as running:
        allowed = running.client.options("/search", headers=preflight())
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == SITE
        assert "POST" in allowed.headers["access-control-allow-methods"]
        assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
        assert allowed.headers["x-content-type-options"] == "nosniff"
        shown = {"Origin": SITE, "Authorization": f"Bearer {SECRET}"}
        for headers, status in ((shown, 200), ({"Origin": SITE}, 401)):
            answer = running.client.get("/search?q=water", headers=headers)
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, SITE)
            assert "Origin" in answer.headers["vary"]
            assert "Retry-After" in answer.headers["access-control-expose-headers"]
        for headers in (
            preflight(site="https://evil.example"),
            {"Origin": "https://evil.example"},
            {"Origin": f"{SITE}.evil.example"},
        ):
            answer = running.client.options("/search", headers=headers)
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers
        for headers in (preflight("TRACE"), preflight(headers="x-evil")):
            assert running.problem("OPTIONS", "/search", headers=headers)[0] == 403
        wrong = {**preflight(), "Host": "evil.example"}
        assert running.problem("OPTIONS", "/search", headers=wrong)[0] == 421


def test_every_origin_is_allowed_where_the_option_says_so_and_none_without(path: Path, plain: Running) -> None:
    with serving(path, origins=("*",)) as running:
        for site in (SITE, "null"):
            answer = running.client.get("/search?q=water", headers={"Origin": site})
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
            assert "access-control-allow-credentials" not in answer.headers
    assert plain.problem("OPTIONS", "/search", headers=preflight())[0] == 403


def test_a_server_with_a_key_answers_those_who_have_it(path: Path, tmp_path: Path) -> None:
    index = springs(tmp_path)
    with serving(index, key=SECRET, writable=True, token=TOKEN) as running:
        every = [
            (method.upper(), address.replace("{id}", "s1"))
            for address, methods in running.get("/openapi.json")["paths"].items()
            for method in methods
            if address not in ("/health", "/ready")
        ]
        assert len(every) >= 15
        for method, address in [*every, ("HEAD", "/search"), ("GET", "/nothing"), ("GET", "/page/page.css/x")]:
            for shown in ({}, {"Authorization": f"Bearer {SECRET}x"}, {"Authorization": SECRET}, {"Authorization": "Bearer"}):
                answer = running.client.request(method, address, headers=shown)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (method, address)
        assert running.problem("GET", "/search?q=x")[1] == "this needs the server's key: Authorization: Bearer KEY"
        for secret in (SECRET, TOKEN):
            shown = {"Authorization": f"Bearer {secret}"}
            assert running.client.get("/search?q=water", headers=shown).json()["hits"]
            assert running.client.get("/metrics", headers=shown).status_code == 200
        assert running.problem("DELETE", "/documents/s1", headers={"Authorization": f"Bearer {SECRET}"})[0] == 401
        for open_to_all in ("/", "/page/main.js", "/docs", "/openapi.json", "/health", "/ready"):
            assert running.client.get(open_to_all).status_code == 200
    with serving(path, key=SECRET) as running:  # without --writable there is no token, and an empty one opens nothing
        assert running.problem("GET", "/search?q=x", headers={"Authorization": "Bearer"})[0] == 401


def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(guard.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    assert guard.has_secret({b"authorization": f"Bearer {SECRET}".encode()}, SECRET, TOKEN)
    assert len(compared) == 2
    assert not guard.has_secret({}, "", "")


@pytest.mark.slow
def test_the_key_comes_from_a_file_or_the_environment_and_is_in_no_log(path: Path, tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    assert secret_of(file, KEY) == SECRET
    monkeypatch.setenv("FONTES_KEY", "short")
    with pytest.raises(InputError, match="FONTES_KEY in the environment: a key has 16 ASCII characters or more"):
        secret_of(None, KEY)
    monkeypatch.setenv("FONTES_KEY", SECRET)
    assert secret_of(None, KEY) == SECRET
    with process(path, "--log-queries") as (running, server):
        assert server.client.get("/search?q=water").status_code == 401
        assert server.client.get("/search?q=water", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 200
        running.terminate()
        output, errors = running.communicate(timeout=60)
    assert SECRET not in output + errors
    assert '"status": 401' in errors


LINES = '{"_id": "n1", "title": "Wells", "text": "a new well", "year": 2024}\n\n{"id": "n2", "contents": "two wells"}\n'


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose documents may be changed."""
    with serving(springs(tmp_path_factory.mktemp("written")), writable=True, token=TOKEN) as running:
        yield running


@each(
    "kind",
    ["application/x-ndjson", "application/jsonl; charset=utf-8", "application/x-www-form-urlencoded", "text/plain", None],
)
def test_documents_come_as_the_json_lines_that_index_reads(written: Running, tmp_path: Path, kind: str | None) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", **({"Content-Type": kind} if kind else {})}
    added = written.client.post("/documents", content=LINES.encode(), headers=headers)
    assert (added.status_code, added.json()["added"]) == (200, 2), added.text
    (tmp_path / "new.jsonl").write_text(LINES)
    alone = Index.build(tmp_path / "new.jsonl", tmp_path / "new.index", threads=1)
    for doc_id in ("n1", "n2"):
        doc = alone.doc(doc_id)
        values = {"id": doc.id, "title": doc.title, "text": doc.text, "metadata": dict(doc.metadata)}
        assert written.get(f"/documents/{doc_id}") == values
    again = written.client.post("/documents?duplicates=skip&index=springs", content=LINES.encode(), headers=headers)
    assert again.json()["skipped"] == 2
    for doc_id in ("n1", "n2"):
        assert written.client.delete(f"/documents/{doc_id}", headers=headers).status_code == 200


@each(
    ("body", "sentence"),
    [
        (b'{"_id": "n1", "text": "x"}\n\n{"_id": \n', "the body, line 3: "),
        (b'{"_id": "n1", "text": "x"}\n{"text": "x"}', "the body, line 2: "),
        (b'{"_id": "n1", "text": "x"}\n[1]', "the body, line 2: "),
        (b'{"_id": "n1", "text": "x"}\n\xff\xfe', "the body, line 2: "),
        (gzip.compress(LINES.encode(), mtime=0), "the body, line 1: "),
        (b'{"documents": [{"id": "n1", "text": "x"}]}', "the body, line 1: "),
        (b"\n\n", "the body has no documents"),
        (b"", "the body has no documents"),
    ],
)  # fmt: skip
def test_json_lines_that_cannot_be_read_are_refused_with_their_line(written: Running, body: bytes, sentence: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/x-ndjson"}
    status, detail = written.problem("POST", "/documents", content=body, headers=headers)
    assert status == 422
    assert detail.startswith(sentence)
    assert written.get("/indexes")["indexes"][0]["documents"] == 5


def test_json_lines_that_are_sent_as_json_are_told_their_content_type(written: Running) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    status, detail = written.problem("POST", "/documents", content=LINES.encode(), headers=headers)
    assert (status, detail.endswith("JSON lines have Content-Type: application/x-ndjson")) == (422, True)


def test_the_examples_of_docs_work(tmp_path: Path) -> None:
    import html
    import re

    with serving(springs(tmp_path), writable=True, token=TOKEN, key=SECRET) as running:
        page = running.client.get("/docs").text
        commands = [html.unescape(each) for each in re.findall("<pre><code>(.*?)</code></pre>", page, re.DOTALL)]
        described = running.get("/openapi.json")["paths"]
        routes = sum(
            len(methods) for path, methods in described.items() if path != "/writes/{ticket}"
        )  # tickets are a client's
        assert len(commands) == routes + 1  # documents as JSON lines too
        for command in commands:
            script = command.replace("curl -s", "curl -s -f")
            environment = {"FONTES_KEY": SECRET, "FONTES_TOKEN": TOKEN, "PATH": "/usr/bin:/bin:/usr/local/bin"}
            ended = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=environment, check=False)
            assert ended.returncode == 0, (command, running.client.get("/health").text)
            if "/search" in command:
                assert json.loads(ended.stdout).get("hits") or json.loads(ended.stdout)["results"][0]["hits"]
        search = {parameter["name"]: parameter for parameter in described["/search"]["get"]["parameters"]}
        assert running.client.get(
            "/search",
            params={"q": search["q"]["example"], "k": search["k"]["example"]},
            headers={"Authorization": f"Bearer {SECRET}"},
        ).json()["hits"]


@pytest.mark.parametrize(("texts", "query"), [(["", "geyser geyser", "geyser well"], "geyser"), ([""], "water")])
def test_examples_of_documents_without_words_ask_for_a_term_of_the_index(tmp_path: Path, texts: list[str], query: str) -> None:
    Index.build([Doc(f"d{number}", text) for number, text in enumerate(texts)], tmp_path / "a.index", threads=1)
    examples = example_requests(Service([tmp_path / "a.index"], ServerSettings()))
    assert examples["get", "/search"][0].query["q"] == query


def test_an_answer_that_has_begun_is_not_begun_again_when_its_application_fails() -> None:
    sent: list[dict[str, Any]] = []

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("later")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/search", "headers": [(b"host", b"localhost")], "query_string": b""}
    with ThreadPoolExecutor(1) as pool:  # a browser's event loop may run in this thread
        pool.submit(asyncio.run, Guard(failing, ServerSettings(), Metrics(), {})(scope, None, send)).result()
    assert [message["type"] for message in sent] == ["http.response.start"]
