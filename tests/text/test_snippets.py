"""Snippets: the part of a text that shows best why it was found."""

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to

from fontes.text import Analyzer, snippets
from fontes.text.snippets import Snippet, snippet
from fontes.text.vocabulary import Vocabulary

ENGLISH = Analyzer.of("english")
FILLER = "nothing of interest stands here "
ANY = st.text(st.characters(exclude_categories=()), max_size=120)
TEXTS = st.lists(st.sampled_from(["foxes", "dog", "the", "x", "東京", "é…", "\n\n", "w" * 90, "\u200d", "a.b"])).map(" ".join)


@settings(deadline=None, max_examples=up_to(200), database=None)
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


@settings(deadline=None, max_examples=up_to(150), database=None)
@given(st.lists(st.sampled_from(["fox", "dog", "hen", "x", "yy", "東京", "w" * 50]), max_size=60), st.integers(10, 120))
def test_the_first_window_with_the_most_terms_is_chosen(words, length):
    text = " ".join(words)
    starts = [sum(map(len, words[:i])) + i for i in range(len(words))]
    matches = [(a, a + len(w), w) for a, w in zip(starts, words, strict=True) if w in ("fox", "dog", "hen")]
    windows = [(len({w for a, b, w in matches if a >= s and b <= s + length * 5 // 6}), -s) for s, _, _ in matches]
    most, place = max(windows, default=(0, 0))
    best = -place if most else 0
    for piece in (64, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(snippets, "CHUNK_CHARACTERS", piece)
            found = snippet(Analyzer.of("whitespace"), text, ["fox", "dog", "hen"], length)
        shown = found.text.removeprefix("… ").removesuffix(" …")
        start = 0 if len(text) <= length else min(max(0, best - length // 6), len(text) - length)
        start = (text.find(" ", start) + 1 or start) if start else 0
        assert text[start:].startswith(shown)
        head = len(found.text) - len(found.text.removeprefix("… ")) if start else 0
        inside = [(a - start + head, b - start + head) for a, b, _ in matches if a >= start and b <= start + len(shown)]
        assert found.matches == tuple(inside)


def test_a_long_text_is_looked_at_piece_by_piece(monkeypatch):
    sizes = []
    spans = Vocabulary.spans
    monkeypatch.setattr(Vocabulary, "spans", lambda self, text, terms: (sizes.append(len(text)), spans(self, text, terms))[1])
    text = FILLER * 150_000 + "a fox and a dog " + FILLER * 10
    assert "a **fox** and a **dog**" in snippet(ENGLISH, text, ["fox", "dog"]).marked()
    assert max(sizes) <= 2 * snippets.CHUNK_CHARACTERS
    sizes.clear()
    assert "**fox**" in snippet(ENGLISH, "the fox " + text, ["fox"]).marked()
    assert len(sizes) <= 2, "where all terms are there, the rest is not looked at"


WORDS = st.sampled_from(["foxes", "dog", "the", "x", "東京", "京都東", "é…", "\n\n", "w" * 90, "\u200d", "a.b", "😀", "\ud800"])


@settings(deadline=None, max_examples=up_to(200), database=None)
@given(
    st.sampled_from(["english", "cjk"]), st.lists(st.lists(WORDS, max_size=40).map(" ".join), max_size=4), st.integers(1, 80)
)
def test_many_texts_at_once_have_the_snippets_of_each_read_piece_by_piece(name, texts, length):
    analyzer = Analyzer.of(name)
    terms = frozenset(analyzer("fox dogs 東京都 x"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snippets, "CHUNK_CHARACTERS", 128)
        plainly = [snippet(analyzer, text, terms, length) for text in texts]
    assert snippets.snippets(analyzer, [(text, terms) for text in texts], length) == plainly


FIRSTS = (*"fFkKiI3_", "\u212a", "\u0130", "e\u0301", "\u00c9", "\uff46", "dogs", "Dog")


@pytest.mark.parametrize("stemmer", ["", "porter", "german"])
@pytest.mark.parametrize("normalize", ["", "ascii", "nfkc"])
def test_a_word_is_marked_if_the_analyzer_gives_it_a_term_of_the_query(stemmer: str, normalize: str) -> None:
    """Words that cannot match, by their first letters, are not analysed."""
    for lowercase, version, query in product((True, False), (1, 2), FIRSTS):
        analyzer = Analyzer(stemmer=stemmer, normalize=normalize, lowercase=lowercase, version=version)
        terms = analyzer(query)
        shown = snippet(analyzer, " ".join(FIRSTS), terms, 1000)
        marked = [(a, b) for a, b, token_terms in analyzer.spans(shown.text) if {*token_terms} & {*terms}]
        assert list(shown.matches) == marked, (analyzer, query)
