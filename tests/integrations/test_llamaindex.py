"""LlamaIndex: the retriever against the stage itself, and its filters against LlamaIndex' own, with the real package."""

from __future__ import annotations

import asyncio

import pytest
from support.sockets import DOCS, MISSING, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
pytest.importorskip("llama_index.core", reason=MISSING.format("llama-index-core"))

from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters  # noqa: E402
from llama_index.core.vector_stores.utils import build_metadata_filter_fn  # noqa: E402

from fontes.integrations.llamaindex import FontesRetriever, where_of  # noqa: E402


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
    everything = "hot cold well rain water limestone"
    nodes = FontesRetriever(index, filters=filters).retrieve(everything)
    assert {one.node.node_id for one in nodes} == expected


def test_filters_nest_and_join_with_where(index):
    inner = MetadataFilters(filters=[MetadataFilter(key="kind", value="well")])
    outer = MetadataFilters(filters=[inner, MetadataFilter(key="year", operator=">", value=2010)])
    assert [one.node.node_id for one in FontesRetriever(index, filters=outer).retrieve("water")] == ["c"]
    both = FontesRetriever(index, filters=inner, where="year < 2010")
    assert [one.node.node_id for one in both.retrieve("water")] == ["b"]


def test_an_operator_that_fontes_has_not_is_an_error():
    filters = MetadataFilters(filters=[MetadataFilter(key="kind", operator="text_match", value="we")])
    with pytest.raises(ft.FontesError, match="'kind': text_match is a search in a text"):
        where_of(filters)
