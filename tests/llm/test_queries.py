"""Queries that a model writes; and the organisers' rewrites of CAsT, replayed as if a model had written them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hashed_encoder import Hashed
from support.model_server import Answer

import fontes as ft
from fontes.llm import AnswerFile, Hyde, LlmKeywords, LlmRewrite, Query2Doc, StoredAnswer, read_pack, write_pack

from .conftest import Serve

TURNS = (ft.Turn("What is a geyser?", answer="A hot [1] spring.\n\nIt erupts."), ft.Turn("Where are they?"))


def prompt(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


@pytest.mark.parametrize(
    "answer",
    [
        "Where are geysers?",
        "Rewrite: Where are geysers?\n\nI resolved 'they'.",
        '"Where are geysers?"',
        "<think>they?</think>\nWhere are geysers?",
    ],
)
def test_a_turn_becomes_a_question_that_stands_alone(serve: Serve, answer: str) -> None:
    server = serve(lambda request, before: answer)
    topics = LlmRewrite("m")([ft.Topic("1_2", "Where are they?", turns=TURNS), ft.Topic("2", "no turns")])
    assert [topic.text for topic in topics.values()] == ["Where are geysers?", "no turns"]
    assert "Q: What is a geyser?\nA: A hot (1) spring. It erupts.\n\nQuestion: Where are they?" in prompt(server.requests[0])
    assert topics["1_2"].origin is not None
    (fact,) = topics["1_2"].metadata["llm"]
    assert (fact["answers"], fact["prompt_tokens"], len(fact["sums"][0])) == (1, 10, 64)


def test_an_empty_answer_leaves_what_was_typed_and_is_counted(serve: Serve) -> None:
    serve(lambda request, before: Answer(None))
    topic = LlmRewrite("m")([ft.Topic("1_2", "x", turns=TURNS)])["1_2"]
    assert topic.text == "Where are they?"
    assert topic.metadata["llm"][0]["repaired"] == 1


@pytest.mark.slow
def test_hyde_searches_with_the_mean_of_the_vectors(serve: Serve, tmp_path: Path) -> None:
    answers = ["Passage: hot springs erupt", "limestone caves\nand rivers"]
    server = serve(lambda request, before: answers[min(before, 1)])
    encoder = Hashed()
    index = ft.Index.build([("a", "hot springs erupt often"), ("b", "limestone caves"), ("c", "snow")], tmp_path / "i")
    index.encode(encoder)
    stage = Hyde(ft.llm.Model("m", max_concurrency=1), k=2) >> index.dense(encoder)
    run = stage({"1": "geysers"})
    vectors = [encoder.encode_queries(["geysers"])[0]]
    vectors += [encoder.encode_documents([ft.Doc("", text)])[0] for text in ("hot springs erupt", "limestone caves and rivers")]
    expected = np.mean(vectors, axis=0) @ encoder.encode_documents([ft.Doc("", "hot springs erupt often")])[0]
    assert next(hit.score for hit in run["1"] if hit.id == "a") == pytest.approx(expected, abs=1e-5)
    assert stage.search("geysers", 1)[0].score == run["1"][0].score
    assert stage.explain("geysers", "a").value == pytest.approx(expected, abs=1e-5)
    assert [request["temperature"] for request in server.requests] == [0.7, 0.7]
    assert run["1"].topic.text == "geysers hot springs erupt limestone caves and rivers"


def test_query2doc_counts_the_query_five_times(serve: Serve, tmp_path: Path) -> None:
    serve(lambda request, before: "a spring that erupts")
    topic = Query2Doc("m")({"1": "hot geyser"})["1"]
    assert topic.text == "hot geyser " * 5 + "a spring that erupts"
    index = ft.Index.build([("a", "hot water"), ("b", "a spring")], tmp_path / "i")
    weighted = ft.Topic("1", "", weights={"hot": 5, "geyser": 5, "spring": 1, "erupt": 1})
    one, other = index.bm25()([topic]), index.bm25()([weighted])
    assert [hit.score for hit in one["1"]] == [hit.score for hit in other["1"]]


def test_examples_stand_before_the_query_as_in_the_paper(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda request, before: "it erupts")
    file = tmp_path / "examples.jsonl"
    file.write_text('{"query": "hot spring", "passage": "water\\nthat is {hot}"}\n\n{"query": "cave", "passage": "a hole"}\n')
    stage = Query2Doc("m", examples=str(file))
    stage({"1": "geyser"})
    Query2Doc("m")({"1": "geyser"})
    instruction, query = "Write a passage that answers the given query:\n\n", "Query: geyser\nPassage:"
    examples = "Query: hot spring\nPassage: water that is {hot}\n\nQuery: cave\nPassage: a hole\n\n"
    assert [prompt(request) for request in server.requests] == [instruction + examples + query, instruction + query]
    key = stage.key()
    file.write_text('{"query": "cave", "passage": "a hole in limestone"}')
    assert stage.key() != key


def test_keywords_of_a_narrative(serve: Serve) -> None:
    serve(lambda request, before: "1. flooded mines\n- pump failure, strikes\n\n2) flooded mines\nmore\nthan that")
    topics = LlmKeywords("m", n=4)(
        [ft.Topic("1", "closing of the mine", narrative="Relevant are reasons."), ft.Topic("2", "x")]
    )
    assert topics["1"].text == "closing of the mine flooded mines pump failure strikes more"
    assert topics["2"].text == "x"


def test_subquestions_are_searched_and_fused(serve: Serve, tmp_path: Path) -> None:
    serve(lambda request, before: "1. Where is snow?\n2. Where is rain?" if "weather" in prompt(request) else "")
    index = ft.Index.build([("a", "snow in the alps"), ("b", "rain in spring"), ("c", "weather of the alps")], tmp_path / "i")
    run = ft.pipeline('subquestions("m", bm25(), n=2)', index)({"1": "weather", "2": "alps"})
    parts = [index.bm25()({"1": text}) for text in ("weather", "Where is snow?", "Where is rain?")]
    expected = ft.fuse(*parts)
    assert [(hit.id, hit.score) for hit in run["1"]] == [(hit.id, hit.score) for hit in expected["1"]]
    assert [hit.id for hit in run["2"]] == [hit.id for hit in index.bm25()({"2": "alps"})["2"]]
    assert (run.provenance["llm"]["answers"], run.provenance["llm"]["repaired"]) == (2, 1)
    assert run["1"].docs()[0].id == run["1"][0].id


def given(stage: LlmRewrite, topics: ft.Topics, texts: dict[str, str]) -> list[StoredAnswer]:
    """Answers as if the model of a stage had given these texts."""
    answers = []
    for topic in topics.values():
        for request in stage.requests(topic):
            parameters = stage.llm.parameters_of(request)
            answers.append(
                StoredAnswer(
                    service="openai",
                    model="m",
                    parameters=parameters,
                    sample=0,
                    messages=request.messages,
                    text=texts[topic.id],
                )
            )
    return answers


@pytest.mark.parametrize("kind", ["manual", pytest.param("automatic", marks=pytest.mark.slow)])
def test_rewrites_of_the_organisers_of_cast_replayed_give_their_run(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    topics = ft.read_topics(shared / "cast2021/turns.jsonl")
    stage = LlmRewrite("m")
    pack = tmp_path / "rewrites.jsonl.gz"
    texts = {topic.id: getattr(topic.turns[-1], kind) for topic in topics.values()}
    assert write_pack(given(stage, topics, texts), pack) == len(topics)
    index = ft.Index.build(shared / "cast2021/corpus.jsonl", tmp_path / "i")
    assert read_pack(pack, AnswerFile()) == (len(topics), len(topics))
    assert read_pack(pack, AnswerFile()) == (len(topics), 0)
    bm25 = index.bm25(k1=4.46, b=0.82)
    with ft.work(replay=True):
        replayed = (stage >> bm25)(topics)
    direct = (ft.pipeline(f"{kind}()") >> bm25)(topics)
    assert {t: topic.text for t, topic in replayed.topics.items()} == {t: topic.text for t, topic in direct.topics.items()}
    assert replayed.bounds.tolist() == direct.bounds.tolist()
    assert replayed.scores.tolist() == direct.scores.tolist()
    assert replayed.provenance["llm"]["answers"] == len(topics)
    qrels = ft.read_qrels(shared / "cast2021/qrels/test_docs.tsv")
    values = [
        dict(ft.evaluate(ft.to_documents("max", separator="-")(run), qrels, ["nDCG@3", "AP"])) for run in (replayed, direct)
    ]
    assert values[0] == values[1]
