"""Neural retrieval and reranking: encoders, vector search, late interaction, rerankers."""

from .chunked import ChunkedEncoder
from .colbert import ColBERT
from .crossencoder import CrossEncoder
from .dense import Dense
from .encoders import Encoder, PartsEncoder
from .encoders_sentence import SentenceEncoder
from .encoders_transformer import TransformerEncoder
from .late import Late
from .late_encode import encode_late
from .late_rerank import LateReranker
from .monot5 import MonoT5
from .rerank import Reranker

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
