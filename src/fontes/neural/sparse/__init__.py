"""Learned sparse retrieval: texts become weighted terms by a model, which lexical search runs over."""

from .base import SparseEncoder
from .retriever import SpladeRetriever
from .splade import Splade

__all__ = ["SparseEncoder", "Splade", "SpladeRetriever"]
