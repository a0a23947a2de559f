"""Neural retrieval and reranking: encoders, vector search, late interaction, rerankers."""

from .dense import Dense

__all__ = ["Dense"]
