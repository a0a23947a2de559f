"""DSPy: the module alone, in a program, and as the retrieval model, with the real package."""

from __future__ import annotations

import asyncio
import copy

import pytest
from support.sockets import MISSING, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
dspy = pytest.importorskip("dspy", reason=MISSING.format("dspy"))

from fontes.integrations.dspy import FontesRetriever  # noqa: E402


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dspy"))


@pytest.mark.parametrize("query", TOPICS.values())
def test_passages_come_in_the_order_of_the_stage_with_scores_and_metadata(index, query):
    ranking = index.bm25().search(query, 3)
    retriever = FontesRetriever(index.bm25(), k=3)
    answer = retriever(query)
    assert (answer.ids, answer.scores) == (ranking.ids, ranking.scores.tolist())
    titles = [f"{doc.title} | " if doc.title else "" for doc in ranking.docs()]
    assert answer.passages == [title + doc.text for title, doc in zip(titles, ranking.docs(), strict=True)]
    assert [{key: one[key] for key in doc.metadata} for one, doc in zip(answer.metadata, ranking.docs(), strict=True)] == [
        doc.metadata for doc in ranking.docs()
    ]
    assert asyncio.run(retriever.acall(query)).toDict() == answer.toDict()


def test_k_and_filter_are_for_one_call_or_for_all(index):
    retriever = FontesRetriever(index, where="kind == 'well'")
    assert retriever("water").ids == ["c", "b"]
    assert retriever("water", k=1, where="year < 2000").ids == ["a"]


def test_it_is_the_retrieval_model_of_retrieve(index):
    with dspy.context(rm=FontesRetriever(index).rm):
        assert dspy.Retrieve(k=2)("cold well").passages == ["a well brings cold water"] * 2


def test_a_program_with_it_is_copied_without_its_index(index):
    class Program(dspy.Module):
        def __init__(self):
            super().__init__()
            self.retrieve = FontesRetriever(index, k=1)

        def forward(self, question):
            return self.retrieve(question)

    program = Program()
    for copied in (program.deepcopy(), copy.deepcopy(program)):
        assert copied.retrieve._search is program.retrieve._search
        assert copied(question="karst").ids == ["e"]


def test_what_is_wrong_is_said(index):
    with pytest.raises(ft.FontesError, match="a query is a text, not a list"):
        FontesRetriever(index)(["water"])
