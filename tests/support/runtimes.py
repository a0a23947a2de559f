"""Whose code runs a model."""

from typing import Any

from support.counting import counted


def by_sentence_transformers(model: Any) -> bool:
    """Whether an encoder or a reranker runs its model by sentence-transformers, rather than by our own code."""
    read = model.scores if hasattr(model, "scores") else model.encode_queries
    texts = [("the spring", "a river")] if hasattr(model, "scores") else ["a river"]
    read(texts)  # loads the model
    with counted() as counts:
        read(texts)
    return any("/sentence_transformers/" in file for file, _ in counts.calls)
