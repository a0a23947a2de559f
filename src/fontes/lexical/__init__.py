"""Lexical retrieval: every model a weighting over one kernel."""

from .feedback import RM3
from .retrievers import BM25, TFIDF, LearnedSparse, Lexical, QueryLikelihood
from .weightings import BM25Weighting, ImpactWeighting, LikelihoodWeighting, Postings, Statistics, TFIDFWeighting, Weighting

__all__ = [
    "BM25",
    "RM3",
    "TFIDF",
    "BM25Weighting",
    "ImpactWeighting",
    "LearnedSparse",
    "Lexical",
    "LikelihoodWeighting",
    "Postings",
    "QueryLikelihood",
    "Statistics",
    "TFIDFWeighting",
    "Weighting",
]
