"""Pairs of cause and effect in English sentences."""

import json
import re

import pytest
from support.each import each

from fontes.causal import CUES, CausalPair, causal_pairs
from fontes.causal.cues import Cue


@each("cue", CUES)
def test_each_cue_gives_the_cause_and_the_effect_of_its_example(cue: Cue) -> None:
    [pair] = causal_pairs(cue.example, weak=cue.weak)
    assert (pair.cause, pair.effect, pair.cue) == (*cue.gives, cue.name)
    assert pair.negated == (cue.name == "no link between")


@pytest.mark.parametrize("cue", [cue for cue in CUES if cue.weak], ids=lambda cue: cue.name)
def test_a_weak_cue_is_not_used_unless_it_is_wanted(cue: Cue) -> None:
    assert causal_pairs(cue.example) == []


def test_a_cause_stands_before_or_after_its_effect_or_in_the_sentence_before() -> None:
    for text, cause, effect in [
        ("He said that because of the fog, the ferry was late.", "the fog", "the ferry was late"),
        ("The pump failed. This led to a flood.", "The pump failed", "a flood"),
        ("The pump failed, and this led to a flood.", "The pump failed", "a flood"),
        ("The pump failed, which led to a flood.", "The pump failed", "a flood"),
        ("Why was it shut? Because the pins had rusted.", "the pins had rusted", "Why was it shut"),
        ("The flats, flooded because of the breach, were dry by May.", "the breach", "The flats, flooded"),
        ("The yard had lost its credit and consequently went bankrupt.", "The yard had lost its credit", "went bankrupt"),
        ("BECAUSE IT RAINED, THE MATCH WAS OFF.", "IT RAINED", "THE MATCH WAS OFF"),
        ("The gate jammed due\n    to sand.", "sand", "The gate jammed"),
        ("Council.\n\nSince nobody had paid, the yard kept the boat.", "nobody had paid", "the yard kept the boat"),
        ("However, the flood led to strikes.", "the flood", "strikes"),
        ("It’s shut because it isn’t safe.", "it isn’t safe", "It’s shut"),
        ("Workers were forced to leave because the yard closed.", "the yard closed", "Workers were forced to leave"),
    ]:
        assert [pair[:2] for pair in causal_pairs(text)] == [(cause, effect)]


def test_a_chain_in_one_sentence_gives_a_pair_for_each_cue() -> None:
    found = causal_pairs("A fire was caused by a spark and led to panic, which triggered a crush.")
    assert [pair.cue for pair in found] == ["caused by", "led to", "sparked"]
    assert found[0][:2] == ("a spark", "A fire")
    assert found[2][:2] == ("panic", "a crush")


def test_a_pair_that_the_sentence_denies_is_negated() -> None:
    for text in [
        "The flood did not cause the strike.",
        "The bridge was shut, not because of rust.",
        "The leak was never blamed on rust.",
        "No evidence that the pump caused the flood was found.",
        "Officials denied that rain led to the fire.",
        "The storm caused no damage.",
        "He left without causing a fire.",
        "The match went on rather than stopping because of rain, not because of pride.",
    ]:
        assert causal_pairs(text)[-1].negated


def test_a_denial_of_something_else_leaves_the_pair() -> None:
    for text in [
        "It happened not only because of rain.",
        "It did not open because it rained.",
        "Sand choked the gate, so that nothing moved.",
        "It was closed, not because of rust, but because of cost.",
    ]:
        assert not causal_pairs(text)[-1].negated


def test_two_causes_after_their_effect_share_it() -> None:
    found = causal_pairs("It was closed, not because of rust, but because of cost.")
    assert [pair[:2] for pair in found] == [("rust", "It was closed"), ("cost", "It was closed")]


def test_words_that_only_look_like_a_cue_give_nothing() -> None:
    for text in [
        "She has lived here since the war began.",
        "He has not slept since the start of June.",
        "The ferry, due to leave at nine, was late.",
        "A forced sale of goods was held.",
        "We studied drug-induced illness.",
        "They fought for the cause.",
        "All rose after all.",
        "All drivers had been following the map.",
        "After two years and after dark the following day, all was still.",
        "Because of",
        "Therefore.",
        "because because because",
        "",
        "Ceny vzrostly kvůli suchu.",
    ]:
        assert causal_pairs(text, weak="all" in text) == []


def test_the_span_is_the_sentence_with_the_cue() -> None:
    text = "  Mr. Yelland left. The bridge was shut because of rust!  It reopened."
    [pair] = causal_pairs(text)
    assert text[pair.start : pair.end] == "The bridge was shut because of rust!"
    assert isinstance(pair, CausalPair)


def test_sentences_may_be_found_by_a_library() -> None:
    pytest.importorskip("nupunkt")
    text = "The pump failed. This led to a flood."
    assert causal_pairs(text, sentences="nupunkt")[0][:3] == causal_pairs(text)[0][:3]


@pytest.mark.parametrize(
    "sentence",
    [
        "it rained because of wind ",
        *(
            pytest.param(sentence, marks=pytest.mark.slow)
            for sentence in ("not because of x but because of y ", "therefore ", "blamed for ", "because\n")
        ),
        pytest.param("the flood, caused by rain, and ", marks=pytest.mark.slow),
    ],
)
def test_many_cues_in_one_sentence_give_at_most_a_pair_each(sentence: str) -> None:
    # As long as a sentence with 100,000 cues would take for ever if the time grew with the square.
    found = causal_pairs(sentence * 20_000)
    assert len(found) <= 40_000
    assert sum(len(pair.cause) + len(pair.effect) for pair in found) < 3 * len(sentence) * 20_000


def test_a_long_text_without_cues_gives_nothing() -> None:
    for text in ["a" * 500_000, "x" + " " * 500_000 + "y", "\n " * 250_000, ", " * 250_000, "A. " * 30_000]:
        assert causal_pairs(text) == []


def test_every_pair_is_made_of_words_of_the_text(shared) -> None:
    rows = (shared / "causality/cnc_v2_dev.jsonl").read_text("utf-8").splitlines()
    for row in rows:
        text = json.loads(row)["text"]
        for pair in causal_pairs(text, weak=True):
            for part in (pair.cause, pair.effect):
                assert part in text or all(word in text for word in part.split())
                assert re.search(r"\w", part)


def test_pairs_of_news_point_the_right_way(shared) -> None:
    rows = [json.loads(row) for row in (shared / "causality/semeval2010_task8_test.jsonl").read_text("utf-8").splitlines()]
    causal = [row for row in rows if row["label"]]
    assert len(causal) == 328
    right = wrong = 0
    for row in causal:
        first = "(e1,e2)" in row["relation"]
        cause, effect = (row["e1"], row["e2"]) if first else (row["e2"], row["e1"])
        pairs = causal_pairs(row["text"])
        right += any(cause in pair.cause and effect in pair.effect for pair in pairs)
        wrong += any(effect in pair.cause and cause in pair.effect for pair in pairs)
    print(right, wrong)
    assert right > 160
    assert wrong < 6
