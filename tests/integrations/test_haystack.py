"""Haystack: the component alone and in a saved pipeline, and its filters against Haystack's own, with the real package."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from itertools import product

import pytest
from support.sockets import DOCS, MISSING, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
pytest.importorskip("haystack", reason=MISSING.format("haystack-ai"))

from haystack import Document, Pipeline  # noqa: E402
from haystack.errors import FilterError  # noqa: E402
from haystack.utils.filters import document_matches_filter  # noqa: E402

from fontes.integrations.haystack import FontesRetriever, where_of  # noqa: E402
from fontes.integrations.searching import IndexSearch  # noqa: E402

DATES = {"a": "2020-05-17", "b": "2020-05-17T12:00:00Z", "c": "2021-01-01T00:00:00+02:00", "d": None, "e": "2019-12-31"}


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


COMPARED = {
    "year": [2005, 2005.0, "2005", None],
    "kind": ["well", 3, None],
    "tags": ["hot", ["hot"], ["hot", "water"]],
    "on": [
        datetime(2020, 5, 17),
        datetime(2020, 5, 17, 12, tzinfo=UTC),
        datetime(2021, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        "2020-05-17T00:00:00",
        "2020-05-17 12:00",
        None,
    ],
}
GROUPS = [
    [],
    [leaf("meta.kind", "==", "well")],
    [{"operator": "AND", "conditions": []}, leaf("meta.kind", "==", "well")],
    [{"operator": "OR", "conditions": []}, leaf("meta.kind", "==", "well")],
    [{"operator": "NOT", "conditions": []}],
    [{"operator": "NOT", "conditions": [leaf("meta.kind", "==", "well")]}, leaf("meta.year", "in", [])],
]


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    docs = [ft.Doc(doc.id, "water", "", {**doc.metadata, "on": DATES[doc.id]}) for doc in DOCS]
    return ft.Index.build(docs, tmp_path_factory.mktemp("haystack") / "dated.index")


def selected(index, filters):
    """What Haystack and the component select: ids, or the text of an error."""
    documents = [Document(id=doc.id, content=doc.text, meta=dict(doc.metadata)) for doc in index.docs(index.ids)]
    try:
        theirs = {one.id for one in documents if document_matches_filter(filters, one)}
    except FilterError as error:
        theirs = str(error)
    try:
        ours = {one.id for one in FontesRetriever(index).run("water", filters)["documents"]}
    except ft.FontesError as error:
        ours = str(error)
    return theirs, ours


@pytest.mark.parametrize("column", COMPARED)
def test_a_filter_selects_what_it_selects_in_haystack_or_is_an_error(dated, column):
    values = COMPARED[column]
    lists = [[], [None], values[:1], values[:2], [values[0], None], values]
    leaves = [*product(("==", "!=", ">", ">=", "<", "<="), values), *product(("in", "not in"), lists)]
    agreed = 0
    for operator, value in leaves:
        theirs, ours = selected(dated, leaf(f"meta.{column}", operator, value))
        if isinstance(ours, str):
            assert ours.startswith(f"filter of '{column}': ")  # without a position in a text that nobody wrote
        elif column != "tags":  # an empty list is a missing value here
            assert ours == theirs, (operator, value)
            agreed += 1
    assert agreed >= {"year": 22, "kind": 14, "tags": 0, "on": 46}[column]


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT"])
@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_groups_of_filters_may_be_empty(dated, operator, number):
    theirs, ours = selected(dated, {"operator": operator, "conditions": GROUPS[number]})
    assert ours == theirs


def test_an_index_without_documents_has_every_filter(tmp_path):
    empty = FontesRetriever(ft.Index.build([], tmp_path / "empty.index"), filters=leaf("meta.year", ">", 2000))
    assert empty.run("water")["documents"] == []


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (leaf("meta.yeer", "==", 2005), "^filter of 'yeer': there is no column 'yeer'; did you mean 'year'"),
        (leaf("meta.yeer", "in", []), "^filter of 'yeer': there is no column"),
        (leaf("meta.yeer", ">", None), "^filter of 'yeer': there is no column"),
        (leaf("meta.year", "==", "2005"), "^filter of 'year': .* compared with a whole number, not with '2005'$"),
        (leaf("meta.kind", ">", "m"), "^filter of 'kind': Haystack orders numbers and dates, not the strings"),
        (leaf("meta.kind", "==", datetime(2020, 1, 1)), "^filter of 'kind': a date is compared with columns of dates"),
        (leaf("id", "==", "a"), "^filter of 'id': documents are filtered only by their metadata"),
        (leaf("content", "==", "a"), "^filter of 'content': documents are filtered only by their metadata"),
        ({"operator": "XOR", "conditions": []}, "is no filter of Haystack"),
        (leaf("meta.year", "~", 1), "there is no operator '~'"),
        (leaf("meta.year", "in", "abc"), "in takes a list"),
        ([1], "is no filter of Haystack"),
    ],
)
def test_a_wrong_filter_is_one_sentence(index, filters, message):
    with pytest.raises(ft.FontesError, match=message):
        where_of(filters, IndexSearch.of(index))
