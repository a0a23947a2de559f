"""A conversation takes a turn, gives hits, and remembers turns and answers; earlier turns as terms of less weight."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import fontes as ft
from fontes import Conversation, Run, Stage, Topic, Topics, Turn

DOCS = [
    {"_id": "bridge", "title": "Bridge", "text": "The Chain Bridge closed in May. A boy noticed the crack."},
    {"_id": "why", "title": "", "text": "The bridge closed because rain had weakened the iron."},
    {"_id": "ferry", "title": "Ferry", "text": "Two boats cross the river. Why did nobody ask for more?"},
    {"_id": "praha", "title": "Most", "text": "Most v Praze zavřeli v květnu, protože praskl pilíř."},
]
TURNS = ("When was the Chain Bridge closed?", "Who noticed the crack?", "why?")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path_factory.mktemp("chat") / "index")


@pytest.fixture
def conversation(index: ft.Index) -> Conversation:
    return Conversation(ft.rewrite.LastTurns(1) >> index.bm25(), k=2)


@dataclass(frozen=True)
class Seen(Stage[Topics, Run]):
    """Finds a document for every turn and keeps the topics that it was given."""

    topics: list[Topic] = field(default_factory=list)

    def apply(self, topics: Topics, /) -> Run:
        self.topics.extend(topics.values())
        return Run.of({t: {"d": 2.0, "e": 1.0} for t in topics}, topics)


@dataclass(frozen=True)
class Broken(Seen):
    def apply(self, topics: Topics, /) -> Run:
        raise ft.core.InputError("the model fails")


def test_a_turn_gives_hits_for_what_was_searched(conversation: Conversation) -> None:
    assert conversation.hits is None
    assert conversation.ask(TURNS[0]).ids[0] == "bridge"
    hits = conversation.ask("why?")
    assert (hits.topic.id, hits.topic.text) == ("1_2", f"{TURNS[0]} why?")
    assert hits.topic.origin == Topic("1_2", "why?", turns=(conversation.turns[0], Turn("why?")))
    assert len(hits) == 2
    assert hits.docs()[0].id == hits[0].id
    assert conversation.hits is hits


def test_turns_rewrites_and_answers_are_remembered(conversation: Conversation) -> None:
    for text in TURNS[:2]:
        conversation.ask(text)
    assert conversation.turns == (
        Turn(TURNS[0], automatic=TURNS[0], answer=DOCS[0]["text"], answer_id="bridge"),
        Turn(TURNS[1], automatic=f"{TURNS[0]} {TURNS[1]}", answer=DOCS[0]["text"], answer_id="bridge"),
    )


def test_a_rewriter_sees_earlier_answers_but_not_the_turns_own() -> None:
    seen = Seen()
    conversation = Conversation(seen, id="c")
    conversation.ask(Turn("Who?", manual="Who was it?", answer="Ned.", answer_id="n"))
    conversation.ask(Turn("Why?", answer="It rained."))
    first = Turn("Who?", manual="Who was it?")
    assert seen.topics[0] == Topic("c_1", "Who?", turns=(first,))
    remembered = Turn("Who?", "Who was it?", automatic="Who?", answer="Ned.", answer_id="n")
    assert seen.topics[1].turns == (remembered, Turn("Why?"))
    assert conversation.turns[1] == Turn("Why?", automatic="Why?", answer="It rained.")


def test_a_stage_without_documents_remembers_the_best_id_alone() -> None:
    conversation = Conversation(Seen(), k=1)
    assert conversation.ask("Who?").ids == ["d"]
    assert conversation.turns[0] == Turn("Who?", automatic="Who?", answer_id="d")


def test_an_answer_may_be_made_from_the_hits(index: ft.Index) -> None:
    def answer(hits: ft.Ranking) -> str:
        return f"{hits.topic.text} See {hits[0].id}."

    conversation = Conversation(index.bm25(), answer=answer)
    conversation.ask("crack")
    conversation.ask("unheard of")
    assert [turn.answer for turn in conversation.turns] == ["crack See bridge.", ""]


def test_an_answer_may_be_given_afterwards(conversation: Conversation) -> None:
    conversation.ask(TURNS[1])
    conversation.answered("A boy.", "bridge#2")
    turn = conversation.turns[-1]
    assert (turn.answer, turn.answer_id, turn.automatic) == ("A boy.", "bridge#2", TURNS[1])


def test_a_stage_that_ends_in_passages_remembers_a_passage(index: ft.Index) -> None:
    stage = index.bm25() >> ft.Passages(words=6)
    conversation = Conversation(stage)
    hits = conversation.ask("Who noticed the crack?")
    turn = conversation.turns[0]
    assert turn.answer_id == hits[0].id
    assert turn.answer == hits.docs()[0].text
    assert len(turn.answer.split()) <= 6


def test_a_turn_without_hits_is_remembered_without_an_answer(conversation: Conversation) -> None:
    assert len(conversation.ask("Xylophones?")) == 0
    assert conversation.turns == (Turn("Xylophones?", automatic="Xylophones?"),)
    assert conversation.ask("And the bridge?").ids


def test_a_turn_that_fails_is_not_remembered() -> None:
    before = (Turn("Who?"),)
    conversation = Conversation(Broken(), turns=before)
    with pytest.raises(ft.core.InputError, match="the model fails"):
        conversation.ask("Why?")
    assert (conversation.turns, conversation.hits) == (before, None)


@pytest.mark.parametrize("name", ["turns.json", "turns.json.gz", "turns.jsonl"])
def test_what_is_saved_is_read_back_with_all_turns(conversation: Conversation, tmp_path: Path, name: str) -> None:
    for text in TURNS:
        conversation.ask(text)
    conversation.save(tmp_path / name)
    topics = ft.read_topics(tmp_path / name)
    assert dict(topics) == dict(conversation.topics())
    assert list(topics) == ["1_1", "1_2", "1_3"]
    assert topics["1_3"].turns == conversation.turns
    assert ft.rewrite.Automatic()(topics)["1_2"].text == f"{TURNS[0]} {TURNS[1]}"


def test_one_turn_is_saved_too(conversation: Conversation, tmp_path: Path) -> None:
    conversation.ask("Who noticed the crack?")
    for name in ("one.json", "one.jsonl"):
        conversation.save(tmp_path / name)
        assert ft.read_topics(tmp_path / name)["1_1"].turns == conversation.turns


def test_a_conversation_goes_on_from_the_turns_of_a_file(index: ft.Index, tmp_path: Path) -> None:
    stage = ft.rewrite.LastTurns(2) >> index.bm25()
    whole, begun = Conversation(stage), Conversation(stage)
    for text in TURNS:
        whole.ask(text)
    begun.ask(TURNS[0])
    begun.ask(TURNS[1])
    begun.save(tmp_path / "begun.json")
    resumed = Conversation(stage, turns=ft.read_topics(tmp_path / "begun.json")["1_2"].turns)
    assert whole.hits is not None
    assert resumed.ask("why?").ids == whole.hits.ids
    assert resumed.turns == whole.turns
    assert list(resumed.topics()) == ["1_1", "1_2", "1_3"]


def test_a_hit_of_the_last_turn_is_explained_by_its_rank_or_any_document_by_its_id(conversation: Conversation) -> None:
    conversation.ask(TURNS[0])
    hits = conversation.ask("why?")
    for rank, hit in enumerate(hits, 1):
        assert conversation.explain(rank).value == pytest.approx(hit.score, rel=1e-6)
    assert conversation.explain("ferry").value > 0
    assert {part.label for part in conversation.explain(hits[0].id).parts} >= {"'chain'", "'bridg'", "'close'"}


def test_a_reset_conversation_starts_anew(conversation: Conversation) -> None:
    conversation.ask(TURNS[0])
    conversation.reset()
    assert (conversation.turns, conversation.hits, len(conversation.topics())) == ((), None, 0)
    assert conversation.ask("Who noticed the crack?").topic.text == "Who noticed the crack?"


def test_it_says_what_it_is(conversation: Conversation) -> None:
    assert repr(conversation).startswith("Conversation('1', 0 turns, last_turns(k=1) >> bm25(")
    conversation.ask("Who?")
    assert "1 turn," in repr(conversation)


def rewriters(index: ft.Index) -> list[Stage[Topics, Topics]]:
    return [
        ft.rewrite.Raw(),
        ft.rewrite.LastTurns(3),
        ft.rewrite.LastTurns(1, first=True),
        ft.rewrite.WeightedTurns(index),
        ft.HQE(index, tagger="none"),
    ]


def test_sixty_turns_are_taken_and_come_back(index: ft.Index, tmp_path: Path) -> None:
    for rewriter in rewriters(index):
        conversation = Conversation(rewriter >> index.bm25())
        for n in range(60):
            conversation.ask(f"{TURNS[n % 3]} {n}")
        assert len(conversation.turns) == 60
        conversation.save(tmp_path / "sixty.json")
        assert ft.read_topics(tmp_path / "sixty.json")["1_60"].turns == conversation.turns


def test_why_alone_searches_what_went_before(index: ft.Index) -> None:
    for rewriter in rewriters(index)[1:]:
        conversation = Conversation(rewriter >> index.bm25())
        conversation.ask("The Chain Bridge closed.")
        assert "bridge" in conversation.ask("why?").ids, rewriter
    alone = Conversation(ft.rewrite.WeightedTurns(index) >> index.bm25())
    assert alone.ask("why?").ids == ["ferry"]


def test_a_conversation_in_czech(tmp_path: Path) -> None:
    index = ft.Index.build(DOCS, tmp_path / "cs", analyzer="czech")
    for rewriter in rewriters(index)[1:]:
        conversation = Conversation(rewriter >> index.bm25())
        assert conversation.ask("Kdy zavřeli most v Praze?").ids[0] == "praha"
        hits = conversation.ask("Proč?")
        assert hits.ids[0] == "praha", rewriter
        conversation.save(tmp_path / "cs.json")
        assert ft.read_topics(tmp_path / "cs.json")["1_2"].turns == conversation.turns
    assert "zavřeli" in (tmp_path / "cs.json").read_text(encoding="utf-8")


def test_a_conversation_without_passages_goes_through_every_rewriter(index: ft.Index) -> None:
    turns = tuple(Turn(text) for text in TURNS[:2])
    for rewriter in rewriters(index):
        assert Conversation(rewriter >> index.bm25(), turns=turns).ask("What about the bridge?").ids, rewriter


def test_earlier_terms_weigh_less_and_those_of_the_turn_count_each_time(index: ft.Index) -> None:
    turns = (Turn("Bridge bridge river"), Turn("iron"), Turn("boats cross"), Turn("crack crack boats"))
    topic = ft.rewrite.WeightedTurns(index, k=1, weight=0.5)(Topic("1", "x", turns=turns))["1"]
    assert topic.weights == {"crack": 2.0, "boat": 1.0, "cross": 0.5, "bridg": 0.5, "river": 0.5}
    assert topic.text == "Bridge bridge river boats cross crack crack boats"
    assert topic.origin is not None
    assert topic.origin.text == "x"
    without = ft.rewrite.WeightedTurns(index, k=0, first=False)(Topic("1", "x", turns=turns))["1"]
    assert (without.weights, without.text) == ({"crack": 2.0, "boat": 1.0}, "crack crack boats")
    assert ft.rewrite.WeightedTurns(index, k=9)(Topic("1", "x", turns=turns))["1"].weights == pytest.approx(
        {"crack": 2.0, "boat": 1.0, "cross": 0.3, "iron": 0.3, "bridg": 0.3, "river": 0.3}
    )


def test_weighted_turns_of_a_first_turn_find_what_the_utterance_finds(index: ft.Index) -> None:
    queries = {"1": "bridge bridge crack", "2": "", "3": "why?"}
    assert (ft.rewrite.WeightedTurns(index) >> index.bm25())(queries) == index.bm25()(queries)
