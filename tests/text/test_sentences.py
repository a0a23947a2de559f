"""Where a long text is cut before spaCy sees it: at the first gap after so many characters, or without one at twice as many."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

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


@pytest.mark.parametrize("seed", range(6))
def test_a_long_text_is_cut_at_the_first_gap_after_the_longest_length(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(sentences, "MAX_TEXT_LENGTH", 20)
    text = "".join(rng.choice(["word", "longer", ". ", "\n", "\n\n", "  ", "x" * 50], 60))
    edges = sentences._edges(text)
    assert [text[a:b] for a, b in pairwise(edges)] == cut(text, 20)
    assert max(b - a for a, b in pairwise(edges)) <= 40
    assert len(edges) > 8


def test_a_text_up_to_the_longest_length_is_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "MAX_TEXT_LENGTH", 5)
    assert sentences._edges("") == [0, 0]
    assert sentences._edges("a\nb\nc") == [0, 5]
    assert sentences._edges("abcdefgh") == [0, 8, 8]
