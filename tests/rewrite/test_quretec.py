"""QuReTeC: relevant terms, scores and rewriting, with a tiny model that has learned one pattern."""

# ruff: noqa: F401, F811 (fixtures are imported, and named as parameters)
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.term_classifier import NOUNS, TOPICS, asked, base, model, one_thread, trained

from fontes.core import InputError, ParameterError, Topic, Topics, Turn
from fontes.formats import read_topics
from fontes.rewrite import QuReTeC, TermScores, relevant_terms, term_scores
from fontes.rewrite.terms import Labels, history_of, words_of
from fontes.train import Training

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


# What is relevant


def test_a_word_is_relevant_where_its_stem_is_in_the_rewrite_and_not_in_the_turn() -> None:
    topic = replace(
        TOPICS["c0_2"],
        turns=(Turn("Do the lighthouses of Rhodes shine?"), Turn("Is it old?", manual="Is the lighthouse of Rhodes old?")),
    )
    marked = dict(zip(history_of(topic), Labels()(topic), strict=True))
    assert [word for word, relevant in marked.items() if relevant] == ["lighthouses", "Rhodes"]
    again = replace(topic, turns=(topic.turns[0], replace(topic.turns[1], text="Is the lighthouse old?")))
    assert [w for w, relevant in zip(history_of(again), Labels()(again), strict=True) if relevant] == ["Rhodes"]


def test_stop_words_and_marks_are_never_relevant() -> None:
    topic = asked("Who are they?", "Why?", manual="Why are they who? ?")
    assert Labels()(topic) == [False] * 4


def test_labels_in_czech_take_czech_stems() -> None:
    topic = Topic(
        "1_2",
        "Kdo ho nechal postavit?",
        turns=(Turn("Co je Karlův most?"), Turn("Kdo ho nechal postavit?", "Kdo nechal postavit Karlova mostu?")),
    )
    assert Labels("czech")(topic) == [False, False, True, True, False]


def test_the_history_holds_the_answers_of_the_last_turns_before_the_current_one() -> None:
    topic = TOPICS["c0_3"]
    assert history_of(topic) == words_of("Tell me about the harbour. Is it old?")
    assert history_of(topic, 1) == words_of("Tell me about the harbour. Is it old? The harbour is big.")
    assert history_of(asked("One?", "Two?", "Three?", answers=True), 9) == words_of(
        "One? The mill is old. Two? The mill is old."
    )
    assert history_of(asked("alone", answers=True), 3) == []


def test_terms_of_a_released_conversation(shared: Path) -> None:
    topic = read_topics(shared / "canard" / "dev.json")["C_2d211835213b45588ad5ca868ce7fabd_0_2"]
    assert relevant_terms(topic, 1) == ["Zappa", "Mothers", "Invention"]
    assert relevant_terms(topic) == []


# Scores


def test_scores_count_distinct_terms_or_each_occurrence() -> None:
    topic = asked("The mill, the old mill.", "And?", manual="And the mill?")
    found = {"1_1": [("The", 0.1), ("mill", 0.9), (",", 0.0), ("the", 0.1), ("old", 0.8), ("mill", 0.2), (".", 0.0)]}
    assert term_scores(found, [topic]) == TermScores(1, relevant=1, predicted=2, correct=1)
    assert term_scores(found, [topic], each="occurrence") == TermScores(1, relevant=2, predicted=2, correct=1)
    assert term_scores(found, [topic], threshold=0.85) == TermScores(1, relevant=1, predicted=1, correct=1)
    scores = term_scores(found, [topic], each="occurrence")
    assert (scores.precision, scores.recall, scores.f1) == (0.5, 0.5, 0.5)


def test_words_that_the_model_did_not_read_count_as_not_found() -> None:
    topic = asked("The mill.", "The pier.", "And?", manual="And the mill and the pier?")
    read = [("The", 0.0), ("pier", 0.9), (".", 0.0)]
    assert term_scores({"1_1": read}, [topic]) == TermScores(1, relevant=2, predicted=1, correct=1)
    assert term_scores({}, [topic]).recall == 0


