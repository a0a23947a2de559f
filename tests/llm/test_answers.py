"""The file of stored answers: nothing that was paid for is lost, and nothing that cannot be read stays in the way."""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.model_server import Answer

import fontes as ft
from fontes.llm import AnswerFile, Model, Request, StoredAnswer, read_pack, write_pack

from .conftest import Serve

Fontes = Callable[..., tuple[int, str, str]]


def answer(text: str, **more: Any) -> StoredAnswer:
    return StoredAnswer(service="s", model="m", parameters={}, sample=0, messages=(("user", text),), text=text, **more)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the file for writing, as another process would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_a_file_that_is_damaged_again_is_set_aside_beside_the_first(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "answers.sqlite")
    for number in range(3):
        file.path.write_bytes(b"no database %d, but long enough to look like one" % number * 100)
        file.write([answer(str(number))])
        assert [one.text for one in file.all()] == [str(number)]
    aside = [tmp_path / f"answers.sqlite.damaged{ending}" for ending in ("", "-2", "-3")]
    assert [path.read_bytes()[:13] for path in aside] == [b"no database %d" % number for number in range(3)]


def test_a_damaged_file_that_cannot_be_renamed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = AnswerFile(tmp_path / "answers.sqlite")
    file.path.write_bytes(b"no database, but long enough to look like one" * 100)

    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(ft.core.InputError, match="answers of language models cannot be kept"):
        file.read([answer("a").digest])


def test_answers_wait_in_a_pack_while_another_process_locks_the_file(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(lambda request, before: "fine")
    monkeypatch.setattr("fontes.storage.keyed.WAIT", 0.01)
    requests = [Request((("user", text),), 8) for text in "abc"]
    file = AnswerFile()
    file.write([answer("before")])
    with writing(file.path), caplog.at_level(logging.WARNING, "fontes.llm"):
        assert [one.text for one in Model("m", max_concurrency=1).ask(requests)] == ["fine"] * 3
        assert [one.text for one in Model("m").ask(requests)] == ["fine"] * 3
        assert len(list(file.all())) == 4
    assert "database is locked" in caplog.text
    assert "until a later run can store them, answers.sqlite.waiting-" in caplog.text
    assert len(list(file.path.parent.glob("*.waiting-*"))) == 3
    with ft.work(replay=True):
        Model("m").ask(requests)
    assert not list(file.path.parent.glob("*.waiting-*"))
    assert len(list(file.all())) == 4
    assert len(server.requests) == 3


def test_an_answer_with_half_a_surrogate_pair_is_stored(serve: Serve) -> None:
    server = serve(lambda request, before: Answer(raw=b'{"choices": [{"message": {"content": "half \\ud83d"}}]}'))
    requests = [Request((("user", text),), 8) for text in "ab"]
    assert [one.text for one in Model("m").ask(requests)] == ["half �"] * 2
    with ft.work(replay=True):
        assert [one.text for one in Model("m").ask(requests)] == ["half �"] * 2
    assert len(server.requests) == 2


def test_a_stored_answer_that_is_not_valid_counts_as_missing(
    serve: Serve, fontes: Fontes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(lambda request, before: "fine")
    request = Request((("user", "a"),), 8)
    Model("m").ask([request, Request((("user", "b"),), 8)])
    broken = AnswerFile().read([Model("m").digest(request)])[Model("m").digest(request)].model_dump_json()
    broken = broken.replace('"choices":{}', '"choices":{"yes":null}')
    with monkeypatch.context() as patch:
        patch.setattr(StoredAnswer, "model_dump_json", lambda self: broken)
        AnswerFile().write(AnswerFile().read([Model("m").digest(request)]).values())
    with caplog.at_level(logging.WARNING, "fontes.llm"):
        code, out, _ = fontes("llm", "usage")
        assert (code, out.startswith("openai m: 1 answer, ")) == (0, True)
    assert "stored answers that are not valid, and count as missing: 1" in caplog.text
    assert [one.text for one in Model("m").ask([request])] == ["fine"]
    assert len(list(AnswerFile().all())) == 2
    assert len(server.requests) == 3


def test_thoughts_at_the_beginning_are_left_out_and_tags_that_an_answer_quotes_stay() -> None:
    def final(text: str) -> str:
        return StoredAnswer(service="s", model="m", parameters={}, sample=0, messages=(), text=text).final_text

    assert final(" \n<think>b</think>c <think>d</think>") == "c <think>d</think>"
    assert final(" <think>b") == ""
    assert final("Okay, they ask [9].\n</think>\n\n[2] > [1]") == "[2] > [1]"  # a template that has opened the thoughts
    assert final("Okay.</think>\r\nYes") == "Yes"
    assert final("hm\n</think>") == ""
    for quoting in ("Models write <think>a</think> first.", "Write <think>, then\n</think>\nYes", "The tag </think> ends it."):
        assert final(quoting) == quoting
    assert final(" \n" * 500_000 + "a") == "a"


def test_a_pack_of_all_answers_is_read_back(tmp_path: Path) -> None:
    file, pack = AnswerFile(tmp_path / "answers.sqlite"), tmp_path / "pack.jsonl.gz"
    write_pack([answer("a", choices={"yes": -1.0}), answer("b", time=1)], pack)
    assert read_pack(pack, file) == (2, 2)
    assert sorted(one.text for one in file.all()) == ["a", "b"]
