"""LangChain: the retriever against the stage itself, with the real package."""

import asyncio
import itertools

import pytest
from support.sockets import DOCS, MISSING, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
pytest.importorskip("langchain_core", reason=MISSING.format("langchain-core"))

from langchain_core.documents import Document  # noqa: E402
from langchain_core.runnables import RunnableLambda  # noqa: E402

from fontes.integrations.langchain import FontesRetriever  # noqa: E402


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("langchain"))


@pytest.mark.parametrize("query", TOPICS.values())
def test_documents_come_in_the_order_of_the_stage_with_scores_and_metadata(index, query):
    ranking = index.bm25(k1=1.2).search(query, 3)
    documents = FontesRetriever(stage=index.bm25(k1=1.2), k=3).invoke(query)
    assert [one.id for one in documents] == ranking.ids
    assert [one.metadata["score"] for one in documents] == ranking.scores.tolist()
    for one, doc in zip(documents, ranking.docs(), strict=True):
        assert one.page_content == doc.text
        assert one.metadata.get("title", "") == doc.title
        assert {key: one.metadata[key] for key in doc.metadata} == doc.metadata


def test_k_and_filter_are_for_one_call_or_for_all(index):
    retriever = FontesRetriever(stage=index, k=2, where="kind == 'well'")
    assert [one.id for one in retriever.invoke("water")] == ["c", "b"]
    assert [one.id for one in retriever.invoke("water", where="year < 2000")] == ["a"]
    assert [one.id for one in retriever.invoke("water", k=1)] == ["c"]


def test_batch_and_async_give_what_invoke_gives(index):
    retriever = FontesRetriever(stage=index.bm25())
    queries = list(TOPICS.values()) * 5
    single = [retriever.invoke(query) for query in queries]
    assert retriever.batch(queries) == single

    async def together():
        depths = itertools.cycle([1, 2, 4])
        return await asyncio.gather(*(retriever.ainvoke(query, k=k) for query, k in zip(queries, depths, strict=False)))

    for documents, k, whole in zip(asyncio.run(together()), itertools.cycle([1, 2, 4]), single, strict=False):
        assert documents == whole[:k]


def test_it_is_a_part_of_a_chain(index):
    chain = FontesRetriever(stage=index.bm25(), k=1) | RunnableLambda(lambda documents: documents[0].page_content)
    assert chain.invoke("karst") == "limestone and karst"


def test_documents_of_langchain_are_indexed_with_their_titles_and_metadata(tmp_path):
    documents = [Document(id=d.id, page_content=d.text, metadata={**d.metadata, "title": d.title}) for d in DOCS]
    retriever = FontesRetriever.from_documents(documents, tmp_path / "x.index", k=2)
    first = retriever.invoke("springs", where="year == 1990")[0]
    assert (first.id, first.metadata["title"], first.metadata["kind"]) == ("a", "Springs", "spring")


def test_texts_without_ids_are_numbered(tmp_path):
    retriever = FontesRetriever.from_texts(["rain", "snow"], tmp_path / "x.index", [{"n": 1}, {"n": 2}], analyzer="simple")
    assert [(one.id, one.metadata["n"]) for one in retriever.invoke("snow")] == [("2", 2)]


def test_what_is_wrong_is_said(index, tmp_path):
    with pytest.raises(ft.FontesError, match="there is no column 'yeer'"):
        FontesRetriever(stage=index).invoke("water", where="yeer > 2000")
    with pytest.raises(ft.FontesError, match="k, must be a whole number from 1 up, not 0"):
        FontesRetriever(stage=index, k=0).invoke("water")
    with pytest.raises(ft.FontesError, match="made from a stage or an index, not from str"):
        FontesRetriever(stage="docs.index")
    index.export(tmp_path / "x.ciff")
    bare = ft.Index.build(tmp_path / "x.ciff", tmp_path / "bare.index")
    with pytest.raises(ft.FontesError, match=r"bare.index holds none"):
        FontesRetriever(stage=bare).invoke("water")
