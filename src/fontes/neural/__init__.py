"""Neural retrieval and reranking: encoders, vector search, late interaction, learned sparse retrieval, rerankers."""

from .dense import Dense
from .encoders import ChunkedEncoder, Encoder, PartsEncoder, SentenceEncoder, TransformerEncoder
from .late import ColBERT, Late, encode_late
from .rerank import CrossEncoder, EncoderReranker, LateReranker, MonoT5, Reranker
from .sparse import SparseEncoder, Splade, SpladeRetriever

__all__ = [
    "ChunkedEncoder",
    "ColBERT",
    "CrossEncoder",
    "Dense",
    "Encoder",
    "EncoderReranker",
    "Late",
    "LateReranker",
    "MonoT5",
    "PartsEncoder",
    "Reranker",
    "SentenceEncoder",
    "SparseEncoder",
    "Splade",
    "SpladeRetriever",
    "TransformerEncoder",
    "encode_late",
]
