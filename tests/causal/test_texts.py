"""Causal parts as text: what their `repr` is, and that the text makes them again."""

import fontes as ft
from fontes.causal import (
    META,
    CausalEvidence,
    CausalFilter,
    CausalHead,
    CausalKeywords,
    Narrative,
    TitleAndNarrative,
    TopicRank,
)
from fontes.core.expression import part, pipeline

TEXTS = {
    "causal_keywords()": CausalKeywords(),
    'causal_keywords(topicrank="stopwords", n=5)': CausalKeywords(TopicRank("stopwords"), 5),
    'causal_keywords(topicrank=topicrank(gap="paper"))': CausalKeywords(TopicRank(gap="paper")),
    'causal_keywords(without=("news",))': CausalKeywords(without=("news",)),
    "narrative()": Narrative(),
    "title_and_narrative(relevant=True)": TitleAndNarrative(relevant=True),
    "causal_filter()": CausalFilter(),
    'causal_filter(roles="either", failing="below")': CausalFilter("either", failing="below"),
    "causal_evidence()": CausalEvidence(),
    'causal_evidence(pool="noisy-or", depth=10)': CausalEvidence(pool="noisy-or", depth=10),
    'causal_evidence(encoder="all-MiniLM-L6-v2", weight=0.7)': CausalEvidence(ft.SentenceEncoder("all-MiniLM-L6-v2"), 0.7),
    'causal_evidence(encoder="models/e", head="head.json")': CausalEvidence(ft.SentenceEncoder("models/e"), head="head.json"),
}


def test_a_part_is_written_as_the_text_that_makes_it_again():
    for text in TEXTS:
        assert repr(TEXTS[text]) == TEXTS[text].text == text
        assert pipeline(text) == TEXTS[text]


def test_the_tagger_of_topicrank_is_its_first_parameter():
    assert part('topicrank("stopwords", max_words=3)') == TopicRank("stopwords", max_words=3)
    assert repr(TopicRank("stopwords", max_words=3)) == 'topicrank(tagger="stopwords", max_words=3)'


def test_a_string_stands_for_an_encoder_and_for_a_tagger():
    assert CausalEvidence("m").params()["encoder"] == ft.SentenceEncoder("m")
    assert CausalEvidence("m") >> CausalFilter(topicrank="stopwords") is not None
    topic = ft.Topic("1", "strike", "The causes of the strike at the yard are relevant.")
    assert CausalKeywords("stopwords")(topic)["1"].text == CausalKeywords(TopicRank("stopwords"))(topic)["1"].text


def test_a_head_of_this_process_is_shown_by_its_encoder_and_threshold():
    head = CausalHead("words", (1.0,) * 384, (0.0,) * 3, 0.0, 0.5, (0.0,) * 384, {})
    assert repr(CausalEvidence("m", head=head)).endswith("head=CausalHead(encoder='words', threshold=0.5))")


def test_the_words_that_speak_of_documents_can_be_left_out_in_a_text():
    assert pipeline(CausalKeywords(without=META).text) == CausalKeywords(without=META)


def test_of_keyphrases_without_some_words_the_best_n_are_kept() -> None:
    topic = ft.Topic("1", "x", narrative="Relevant articles name the ferry. The ferry stopped at the harbour; the ferry left.")
    stage = ft.causal.CausalKeywords("stopwords", without=("relevant", "articles", "name"))
    whole = stage(ft.Topics([topic]))["1"].text
    first = stage.with_(n=1)(ft.Topics([topic]))["1"].text
    assert whole.startswith(f"{first} ")
