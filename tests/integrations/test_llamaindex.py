"""LlamaIndex: the retriever against the stage itself, and its filters against LlamaIndex' own, with the real package."""

import asyncio
from itertools import product

import pytest
from support.sockets import DOCS, MISSING, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
pytest.importorskip("llama_index.core", reason=MISSING.format("llama-index-core"))

from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters  # noqa: E402
from llama_index.core.vector_stores.utils import build_metadata_filter_fn  # noqa: E402

from fontes.integrations.llamaindex import FontesRetriever, where_of  # noqa: E402
from fontes.integrations.searching import IndexSearch  # noqa: E402


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("llamaindex"))


@pytest.mark.parametrize("query", TOPICS.values())
def test_nodes_come_in_the_order_of_the_stage_with_scores_and_metadata(index, query):
    ranking = index.ql(mu=5).search(query, 3)
    nodes = FontesRetriever(index.ql(mu=5), similarity_top_k=3).retrieve(query)
    assert [(one.node.node_id, one.score) for one in nodes] == [(hit.id, hit.score) for hit in ranking]
    for one, doc in zip(nodes, ranking.docs(), strict=True):
        assert one.node.text == doc.text
        assert {key: one.node.metadata[key] for key in doc.metadata} == doc.metadata
    assert asyncio.run(FontesRetriever(index.ql(mu=5), similarity_top_k=3).aretrieve(query)) == nodes


EVERYTHING = "hot cold well rain water limestone"
FILTERS = [
    [("kind", "==", "well")],
    [("kind", "!=", "well")],
    [("year", ">", 2005)],
    [("year", ">=", 2005), ("kind", "==", "well")],
    [("year", "<", 2005)],
    [("year", "<=", 2005)],
    [("year", "!=", 2005)],
    [("year", "==", 2005)],
    [("kind", "in", ["well", "sky"])],
    [("kind", "nin", ["well", "sky"])],
    [("year", "nin", [1990])],
    [("tags", "contains", "water")],
    [("tags", "any", ["hot", "cold"])],
    [("tags", "all", ["water", "cold"])],
    [("year", "is_empty", None)],
    [("year", ">", 2005), ("kind", "==", "spring")],
]


@pytest.mark.parametrize("condition", ["and", "or", "not"])
@pytest.mark.parametrize("rows", FILTERS, ids=str)
def test_filters_select_what_those_of_llamaindex_select(index, rows, condition):
    filters = MetadataFilters(
        filters=[MetadataFilter(key=key, operator=sign, value=value) for key, sign, value in rows], condition=condition
    )
    passes = build_metadata_filter_fn({doc.id: doc.metadata for doc in DOCS}.__getitem__, filters)
    expected = {doc.id for doc in DOCS if passes(doc.id)}
    nodes = FontesRetriever(index, filters=filters).retrieve(EVERYTHING)
    assert {one.node.node_id for one in nodes} == expected


def test_filters_nest_and_join_with_where(index):
    inner = MetadataFilters(filters=[MetadataFilter(key="kind", value="well")])
    outer = MetadataFilters(filters=[inner, MetadataFilter(key="year", operator=">", value=2010)])
    assert [one.node.node_id for one in FontesRetriever(index, filters=outer).retrieve("water")] == ["c"]
    both = FontesRetriever(index, filters=inner, where="year < 2010")
    assert [one.node.node_id for one in both.retrieve("water")] == ["b"]


COMPARED = {
    "year": [2005, 2005.0, "2005", [2005], [], [1990, 2012], None],
    "kind": ["well", "ell", ["well", "sky"], [], 3, None],
    "tags": ["hot", ["hot"], ["hot", "water"], None],
}


@pytest.mark.parametrize("column", COMPARED)
def test_a_filter_selects_what_it_selects_in_llamaindex_or_is_an_error(index, column):
    agreed = 0
    for operator, value in product(FilterOperator, COMPARED[column]):
        filters = MetadataFilters(filters=[MetadataFilter(key=column, operator=operator, value=value)])
        passes = build_metadata_filter_fn({doc.id: doc.metadata for doc in DOCS}.__getitem__, filters)
        try:
            ours = {one.node.node_id for one in FontesRetriever(index, filters=filters).retrieve(EVERYTHING)}
        except ft.FontesError as error:
            ours = str(error)
        if isinstance(ours, str):
            assert ours.startswith(f"filter of '{column}': ")  # without a position in a text that nobody wrote
        else:
            assert ours == {doc.id for doc in DOCS if passes(doc.id)}, (operator, value)
            agreed += 1
    assert agreed >= {"year": 24, "kind": 20, "tags": 9}[column]


@pytest.mark.parametrize("condition", ["and", "or", "not"])
def test_filters_may_be_empty(index, condition):
    empty = MetadataFilters(filters=[], condition=condition)
    assert len(FontesRetriever(index, filters=empty).retrieve(EVERYTHING)) == len(DOCS)
    nested = MetadataFilters(filters=[empty, MetadataFilter(key="kind", value="well")])
    assert len(FontesRetriever(index, filters=nested).retrieve(EVERYTHING)) == 2


def test_an_operator_that_fontes_has_not_is_an_error(index):
    filters = MetadataFilters(filters=[MetadataFilter(key="kind", operator="text_match", value="we")])
    with pytest.raises(ft.FontesError, match="'kind': text_match is a search in a text"):
        where_of(filters, IndexSearch.of(index))


def test_a_filter_of_a_stage_that_searches_nothing_is_an_error():
    filters = MetadataFilters(filters=[MetadataFilter(key="kind", value="well")])
    with pytest.raises(ft.FontesError, match=r"filters: there is nothing in .* that searches an index"):
        FontesRetriever(ft.stage(lambda topics: {}), filters=filters)