def test_topics_without_earlier_turns_do_not_count() -> None:
    assert term_scores({}, [asked("The mill?", manual="The mill?")]) == TermScores(0, 0, 0, 0)
    assert TermScores(0, 0, 0, 0).f1 == 0


# Rewriting


def test_the_relevant_terms_come_after_the_turn_and_the_topic_keeps_its_origin(model: QuReTeC) -> None:
    rewritten = model(TOPICS)
    assert rewritten["c0_1"].text == "Tell me about the harbour."
    assert rewritten["c0_3"].text == "Who built it? harbour"
    assert rewritten["c0_3"].origin is TOPICS["c0_3"]
    assert rewritten["c0_3"].turns == TOPICS["c0_3"].turns


def test_a_term_is_added_once_in_its_order_and_never_where_the_turn_has_it(model: QuReTeC) -> None:
    every = model.with_(threshold=0.0)
    assert every(asked("The mill, the old Mill.", "Is it old?"))["1_1"].text == "Is it old? The mill"
    assert every.terms(asked("a b a c", "b?")) == {"1_1": ["a", "c"]}
    assert model.with_(threshold=1.0)(TOPICS)["c0_2"].text == "Is it old?"


def test_probabilities_do_not_depend_on_what_else_is_in_the_batch(model: QuReTeC) -> None:
    together = model.probabilities(TOPICS)
    for name in ("c0_1", "c3_2", "c5_3"):
        alone = model.probabilities(TOPICS[name])[name]
        assert [word for word, _ in alone] == [word for word, _ in together[name]]
        assert [p for _, p in alone] == pytest.approx([p for _, p in together[name]], abs=1e-5)


def test_answers_belong_to_the_history_where_they_are_wanted(model: QuReTeC) -> None:
    topic = asked("Is it old?", "Who built it?", answers=True)
    assert [word for word, _ in model.probabilities(topic)["1_1"]] == words_of("Is it old?")
    assert [word for word, _ in model.with_(answers=1).probabilities(topic)["1_1"]] == words_of("Is it old? The mill is old.")


def test_a_long_history_loses_its_oldest_words_first(model: QuReTeC) -> None:
    turns = [f"Tell me about the {noun}." for noun in (*NOUNS, *NOUNS)][:60]
    topic = asked(*turns, "Who built it?")
    read = [word for word, _ in model.probabilities(topic)["1_1"]]
    assert read == words_of(" ".join(turns))[-len(read) :]
    assert 50 < len(read) <= 64 - 3 - 4  # the model has 64 positions, of which 7 are separators and the turn
    assert len(model.with_(max_length=20).probabilities(topic)["1_1"]) == 13
    assert model(topic)["1_1"].text.startswith("Who built it?")


def test_the_words_that_are_labelled_are_those_that_the_model_read(model: QuReTeC) -> None:
    """A history that was cut has the probabilities of its newest words alone."""
    turns = [f"Tell me about the {noun}." for noun in NOUNS]
    cut = model.probabilities(asked(*turns, "Who built it?"))["1_1"]
    newest = words_of(" ".join(turns))[-len(cut) :]
    alone = model.probabilities(asked(" ".join(newest), "Who built it?"))["1_1"]
    assert [word for word, _ in alone] == [word for word, _ in cut] == newest
    assert [p for _, p in alone] == pytest.approx([p for _, p in cut], abs=1e-5)
    oldest = model.probabilities(asked(" ".join(words_of(" ".join(turns))[: len(cut)]), "Who built it?"))["1_1"]
    assert [p for _, p in oldest] != pytest.approx([p for _, p in cut], abs=1e-2)


def test_a_very_long_turn_leaves_half_to_the_history(model: QuReTeC) -> None:
    topic = asked("Tell me about the mill. " * 10, "old " * 500)
    assert 20 < len(model.probabilities(topic)["1_1"]) <= 32
    assert model(topic)["1_1"].text.startswith("old old")


