"""Learned sparse retrieval: texts become weighted terms by a model, which lexical search runs over."""

from .retriever import SpladeRetriever
from .splade import SparseEncoder, Splade

__all__ = ["SparseEncoder", "Splade", "SpladeRetriever"]
