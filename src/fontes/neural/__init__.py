"""Neural retrieval and reranking: encoders, vector search, late interaction, rerankers."""

from .dense import Dense
from .encoders import ChunkedEncoder, Encoder, PartsEncoder, SentenceEncoder, TransformerEncoder
from .late import ColBERT, Late, encode_late
from .rerank import CrossEncoder, LateReranker, MonoT5, Reranker

__all__ = [
    "ChunkedEncoder",
    "ColBERT",
    "CrossEncoder",
    "Dense",
    "Encoder",
    "Late",
    "LateReranker",
    "MonoT5",
    "PartsEncoder",
    "Reranker",
    "SentenceEncoder",
    "TransformerEncoder",
    "encode_late",
]
