"""Learned sparse retrieval: texts become weighted terms by a model, which lexical search runs over."""

from .splade import SparseEncoder, Splade, SpladeRetriever

__all__ = ["SparseEncoder", "Splade", "SpladeRetriever"]
