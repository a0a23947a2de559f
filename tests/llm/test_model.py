"""One door to models: answers are kept, replayed and counted; services fail in every way, and no key leaves the process."""

import logging
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.model_server import KEY, Answer

import fontes as ft
from fontes.core.work import Progress
from fontes.llm import AnswerFile, Model, Request
from fontes.llm.service import LlmService, variables

from .conftest import Serve


def asked(text: str, **more: Any) -> Request:
    return Request((("user", text),), **{"max_tokens": 8, **more})


def echo(request: dict[str, Any], before: int) -> str:
    return f"about {request['messages'][-1]['content']}"


def texts(model: Model, *prompts: str) -> list[str]:
    return [one.text for one in model.ask([asked(prompt) for prompt in prompts])]


def test_an_answer_is_asked_for_once(serve: Serve) -> None:
    server = serve(echo)
    assert texts(Model("m"), "a", "b", "a") == ["about a", "about b", "about a"]
    assert texts(Model("m"), "b", "a") == ["about b", "about a"]
    assert len(server.requests) == 2
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_an_answers_key_depends_on_the_model_and_prompt_not_on_the_address(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, request = Model("m"), asked("a")
    sums = {
        one.digest(request),
        Model("n").digest(request),
        Model("m", service="vllm").digest(request),
        Model("m", parameters={"top_p": 0.9}).digest(request),
        *(one.digest(asked(*a, **k)) for a, k in [(("b",), {}), (("a",), {"sample": 1}), (("a",), {"temperature": 1.0})]),
        one.digest(asked("a", max_tokens=9)),
        one.digest(asked("a", choices=("yes", "no"))),
    }
    assert len(sums) == 9
    serve(echo)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert one.digest(request) in sums


def test_parameters_are_added_and_taken_away(serve: Serve) -> None:
    server = serve(echo)
    Model("m", parameters={"temperature": None, "max_tokens": None, "max_completion_tokens": 90}).ask([asked("a")])
    assert {"max_completion_tokens": 90, "model": "m"}.items() <= server.requests[0].items()
    assert not {"temperature", "max_tokens"} & server.requests[0].keys()


def test_a_replay_asks_nothing_and_says_how_many_answers_are_missing(serve: Serve) -> None:
    server = serve(echo)
    texts(Model("m"), "a")
    with ft.work(replay=True):
        assert texts(Model("m"), "a") == ["about a"]
        with pytest.raises(ft.core.InputError, match=r'^2 of 3 answers of llm\("m"\) are not stored, and a replay asks no'):
            texts(Model("m"), "a", "b", "c", "b")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "failure",
    [
        Answer("slow down", 429, {"retry-after": "0"}),
        Answer("overloaded", 503),
        Answer("half", cut=True),
        Answer(raw=b"<html>proxy</html>"),
        Answer(raw=b'{"choices": []}'),
        Answer(raw=b"[" * 100_000),
        Answer(raw=b'{"choices": [{"message": {"content": 5}}]}'),
    ],
    ids=["rate", "overload", "truncated", "html", "empty", "nested", "number"],
)
def test_what_fails_in_passing_is_tried_again(serve: Serve, failure: Answer) -> None:
    server = serve(lambda request, before: failure if before < 2 else "at last")
    assert texts(Model("m"), "a") == ["at last"]
    assert len(server.requests) == 3


def test_what_fails_each_time_is_one_sentence(serve: Serve) -> None:
    server = serve(lambda request, before: Answer("overloaded", 500) if "b" in str(request["messages"]) else "fine")
    with pytest.raises(ft.FontesError, match=r"gives no answer in 3 tries: 500 overloaded; the answers before it are stored"):
        texts(Model("m", retries=2, max_concurrency=1), "a", "b", "c")
    before = len(server.requests)
    assert texts(Model("m"), "a") == ["fine"]
    assert len(server.requests) == before


@pytest.mark.slow
def test_a_pause_that_a_service_asks_for_is_kept_by_all_calls(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: low)
    server = serve(lambda request, before: "fine" if len(server.requests) > 1 else Answer("", 429, {"retry-after": "1"}))
    begun = time.monotonic()
    texts(Model("m", max_concurrency=1), "a", "b")
    assert time.monotonic() - begun >= 1
    serve(lambda request, before: Answer("", 429, {"retry-after": "3600"}))
    with pytest.raises(ft.FontesError, match="wants a pause of 3,600 seconds"):
        texts(Model("m"), "c")


def test_a_service_that_is_not_there_is_named_with_its_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("VLLM_BASE_URL", f"{place}/v1?token=hidden")
    message = rf"no connection to {place} \(.*refused\); see that it runs there, or set VLLM_BASE_URL; the answers"
    with pytest.raises(ft.FontesError, match=message) as raised:
        texts(Model("m", service="vllm", retries=0), "a")
    assert "hidden" not in str(raised.value)


def test_requests_go_out_together_and_no_more_than_allowed(serve: Serve) -> None:
    server = serve(lambda request, before: Answer("x", seconds=0.05))
    texts(Model("m", max_concurrency=3), *map(str, range(9)))
    assert server.most == 3


def test_a_budget_is_never_passed(serve: Serve) -> None:
    server = serve(lambda request, before: Answer("x", usage=(40, 8)))
    with (
        ft.work(tokens=300),
        pytest.raises(ft.FontesError, match=r"the budget of 300 tokens leaves .* answers arrived and are"),
    ):
        texts(Model("m", max_concurrency=4), *map(str, range(30)))
    assert 3 <= len(server.requests) <= 300 // 48
    spent = len(server.requests)
    assert len(list(AnswerFile().all())) == spent
    with ft.work(tokens=10_000):
        texts(Model("m"), *map(str, range(30)))
    assert len(server.requests) == 30
    with ft.work(tokens=1):
        texts(Model("m"), *map(str, range(30)))  # stored answers cost nothing


