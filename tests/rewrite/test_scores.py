"""Rewrites measured as text, against values worked out by hand, sacrebleu and rouge_score."""

import sys
from pathlib import Path

import numpy as np
import pytest

import fontes as ft

MANUAL = {"1": "Is throat cancer treatable?", "2": "What are the symptoms of lung cancer?", "3": "Why?"}
FOUND = {"1": "throat cancer Is it treatable?", "2": "the symptoms", "3": "Why?"}


def scores(found: dict[str, str], manual: dict[str, str] | None = None, **options: object) -> ft.rewrite.RewritingScores:
    return ft.rewrite.rewriting_scores(found, manual or MANUAL, **{"bleu": False, **options})  # type: ignore[arg-type]


def test_content_terms_are_the_distinct_stems_that_are_no_stop_words() -> None:
    # "is", "it", "the", "of" and "are" are stop words of the analyzer english; "what" and "why" are not
    found = scores(FOUND)
    # {throat, cancer, treatabl} of {throat, cancer, treatabl}; {symptom} of {what, symptom, lung, cancer}; {why} of {why}
    assert found.per_topic("term recall") == {"1": 1.0, "2": 0.25, "3": 1.0}
    assert found.per_topic("term precision") == {"1": 1.0, "2": 1.0, "3": 1.0}
    assert found.per_topic("term F1") == pytest.approx({"1": 1.0, "2": 0.4, "3": 1.0})
    assert found["term recall"] == pytest.approx(0.75)


def test_what_a_content_term_is_can_be_chosen() -> None:
    found = scores({"1": "Is it treatable?"}, {"1": "Is throat cancer treatable?"}, analyzer="standard")
    assert found["term recall"] == 0.5
    assert found["term precision"] == pytest.approx(2 / 3)


def test_a_word_said_twice_is_one_term_and_two_words() -> None:
    found = scores({"1": "river river"}, {"1": "river river river lake"})
    assert found["term recall"] == 0.5
    assert found["ROUGE-1 recall"] == 0.5


def test_rouge_1_recall_counts_words_without_case_and_marks() -> None:
    assert scores(FOUND).per_topic("ROUGE-1 recall") == pytest.approx({"1": 1.0, "2": 2 / 7, "3": 1.0})
    # Lin 2004: each word as often as it is in the reference, at most: twice "the" and once "cat", of four words.
    assert scores({"1": "the cat, the cat, the"}, {"1": "The cat, the dog."})["ROUGE-1 recall"] == 0.75
    assert scores({"1": "Žluťoučký kůň"}, {"1": "žluťoučký KŮŇ?"})["ROUGE-1 recall"] == 1.0


def test_rewrites_without_content_terms() -> None:
    found = scores({"1": "", "2": "the", "3": "is it"}, {"1": "lake", "2": "is it?", "3": "river"})
    assert found.per_topic("term recall") == {"1": 0.0, "2": 1.0, "3": 0.0}
    assert found.per_topic("term precision") == {"1": 0.0, "2": 1.0, "3": 0.0}
    assert found.per_topic("ROUGE-1 recall") == {"1": 0.0, "2": 0.0, "3": 0.0}
    assert scores({"1": "?"}, {"1": "!"})["ROUGE-1 recall"] == 0.0


def test_manual_rewrites_are_those_that_the_topics_carry() -> None:
    topics = ft.datasets.samples.harbour.conversations.topics()
    own = ft.rewrite.rewriting_scores(ft.rewrite.Raw()(topics), bleu=False)
    manual = {topic.id: topic.turns[-1].manual for topic in topics.values()}
    given = ft.rewrite.rewriting_scores(ft.rewrite.Raw()(topics), manual, bleu=False)
    assert (
        dict(own)
        == dict(given)
        == dict(ft.rewrite.rewriting_scores(ft.rewrite.Raw()(topics), ft.rewrite.Manual()(topics), bleu=False))
    )
    assert own.topic_ids == tuple(topics)
    assert set(ft.rewrite.rewriting_scores(ft.rewrite.Manual()(topics), bleu=False).values()) == {1.0}


def test_bleu_is_that_of_sacrebleu() -> None:
    # sacrebleu 2.6.0: corpus_bleu, and sentence_bleu with effective order
    pytest.importorskip("sacrebleu")
    import sacrebleu

    found = ft.rewrite.rewriting_scores(FOUND, MANUAL)
    hypotheses, references = list(FOUND.values()), list(MANUAL.values())
    assert found.corpus_bleu == sacrebleu.corpus_bleu(hypotheses, [references]).score
    each = [sacrebleu.sentence_bleu(a, [b]).score for a, b in zip(hypotheses, references, strict=True)]
    assert found.array("BLEU").tolist() == each
    assert found["BLEU"] == pytest.approx(np.mean(each))
    assert found.bleu_signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_the_raw_utterances_of_2021(shared: Path) -> None:
    # corpus BLEU: sacrebleu 2.6.0; ROUGE-1 recall: rouge_score 0.1.2, which gives the same for each of the 239 turns
    pytest.importorskip("sacrebleu")
    topics = ft.read_topics(shared / "cast2021/turns.jsonl")
    found = ft.rewrite.rewriting_scores(ft.rewrite.Raw()(topics))
    assert found.corpus_bleu == pytest.approx(55.3007, abs=1e-4)
    assert found["ROUGE-1 recall"] == pytest.approx(0.6726, abs=1e-4)


def test_without_bleu_nothing_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    found = scores(FOUND)
    assert np.isnan(found.corpus_bleu)
    assert list(found) == ["term recall", "term precision", "term F1", "ROUGE-1 recall"]


def test_scores_print_as_a_table() -> None:
    pytest.importorskip("sacrebleu")
    lines = str(ft.rewrite.rewriting_scores(FOUND, MANUAL)).splitlines()
    assert lines[0] == "term recall      0.7500"
    assert lines[-1].startswith("corpus BLEU")
    assert "nan" not in str(scores(FOUND))


def test_arrays_are_read_only() -> None:
    found = scores(FOUND)
    with pytest.raises(ValueError, match="read-only"):
        found.array("term recall")[0] = 1
