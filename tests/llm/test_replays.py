"""Replays that ask no model, packs that change no own answer, budgets, pauses and retries: limits that cost money or trust."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from support.model_server import Answer

import fontes as ft
from fontes.llm import AnswerFile, Model, Request, StoredAnswer, read_pack, write_pack

from .conftest import Serve

Fontes = Callable[..., tuple[int, str, str]]
COST = 1 + 16 + 16 + 8  # most tokens of a call with a prompt of one byte: prompt, message, chat template, answer


def asked(text: str, **more: Any) -> Request:
    return Request((("user", text),), **{"max_tokens": 8, **more})


def stored(prompt: str, text: str) -> StoredAnswer:
    request = asked(prompt)
    return StoredAnswer(
        service="openai",
        model="m",
        parameters=Model("m").parameters_of(request),
        sample=0,
        messages=request.messages,
        text=text,
    )


def test_a_command_with_replay_asks_no_model(serve: Serve, tmp_path: Path, fontes: Fontes) -> None:
    server = serve(lambda request, before: "[2] > [1]")
    ft.Index.build([("a", "rain"), ("b", "rain"), ("c", "snow"), ("d", "snow")], tmp_path / "i")
    command = ["search", tmp_path / "i", "--pipeline", 'bm25() >> llm_listwise("m")', "-k", "2"]
    assert fontes(*command, "rain")[0] == 0
    assert fontes(*command, "rain", "--replay")[0] == 0
    for arguments in ([*command, "snow", "--replay"], ["--replay", *command, "snow"]):
        code, _, err = fontes(*arguments)
        assert (code, "are not stored, and a replay asks no model" in err) == (1, True)
    assert len(server.requests) == 1


@pytest.fixture
def answers(tmp_path: Path) -> AnswerFile:
    return AnswerFile(tmp_path / "answers.sqlite")


def test_a_pack_replaces_no_own_answer(answers: AnswerFile, tmp_path: Path) -> None:
    pack = tmp_path / "pack.jsonl"
    write_pack([stored("a", "theirs"), stored("b", "theirs")], pack)
    answers.write([stored("a", "mine")])
    assert read_pack(pack, answers) == (2, 1)
    assert {one.messages[0][1]: one.text for one in answers.all()} == {"a": "mine", "b": "theirs"}


def test_the_new_answers_of_a_pack_are_counted_in_all_its_batches(
    answers: AnswerFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fontes.llm.answers.PACK_BATCH", 2)
    pack = tmp_path / "pack.jsonl"
    write_pack([stored(str(n), "x") for n in range(5)], pack)
    answers.write([stored("3", "x")])
    assert read_pack(pack, answers) == (5, 4)
    assert len(list(answers.all())) == 5


def test_thoughts_before_an_answer_are_no_part_of_it() -> None:
    for text, final in [
        ("<think>first [4]</think>\n[2]", "[2]"),
        ("<think>no end [4] > [3]", ""),
        ("<think>a</think><think>b</think>", "<think>b</think>"),
    ]:
        assert stored("a", text).final_text == final


def test_a_call_without_an_answer_costs_its_most_and_a_refused_one_nothing(serve: Serve) -> None:
    def script(request: dict[str, Any], before: int) -> Answer:
        return Answer("no", 401) if request["messages"][0]["content"] == "r" else Answer("late", seconds=0.3)

    serve(script)
    model = Model("m", timeout=0.05, retries=0)
    with ft.work(tokens=2 * COST - 1):
        for _ in range(3):
            with pytest.raises(ft.FontesError, match="refuses: 401"):
                model.ask([asked("r")])
        with pytest.raises(ft.FontesError, match="no answer in time"):
            model.ask([asked("a")])
        with pytest.raises(ft.FontesError, match=f"leaves {COST - 1}, and a call may take {COST}"):
            model.ask([asked("b")])


def test_the_last_token_of_a_budget_is_spent(serve: Serve) -> None:
    server = serve(lambda request, before: Answer("x", usage=(COST - 8, 8)))
    with ft.work(tokens=2 * COST):
        Model("m", max_concurrency=1).ask([asked("a"), asked("b")])
        with pytest.raises(ft.FontesError, match="leaves 0, and a call may take"):
            Model("m").ask([asked("c")])
    assert len(server.requests) == 2


@pytest.mark.parametrize("form", [str, lambda seconds: format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), True)])
def test_a_long_pause_is_an_error_whether_a_number_or_a_date(serve: Serve, form: Callable[[int], str]) -> None:
    server = serve(lambda request, before: Answer("", 429, {"retry-after": form(700)}))
    with pytest.raises(ft.FontesError, match=r"wants a pause of (700|69\d) seconds; run it again then"):
        Model("m", retries=0).ask([asked("a")])
    assert len(server.requests) == 1


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2015 07:28:00 GMT", "-5", "nan", "soon", "inf"])
def test_a_pause_that_is_over_or_none_is_no_pause(serve: Serve, value: str) -> None:
    serve(lambda request, before: "fine" if before else Answer("", 429, {"retry-after": value}))
    assert Model("m").ask([asked("a")])[0].text == "fine"


def test_calls_that_wait_for_another_try_end_with_the_first_error(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.llm.service.FIRST_WAIT", 0.4)
    waiting = threading.Event()

    def script(request: dict[str, Any], before: int) -> Answer:
        if request["messages"][0]["content"] == "a":
            waiting.set()
            return Answer("overloaded", 503)
        waiting.wait(10)
        return Answer("no", 401)

    server = serve(script)
    with pytest.raises(ft.FontesError, match="refuses: 401"):
        Model("m", retries=2, max_concurrency=2).ask([asked("a"), asked("b")])
    assert len(server.requests) == 2


TURNS = (
    ft.Turn("What is a geyser?", answer="A spring."),
    ft.Turn("And karst?", answer="Limestone."),
    ft.Turn("Where are they?"),
)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_rewrite_reads_so_many_earlier_answers(serve: Serve, count: int) -> None:
    server = serve(lambda request, before: "Where?")
    ft.llm.LlmRewrite("m", answers=count)([ft.Topic("1_3", "Where are they?", turns=TURNS)])
    prompt = server.requests[0]["messages"][-1]["content"].partition("Question: Where")[0]
    every = ["A: A spring.", "A: Limestone."]
    assert [text for text in every if text in prompt] == every[2 - count :]


def test_samples_without_a_text_are_counted(serve: Serve) -> None:
    texts = iter(["", "hot springs erupt", ""])
    server = serve(lambda request, before: Answer(next(texts, "")))
    stage = ft.llm.Hyde(Model("m", max_concurrency=1), k=3)
    topic = stage({"1": "geysers"})["1"]
    assert topic.text == "geysers hot springs erupt"
    assert topic.metadata["llm"][0]["repaired"] == 2
    assert [request["temperature"] for request in server.requests] == [0.7] * 3
    empty = stage({"1": "caves"})["1"]
    assert (empty.text, empty.metadata["llm"][0]["repaired"]) == ("caves", 3)
    assert "hypothetical" not in json.dumps(empty.metadata)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 529])
def test_a_failure_in_passing_is_tried_again(serve: Serve, status: int) -> None:
    server = serve(lambda request, before: "fine" if before else Answer("not now", status))
    assert Model("m").ask([asked("a")])[0].text == "fine"
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 403, 413, 422])
def test_a_refusal_is_final(serve: Serve, status: int) -> None:
    server = serve(lambda request, before: Answer("never", status))
    with pytest.raises(ft.FontesError, match=f"refuses: {status} never"):
        Model("m").ask([asked("a")])
    assert len(server.requests) == 1


def test_the_key_of_a_model_is_of_what_changes_its_answers() -> None:
    model = Model("m")
    same = (model.with_(max_concurrency=1), model.with_(timeout=1.0), model.with_(retries=0), model.with_(batch_size=2))
    others = (model.with_(seed=1), model.with_(parameters={"top_p": 0.5}), Model("n"), Model("m", service="vllm"))
    assert {one.key() for one in same} == {model.key()}
    assert len({model.key(), *(one.key() for one in others)}) == 5


def test_keywords_stand_alone_without_the_title(serve: Serve) -> None:
    serve(lambda request, before: "flooded mines\nstrikes")
    topic = ft.Topic("1", "closing of the mine", narrative="Relevant are reasons.")
    assert ft.llm.LlmKeywords("m", title=False)([topic])["1"].text == "flooded mines strikes"


def test_the_runs_of_questions_are_fused_by_the_constant(serve: Serve, tmp_path: Path) -> None:
    serve(lambda request, before: "Where is snow?")
    index = ft.Index.build([("a", "snow"), ("b", "rain"), ("c", "weather")], tmp_path / "i")
    run = ft.pipeline('subquestions("m", bm25(), n=1, k=3)', index)({"1": "weather"})
    assert run["1"].scores.tolist() == [0.25, 0.25]


def test_prompts_have_so_many_words_of_a_document(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda request, before: "?")
    index = ft.Index.build([("a", "rain one two three"), ("b", "rain one two four")], tmp_path / "i")
    run = index.bm25()({"1": "rain"})
    ft.llm.LlmJudge("m", words=2).judge(run)
    for stage in (
        'answer("m", words=2)',
        'llm_listwise("m", words=2)',
        'llm_setwise("m", words=2)',
        'llm_pointwise("m", words=2)',
    ):
        ft.pipeline(stage, index)(run)
    prompts = [json.dumps(request["messages"]) for request in server.requests]
    assert len(prompts) == 5  # a prompt of both documents, or equal ones
    assert all("rain one" in prompt and "rain one two" not in prompt for prompt in prompts)


def test_a_run_after_two_models_names_the_answers_of_both(serve: Serve, tmp_path: Path) -> None:
    serve(lambda request, before: "[2] > [1]" if len(request["messages"]) > 1 else "rain in may")
    index = ft.Index.build([("a", "rain"), ("b", "rain")], tmp_path / "i")
    run = ft.pipeline('query2doc("m") >> bm25() >> llm_listwise("n")', index)({"1": "rain"})
    assert [fact["models"] for fact in run.topics["1"].metadata["llm"]] == [["openai m"], ["openai n"]]
    facts = run.provenance["llm"]
    assert (facts["answers"], len(facts["sums"]), sorted(facts["models"])) == (2, 2, ["openai m", "openai n"])