def test_a_budget_counts_what_a_service_does_not_say(serve: Serve) -> None:
    server = serve(lambda request, before: Answer("x", usage=None))
    with ft.work(tokens=200), pytest.raises(ft.FontesError, match="budget"):
        texts(Model("m", max_concurrency=1), *map(str, range(30)))
    assert len(server.requests) == 200 // (1 + 16 + 16 + 8)


def test_progress_has_tokens_and_their_rate(serve: Serve) -> None:
    serve(echo)
    seen: list[Progress] = []
    with ft.work(progress=seen.append):
        Model("m").ask([asked(str(n)) for n in range(5)])
    assert (seen[-1].done, seen[-1].total, seen[-1].unit) == (5, 5, "answers")
    assert seen[-1].note.startswith("60 tokens, ")
    with ft.work(progress=seen.append):
        Model("m").ask([asked(str(n)) for n in range(6)])
    assert (seen[-1].done, seen[-1].before) == (6, 5)


def test_an_empty_answer_and_one_with_thoughts(serve: Serve) -> None:
    serve(lambda request, before: Answer(None) if "a" in str(request["messages"]) else "<think>\nhm [9]\n</think>\n\n[2] > [1]")
    first, second = Model("m").ask([asked("a"), asked("b")])
    assert (first.text, first.final_text, second.final_text) == ("", "", "[2] > [1]")


@pytest.mark.parametrize(
    "failure",
    [
        Answer(f"Incorrect API key provided: {KEY}", 401),
        Answer(f"{KEY} has no money", 429),
        Answer(raw=KEY.encode()),
        Answer(f"you sent {KEY}"),
        Answer(KEY, cut=True),
    ],
    ids=["refused", "rate", "raw", "answer", "truncated"],
)
def test_the_key_is_in_no_file_log_message_or_text(
    serve: Serve, failure: Answer, tmp_path: Path, caplog: pytest.LogCaptureFixture, fontes: Any
) -> None:
    serve(lambda request, before: failure)
    caplog.set_level(logging.DEBUG)
    ft.Index.build([("a", "rain"), ("b", "rain snow")], tmp_path / "i")
    pipeline = 'bm25() >> llm_listwise(llm("m", retries=1))'
    out = str(fontes("search", tmp_path / "i", "rain", "--pipeline", pipeline))
    model = Model("m", retries=1)
    shown = [out, repr(model), str(model.key()), model.fingerprint, repr(LlmService("openai", "m", 1.0, 1))]
    try:
        run = ft.pipeline(pipeline, ft.Index.open(tmp_path / "i"))({"1": "rain"})
        shown += [repr(run), str(run.provenance), str(run["1"].topic)]
    except ft.FontesError as error:
        shown += [
            str(error),
            repr(error),
            repr(error.__cause__),
            repr(error.__context__) if not error.__suppress_context__ else "",
        ]
    assert KEY not in "\n".join([*shown, caplog.text])
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    assert all(KEY not in one.model_dump_json() for one in AnswerFile().all())


def test_debugging_shows_what_was_sent_and_answered(
    serve: Serve, tmp_path: Path, fontes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    serve(lambda request, before: "[2] > [1]")
    ft.Index.build([("a", "rain"), ("b", "rain snow")], tmp_path / "i")
    assert fontes("search", tmp_path / "i", "rain", "--pipeline", 'bm25() >> llm_listwise("m")', "--debug")[0] == 0
    assert "[user] [1] rain\n[assistant] Received passage [1]." in caplog.text
    assert "and answered:\n[2] > [1]" in caplog.text
    logger = logging.getLogger("fontes.llm")
    assert (logger.handlers, logger.level) == ([], logging.NOTSET)  # shown until the command ends


def test_variables_are_named_by_the_service_and_some_need_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert variables("my_vllm") == ("MY_VLLM_BASE_URL", "MY_VLLM_API_KEY")
    LlmService("ollama", "m", 1.0, 1)  # at home, without a key


def test_answers_that_cannot_be_kept_are_not_asked_for_twice(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(echo)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "file"))
    with pytest.raises(ft.core.InputError, match="answers of language models cannot be kept"):
        texts(Model("m", max_concurrency=1), *map(str, range(50)))
    assert len(server.requests) <= 2


CLIENT = """
import sys
from fontes.llm import Model, Request
model = Model("m", max_concurrency=8)
answers = model.ask([Request((("user", f"number {n}"),), 8) for n in range(int(sys.argv[1]))])
print(len(answers))
"""


@pytest.mark.slow
def test_a_client_that_is_killed_asks_for_no_answer_that_had_arrived(serve: Serve) -> None:
    server = serve(lambda request, before: Answer("x", seconds=0.002))
    command = [sys.executable, "-c", CLIENT, "1000"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE)
    while len(server.requests) < 300:
        assert first.poll() is None
        time.sleep(0.005)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = {one.messages[0][1] for one in AnswerFile().all()}
    assert len(kept) >= 300 - 8
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "1000\n"
    twice = {prompt for prompt, times in server.prompts.items() if times > 1}
    assert len(server.prompts) == 1000
    assert len(twice) <= 8
    assert not any(text in prompt for prompt in twice for text in (f'"{one}"' for one in kept))
