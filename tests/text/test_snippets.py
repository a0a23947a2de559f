"""Snippets: the part of a text that shows best why it was found."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from fontes.text import Analyzer
from fontes.text.snippets import Snippet, snippet

ENGLISH = Analyzer.of("english")
FILLER = "nothing of interest stands here "
ANY = st.text(st.characters(exclude_categories=()), max_size=120)
TEXTS = st.lists(st.sampled_from(["foxes", "dog", "the", "x", "東京", "é…", "\n\n", "w" * 90, "\u200d", "a.b"])).map(" ".join)


@settings(deadline=None, max_examples=200, database=None, derandomize=True)
@given(st.one_of(ANY, TEXTS), st.integers(1, 80))
def test_the_matches_of_any_snippet_are_words_of_the_topic_in_order(text, length):
    found = snippet(ENGLISH, text, ["fox", "dog", "x"], length)
    assert len(found.text) <= length + 4
    ends = [0, *(end for _, end in found.matches)]
    assert all(before <= start < end for before, (start, end) in zip(ends, found.matches, strict=False))
    assert all(set(ENGLISH(found.text[start:end])) & {"fox", "dog", "x"} for start, end in found.matches)
    body = found.text.removeprefix("… ").removesuffix(" …")
    assert body in " ".join(text.split())


def test_a_short_text_is_shown_whole_with_its_matches():
    found = snippet(ENGLISH, "The foxes\n\n saw a dog.", ["fox", "dog"])
    assert found.text == "The foxes saw a dog."
    assert found.marked() == "The **foxes** saw a **dog**."
    assert found.marked("<b>", "</b>") == "The <b>foxes</b> saw a <b>dog</b>."


def test_the_piece_with_the_most_different_terms_is_shown():
    text = "fox fox fox " + FILLER * 20 + "a fox and a dog " + FILLER * 20
    found = snippet(ENGLISH, text, ["fox", "dog"], 100)
    assert "a **fox** and a **dog**" in found.marked()
    assert found.text.startswith("… ")
    assert found.text.endswith(" …")


def test_without_a_match_the_beginning_is_shown():
    found = snippet(ENGLISH, FILLER * 20, ["fox"], 60)
    assert found.text.startswith("nothing of interest")
    assert found.text.endswith(" …")
    assert found.matches == ()


def test_no_text_is_an_empty_snippet():
    assert snippet(ENGLISH, "", ["fox"]) == Snippet("", ())


def test_as_html_the_text_is_escaped_and_the_matches_are_marked():
    piece = snippet(ENGLISH, 'A <b>fox</b> & "dogs"', ["fox", "dog"])
    assert piece.html() == "A &lt;b&gt;<mark>fox</mark>&lt;/b&gt; &amp; &quot;<mark>dogs</mark>&quot;"
    assert Snippet("", ()).html() == ""
