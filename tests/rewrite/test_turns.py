"""Rewriters of what a conversation carries."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.each import each
from support.odd_conversations import ODD, SIXTY, conversation

import fontes as ft
from fontes import Topic, Topics, Turn
from fontes.core.errors import InputWarning
from fontes.core.expression import pipeline

TURNS = (
    Turn("What is throat cancer?", "What is throat cancer?", "What is throat cancer?"),
    Turn("Is it treatable?", "Is throat cancer treatable?", "Is throat cancer treatable?", "Yes, when found early.", "d1"),
    Turn("What about lungs?", "Is lung cancer treatable?", "What about lung cancer?"),
    Turn("And its symptoms?", "What are the symptoms of lung cancer?", ""),
)
TOPICS = Topics(Topic(f"1_{n}", TURNS[n - 1].text, turns=TURNS[:n]) for n in range(1, 5))


def texts(topics: Topics) -> list[str]:
    return [topic.text for topic in topics.values()]


def test_raw_gives_the_utterance_of_the_last_turn() -> None:
    assert texts(ft.rewrite.Raw()(TOPICS)) == [turn.text for turn in TURNS]


def test_raw_gives_a_rewritten_topic_its_utterance_back() -> None:
    assert texts((ft.rewrite.Manual() >> ft.rewrite.LastTurns() >> ft.rewrite.Raw())(TOPICS)) == [turn.text for turn in TURNS]


def test_raw_gives_a_rewritten_topic_without_turns_the_text_it_had_before() -> None:
    first = Topic("1", "the ferry")
    third = Topic("1", "c", origin=Topic("1", "b", origin=first))
    assert texts(ft.rewrite.Raw()(third)) == ["the ferry"]


def test_manual_and_automatic_give_what_the_last_turn_carries() -> None:
    assert texts(ft.rewrite.Manual()(TOPICS)) == [turn.manual for turn in TURNS]
    first_three = Topics(list(TOPICS.values())[:3])
    assert texts(ft.rewrite.Automatic()(first_three)) == [turn.automatic for turn in TURNS[:3]]


def test_a_topic_without_the_rewrite_takes_the_raw_utterance_where_that_is_asked_for() -> None:
    assert texts(ft.rewrite.Automatic(missing="raw")(TOPICS))[3] == "And its symptoms?"
    assert texts(ft.rewrite.Manual(missing="raw")({"7": "storms"})) == ["storms"]


def test_last_turns_puts_the_last_k_utterances_before_the_turn() -> None:
    assert texts(ft.rewrite.LastTurns(k=2)(TOPICS)) == [
        "What is throat cancer?",
        "What is throat cancer? Is it treatable?",
        "What is throat cancer? Is it treatable? What about lungs?",
        "Is it treatable? What about lungs? And its symptoms?",
    ]


def test_last_turns_puts_the_first_turn_before_them_once() -> None:
    assert texts(ft.rewrite.LastTurns(k=1, first=True)(TOPICS)) == [
        "What is throat cancer?",
        "What is throat cancer? Is it treatable?",
        "What is throat cancer? Is it treatable? What about lungs?",
        "What is throat cancer? What about lungs? And its symptoms?",
    ]
    assert texts(ft.rewrite.LastTurns(k=0, first=True)(TOPICS))[2:] == [
        "What is throat cancer? What about lungs?",
        "What is throat cancer? And its symptoms?",
    ]
    assert texts(ft.rewrite.LastTurns(k=0)(TOPICS)) == [turn.text for turn in TURNS]


@each("stage", [ft.rewrite.Raw(), ft.rewrite.Manual("raw"), ft.rewrite.Automatic("raw"), ft.rewrite.LastTurns()])
def test_a_rewritten_topic_keeps_all_but_its_text_and_weights(stage: ft.Stage[Topics, Topics]) -> None:
    given = replace(TOPICS["1_3"], weights={"lung": 2.0}, narrative="n", description="d")
    found = stage(given)["1_3"]
    assert found.origin is given
    assert found.weights is None
    assert (found.turns, found.narrative, found.description) == (given.turns, "n", "d")


def test_topics_without_turns_are_told_to_be_searched_without_each_other(recwarn: pytest.WarningsRecorder) -> None:
    alone = ft.rewrite.LastTurns()({"1_1": "what feeds a geyser?"})
    ft.rewrite.LastTurns()([Topic("1_1", "what feeds it?", turns=(Turn("what feeds it?"),)), Topic("2", "why?")])
    assert (alone["1_1"].text, len(recwarn)) == ("what feeds a geyser?", 0)
    with pytest.warns(InputWarning, match="^none of the 2 topics has turns"):
        ft.rewrite.LastTurns()({"1_1": "what feeds a geyser?", "1_2": "how old is it?"})


def test_last_turns_of_odd_conversations() -> None:
    found = {topic.id: topic.text for topic in ft.rewrite.LastTurns(k=2)(ODD).values()}
    assert found == {
        "empty": "Where is the lighthouse?",
        "blank": "Where is the lighthouse?",
        "after-empty": "Where is the lighthouse?",
        "no-passages": "Where is the lighthouse? Who built it?",
        "sixty": " ".join(SIXTY[-3:]),
        "czech": "Kdy byl postaven Karlův most? Kdo ho nechal postavit?",
        "why": "why?",
        "why-why": "why? why? why?",
        "no-turns": "Where is the lighthouse?",
    }


def test_raw_and_fallbacks_of_odd_conversations_are_what_was_typed() -> None:
    typed = [topic.text for topic in ODD.values()]
    for stage in (ft.rewrite.Raw(), ft.rewrite.Manual("raw"), ft.rewrite.Automatic("raw")):
        assert texts(stage(ODD)) == typed


def test_a_blank_rewrite_counts_as_none() -> None:
    topic = conversation("1", "Who?", manual="  ")
    assert texts(ft.rewrite.Manual("raw")(topic)) == ["Who?"]


def test_rewritten_turns_are_searched(tmp_path: Path) -> None:
    index = ft.Index.build([("a", "throat cancer"), ("b", "lung cancer symptoms"), ("c", "weather")], tmp_path / "i")
    pipeline = ft.rewrite.Manual() >> index.bm25()
    assert pipeline(TOPICS)["1_4"][0].id == "b"
    assert pipeline(TOPICS).topics["1_4"].origin == TOPICS["1_4"]


@each(("year", "automatic"), [("2019", 0), ("2020", 216), ("2021", 239), ("2022", 205)])
def test_every_turn_of_cast_has_a_manual_rewrite(shared: Path, year: str, automatic: int) -> None:
    topics = ft.read_topics(shared / f"cast{year}" / "turns.jsonl")
    assert texts(ft.rewrite.Manual()(topics)) == [topic.turns[-1].manual for topic in topics.values()]
    fallback = ft.rewrite.Automatic("raw")(topics)
    carried = sum(topic.turns[-1].automatic == topic.text for topic in fallback.values())
    assert carried == automatic


TEXTS = {
    "raw()": ft.rewrite.Raw(),
    "manual()": ft.rewrite.Manual(),
    'automatic(missing="raw")': ft.rewrite.Automatic("raw"),
    "last_turns(k=2, first=True)": ft.rewrite.LastTurns(2, first=True),
    "canard_t5()": ft.CanardT5(),
    'canard_t5("models/t5", num_beams=4)': ft.CanardT5("models/t5", num_beams=4, device="cpu", batch_size=2),
    'quretec("models/terms")': ft.QuReTeC("models/terms", device="cpu"),
    'quretec("models/terms", threshold=0.3, precision="float32")': ft.QuReTeC("models/terms", 0, 0.3, precision="float32"),
    'raw() >> quretec("uva-irlab/quretec")': ft.rewrite.Raw() >> ft.QuReTeC("uva-irlab/quretec"),
}


def test_a_rewriter_is_written_as_the_text_that_makes_it_again() -> None:
    for text in TEXTS:
        assert repr(TEXTS[text]) == TEXTS[text].text == text
        assert pipeline(text).text == text


def test_rewriters_over_an_index_are_written_without_it_and_hqe_with_its_tagger(tmp_path: Path) -> None:
    index = ft.Index.build([{"_id": "1", "text": "harbour"}], tmp_path / "index")
    weighted, hqe = ft.rewrite.WeightedTurns(index, weight=0.5), ft.HQE(index, eta=5.0)
    assert weighted.text == "weighted_turns(weight=0.5)"
    assert hqe.text == 'hqe(eta=5.0, tagger="en_core_web_sm")'
    assert (ft.HQE(index, tagger="none") >> index.bm25()).text.startswith('hqe(tagger="none") >> bm25(')
    for stage in (weighted, hqe, hqe >> index.bm25(k=10)):
        assert pipeline(stage.text, index) == stage
