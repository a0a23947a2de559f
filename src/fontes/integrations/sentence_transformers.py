"""sentence-transformers: its retrieval evaluator for a collection of Fontes. Needs `fontes[neural]`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..core import InputError, MissingExtraError, Qrels, Topics
from ..core.values import text_of
from ..formats import read_corpus

try:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
except ImportError:
    raise MissingExtraError.of("sentence-transformers", "neural", "InformationRetrievalEvaluator") from None


def evaluator(
    corpus: str | Path | Iterable[object], topics: object, qrels: object, rel: int = 1, **options: Any
) -> InformationRetrievalEvaluator:
    """Return the `InformationRetrievalEvaluator` of a collection, for training with sentence-transformers.

    Its figures differ from those of `fontes.evaluate` (sentence-transformers 6.2): equal scores are ordered by document id
    ascending, here descending, and MAP@k is divided by min(k, relevant documents), AP@k here by all of them. All relevant
    documents count 1, whatever their grade.

    Args:
        corpus: Documents, as `read_corpus` accepts them; models read the title, a space and the text.
        topics: Topics, as `Topics.read` accepts them; topics without a relevant document are left out.
        qrels: Judgments, as `Qrels.of` accepts them.
        rel: The least grade that is relevant.
        **options: Further arguments of `InformationRetrievalEvaluator`, such as `name`, `ndcg_at_k` or `batch_size`.

    Raises:
        InputError: No topic has a relevant document.
    """
    texts: dict[str, Any] = {doc.id: text_of(doc) for doc in read_corpus(corpus)}
    queries: dict[str, Any] = {topic.id: topic.text for topic in Topics.read(topics).values()}
    relevant: dict[str, set[str]] = {}
    for topic_id, grades in Qrels.of(qrels).items():
        doc_ids = {doc_id for doc_id, grade in grades.items() if grade >= rel}
        if doc_ids and topic_id in queries:
            relevant[topic_id] = doc_ids
    if not relevant:
        raise InputError(f"no topic has a document with a grade of {rel} or more; look at the ids of topics, and at rel")
    queries = {topic_id: queries[topic_id] for topic_id in relevant}
    return InformationRetrievalEvaluator(queries, texts, relevant, **options)
