"""Questions that a model writes of documents, and the training examples that they make."""

from pathlib import Path
from typing import Any

from conftest import Fontes
from support.model_server import Answer

import fontes as ft
from fontes.core import Doc
from fontes.core.expression import part
from fontes.llm import LlmQuestions
from fontes.train import Examples

from .conftest import Serve

GEYSER, CAVE = Doc("g", "It erupts [1].", "Geysers"), Doc("c", "Rain makes caves.")


def prompt(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


def test_a_document_gets_its_first_different_questions(serve: Serve) -> None:
    server = serve(
        lambda request, before: (
            '<think>?</think>1. What erupts?\n- "What erupts?"\n\nQuestion: Why?\nmore' if "Geysers" in prompt(request) else ""
        )
    )
    writer = LlmQuestions("m", words=3)
    assert writer.questions([GEYSER, Doc("empty", " "), CAVE], 3) == [["What erupts?", "Why?"], [], []]
    asked = sorted(map(prompt, server.requests))
    assert [text.partition("Document: ")[2] for text in asked] == [
        "Geysers It erupts\n\nQuestions:",
        "Rain makes caves.\n\nQuestions:",
    ]
    assert all(text.startswith("Write at most 3, one a line") for text in asked)
    assert writer.questions([GEYSER], 3) == [["What erupts?", "Why?"]]
    assert len(server.requests) == 2


def test_examples_are_earlier_turns(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda request, before: "Why?")
    file = tmp_path / "examples.jsonl"
    file.write_text('{"query": "hot spring", "passage": "water\\nthat is {hot}"}\n{"query": "cave", "passage": "a hole"}\n')
    writer = part(f"llm_questions('m', examples={str(file)!r})")
    assert writer.questions([CAVE]) == [["Why?"]]
    (system, *turns) = server.requests[0]["messages"]
    assert system["role"] == "system"
    ends = [(turn["role"], turn["content"].rpartition("Document: ")[2]) for turn in turns]
    assert ends == [
        ("user", "water that is {hot}\n\nQuestions:"),
        ("assistant", "hot spring"),
        ("user", "a hole\n\nQuestions:"),
        ("assistant", "cave"),
        ("user", "Rain makes caves.\n\nQuestions:"),
    ]
    assert len({turn["content"].partition("Document: ")[0] for turn in turns if turn["role"] == "user"}) == 1
    key = writer.key()
    file.write_text('{"query": "cave", "passage": "a hole in limestone"}')
    assert writer.key() != key


def test_a_prompt_of_ones_own_may_have_the_examples_in_one_place_or_none(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda request, before: "Why?")
    file, own = tmp_path / "examples.jsonl", tmp_path / "own.md"
    file.write_text('{"query": "cave", "passage": "a hole"}\n')
    own.write_text("## user\n\n{examples}\n\nDocument: {passage}")
    LlmQuestions("m", prompt=str(own), examples=str(file)).questions([CAVE])
    assert prompt(server.requests[0]) == "Document: a hole\nQuestions:\ncave\n\nDocument: Rain makes caves."


def test_a_question_that_is_cut_off_is_left_out(serve: Serve) -> None:
    text = {True: "Why?\nWhat is the reason of", False: "What is"}
    serve(lambda request, before: Answer(text["Geysers" in prompt(request)], finish="length"))
    assert LlmQuestions("m").questions([GEYSER, CAVE], 3) == [["Why?"], []]


def test_fontes_mine_makes_examples_of_questions_that_return_their_document(
    serve: Serve, tmp_path: Path, fontes: Fontes
) -> None:
    questions = {"snow": "snow in the alps?", "rain": "snow?", "weather": ""}

    def script(request: dict[str, Any], before: int) -> Answer | str:
        return next(question for word, question in questions.items() if f"Document: {word}" in prompt(request))

    server = serve(script)
    ft.Index.build([("a", "snow in the alps"), ("b", "rain in spring"), ("c", "weather of the alps")], tmp_path / "i")
    options = ["--from", 'llm_questions("m")', "-o", tmp_path / "e.jsonl"]
    code, printed, _ = fontes("mine", tmp_path / "i", *options, "--round-trip", "bm25()", "--pipeline", "bm25()")
    assert code == 0
    assert printed.splitlines()[:3] == [
        "3 documents: 1 group of 1, 1 negative (1.00 a group: 1 with 1)",
        "left out: 1 document without a question",
        "left out: 1 query whose document the round trip does not return",
    ]
    (example,) = Examples.read(tmp_path / "e.jsonl")
    assert (example.topic, example.query, example.positive.text) == ("a#1", "snow in the alps?", "snow in the alps")
    assert [negative.id for negative in example.negatives] == ["c"]
    asked = len(server.requests)
    assert fontes("mine", tmp_path / "i", *options, "--replay")[0] == 0
    assert (len(Examples.read(tmp_path / "e.jsonl")), len(server.requests)) == (2, asked)
