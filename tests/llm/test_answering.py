"""Answers cite documents by words that stand there; what does not is left out, and measured."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each

import fontes as ft
from fontes.llm import AnswerScores, LlmAnswer, answer_of, answer_scores
from fontes.llm.answering import NOT_FOUND, parse_cited_answer

from .conftest import Serve

Fontes = Callable[..., tuple[int, str, str]]

DOCS = [
    ft.Doc("s1", "A geyser is a hot spring that erupts from time to time.", "Geysers"),
    ft.Doc("s2", "Karst springs lose their water, because the limestone is full of “caves”.", "Karst"),
]


def written(*sentences: tuple[str, list[tuple[int, str]]]) -> str:
    cited = [{"text": text, "citations": [{"document": n, "quote": quote} for n, quote in own]} for text, own in sentences]
    return json.dumps({"sentences": cited})


GOOD = written(
    ("Geysers erupt.", [(1, "a  HOT spring that erupts")]),
    ("Karst has caves.", [(2, 'limestone is full of "caves"'), (1, "Geysers A geyser is")]),
    ("Springs are blue.", [(1, "springs are blue as the sky"), (7, "a hot spring that erupts"), (2, "the")]),
)


def test_only_quotes_that_stand_in_their_document_are_kept() -> None:
    answer, repaired = parse_cited_answer(GOOD, DOCS)
    assert not repaired
    assert answer.text == "Geysers erupt. Karst has caves."
    assert answer.documents == ("s1", "s2")
    assert (answer.dropped, answer.dropped_citations) == (1, 3)
    assert [len(sentence.citations) for sentence in answer.sentences] == [1, 2]


def test_sentences_name_the_addresses_of_their_documents_before_the_full_stop() -> None:
    docs = [
        ft.Doc("s1", DOCS[0].text, DOCS[0].title, {"url": "https://a.example/1"}),
        ft.Doc("https://b.example/2", DOCS[1].text, DOCS[1].title),
    ]
    answer, _ = parse_cited_answer(GOOD, docs, "url")
    first, second = (sentence.sourced for sentence in answer.sentences)
    assert first == "Geysers erupt (source: https://a.example/1)."
    assert second == "Karst has caves (source: https://b.example/2; https://a.example/1)."
    assert answer.sourced == f"{first} {second}"
    assert answer.text == "Geysers erupt. Karst has caves."
    question = written(
        ("Do they erupt?!", [(1, "a hot spring that erupts")]),
        ("No stop", [(1, "a hot spring that erupts")]),
        ("間欠泉\u3002", [(1, "a hot spring that erupts")]),
    )
    sentences = parse_cited_answer(question, docs, "url")[0].sentences
    ends = [sentence.sourced.removeprefix(sentence.text.rstrip("?!\u3002")) for sentence in sentences]
    assert ends == [
        " (source: https://a.example/1)?!",
        " (source: https://a.example/1).",
        " (source: https://a.example/1)\u3002",
    ]
    assert "url" not in str(parse_cited_answer(GOOD, docs)[0].model_dump())


@each(
    ("text", "repaired"),
    [
        ('{"sentences": []}', False),
        ("I do not know.", True),
        ("", True),
        ('{"sentences": 5}', True),
        ("{" * 5000, True),
        ('[{"a":' * 5000, True),
        ('{"sentences": [5, null, {"text": "x"}, {"text": 5, "citations": [{}]}, {"text": "x", "citations": "y"}]}', False),
    ],
)
def test_no_answer_and_any_text_are_not_found(text: str, repaired: bool) -> None:
    answer, counted = parse_cited_answer(text, DOCS)
    assert (answer.text, answer.sentences, counted) == (NOT_FOUND, (), repaired)


def test_half_a_surrogate_pair_in_an_answer_does_not_stay_in_it() -> None:
    answer, _ = parse_cited_answer(
        written(("Caves \ud83d.", [(2, "limestone is full of \ud83d"), (1, "geyser is a hot")])), DOCS
    )
    assert answer.text == "Caves \ufffd."
    assert json.loads(answer.model_dump_json())["dropped_citations"] == 1


def test_an_answer_may_stand_in_other_text() -> None:
    answer, repaired = parse_cited_answer(f"Here {{is}} it:\n```json\n{GOOD}\n```", DOCS)
    assert (len(answer.sentences), repaired) == (2, False)


@pytest.fixture
def index(tmp_path: Path) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path / "i")


def test_a_stage_answers_topics_and_keeps_their_rankings(serve: Serve, index: ft.Index) -> None:
    server = serve(lambda request, before: GOOD if "geyser" in request["messages"][1]["content"].split("Question:")[1] else "?")
    stage = ft.pipeline('bm25() >> answer("m", k=2)', index)
    run = stage({"1": "hot geyser springs", "2": "caves", "3": "nothing"})
    assert [hit.id for hit in run["1"]] == [hit.id for hit in index.bm25()({"1": "hot geyser springs"})["1"]]
    answers = {topic_id: answer_of(topic) for topic_id, topic in run.topics.items()}
    assert answers["1"] is not None
    assert answers["1"].documents
    assert [answer.text for answer in answers.values() if answer][1:] == [NOT_FOUND, NOT_FOUND]
    assert len(server.requests) == 2  # nothing was found for the third
    assert (run.provenance["llm"]["answers"], run.provenance["llm"]["repaired"]) == (2, 1)
    assert any("[1] Geysers A geyser is" in request["messages"][1]["content"] for request in server.requests)
    explained = str(ft.pipeline('bm25() >> answer("m", k=2)', index).explain("hot geyser springs", "s1"))
    assert "citations of s1 in: Geysers erupt." in explained
    assert answer_of(ft.Topic("1", "x")) is None
    assert answer_of(ft.Topic("1", "x", metadata={"answer": {"sentences": 5}})) is None


def test_measures_of_answers(serve: Serve, index: ft.Index) -> None:
    serve(lambda request, before: GOOD)
    topics = (index.bm25() >> LlmAnswer("m"))({"1": "geyser springs", "2": "geyser springs caves"}).topics
    scores = answer_scores(
        topics,
        {"1": {"s1": 2}, "2": {"s2": 0}},
        nuggets={"1": ["geysers erupt", ["hollows", "karst has the CAVES!"], "blue"]},
        references={"1": ["Geysers erupt, Karst has caves", "no"], "2": ["Geysers erupt"]},
    )
    assert isinstance(scores, AnswerScores)
    assert scores.per_topic("citation precision") == {"1": pytest.approx(2 / 3), "2": 0.0}
    assert scores.per_topic("citation recall") == {"1": pytest.approx(2 / 3), "2": 0.0}
    assert scores["nugget recall"] == pytest.approx(2 / 3)
    assert scores.per_topic("EM") == {"1": 1.0, "2": 0.0}
    assert scores.per_topic("F1") == {"1": 1.0, "2": pytest.approx(2 * 2 / 7)}
    assert "EM                  0.5000" in str(scores)
    with pytest.raises(ft.core.InputError, match="nothing to measure answers by"):
        answer_scores(topics)


def test_ask_on_the_command_line(serve: Serve, index: ft.Index, fontes: Fontes, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(lambda request, before: GOOD if "caves" in request["messages"][1]["content"] else '{"sentences": []}')
    code, out, _ = fontes("ask", index.path, "hot geyser springs", "--llm", "m")
    assert code == 0
    assert out.splitlines()[0].strip() == "Geysers erupt. [1] Karst has caves. [2][3]"
    assert "[1] s1: “a HOT spring that erupts”" in out
    values = json.loads(fontes("ask", index.path, "hot geyser springs", "--llm", 'llm("m")', "--json", "--replay")[1])
    assert values["text"] == "Geysers erupt. Karst has caves."
    assert fontes("ask", index.path, "zebra", "--llm", "m")[1] == f"{NOT_FOUND}\n\n"
    assert fontes("ask", index.path, "geyser", "--llm", "m", "-k", "1")[1] == f"{NOT_FOUND}\n\n"
    index.add([ft.Doc("s3", "A pump.", metadata={"address": "https://c.example"})])
    code, _, err = fontes("ask", index.path, "hot geyser springs", "--llm", "m", "--source", "adress")
    assert (code, err.strip()) == (1, "fontes: answer: source: no document read has 'adress'; did you mean 'address'?")
    sourced = fontes("ask", index.path, "hot geyser springs", "--llm", "m", "--source", "address")[1]
    text = "Geysers erupt (source: s1). Karst has caves (source: s2; s1)."
    assert " ".join(sourced.splitlines()).startswith(f"{text} ")
    assert "[1] s1: “a HOT spring that erupts”" in sourced
    stage = ft.pipeline('bm25() >> answer("m", source="address")', index)
    assert stage("hot geyser springs").topics["1"].metadata["answer"]["text"] == text
    monkeypatch.delenv("FONTES_LLM", raising=False)
    code, _, err = fontes("ask", index.path, "geyser")
    assert (code, err) == (1, "fontes: name the language model that answers: --llm MODEL, or FONTES_LLM in the environment\n")


def test_a_conversation_remembers_the_answer(serve: Serve, index: ft.Index, fontes: Fontes) -> None:
    serve(lambda request, before: GOOD)
    talk = ft.Conversation(index.bm25() >> LlmAnswer("m"))
    talk.ask("hot geyser springs")
    assert talk.turns[0].answer == "Geysers erupt. Karst has caves."
    assert talk.turns[0].answer_id == "s1"
    code, out, _ = fontes("chat", index.path, "--pipeline", 'bm25() >> answer("m")', stdin="hot geyser springs\n")
    assert code == 0
    assert "Karst has caves. [2][3]" in out
    out = fontes("chat", index.path, "--pipeline", 'bm25() >> answer("m")', "--json", stdin="hot geyser springs\n")[1]
    assert json.loads(out.splitlines()[0])["answer"]["dropped"] == 1


def test_a_server_gives_the_answer_with_the_hits(serve: Serve, index: ft.Index) -> None:
    pytest.importorskip("fastapi")
    from support.serving import serving

    serve(lambda request, before: GOOD)
    with serving(index.path, pipelines={"read": 'bm25() >> answer("m")'}) as running:
        values: Any = running.get("/search", params={"q": "hot geyser springs"})
        assert values["answer"]["sentences"][0]["citations"] == [{"document": "s1", "quote": "a HOT spring that erupts"}]
        assert [hit["id"] for hit in values["hits"]]
        values = running.post("/conversations", {"text": "hot geyser springs"})
        assert values["answer"]["text"].startswith("Geysers")
        assert values["turns"][0]["answer"] == "Geysers erupt. Karst has caves."


def test_the_page_shows_the_answer_and_its_sources(serve: Serve, index: ft.Index, browser: Any) -> None:
    from support.serving import serving

    serve(lambda request, before: GOOD)
    with serving(index.path, pipelines={"read": 'bm25() >> answer("m")'}) as running:
        page = browser.new_page()
        page.goto(f"{running.address}/?q=hot+geyser+springs")
        page.wait_for_selector(".answer")
        assert page.inner_text(".answer p").strip() == "Geysers erupt. [1] Karst has caves. [2] [3]"
        assert page.inner_text(".answer .sources li >> nth=0") == "s1: a HOT spring that erupts"
        page.click(".answer sup a >> nth=1")
        page.wait_for_url("**doc=s2**")
        page.close()


def test_a_citation_of_a_document_that_is_not_in_the_prompt_is_dropped() -> None:
    for number in [-1, 0, 3]:
        text = written(("Karst has caves.", [(number, "limestone is full of caves"), (number, "a hot spring that erupts")]))
        answer, repaired = parse_cited_answer(text.replace("of caves", "of “caves”"), DOCS)
        assert (answer.text, answer.dropped, answer.dropped_citations, repaired) == (NOT_FOUND, 1, 2, False)


def test_a_quote_has_at_least_twelve_characters_of_the_document() -> None:
    for quote, cited in [("a hot spring", 1), ("hot spring a", 0), ("hot spring", 0), ("hot spring …", 0)]:
        answer, _ = parse_cited_answer(written(("x", [(1, quote)])), DOCS)
        assert len(answer.documents) == cited


def test_no_more_documents_are_read_than_asked_for(serve: Serve, index: ft.Index) -> None:
    server = serve(lambda request, before: written(("Karst has caves.", [(2, "limestone is full of “caves”")])))
    (answer,) = (answer_of(topic) for topic in (index.bm25() >> LlmAnswer("m", k=1))({"1": "springs geyser"}).topics.values())
    assert answer is not None
    assert (answer.documents, answer.dropped_citations) == ((), 1)
    assert "[2]" not in server.requests[0]["messages"][1]["content"].split("Question:")[0]


def test_an_answer_without_sentences_recalls_nothing_where_something_is_relevant(serve: Serve, index: ft.Index) -> None:
    serve(lambda request, before: '{"sentences": []}')
    topics = (index.bm25() >> LlmAnswer("m"))({"1": "geyser springs", "2": "karst springs"}).topics
    scores = answer_scores(topics, {"1": {"s1": 1}, "2": {"s2": 0}})
    assert scores.per_topic("citation recall") == {"1": 0.0, "2": 1.0}
    assert scores.per_topic("citation precision") == {"1": 1.0, "2": 1.0}
    graded = answer_scores(topics, {"1": {"s1": 1}}, rel=2)
    assert graded.per_topic("citation recall") == {"1": 1.0}
