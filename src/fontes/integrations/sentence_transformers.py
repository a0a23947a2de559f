"""sentence-transformers: its evaluator of retrieval from topics, judgments and documents. Needs `fontes[neural]`."""

from __future__ import annotations

from typing import Any

from ..core import InputError, MissingExtraError, Qrels, Topics
from ..core.values import text_of
from ..formats import read_corpus

try:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
except ImportError:
    raise MissingExtraError.of("sentence-transformers", "neural", "InformationRetrievalEvaluator") from None


def evaluator(corpus: Any, topics: Any, qrels: Any, rel: int = 1, **options: Any) -> InformationRetrievalEvaluator:
    """Return the `InformationRetrievalEvaluator` of a collection, for training with sentence-transformers.

    Args:
        corpus: Documents: anything that `read_corpus` accepts; models read the title, a space and the text.
        topics: Anything that `Topics.read` accepts; those without a relevant document are left out.
        qrels: Anything that `Qrels.of` accepts.
        rel: The least relevant grade.
        **options: Further arguments of `InformationRetrievalEvaluator`, such as `name`, `ndcg_at_k` or `batch_size`.

    Raises:
        InputError: No topic has a relevant document.
    """
    texts: dict[str, Any] = {doc.id: text_of(doc) for doc in read_corpus(corpus)}
    queries: dict[str, Any] = {topic.id: topic.text for topic in Topics.read(topics).values()}
    relevant = {
        topic_id: {doc_id for doc_id, grade in grades.items() if grade >= rel}
        for topic_id, grades in Qrels.of(qrels).items()
        if topic_id in queries
    }
    relevant = {topic_id: docs for topic_id, docs in relevant.items() if docs}
    if not relevant:
        raise InputError(f"no topic has a document with a grade of {rel} or more; look at the ids of topics, and at rel")
    return InformationRetrievalEvaluator({one: queries[one] for one in relevant}, texts, relevant, **options)
