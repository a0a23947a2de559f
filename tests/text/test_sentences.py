"""Where a long text is cut before spaCy sees it: at the first gap after so many characters, or without one at twice as many."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.each import each

from fontes.text import sentences


def cut(text: str, longest: int) -> list[str]:
    """The pieces, worked out one after the other."""
    pieces = []
    while len(text) > longest:
        gap = re.search(sentences.SPACE.pattern, text[longest : 2 * longest])
        end = longest + gap.end() if gap else min(2 * longest, len(text))
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text]


class WholePieces:
    """A pipeline of spaCy for which each text is one sentence."""

    component_names = pipe_names = ("senter",)

    def select_pipes(self, enable: list[str]) -> None:
        assert enable == ["senter"]

    def pipe(self, pieces: Iterable[tuple[str, Any]], **_: Any) -> Iterator[tuple[Any, Any]]:
        for text, place in pieces:
            yield SimpleNamespace(sents=[SimpleNamespace(start_char=0, end_char=len(text))]), place


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, int], list[tuple[int, int]]]]:
    """Returns the pieces in which spaCy receives a text, by the longest length."""
    monkeypatch.setattr(sentences, "spacy_pipeline", lambda *_: WholePieces())
    sentences.sentences.cache_clear()

    def spans(text: str, longest: int) -> list[tuple[int, int]]:
        monkeypatch.setattr(sentences, "MAX_TEXT_LENGTH", longest)
        return sentences.sentence_spans(text, "spacy:whole")

    yield spans
    sentences.sentences.cache_clear()


@each("seed", range(6))
def test_a_long_text_is_cut_at_the_first_gap_after_the_longest_length(seed: int, pieces: Any) -> None:
    rng = np.random.default_rng(seed)
    text = "".join(rng.choice(["word", "longer", ". ", "\n", "\n\n", "  ", "x" * 50], 60))
    spans = pieces(text, 20)
    assert [text[a:b] for a, b in spans] == cut(text, 20)
    assert max(b - a for a, b in spans) <= 40
    assert len(spans) > 7


def test_a_text_up_to_the_longest_length_is_one_piece(pieces: Any) -> None:
    assert pieces("", 5) == [(0, 0)]
    assert pieces("a\nb\nc", 5) == [(0, 5)]
    assert pieces("abcdefgh", 5) == [(0, 8), (8, 8)]


def split(text: str) -> list[str]:
    return [text[a:b] for a, b in sentences.sentence_spans(text)]


def test_what_closes_a_sentence_stays_with_it() -> None:
    for expected in [
        ["He left.", "(She stayed.)", "They met again."],
        ["It works (see Fig. 2).", "We tested it."],
        ['He said "stop."', "Then he left."],
        ["He said “stop.”", "Then he left.", "“Go!” she cried.", "He went."],
        ["He said 'no.'", "Then he left."],
        ["He said ‘no.’", "Then he left."],
        ["One.)”", "Two.", "One.”)", "Three."],
        ["« Arrêtez. »", "Il partit.", "«Non!»", "Elle resta.", "« Oui. »"],
        ["„Halt.“", "Er ging.", "»Nein.«", "Sie blieb."],
        ["(It has two.", "They are in brackets.)", "Next one."],
        ["He came [1].", "She left.[2]", "They met.[15]", "It was on.[123]", "It ended."],
        ["First…", "Second."],
        ["Really?!", "“Yes?!”", "¿No?", "No."],
        ["He came.[1][2]", "She left.[3, 4]", "They met.[citation needed]", "It ended."],
        ["”Han kom.”", "”Hon gick.”", "Sedan kom de."],
        ["Tôi đến.", "Ở đây có nước.", "It is 3.3 Å.", "At last."],
    ]:
        assert split(" ".join(expected)) == expected
        assert split("\n".join(expected)) == expected


def test_an_abbreviation_ends_no_sentence() -> None:
    for text in [
        "Smith et al. Showed this, as did Jones et al. (2010) and Li et al. [3].",
        "See Fig. 3, Figs. S1 and S2, FIG. 4 and Eq. 4 on pp. 5 and 6 (cf. Dr. Li, Prof. No and St. Mary).",
        "On Jan. 5 and Sept. 11, Vol. 3, No. 4, ch. 5, Sec. 6, Ref. 7 and p. 8 were read, i.e. All, c. 1900.",
        "Brown v. Board (e.g. Mr. X) vs. Y, viz. Z.",
        "“Why?” he asked, and (Stop!) nobody answered.",
        "É. Zola, Č. Novák and Г. Иванов (Art. 5, NR. 7, DEC. 1962) agree.",
    ]:
        assert split(text) == [text]
        assert split(text.replace(" ", "\n")) == [text.replace(" ", "\n")]


def test_an_empty_line_ends_a_sentence_also_after_an_abbreviation() -> None:
    assert split("by J. D.\n\nSmith et al. \n \nThe harbour.\r\n\r\nthe end") == [
        "by J. D.",
        "Smith et al.",
        "The harbour.",
        "the end",
    ]


def test_a_month_or_a_number_word_ends_a_sentence_before_a_word() -> None:
    assert split("It ended in Jan. The next began. He said no. They left.") == [
        "It ended in Jan.",
        "The next began.",
        "He said no.",
        "They left.",
    ]
