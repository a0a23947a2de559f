from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes import Qrels, Topics
from fontes.core import InputError
from fontes.datasets import corpus_of
from fontes.datasets.samples import TASKS, harbour
from fontes.rewrite import LastTurns

STORIES = {doc.id: doc for doc in harbour.corpus}
EVENTS = {  # the day of each event, or of its announcement
    "1": "2017-01-13",
    "2": "2015-09-21",
    "3": "2016-03-10",
    "4": "2017-06-15",
    "5": "2016-10-06",
    "6": "2016-05-05",
    "7": "2018-08-09",
    "8": "2018-03-21",
    "9": "2017-01-26",
    "10": "2017-04-05",
    "11": "2017-11-09",
    "12": "2015-12-03",
}
MEANT_OUT = (
    "not relevant",
    "irrelevant",
    "no interest",
    "not considered",
    "should not be considered",
    "disregarded",
    "Exclude",
)


def rewritten(topics: ft.Topics, kind: str) -> ft.Topics:
    return ft.Topics(replace(topic, text=getattr(topic.turns[-1], kind)) for topic in topics.values())


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(harbour.corpus, tmp_path_factory.mktemp("harbour") / "index")


def test_there_are_150_stories_of_60_to_300_words_over_five_years() -> None:
    assert len(STORIES) == len(list(harbour.corpus)) == 150
    assert all(60 <= len(doc.text.split()) <= 300 for doc in STORIES.values())
    assert len({doc.title for doc in STORIES.values()}) == len({doc.text for doc in STORIES.values()}) == 150
    assert {date_of(doc.id).year for doc in STORIES.values()} == set(range(2014, 2019))


def test_stories_come_in_the_order_of_their_dates_and_have_a_section() -> None:
    dates = [date_of(doc_id) for doc_id in STORIES]
    assert dates == sorted(dates)
    assert all(set(doc.metadata) == {"date", "section"} for doc in STORIES.values())
    assert len({doc.metadata["section"] for doc in STORIES.values()}) >= 8


def test_no_two_stories_begin_with_the_same_words() -> None:
    openings = Counter(" ".join(doc.text.split()[:4]) for doc in STORIES.values())
    assert openings.most_common(1)[0][1] == 1, openings.most_common(3)


@each("task", TASKS)
def test_every_topic_is_judged_with_stories_that_exist_and_has_a_relevant_one(task: str) -> None:
    topics, qrels = harbour.topics(task), harbour.qrels(task)
    assert list(topics) == list(qrels)
    assert all(topic.text for topic in topics.values())
    for topic_id, grades in qrels.items():
        assert set(grades) <= set(STORIES)
        assert set(grades.values()) <= {0, 1, 2}
        assert 2 in grades.values(), topic_id


def test_each_task_is_a_data_set_of_its_own_under_one_name_everywhere() -> None:
    assert ft.datasets.samples.harbour is ft.dataset("harbour") is harbour
    assert harbour.splits == ["causal", "claims", "conversations", "posts"]
    for one in (harbour.causal, ft.dataset("harbour/causal")):
        assert (one.name, one.splits, len(one.topics())) == ("harbour/causal", ["causal"], 12)
        assert one.qrels().to_dict() == harbour.qrels("causal").to_dict()
    sizes = [len(given.topics()) for given in (harbour.claims, harbour.conversations, harbour.posts)]
    assert sizes == [50, 43, 40]


def test_a_folder_named_like_a_sample_comes_first_in_python_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harbour").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"no corpus\.jsonl"):
        _ = ft.dataset("harbour").corpus
    assert len(list(corpus_of("sample:harbour"))) == 150


def test_commands_take_a_sample_by_name() -> None:
    assert len(list(corpus_of("sample:harbour"))) == len(list(corpus_of("sample:harbour/posts"))) == 150
    assert list(Topics.read("sample:harbour/posts")) == list(Qrels.of("sample:harbour/posts"))


def test_a_causal_topic_has_a_narrative_that_also_says_what_is_left_out() -> None:
    topics = harbour.causal.topics()
    assert all(topic.description.endswith("?") and len(topic.narrative.split()) > 30 for topic in topics.values())
    assert sum(any(words in topic.narrative for words in MEANT_OUT) for topic in topics.values()) >= 8
    assert all("elevan" in topic.narrative or "interest" in topic.narrative for topic in topics.values())


def test_causes_are_reported_in_several_stories_before_the_event() -> None:
    for topic_id, grades in harbour.causal.qrels().items():
        event = date.fromisoformat(EVENTS[topic_id])
        causes = [date_of(doc_id) for doc_id, grade in grades.items() if grade == 2]
        before = [day for day in causes if day < event]
        assert len(before) >= 4, topic_id
        assert (event - min(before)).days > 120, topic_id
        assert len(set(before)) >= 3, topic_id


def test_some_claims_need_two_stories_together_and_some_are_contradicted() -> None:
    qrels, labels = harbour.claims.qrels(), harbour.claim_labels
    assert list(labels) == list(harbour.claims.topics())
    assert Counter(labels.values()) == {"SUPPORT": 38, "CONTRADICT": 12}
    sets = {claim: qrels.groups(claim, rel=2) for claim in qrels}
    assert all(sets.values())
    assert sum(min(map(len, found)) >= 2 for found in sets.values()) >= 15


