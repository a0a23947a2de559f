"""Tables of strings."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fontes.core import Strings, strings, utf8

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=20)


@settings(deadline=None)
@given(TEXTS)
def test_a_table_is_a_sequence_of_its_strings(texts):
    table = Strings.of(texts)
    assert len(table) == len(texts)
    assert table.tolist() == list(table) == texts
    assert [table[i] for i in range(len(texts))] == texts
    assert [table[i] for i in range(-len(texts), 0)] == texts
    assert table[1:5] == texts[1:5]
    assert table[::-2] == texts[::-2]


@settings(deadline=None)
@given(TEXTS)
def test_order_and_rank_are_those_of_the_code_points(texts):
    table = Strings.of(texts)
    assert [texts[i] for i in table.order] == sorted(texts)
    assert table.rank[table.order].tolist() == list(range(len(texts)))


def test_the_order_of_texts_that_begin_alike():
    for equal in range(6, 27):
        texts = ["a" * equal + end for end in ("c", "b", "ba", "", "bc", "b\0", "a" * 9, "c" * 17)]
        assert [texts[i] for i in Strings.of(texts).order] == sorted(texts)


@settings(deadline=None)
@given(TEXTS, st.text(max_size=3))
def test_find_gives_the_position_or_minus_1(texts, other):
    texts = list(dict.fromkeys(texts))
    table = Strings.of(texts)
    assert [table.find(t) for t in texts] == list(range(len(texts)))
    assert all(t in table for t in texts)
    if other not in texts:
        assert table.find(other) == -1
        assert other not in table


@settings(deadline=None)
@given(TEXTS.filter(bool), st.data())
def test_take_gives_the_strings_at_positions_few_or_many(texts, data):
    positions = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=30))
    assert Strings.of(texts).take(np.array(positions, dtype=np.int64)) == [texts[p] for p in positions]


def test_an_order_that_is_known_already_is_used():
    table = Strings.of(["b", "a"])
    again = Strings(table.blob, table.offsets, np.array([1, 0], dtype=np.uint32))
    assert again.find("a") == 1


def test_a_position_outside_the_table_is_an_index_error():
    for position in (2, -3):
        with pytest.raises(IndexError):
            Strings.of(["a", "b"])[position]


def test_an_empty_table_works():
    table = Strings.of([])
    assert (len(table), table.tolist(), table.find("a"), table.take(np.zeros(0, dtype=int))) == (0, [], -1, [])


def test_lone_surrogates_become_the_replacement_character():
    assert utf8("a\ud800b") == "a\ufffdb".encode()
    assert utf8("\U0001f600é") == "\U0001f600é".encode()
    assert Strings.of(["\udfff"]).tolist() == ["\ufffd"]


def test_something_that_is_no_string_is_in_no_table():
    assert 5 not in Strings.of(["5"])


def test_a_table_shows_its_size():
    assert repr(Strings.of(["a", "b"])) == "Strings(2)"


@given(st.lists(st.text(max_size=4), unique=True, max_size=40), st.text(max_size=4))
def test_many_searches_of_a_table_give_what_the_first_gave(texts, other):
    table = Strings.of(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strings, "SEARCHES_BEFORE_HEADS", 0)
        patch.setattr(strings, "HEAD", 3)
        assert [table.find(text) for text in texts] == list(range(len(texts)))
        assert table.find(other) == (texts.index(other) if other in texts else -1)
