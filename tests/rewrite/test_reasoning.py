"""Queries with the reasoning of an agent."""

from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes import Topic, Topics
from fontes.core import ParameterError, PipelineError
from fontes.core.expression import pipeline
from fontes.lexical.language import QueryLanguage

REASONED = Topic("1", " pumps ", metadata={"reasoning": "the flood\n\tmust be {explained}"})


def text(stage: Any, topic: Topic) -> str:
    return str(stage(Topics([topic]))[topic.id].text)


@pytest.mark.parametrize(
    ("template", "query"),
    [
        ("{reasoning} {query}", "the flood must be {explained} pumps"),
        ("{query} {query} {reasoning}", "pumps pumps the flood must be {explained}"),
        ("reason: {reasoning}\nquery: {{{query}}}", "reason: the flood must be {explained}\nquery: {pumps}"),
        ("{reasoning}", "the flood must be {explained}"),
    ],
)
def test_reasoning_and_query_fill_the_template(template: str, query: str) -> None:
    assert text(ft.rewrite.WithReasoning(template), REASONED) == query
    assert text(pipeline(f"with_reasoning({template!r})"), REASONED) == query


@pytest.mark.parametrize("metadata", [{}, {"reasoning": None}, {"reasoning": " \n"}, {"reason": "a"}])
def test_without_reasoning_a_topic_stays_as_it_is(metadata: dict[str, Any]) -> None:
    topic = Topic("1", " pumps ", weights={"pump": 2.0}, metadata=metadata)
    assert ft.rewrite.WithReasoning()(Topics([topic]))["1"] is topic


def test_a_structured_query_stays_as_it_is(tmp_path: Path) -> None:
    index = ft.Index.build([("a", "pumps of the flood"), ("b", "pumps")], tmp_path / "i", threads=1)
    typed = Topic("1", "+flood pumps", metadata={"reasoning": "about pumps"})
    assert (QueryLanguage(index) >> ft.rewrite.WithReasoning() >> index.bm25())(typed)["1"].ids == ["a"]


def test_the_topic_before_is_the_origin_and_its_weights_go() -> None:
    topic = Topic("1", "pumps", "n", "d", weights={"pump": 2.0}, metadata={"reasoning": "flood", "label": "x"})
    rewritten = ft.rewrite.WithReasoning()(topic)["1"]
    assert (rewritten.origin, rewritten.weights) == (topic, None)
    assert (rewritten.narrative, rewritten.description, rewritten.metadata) == ("n", "d", topic.metadata)
    assert text(ft.rewrite.WithReasoning() >> ft.rewrite.Raw(), topic) == "pumps"


def test_a_wrong_template_of_an_expression_is_an_error_before_any_search() -> None:
    with pytest.raises((ParameterError, PipelineError), match="placeholder besides"):
        pipeline("with_reasoning('{x}')")


def test_reasoning_is_read_from_a_file_of_topics(tmp_path: Path) -> None:
    file = tmp_path / "topics.jsonl"
    file.write_text('{"_id": "1", "text": "pumps", "metadata": {"reasoning": "flood"}}\n', encoding="utf-8")
    assert text(ft.rewrite.WithReasoning(), Topics.read(file)["1"]) == "flood pumps"