@each(
    ("texts", "expected"),
    [
        (("why?",), "why?"),
        (("why?", "why?", "why?"), "why?"),
        (("Tell me about the mill.", ""), "Tell me about the mill"),
        (("", "why?"), "why?"),
        (("   ", "   "), ""),
        (("?!", "why?"), "why?"),
        (("Kdy byl postaven Karlův most?", "Kdo ho nechal postavit?"), "Kdo ho nechal postavit? Kdy byl postaven Karlův most"),
        (("港はどこ？", "why?"), "why? 港はどこ"),
        (("\u200d\ufeff", "why?"), "why?"),
    ],
)
def test_odd_conversations(model: QuReTeC, texts: tuple[str, ...], expected: str) -> None:
    assert model.with_(threshold=0.0)(asked(*texts))["1_1"].text.strip() == expected
    assert model(asked(*texts))["1_1"].text.startswith(texts[-1].strip())


def test_topics_without_turns_need_no_model(tmp_path: Path) -> None:
    topics = Topics([Topic("1", "Where is the mill?"), asked("why?", id="2")])
    assert [topic.text for topic in QuReTeC(tmp_path / "nowhere")(topics).values()] == ["Where is the mill?", "why?"]
    assert len(QuReTeC("nowhere")(Topics())) == 0


def test_the_threshold_of_the_training_is_used_unless_another_is_given(model: QuReTeC, trained: tuple[Path, Training]) -> None:
    assert model.used_threshold == trained[1].facts["threshold"]
    assert model.with_(threshold=0.3).used_threshold == 0.3


def test_the_key_tells_the_content_of_the_model(model: QuReTeC, trained: tuple[Path, Training], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(trained[0], tmp_path / "copy"))
    assert model.with_(name_or_path=str(copy)).key() == model.key()
    assert model.with_(answers=1).key() != model.key()
    assert trained[1].fingerprint != ""
    assert model.fingerprint == model.with_(name_or_path=str(copy)).fingerprint


# Models of others


def headed(base: Path, folder: Path, labels: list[str]) -> Path:
    config = transformers.AutoConfig.from_pretrained(base)
    config.id2label = dict(enumerate(labels))
    config.label2id = {name: number for number, name in enumerate(labels)}
    transformers.set_seed(3)
    transformers.BertForTokenClassification(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


def test_a_checkpoint_with_the_labels_of_the_authors_is_read(base: Path, tmp_path: Path) -> None:
    folder = headed(base, tmp_path, ["[PAD]", "O", "REL", "[CLS]", "[SEP]"])
    stage = QuReTeC(folder, precision="float32", device="cpu")
    (values,) = stage.probabilities(TOPICS["c0_2"]).values()
    assert stage.used_threshold == 0.5
    module = transformers.BertForTokenClassification.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        "tell me about the harbour . [SEP] is it old ?", return_tensors="pt"
    )
    with torch.inference_mode():
        direct = torch.softmax(module(**tokens).logits[0], dim=1)[1:7, 2]
    assert [p for _, p in values] == pytest.approx(direct.tolist(), abs=1e-5)


def test_models_that_are_no_term_classifiers_are_errors(base: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no term classifier: it has no weights for classifier\.(bias|weight)"):
        QuReTeC(base)(TOPICS)
    with pytest.raises(InputError, match=r"none of its labels \(A, B, C\) is REL"):
        QuReTeC(headed(base, tmp_path / "abc", ["A", "B", "C"]))(TOPICS)


@each("change", [{"threshold": 1.5}, {"answers": -1}, {"max_length": 3}, {"answers": 0.5}])
def test_parameters_that_make_no_sense_are_errors(model: QuReTeC, change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(change))} must be"):
        model.with_(**change)(TOPICS)


def test_probabilities_are_of_the_last_words_where_those_at_the_front_are_missing() -> None:
    topic = Topic("1", "why?", turns=(Turn("alpha beta"), Turn("why?", manual="why beta?")))
    found = term_scores({"1": [("beta", 0.9)]}, [topic])
    assert (found.relevant, found.predicted, found.correct) == (1, 1, 1)
