"""Conversations written in the form of TREC CAsT are read back as they were."""

from dataclasses import replace
from pathlib import Path

from support.each import each

import fontes as ft
from fontes import Topic, Topics, Turn
from fontes.formats.cast import cast_conversations

FILES = ["cast2019/turns.jsonl", "cast2020/turns.jsonl", "cast2021/turns.jsonl", "cast2022/turns.jsonl"]


def again(topics: object, tmp_path: Path) -> Topics:
    ft.write_topics(topics, tmp_path / "topics.json", format="cast")
    return ft.read_topics(tmp_path / "topics.json")


@each("name", [*FILES, "cast2022/topics_tree.json"])
def test_every_file_of_the_track_comes_back_with_all_turns(shared: Path, tmp_path: Path, name: str) -> None:
    topics = ft.read_topics(shared / name)
    written = again(topics, tmp_path)
    assert dict(written) == dict(topics)
    if "2022" not in name:
        assert list(written) == list(topics)


def test_the_conversations_of_the_harbour_come_back(tmp_path: Path) -> None:
    topics = ft.datasets.samples.harbour.conversations.topics()
    written = again(topics, tmp_path)
    assert list(written.values()) == list(topics.values())


def test_a_flat_conversation_is_written_in_the_fields_of_the_track() -> None:
    first = Turn("Who?", manual="Who was it?", automatic="Who were they?", answer="Ned.", answer_id="d1")
    second = Turn("Why?")
    topics = [Topic("7_1", "Who?", description="Of Ned", turns=(first,)), Topic("7_2", "Why?", turns=(first, second))]
    assert cast_conversations(topics) == [
        {
            "number": 7,
            "description": "Of Ned",
            "turn": [
                {
                    "number": 1,
                    "raw_utterance": "Who?",
                    "manual_rewritten_utterance": "Who was it?",
                    "automatic_rewritten_utterance": "Who were they?",
                    "passage": "Ned.",
                    "canonical_result_id": "d1",
                },
                {"number": 2, "raw_utterance": "Why?"},
            ],
        }
    ]


def test_a_branch_with_another_answer_keeps_each_turn_its_own_answer(tmp_path: Path) -> None:
    asked, again_asked = Turn("Who?", answer="Ned.", answer_id="d1"), Turn("Who?", answer="Ada.", answer_id="d2")
    topics = Topics(
        [
            Topic("a_b_1", "Who?", turns=(asked,)),
            Topic("a_b_2-2", "Where?", turns=(again_asked, Turn("Where?"))),
            Topic("a_b_1-2", "Why?", turns=(asked, Turn("Why?"))),
        ]
    )
    assert dict(again(topics, tmp_path)) == dict(topics)


def test_numbers_that_are_not_plain_stay_strings(tmp_path: Path) -> None:
    topics = Topics(Topic(f"{id_}_1", "Who?", turns=(Turn("Who?"),)) for id_ in ("007", "7", "x", "²"))
    assert dict(again(topics, tmp_path)) == dict(topics)


def test_a_rewritten_text_is_written_as_the_automatic_rewrite(tmp_path: Path) -> None:
    topics = ft.datasets.samples.harbour.conversations.topics()
    rewritten = again(ft.rewrite.LastTurns(1)(topics), tmp_path)
    assert rewritten["1_2"].text == topics["1_2"].text
    assert rewritten["1_2"].turns[-1].automatic == f"{topics['1_1'].text} {topics['1_2'].text}"
    manual = again(ft.rewrite.Manual()(topics), tmp_path)
    assert manual["1_2"].turns[-1] == topics["1_2"].turns[-1]


def test_a_topic_without_turns_is_a_conversation_of_one(tmp_path: Path) -> None:
    assert again({"3_1": "Kdo postavil most?"}, tmp_path)["3_1"].turns == (Turn("Kdo postavil most?"),)


def test_sixty_turns_come_back(tmp_path: Path) -> None:
    turns = tuple(Turn(f"What of {n}?", answer=f"It is {n}.", answer_id=f"d{n}") for n in range(60))
    topics = Topics(Topic(f"1_{n}", turns[n - 1].text, turns=turns[:n]) for n in range(1, 61))
    assert dict(again(topics, tmp_path)) == dict(topics)
    changed = Topics(replace(topic, id=topic.id.replace("1_", "zůstane_")) for topic in topics.values())
    assert dict(again(changed, tmp_path)) == dict(changed)
