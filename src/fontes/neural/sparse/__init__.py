"""Learned sparse retrieval: models weight the terms of texts, and lexical search runs over the weights."""

from .splade import SparseEncoder, Splade, SpladeRetriever

__all__ = ["SparseEncoder", "Splade", "SpladeRetriever"]
