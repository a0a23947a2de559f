"""What errors of language models say: the setting, file and line, prompt or service at fault, and what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error
from support.model_server import Answer

import fontes as ft
from fontes.core import Doc, FontesError, InputError, ParameterError
from fontes.llm import AnswerFile, LlmQuestions, Model, Query2Doc, Request, StoredAnswer, answer_scores, read_pack
from fontes.llm.prompts import Prompt
from fontes.llm.service import LlmService

from .conftest import Serve

CAVE = Doc("c", "Rain makes caves.")


def answer(text: str) -> str:
    messages = (("user", text),)
    return StoredAnswer(service="s", model="m", parameters={}, sample=0, messages=messages, text=text).model_dump_json()


def asked(text: str = "a") -> Request:
    return Request((("user", text),), max_tokens=8)


def written(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def question(**settings: Any) -> object:
    return LlmQuestions("m", **settings).questions([CAVE])


def tokens(count: int) -> None:
    with ft.work(tokens=count):
        pass


def searched(text: str, folder: Path) -> object:
    index = ft.Index.build([("a", "rain"), ("b", "rain")], folder / "i")
    return ft.pipeline(f"bm25() >> {text}", index)({"1": "rain"})


@each(
    ("call", "error", "names", "remedy"),
    [
        *(
            (lambda p, v=value: Model("m", parameters={"top_p": v}).check(), ParameterError, "parameters", "finite numbers")
            for value in (float("nan"), {1, 2})
        ),
        *(
            (lambda p, t=timeout: Model("m", timeout=t).check(), ParameterError, "timeout", "seconds above 0")
            for timeout in (0, -1.0, float("inf"), float("nan"), "1")
        ),
        (lambda p: Model("m", service="../x").check(), ParameterError, "'../x'", "small letters"),
        (lambda p: Model("local:m", parameters={"top_p": 1}).check(), ParameterError, "service and parameters", "at a service"),
        (lambda p: tokens(0), ParameterError, "tokens … 0", "from 1 up"),
        (lambda p: answer_scores(ft.Topics.of("x"), references={"1": ["x"]}), InputError, "topic '1' carries no answer", ""),
        # prompts
        *(
            (lambda p, c=content: Prompt.of(written(p / "own.md", c), "passage", "query"), InputError, f"own.md … {names}", r)
            for content, names, r in (
                ("no section", "no section", "a line '## user'"),
                ("## user\n{passage} {topic}", "placeholder {topic}", "there are {passage}, {query}"),
                ("## user\n{query}", "the placeholder {passage}", "add it"),
                (b"## user\n\xff", "cannot be read", ""),
            )
        ),
        (lambda p: Prompt.of("rankgtp", "passage"), ParameterError, "prompt 'rankgtp'", "rankgpt"),
        (lambda p: Prompt.of("missing.md", "passage"), InputError, "missing.md", "cannot be read"),
        # examples
        (
            lambda p: Query2Doc("m", examples=written(p / "e.jsonl", '{"query": "cave", "passage": ""}'))({"1": "geyser"}),
            InputError,
            "e.jsonl, line 1 … 'passage', not ''",
            "a text",
        ),
        (
            lambda p: Query2Doc("m", examples=written(p / "e.jsonl", "\n"))({"1": "x"}),
            InputError,
            "e.jsonl",
            "write lines such",
        ),
        (lambda p: Query2Doc("m", examples="missing.jsonl")({"1": "x"}), InputError, "missing.jsonl", ""),
        (lambda p: question(examples=written(p / "e.jsonl", "\n")), InputError, "e.jsonl", "write lines such as"),
        (
            lambda p: question(
                prompt=written(p / "own.md", "## user\n\nDocument: {passage}"),
                examples=written(p / "e.jsonl", '{"query": "cave", "passage": "a hole"}\n'),
            ),
            ParameterError,
            "no place for examples",
            "write",
        ),
        (
            lambda p: question(prompt=written(p / "own.md", "## user\n\nDocument: {passage}, {query}")),
            InputError,
            "own.md … placeholder {query}",
            "",
        ),
        # stages
        *(
            (lambda p, t=text: searched(t, p), FontesError, names, "")
            for text, names in (
                ('llm_listwise("m", window=5, step=6)', "step is 6 … 5"),
                ('llm_listwise("m", window=1)', "window … 1"),
                ('llm_setwise("m", children=26)', "26 documents"),
                ('llm_pointwise("m", prompt="rankgpt")', "placeholder"),
                ('llm_listwise("")', "a model … ''"),
                ('llm_listwise("m", prompt="own")', "prompt 'own'"),
            )
        ),
        # stored answers
        *(
            (
                lambda p, b=before, a=after: read_pack(
                    Path(written(p / "pack.jsonl", f"{answer('a')}\n{answer('b').replace(b, a)}")), AnswerFile(p / "a.sqlite")
                ),
                InputError,
                f"pack.jsonl, line 2: no stored answer ({names}",
                "",
            )
            for before, after, names in (
                ('"choices":{}', '"choices":{"yes":Infinity}', "choices.yes: … finite number"),
                ('"choices":{}', '"choices":{"yes":1e999}', "choices.yes: … finite number"),
                ('"parameters":{}', '"parameters":{"top_p":[NaN]}', "parameters: … Out of range float values"),
                ('"time":0', '"time":1000000000000000', "time: … less than"),
                ('"completion_tokens":0', '"completion_tokens":-1', "completion_tokens: … greater than"),
                ('"text":"b"', '"text":"\\ud83d"', "Invalid JSON"),
                ('"text":"b"', '"text":5', "text: "),
            )
        ),
    ],
)
def test_what_is_wrong_before_a_model_is_asked(
    tmp_path: Path, call: Callable[[Path], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tmp_path), error, names, remedy)


@pytest.mark.parametrize(
    ("response", "settings", "names", "remedy"),
    [
        (Answer("no", 401), {}, "refuses: 401 no", "set OPENAI_API_KEY in the environment to a key of this service"),
        (Answer("no", 404), {}, "refuses: 404 no", "that OPENAI_BASE_URL is right (http://127.0.0.1:"),
        (Answer("late", seconds=1.0), {"timeout": 0.05, "retries": 1}, "no answer in time", ""),
    ],
)
def test_a_service_that_refuses_is_named_with_its_setting(
    serve: Serve, response: Answer, settings: dict[str, Any], names: str, remedy: str
) -> None:
    serve(lambda request, before: response)
    check_error(lambda: Model("m", **settings).ask([asked()]), FontesError, names, remedy)


def test_addresses_and_keys_that_are_missing_or_wrong_are_named_without_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MINE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    environment = "in the environment"
    check_error(lambda: LlmService("openai", "m", 1.0, 1), InputError, "openai … a key", f"set OPENAI_API_KEY {environment}")
    check_error(lambda: LlmService("mine", "m", 1.0, 1), InputError, "mine … no address", f"set MINE_BASE_URL {environment}")
    for wrong in ("ftp://host/v1", "https://user:secret@host/v1", "host"):
        monkeypatch.setenv("MINE_BASE_URL", wrong)
        message = check_error(lambda: LlmService("mine", "m", 1.0, 1), InputError, f"MINE_BASE_URL {environment} is no address")
        assert "secret" not in message


def test_local_models_name_what_a_prompt_or_model_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from .test_local import save_decoder

    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    short = Model(f"local:{save_decoder(tmp_path / 'short', positions=64)}")
    check_error(lambda: short.ask([asked("rain " * 40)]), InputError, "64 tokens; a prompt has", "take fewer words")
    plain = Model(f"local:{save_decoder(tmp_path / 'plain', template=None)}")
    check_error(lambda: plain.ask([asked("rain")]), InputError, "plain has no chat template")
    whole = Model(f"local:{save_decoder(tmp_path / 'whole')}")
    choices = Request((("user", "rain"),), max_tokens=8, choices=("abc", "aby"))
    check_error(lambda: whole.ask([choices]), InputError, "abc … aby", "different first tokens")
