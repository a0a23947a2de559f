"""Misspelt and unfinished words are searched with their neighbours; all others stay alone."""

import gc
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each

import fontes as ft
from fontes.core import Topic
from fontes.core.query import Group, Term
from fontes.core.strings import Strings
from fontes.core.values import TOLERANCE
from fontes.index.confusable import may_be_confused, most_frequent_completion
from fontes.lexical import tolerance
from fontes.suggest.edits import near

DOCS = [
    *(
        (f"c{i}", f"basketball coach of the national team of Uruguay, season {1990 + i}, and of a club in Montevideo")
        for i in range(12)
    ),
    *((f"f{i}", f"football coach and players of Argentina, in the stadium, number {i}") for i in range(30)),
    ("lamborghini", "The Lamborghini Urus, an Urus among cars"),
    ("virus", "covid19 is an illness of a corona virus, with symptoms"),
    ("hydrology", "hydrothermal vents in hydrology, and geysers"),
    ("nmr", "NMR of proteins"),
    ("mnemonics", "enmr is a word, Uruguay"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path_factory.mktemp("tolerance") / "x.index", analyzer="english", positions=True)


def mended(index: ft.Index, text: str, mode: str = "auto") -> dict[str, list[str]]:
    """The words of a text that are searched with others, and these."""
    topic = index.tolerance(mode)([text])["1"]
    return {word["word"]: [also["word"] for also in word["also"]] for word in topic.metadata.get(TOLERANCE, ())}


def test_a_misspelt_word_and_an_unfinished_one_find_what_was_meant(index: ft.Index) -> None:
    assert index.bm25().search("basketbal coach uru", 1)[0].id == "lamborghini"
    found = (index.tolerance() >> index.bm25()).search("basketbal coach uru", 12)
    assert {hit.id[0] for hit in found} == {"c"}


def test_the_text_of_a_topic_stays_and_its_origin_is_the_typed_topic(index: ft.Index) -> None:
    topic = index.tolerance()(["basketbll coach"])["1"]
    assert (topic.text, topic.origin) == ("basketbll coach", Topic("1", "basketbll coach"))
    assert topic.weights == {"basketbl": 1.0, "coach": 1.0, "basketbal": pytest.approx(0.8)}


def test_a_topic_of_known_words_is_returned_unchanged(index: ft.Index) -> None:
    topic = Topic("1", "basketball coaches of Uruguay, in the stadium")
    assert index.tolerance().one(topic) is topic
    assert index.tolerance().one(topic) is topic, "also from the words that it remembers"


@each(
    "text",
    [
        '"basketbll" coach',
        "“basketbll” coach",
        "covid18 symptoms",
        "stadium 1989 coach",
        "basketbll_coach stadium",
        "basketbll@example.org stadium",
        "www.basketbll.org stadium",
        "mnr stadium",
        "NRMM stadium",
        "teh coach",
        "coaching stadium",
        "lamborghni",
    ],
)
def test_other_words_stay_alone(index: ft.Index, text: str, tmp_path: Path) -> None:
    if text == "lamborghni":
        index = ft.Index.build([*DOCS, (text, "a document whose id is typed")], tmp_path / "x.index", analyzer="english")
    topic = Topic("1", text)
    assert index.tolerance().one(topic) is topic


def test_from_eight_letters_on_two_edits_are_mended(index: ft.Index) -> None:
    assert mended(index, "stadum coach") == {"stadum": ["stadium"]}
    assert mended(index, "stdum coach") == {}
    assert mended(index, "hydrotermla coach") == {"hydrotermla": ["hydrothermal"]}
    weights = index.tolerance(weight=0.5)(["hydrotermla coach"])["1"].weights
    assert weights is not None
    assert weights["hydrotherm"] == 0.25, "the square for two edits"


def test_a_word_of_the_index_is_mended_if_a_neighbour_is_far_more_frequent(tmp_path: Path) -> None:
    docs = [("rare", "limestoen"), *((f"d{i}", "limestone and karst") for i in range(320))]
    index = ft.Index.build(docs, tmp_path / "x.index", analyzer="english")
    assert mended(index, "limestoen caves") == {"limestoen": ["limestone"]}
    few = ft.Index.build(docs[:280], tmp_path / "y.index", analyzer="english")
    assert mended(few, "limestoen caves") == {}


def test_the_last_word_is_always_completed_while_it_is_typed(index: ft.Index) -> None:
    assert mended(index, "coach arg", "typing") == {"arg": ["argentina"]}
    assert mended(index, "coach arg ", "typing") == {}, "a blank ends the word"
    assert mended(index, "coach a", "typing") == {}
    assert mended(index, "arg coach", "typing") == {}


def test_completions_stand_in_documents_with_the_other_words(index: ft.Index) -> None:
    assert mended(index, "basketball mo", "typing") == {"mo": ["montevideo"]}
    assert mended(index, "coach s", "typing") == {}
    assert mended(index, "football st", "typing") == {"st": ["stadium"]}
    assert mended(index, "basketball sta", "typing") == {"sta": ["stadium"]}, "no document has both"


def test_explanations_show_the_neighbour_and_its_cost(index: ft.Index) -> None:
    stage = index.tolerance() >> index.bm25()
    hit = stage.search("basketbll uru", 1)[0]
    text = str(stage.explain("basketbll uru", hit.id))
    assert "'basketbal' (basketball) for 'basketbll', 1 edit: weight 0.8" in text
    assert "'uruguai' (uruguay) for 'uru', completed: weight 0.8" in text
    assert stage.explain("basketbll uru", hit.id).value == hit.score
    assert "'uru', far rarer than its completions: weight 0.2" in str(stage.explain("basketbll uru", "lamborghini"))


def test_in_the_query_language_words_are_mended_and_phrases_and_excluded_words_stay(index: ft.Index) -> None:
    stage = index.query() >> index.tolerance()
    (topic,) = stage(['+basketbll -stadum "natonal team" stadum']).values()
    assert topic.query is not None
    either = Group(should=(Term("basketbl"), Term("basketbal", weight=0.8)))
    assert topic.query.must == (either,)
    assert topic.query.must_not == (Term("stadum"),)
    assert Term("stadium", weight=0.8) in topic.query.should
    assert len((stage >> index.bm25()).search('+basketbll "national team"', 50)) == 12
    assert str((stage >> index.bm25()).explain("+basketbll", "c1")).count("for 'basketbll', 1 edit") == 1


def test_a_given_structured_query_and_given_weights_stay(index: ft.Index) -> None:
    for topic in (Topic("1", "basketbll", query=Group(must=(Term("basketbll"),))), Topic("1", "x", weights={"stadum": 1.0})):
        assert index.tolerance().one(topic) is topic


def test_segments_and_deletions_give_the_same_as_one_build(index: ft.Index, tmp_path: Path) -> None:
    grown = ft.Index.build(DOCS[:20], tmp_path / "x.index", analyzer="english")
    grown.add([("gone", "basketbll is a word here alone"), *DOCS[20:]])
    grown.delete("gone")
    for text in ("basketbll coach uru", "stadum monte"):
        ours, whole = (each.tolerance()([text])["1"].weights for each in (grown, index))
        assert ours == whole
        rankings = [list((each.tolerance() >> each.bm25()).search(text, 50)) for each in (grown, index)]
        assert rankings[0] == rankings[1]


def test_a_word_of_deleted_documents_is_no_neighbour(tmp_path: Path) -> None:
    index = ft.Index.build([("a", "limestone"), ("b", "water")], tmp_path / "x.index")
    assert mended(index, "limestoen water") == {"limestoen": ["limestone"]}
    index.delete("a")
    assert mended(index, "limestoen water") == {}


@each(
    ("analyzer", "text", "expected"),
    [
        ("czech", "stadion kralove", {"kralove": ["králové"]}),
        ("standard", "Limestoen wter", {"limestoen": ["limestone"], "wter": ["water"]}),
        ("whitespace", "limestoen water", {"limestoen": ["limestone"]}),
        ("german", "limsetone water", {"limsetone": ["limestone"]}),
        ("english+words:1-2", "limestoen water", {"limestoen": ["limestone"]}),
        ("english+chars:2-4", "limestoen water", {}),
        ("english+words:2-2", "limestoen water", {}),
        ("cjk", "limestoen water", {"limestoen": ["limestone"]}),
    ],
)
def test_every_analyzer_is_tolerant_unless_its_terms_are_no_words(
    tmp_path: Path, analyzer: str, text: str, expected: dict[str, list[str]]
) -> None:
    docs = [("a", "limestone in water of the king králové stadion"), ("b", "water")]
    assert mended(ft.Index.build(docs, tmp_path / "x.index", analyzer=analyzer), text) == expected


def test_separate_fields_filters_and_other_models_are_searched(tmp_path: Path) -> None:
    docs = [{"id": f"d{i}", "title": "limestone", "text": "karst water", "year": 2000 + i} for i in range(4)]
    index = ft.Index.build(docs, tmp_path / "x.index", analyzer="english", separate=True)
    for model in (index.bm25(fields={"title": 2, "text": 1}), index.bm25(where="year > 2002"), index.ql(), index.tfidf()):
        found = (index.tolerance() >> model).search("limestoen", 10)
        assert len(found) == (1 if model.where else 4)


def test_a_long_text_is_looked_at_from_its_end(index: ft.Index) -> None:
    assert mended(index, "basketbll " + "coach " * 40) == {}
    assert mended(index, "coach " * 4000 + "basketbll") == {"basketbll": ["basketball"]}


def test_any_text_can_be_typed(index: ft.Index) -> None:
    for text in ("", "   ", "\ud800", "x" * 10_000, "😀 basketbll", '"', "+-", "é" * 70, "\0basketbll"):
        for mode in ("auto", "typing"):
            (index.query() >> index.tolerance(mode) >> index.bm25()).search(text or " ", 3)


def test_the_text_of_a_pipeline_has_the_mode(index: ft.Index) -> None:
    stage = ft.pipeline('tolerance("typing") >> bm25()', index)
    assert repr(stage).startswith('tolerance("typing") >> bm25(')


def look_up_all(corrector: tolerance.Corrector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the corrector look up all words of the documents, as it does after so many topics."""
    monkeypatch.setattr(tolerance, "MANY_TOPICS", 1)
    corrector.mended("basketbll", "auto", 0.5)
    for thread in threading.enumerate():
        if thread.name == "tolerance":
            thread.join()


def test_words_that_are_looked_up_at_once_have_no_neighbours(index: ft.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    corrector = tolerance.Corrector(index.state)
    assert not corrector.is_sure(Topic("1", "coach"), "auto")
    look_up_all(corrector, monkeypatch)
    assert all(corrector.is_sure(Topic("1", word), "auto") for word in ("coach", "stadium", "montevideo"))
    assert not corrector.is_sure(Topic("1", "uru"), "auto")
    monkeypatch.setattr(corrector, "mended", None)
    assert corrector.is_sure(Topic("1", "Coach – Stadium"), "auto")
    assert not corrector.is_sure(Topic("1", "coach stadium"), "typing")
    assert corrector.is_sure(Topic("1", "coach stadium "), "typing")


def test_no_word_with_a_neighbour_is_overlooked_where_all_are_looked_up_at_once() -> None:
    rng = random.Random(3)
    words = sorted({"".join(rng.choice("abč") for _ in range(rng.randint(3, 10))) for _ in range(1500)})
    counts = np.array([rng.choice((1, 2, 9, 300, 5000)) for _ in words])
    possible, table = may_be_confused(words, counts, counts, (100, 1000), (5, 8)), Strings.of(words)
    for i, word in enumerate(words):
        for edits, ratio, shortest in ((1, 100, 5), (2, 1000, 8)):
            indices, distances = near(table, word, edits)
            is_far_more_frequent = (distances > 0) & (counts[indices] >= ratio * counts[i])
            assert possible[i] or len(word) < shortest or not is_far_more_frequent.any(), word
    assert not possible.all()


def test_the_greatest_frequency_of_completions_is_that_of_a_plain_loop() -> None:
    words = sorted({"a", "ab", "abc", "abd", "b", "ba", "c", "cab", "cabin", "cabins"})
    df = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    expected = [
        max((int(df[j]) for j, other in enumerate(words) if other != word and other.startswith(word)), default=0)
        for word in words
    ]
    assert most_frequent_completion(words, df).tolist() == expected


def test_metadata_of_requests_are_not_taken_for_neighbours(index: ft.Index) -> None:
    odd: Any = {"tolerance": "yes"}
    topic = Topic("1", "coach", metadata=odd)
    assert index.bm25().explain(topic, "c1").value > 0
    assert index.tolerance().one(Topic("1", "basketbll", metadata={"a": 1})).metadata["a"] == 1


def test_words_that_differ_by_marks_alone_are_found_both_ways_and_before_other_edits(tmp_path: Path) -> None:
    docs = [("plain", "the resume was good"), *((f"c{i}", "český") for i in range(25))]
    index = ft.Index.build(docs, tmp_path / "x.index", analyzer="standard")
    assert mended(index, "résumé of") == {"résumé": ["resume"]}
    scores = {form.form: form.score for form in tolerance.SUGGESTER.of(index.state).neighbours("cesky", 1, (0, 1))}
    assert scores["český"] == pytest.approx(np.log(25)), "a mark on the first letter makes it no other letter"


def test_a_word_with_a_frequent_twin_with_marks_is_not_taken_for_sure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = [("plain", "resume"), *((f"m{i}", "the résumé of work") for i in range(400))]
    index = ft.Index.build(docs, tmp_path / "x.index", analyzer="standard")
    corrector = tolerance.CORRECTOR.of(index.state)
    look_up_all(corrector, monkeypatch)
    assert corrector.is_sure(Topic("1", "work of"), "auto")
    assert not corrector.is_sure(Topic("1", "resume of"), "auto")
    assert mended(index, "resume of") == {"resume": ["résumé"]}


def test_a_state_may_be_freed_while_its_words_are_looked_up(tmp_path: Path) -> None:
    index = ft.Index.build(DOCS, tmp_path / "x.index", analyzer="english")
    corrector = tolerance.CORRECTOR.of(index.state)
    assert corrector._suggester.size
    del index
    gc.collect()
    corrector._learn()
