"""Phrases and windows: counted as a scan counts them, and as Lucene and Indri place them."""

import itertools
import random

import numpy as np
from hypothesis import given, strategies as st
from support.each import each
from support.naive_queries import frequency, phrase_spans, windows
from support.small_collections import PROPERTY

from fontes.core.query import Phrase, Window
from fontes.index import Index
from fontes.lexical.lists import intersect
from fontes.lexical.proximity import meeting
from fontes.lexical.pseudo_terms import counts_of
from fontes.text.proximity import spans_among

TEXTS = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=12)
TERMS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)


def spans(text: list[str | None], clause: Phrase | Window) -> list[list[int]]:
    terms = sorted(set(clause.terms))
    places = [np.array([at for at, word in enumerate(text) if word == term], dtype=np.int32) for term in terms]
    slots = [terms.index(term) for term in clause.terms]
    return spans_among(clause, places, slots).tolist()


@PROPERTY
@given(TEXTS, TERMS, st.lists(st.integers(1, 3), min_size=3, max_size=3), st.integers(0, 6))
def test_phrases_are_those_of_a_scan(text, terms, gaps, slop):
    offsets = tuple(itertools.accumulate([0, *gaps[: len(terms) - 1]]))
    phrase = Phrase(tuple(terms), offsets, slop)
    assert len(spans(text, phrase)) == len(phrase_spans(text, phrase))


@PROPERTY
@given(TEXTS, TERMS, st.integers(1, 8))
def test_windows_are_those_of_a_scan(text, terms, width):
    window = Window(tuple(terms), width)
    own = spans(text, window)
    assert [first for first, _ in own] == windows(text, window)
    assert all(last - first < width and frequency(text[first : last + 1], window) for first, last in own)


def test_slop_counts_the_moves_of_terms_as_lucene_does():
    for text, slop, count in [
        ("desert spring", 0, 1),
        ("desert cold spring", 0, 0),
        ("desert cold spring", 1, 1),
        ("spring desert", 1, 0),
        ("spring desert", 2, 1),  # as in Lucene, two moves turn two words round
        ("desert spring desert spring", 0, 2),
        ("desert spring desert spring", 3, 2),  # the one turned round holds another
        ("desert a b spring", 2, 1),
    ]:
        assert len(spans(text.split(), Phrase(("desert", "spring"), (0, 1), slop))) == count


def test_a_dropped_word_leaves_a_gap_in_phrase_and_text():
    phrase = Phrase(("history", "art"), (0, 2))
    assert spans(["history", None, "art"], phrase) == [[0, 2]]
    assert spans(["history", "modern", "art"], phrase) == [[0, 2]]
    assert spans(["history", "art"], phrase) == []


def test_equal_terms_stand_at_different_positions():
    assert spans(["new", "york"], Phrase(("new", "new"), (0, 1), 4)) == []
    assert spans(["new", "york", "new"], Phrase(("new", "new"), (0, 1), 1)) == [[0, 2]]
    assert spans(["new", "york"], Window(("new", "new"), 8)) == []
    assert spans(["new", "york", "new", "new"], Window(("new", "new"), 3)) == [[0, 2], [2, 3]]


def test_windows_are_counted_from_each_first_position_as_indri_does():
    text = ["a", "a", "b", "x", "x", "a"]
    assert spans(text, Window(("a", "b"), 4)) == [[0, 2], [1, 2], [2, 5]]
    assert spans(text, Window(("a", "b"), 2)) == [[1, 2]]


@PROPERTY
@given(st.lists(st.sets(st.integers(0, 60)), min_size=1, max_size=4))
def test_lists_meet_where_all_have_a_document(sets):
    lists = [np.array(sorted(one), dtype=np.int32) for one in sets]
    docs, places = meeting(lists)
    assert docs.tolist() == sorted(set.intersection(*sets))
    assert all(own[at].tolist() == docs.tolist() for own, at in zip(lists, places, strict=True))


@each("size", [1, 3, 100, 5_000])
def test_a_short_list_gallops_through_a_long_one(size):
    draw = np.random.default_rng(size)
    long = np.unique(draw.integers(0, 40_000, 20_000)).astype(np.int32)
    short = np.unique(draw.integers(0, 50_000, size)).astype(np.int32)
    of_short, of_long = np.empty(len(short) + 1, np.int64), np.empty(len(short) + 1, np.int64)
    count = intersect(short, long, of_short, of_long)
    expected, own, other = np.intersect1d(short, long, return_indices=True)
    assert short[of_short[:count]].tolist() == expected.tolist()
    assert of_short[:count].tolist() == own.tolist()
    assert of_long[:count].tolist() == other.tolist()


def pairs_of(counts):
    """Documents with their frequencies."""
    return zip(counts.docs.tolist(), counts.tf.tolist(), strict=True)


def test_one_segment_counts_phrases_as_several_do(tmp_path):
    draw = random.Random(3)
    docs = [
        {
            "id": f"d{n}",
            "title": " ".join(draw.choices("abc", k=3)),
            "text": " ".join(draw.choices("abcd", k=draw.randrange(90))),
        }
        for n in range(70)
    ]
    settings = {"fields": ["title", "text"], "analyzer": "whitespace", "positions": True, "separate": True}
    one, several = Index.build(docs, tmp_path / "one", **settings), Index.build(docs[:40], tmp_path / "several", **settings)
    several.add(docs[40:])
    found = 0
    for _ in range(60):
        terms = tuple(draw.choices("abcd", k=draw.randint(1, 4)))
        offsets = tuple(n + (n > 1) * draw.randrange(2) for n in range(len(terms)))
        phrase = Phrase(terms, offsets, field=draw.choice(["", "title", "text"]))
        counts, others = (
            {part.ids[doc]: tf for part in index.state.parts for doc, tf in pairs_of(counts_of(part, phrase))}
            for index in (one, several)
        )
        assert counts == others
        found += len(counts)
    assert found


def test_phrases_of_long_and_many_documents_are_those_of_a_scan(tmp_path):
    draw = random.Random(5)
    texts = [  # distances of one, two and three bytes, and rows that begin in every block
        " ".join(
            draw.choice(["a", "b", "c", "a b", "b a a c", "x " * draw.choice((1, 70, 9_000 if n % 40 == 0 else 5))])
            for _ in range(9)
        )
        for n in range(400)
    ]
    index = Index.build(
        ((f"d{n}", text) for n, text in enumerate(texts)), tmp_path / "x", analyzer="whitespace", positions=True
    )
    places = [{term: {at for at, word in enumerate(text.split()) if word == term} for term in "abc"} for text in texts]
    for _ in range(80):
        terms = tuple(draw.choices("abc", k=draw.randint(1, 4)))
        offsets = tuple(itertools.accumulate((draw.randint(1, 2) for _ in terms[1:]), initial=0))
        words = list(zip(terms, offsets, strict=True))
        scan = [sum(all(at + o in own[t] for t, o in words) for at in own[terms[0]]) for own in places]
        counts = counts_of(index.state.parts[0], Phrase(terms, offsets))
        assert dict(pairs_of(counts)) == {n: tf for n, tf in enumerate(scan) if tf}