def test_a_claim_whose_evidence_is_a_pair_is_complete_only_with_both() -> None:
    qrels = harbour.claims.qrels()
    pair = sorted(qrels.groups("1", rel=2)[0])
    assert len(pair) == 2
    half, whole = ({"1": dict.fromkeys(pair[:size], 1.0)} for size in (1, 2))
    only = ft.Qrels(row for row in qrels.rows() if row[0] == "1")
    assert ft.evaluate(ft.Run.of(half), only, ["Complete(rel=2)@10"])["Complete(rel=2)@10"] == 0.0
    assert ft.evaluate(ft.Run.of(whole), only, ["Complete(rel=2)@10"])["Complete(rel=2)@10"] == 1.0


def test_conversations_have_six_to_eight_turns_with_rewrites() -> None:
    turns = Counter(topic_id.split("_")[0] for topic_id in harbour.conversations.topics())
    assert len(turns) == 6
    assert set(turns.values()) <= {6, 7, 8}
    for number, length in turns.items():
        last = harbour.conversations.topics()[f"{number}_{length}"]
        assert all(turn.manual and turn.automatic and turn.answer for turn in last.turns)
        assert [turn.answer.startswith("Do you mean") for turn in last.turns if not turn.answer_id] == [True]


def test_automatic_rewrites_are_questions_and_only_first_turns_have_the_manual_ones() -> None:
    for topic in harbour.conversations.topics().values():
        turn = topic.turns[-1]
        assert turn.automatic.endswith("?")
        assert (turn.automatic == turn.manual) == (len(topic.turns) == 1)
        assert (turn.automatic == turn.text) == (len(topic.turns) == 1)


def test_automatic_rewrites_name_nobody_whom_the_conversation_has_not_named() -> None:
    for topic in harbour.conversations.topics().values():
        said = " ".join([*(f"{turn.text} {turn.answer}" for turn in topic.turns[:-1]), topic.text])
        names = {word.strip("?,").removesuffix("'s") for word in topic.turns[-1].automatic.split()[1:] if word[0].isupper()}
        # That the town is Quenmouth is known from its name in other turns, and from the paper itself.
        assert all(name in said for name in names - {"Quenmouth"}), topic.id


def test_canonical_answers_are_the_words_of_a_story_that_answers_the_turn() -> None:
    qrels = harbour.conversations.qrels()
    for topic in harbour.conversations.topics().values():
        turn = topic.turns[-1]
        if turn.answer_id:
            story = STORIES[turn.answer_id]
            assert turn.answer in f"{story.title}\n{story.text}"
            assert qrels[topic.id][turn.answer_id] == 2


def test_a_post_does_not_give_the_title_of_its_story_away() -> None:
    for topic_id, topic in harbour.posts.topics().items():
        for doc_id, grade in harbour.posts.qrels()[topic_id].items():
            assert grade < 2 or STORIES[doc_id].title.lower() not in topic.text.lower()


@each("task", TASKS)
def test_all_that_bm25_and_tfidf_return_among_the_first_ten_is_judged(index: ft.Index, task: str) -> None:
    topics, qrels = harbour.topics(task), harbour.qrels(task)
    asked = [topics]
    if task == "conversations":
        asked += [rewritten(topics, "manual"), rewritten(topics, "automatic")]
    if task == "causal":
        asked.append(ft.Topics(replace(topic, text=f"{topic.text} {topic.narrative}") for topic in topics.values()))
    for given in asked:
        for model in (index.bm25(), index.tfidf()):
            assert ft.evaluate(model(given), qrels, ["Judged@10"])["Judged@10"] == 1.0


def test_all_stories_are_judged_for_each_event() -> None:
    assert all(set(grades) == set(STORIES) for grades in harbour.causal.qrels().values())


@pytest.mark.parametrize("k", [1, 3, 8])
def test_what_is_found_for_a_turn_after_those_before_it_is_judged(index: ft.Index, k: int) -> None:
    topics, qrels = harbour.conversations.topics(), harbour.conversations.qrels()
    for model in (index.bm25(), index.tfidf()):
        assert ft.evaluate((LastTurns(k) >> model)(topics), qrels, ["Judged@10"])["Judged@10"] == 1.0


def test_manual_rewrites_beat_automatic_ones_and_these_raw_utterances(index: ft.Index) -> None:
    topics, qrels = harbour.conversations.topics(), harbour.conversations.qrels()
    forms = (topics, rewritten(topics, "automatic"), rewritten(topics, "manual"))
    raw, automatic, manual = (ft.evaluate(index.bm25()(form), qrels, ["nDCG@10"])["nDCG@10"] for form in forms)
    assert raw + 0.1 < manual
    assert raw < automatic < manual


def test_topics_and_judgments_survive_being_written_and_read(tmp_path: Path) -> None:
    for task in TASKS:
        ft.write_topics(harbour.topics(task), tmp_path / "topics.jsonl")
        ft.write_qrels(harbour.qrels(task), tmp_path / "qrels.txt")
        assert dict(ft.read_topics(tmp_path / "topics.jsonl")) == dict(harbour.topics(task))
        again = ft.read_qrels(tmp_path / "qrels.txt", groups=True)
        assert all(again.groups(t, 2) == harbour.qrels(task).groups(t, 2) for t in again)


def date_of(doc_id: str) -> date:
    return date.fromisoformat(str(STORIES[doc_id].metadata["date"]))
