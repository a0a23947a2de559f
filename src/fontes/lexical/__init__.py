"""Lexical retrieval models, as weightings over one search kernel."""

from .bm25 import BM25, BM25Weighting
from .dependence import SequentialDependence
from .feedback import RM3, CausalFeedback
from .learned_sparse import LearnedSparse, LearnedSparseWeighting
from .likelihood import LikelihoodWeighting, QueryLikelihood
from .retriever import Lexical
from .synonyms import Synonyms
from .tfidf import TFIDF, TFIDFWeighting
from .weighting import Postings, Statistics, Weighting

__all__ = [
    "BM25",
    "RM3",
    "TFIDF",
    "BM25Weighting",
    "CausalFeedback",
    "LearnedSparse",
    "LearnedSparseWeighting",
    "Lexical",
    "LikelihoodWeighting",
    "Postings",
    "QueryLikelihood",
    "SequentialDependence",
    "Statistics",
    "Synonyms",
    "TFIDFWeighting",
    "Weighting",
]
