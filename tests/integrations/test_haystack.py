"""Haystack: the component alone and in a saved pipeline, and its filters against Haystack's own, with the real package."""

from __future__ import annotations

import asyncio

import pytest
from support.sockets import DOCS, MISSING, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
pytest.importorskip("haystack", reason=MISSING.format("haystack-ai"))

from haystack import Document, Pipeline  # noqa: E402
from haystack.utils.filters import document_matches_filter  # noqa: E402

from fontes.integrations.haystack import FontesRetriever, where_of  # noqa: E402


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("haystack"))


@pytest.mark.parametrize("query", TOPICS.values())
def test_documents_come_in_the_order_of_the_stage_with_scores_and_metadata(index, query):
    ranking = index.bm25(k1=1.2).search(query, 3)
    component = FontesRetriever(index, "bm25(k1=1.2)", top_k=3)
    documents = component.run(query)["documents"]
    assert [(one.id, one.score) for one in documents] == [(hit.id, hit.score) for hit in ranking]
    for one, doc in zip(documents, ranking.docs(), strict=True):
        assert one.content == doc.text
        assert {key: one.meta[key] for key in doc.metadata} == doc.metadata
    assert asyncio.run(component.run_async(query))["documents"] == documents


def test_a_pipeline_is_saved_and_loaded_with_it(index):
    pipeline = Pipeline()
    pipeline.add_component("retriever", FontesRetriever(index.path, "tfidf()", top_k=2, filters="kind == 'well'"))
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["fontes.integrations.haystack"])
    before, after = (one.run({"retriever": {"query": "cold water"}}) for one in (pipeline, loaded))
    assert before == after
    assert [one.id for one in after["retriever"]["documents"]] == ["c", "b"]
    one = loaded.run(
        {"retriever": {"query": "water", "top_k": 1, "filters": {"field": "meta.year", "operator": "<", "value": 2000}}}
    )
    assert [doc.id for doc in one["retriever"]["documents"]] == ["a"]


def leaf(field, operator, value):
    return {"field": field, "operator": operator, "value": value}


LEAVES = [
    leaf("meta.kind", "==", "well"),
    leaf("meta.kind", "!=", "well"),
    leaf("year", ">", 2005),
    leaf("meta.year", ">=", 2005),
    leaf("meta.year", "<", 2005),
    leaf("meta.year", "<=", 2005),
    leaf("meta.year", "==", None),
    leaf("meta.year", "!=", None),
    leaf("meta.kind", "in", ["well", "sky"]),
    leaf("meta.kind", "not in", ["well", "sky"]),
    leaf("meta.year", "not in", [1990]),
    leaf("meta.year", "in", []),
]


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT"])
@pytest.mark.parametrize("number", range(len(LEAVES)))
def test_filters_select_what_those_of_haystack_select(index, number, operator):
    inner = {"operator": operator, "conditions": [LEAVES[number], LEAVES[(number + 5) % len(LEAVES)]]}
    filters = {"operator": "AND", "conditions": [inner, leaf("meta.kind", "!=", "stone")]}
    documents = [Document(id=doc.id, meta=dict(doc.metadata)) for doc in DOCS]
    expected = {one.id for one in documents if document_matches_filter(filters, one)}
    everything = "hot cold well rain water limestone"
    assert {one.id for one in FontesRetriever(index).run(everything, filters)["documents"]} == expected


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"operator": "XOR", "conditions": []}, "is no filter of Haystack"),
        (leaf("meta.year", "~", 1), "there is no operator '~'"),
        (leaf("meta.year", "in", "abc"), "in takes a list"),
        (leaf("meta.year", ">", None), "> takes a value"),
        ([1], "is no filter of Haystack"),
    ],
)
def test_a_wrong_filter_is_one_sentence(filters, message):
    with pytest.raises(ft.FontesError, match=message):
        where_of(filters)
