"""What errors of servers, agents and judges say: the option, file and line, address, topic or judge at fault."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from support.each import each
from support.errors import check_error
from support.serving import springs

from fontes import Topics
from fontes.app.agents.log import CallLog, Session, read_log
from fontes.app.agents.protocol import check_key
from fontes.app.agents.sessions import read_answers
from fontes.app.judging.store import JudgmentStore
from fontes.app.server.application import application
from fontes.app.server.service import Service
from fontes.app.server.settings import KEY, ServerSettings, named_expressions, secret_of
from fontes.client import Client
from fontes.core import FontesError, InputError, ParameterError


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def newer(path: Path) -> Path:
    """A file of judgments of a later version."""
    JudgmentStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 9")
    return path


SESSIONS = [Session("f", ())]


@each(
    ("call", "error", "names", "remedy"),
    [
        *(
            (lambda p, w=wrong: ServerSettings(root_path=w), ParameterError, f"--root-path … {wrong!r}", "a path such as")
            for wrong in ("x", "/x/", "/", "/x y", "/x?y")
        ),
        *(
            (lambda p, w=wrong: ServerSettings(origins=(w,)), ParameterError, f"--origin … {wrong!r}", "such as")
            for wrong in ("app.example.org", "https://app.example.org/", "https://a.example/x", "ftp://a.example", "")
        ),
        (
            lambda p: application(Service([springs(p)], ServerSettings(root_path="/documents/x"))),
            ParameterError,
            "/documents",
            "an address of the server itself",
        ),
        (lambda p: named_expressions(["a=bm25()", "a=tfidf()"]), ParameterError, "two pipelines are called 'a'", ""),
        (lambda p: secret_of(written(p / "key", "short\n"), KEY), InputError, "key", "16 ASCII characters or more"),
        (lambda p: secret_of(p / "none", KEY), InputError, "none … cannot be read", ""),
        *(
            (
                lambda p, h=host: check_key(ServerSettings(host=h)),
                ParameterError,
                f"--host {host}",
                "--key-file FILE, or FONTES_KEY",
            )
            for host in ("0.0.0.0", "::", "192.168.1.2", "search.example.org")
        ),
        (lambda p: Client("localhost:8080").search("x"), ParameterError, "localhost:8080", "begins with http:// or https://"),
        (lambda p: Client("http://127.0.0.1:9", retries=0).search("x"), FontesError, "http://127.0.0.1:9", "reached"),
        # logs of agents
        (read_log, InputError, "no log of calls", "fontes mcp INDEX --log"),
        (lambda p: CallLog(written(p / "file", "")), InputError, "file … the log cannot be made there", ""),
        (
            lambda p: read_log(written(p / "calls-1.jsonl", "no log\nof calls\n").parent),
            InputError,
            "calls-1.jsonl, line 1",
            "",
        ),
        (lambda p: read_answers(written(p / "a.jsonl", "[]"), SESSIONS), InputError, "a.jsonl, line 1", "write"),
        (
            lambda p: read_answers(written(p / "a.jsonl", '{"session": "x", "text": ""}'), SESSIONS),
            InputError,
            "a.jsonl, line 1 … session 'x'",
            "",
        ),
        (lambda p: read_answers(p / "none", SESSIONS), InputError, "none … the answers cannot be read", ""),
        # files of judgments
        (lambda p: JudgmentStore(p / "none.sqlite", reading=True), InputError, "none.sqlite", "no such file"),
        (lambda p: JudgmentStore(p / "none" / "j.sqlite"), InputError, "j.sqlite … cannot be opened", ""),
        (lambda p: JudgmentStore(newer(p / "c.sqlite")), InputError, "c.sqlite … version 9", ""),
    ],
)
def test_settings_addresses_and_files(
    tmp_path: Path, call: Callable[[Path], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tmp_path), error, names, remedy)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> JudgmentStore:
    """A judge, two topics and their pools."""
    store = JudgmentStore(tmp_path_factory.mktemp("judging") / "j.sqlite")
    store.add_judge("anna")
    store.add_topics(Topics.of({"1": "one", "2": "two"}))
    store.add_pools({"1": ["d0", "d1"], "2": ["d0"]}, "index", "bm25()", 40)
    store.judge("anna", "1", "d1", 0)
    return store


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda s: s.judge("anna", "2", "d9", 1), ParameterError, "document 'd9' … topic '2'", "in the pool"),
        (lambda s: s.judge("anna", "1", "d1", 4), ParameterError, "a grade", "0, 1, 2 or 3"),
        (lambda s: s.note("anna", "3", "d1", ""), ParameterError, "'d1' … topic '3'", "in the pool"),
        *(
            (lambda s, n=name: s.add_judge(n), ParameterError, f"a judge … {name!r}", "")
            for name in ("", "a/b", "..", "settled", "Agreed", "x" * 41, "ANNA", "-x")
        ),
        (lambda s: s.add_judge("a\nb"), ParameterError, "a judge … 'a b'", ""),
        *(
            (lambda s, t=text: s.add_topics(Topics.of({"1": t})), InputError, f"topic '1' is 'one' … '{text}'", "another id")
            for text in ("other", "nought", "zero")
        ),
        (lambda s: s.set_evidence("anna", "1", [["d1"]]), ParameterError, "document 'd1'", "once its grade is 1 to 3"),
        (lambda s: s.set_evidence("anna", "1", [["x" * 300]]), ParameterError, f"document '{'x' * 200}' ", "1 to 3"),
    ],
)
def test_judgments(
    store: JudgmentStore, call: Callable[[JudgmentStore], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(store), error, names, remedy)
    assert list(store.topics()) == ["1", "2"]
    assert [(one.topic, one.document, one.grade) for one in store.judgments("anna")] == [("1", "d1", 0)]
