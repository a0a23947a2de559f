from .bm25 import BM25 as BM25, BM25Weighting as BM25Weighting
from .dependence import SequentialDependence as SequentialDependence
from .feedback import RM3 as RM3, CausalFeedback as CausalFeedback
from .learned_sparse import LearnedSparse as LearnedSparse, LearnedSparseWeighting as LearnedSparseWeighting
from .likelihood import LikelihoodWeighting as LikelihoodWeighting, QueryLikelihood as QueryLikelihood
from .retriever import Lexical as Lexical
from .synonyms import Synonyms as Synonyms
from .tfidf import TFIDF as TFIDF, TFIDFWeighting as TFIDFWeighting
from .weighting import Postings as Postings, Statistics as Statistics, Weighting as Weighting
