"""Tables of strings of several segments in one: what Python's sets and sorting give."""

import random

import numpy as np
from hypothesis import given, strategies as st
from support.each import each
from support.small_collections import PROPERTY

from fontes.core import Strings
from fontes.index.tables import Finder, find_positions, join_tables, union
from fontes.storage.compiled import load

WORDS = st.text(st.sampled_from("abé東𝒜\x00"), max_size=4)
TABLES = st.lists(st.sets(WORDS, max_size=12), max_size=6)


@PROPERTY
@given(TABLES)
def test_the_union_of_tables_is_that_of_their_strings_in_order(tables):
    whole, places = union([Strings.of(sorted(table)) for table in tables])
    assert whole.tolist() == sorted(set().union(*tables))
    assert whole.order.tolist() == list(range(len(whole)))
    assert [[whole[p] for p in own.tolist()] for own in places] == [sorted(table) for table in tables]
    assert all(own.dtype == np.int32 for own in places)


@PROPERTY
@given(TABLES, st.randoms())
def test_tables_end_to_end_have_the_order_that_sorting_gives(tables, draw):
    distinct = sorted(set().union(*tables))
    draw.shuffle(distinct)
    cuts = sorted(draw.randrange(len(distinct) + 1) for _ in range(draw.randrange(4)))
    parts = [distinct[a:b] for a, b in zip([0, *cuts], [*cuts, len(distinct)], strict=True)]
    live = [draw.choice([None, sorted(draw.sample(range(len(part)), len(part) // 2))]) for part in parts]
    table = join_tables([Strings.of(part) for part in parts], [None if n is None else np.array(n, np.int64) for n in live])
    taken = [part if n is None else [part[i] for i in n] for part, n in zip(parts, live, strict=True)]
    assert table.tolist() == [string for part in taken for string in part]
    assert table.take(table.order) == sorted(table.tolist())
    assert all(table[table.find(string)] == string for string in table)


@PROPERTY
@given(st.sets(WORDS, max_size=12), st.lists(WORDS, max_size=12), st.randoms())
def test_strings_are_located_in_a_table_in_any_order(strings, queries, draw):
    table = sorted(strings)
    draw.shuffle(table)
    expected = [table.index(query) if query in strings else -1 for query in queries]
    assert find_positions(Strings.of(queries), Strings.of(table)).tolist() == expected


def test_arrays_by_memory_map_and_of_small_types_are_taken_as_others():
    table = Strings.of(["a", "bc", "d"])
    small = Strings(table.blob, table.offsets.astype(np.uint8), np.arange(3, dtype=np.uint32))
    assert union([small, Strings.of(["b", "bc"])])[0].tolist() == ["a", "b", "bc", "d"]
    assert find_positions(Strings.of(["bc", "x"]), small).tolist() == [1, -1]


def test_one_whole_table_is_joined_as_it_is():
    table = Strings.of(["b", "a"])
    assert join_tables([table], [None]) is table


@each("size", [0, 1, 15, 16, 17, 40])
def test_a_string_is_found_in_an_ascending_table(size: int) -> None:
    load()
    draw = random.Random(size)
    strings = sorted({"".join(draw.choices(["a", "b", "é"], k=draw.randrange(14))) for _ in range(size)})
    find = Finder(Strings.of(strings))
    for string in [*strings, "", "a", "b", "aaaaaaaa", "bbbbbbbbb", "zz"]:
        assert find(string) == (strings.index(string) if string in strings else -1)
