"""Questions that a model writes of documents, and the training examples that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Fontes
from support.model_server import Answer

import fontes as ft
from fontes.core import Doc, InputError
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


def test_examples_stand_before_the_document(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda request, before: "Why?")
    file = tmp_path / "examples.jsonl"
    file.write_text('{"query": "hot spring", "passage": "water\\nthat is {hot}"}\n{"query": "cave", "passage": "a hole"}\n')
    writer = part(f"llm_questions('m', examples={str(file)!r})")
    assert writer.questions([CAVE]) == [["Why?"]]
    examples = "Document: water that is {hot}\nQuestions:\nhot spring\n\nDocument: a hole\nQuestions:\ncave\n\n"
    assert prompt(server.requests[0]).endswith(f"{examples}Document: Rain makes caves.\n\nQuestions:")
    key = writer.key()
    file.write_text('{"query": "cave", "passage": "a hole in limestone"}')
    assert writer.key() != key
    file.write_text("\n")
    with pytest.raises(InputError, match="there are no examples; write lines such as"):
        writer.questions([CAVE])


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
