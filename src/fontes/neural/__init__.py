"""Neural retrieval and reranking: encoders, vector search, late interaction, rerankers."""

from .colbert import ColBERT
from .crossencoder import CrossEncoder
from .dense import Dense
from .late import Late
from .late_rerank import LateReranker
from .late_store import encode_late
from .monot5 import MonoT5
from .rerank import Reranker

__all__ = ["ColBERT", "CrossEncoder", "Dense", "Late", "LateReranker", "MonoT5", "Reranker", "encode_late"]
