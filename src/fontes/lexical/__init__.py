"""Lexical retrieval: every model a weighting over one kernel."""

from .retrievers import BM25, TFIDF, Lexical
from .weightings import BM25Weighting, Statistics, TFIDFWeighting, Weighting

__all__ = ["BM25", "TFIDF", "BM25Weighting", "Lexical", "Statistics", "TFIDFWeighting", "Weighting"]
