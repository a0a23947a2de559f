"""`search` takes one query, of a stage and of an index."""

from __future__ import annotations

import pytest

import fontes as ft


@pytest.fixture
def index(tmp_path):
    return ft.Index.build([("a", "red apples"), ("b", "blue plums"), ("c", "red red plums")], tmp_path / "some.index")


@pytest.mark.parametrize("queries", [["red", "blue"], ("red",), 5, None, {"1": "red"}])
def test_anything_but_one_query_is_an_error_that_says_how_many_are_searched(index, queries):
    with pytest.raises(ft.core.ParameterError, match=rf"not a {type(queries).__name__}; a stage itself takes many"):
        index.bm25().search(queries)
    with pytest.raises(ft.core.ParameterError, match="takes one query"):
        (index.bm25() >> index.rm3() >> index.bm25()).search(queries)
    with pytest.raises(ft.core.ParameterError, match="takes one query"):
        index.search(queries)


def test_an_index_searches_by_bm25(index):
    assert list(index.search("red plums", 2)) == list(index.bm25().search("red plums", 2))
    assert [hit.id for hit in index.search("red")] == ["c", "a"]
