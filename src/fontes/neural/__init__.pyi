from .dense import Dense as Dense
from .encoders import (
    ChunkedEncoder as ChunkedEncoder,
    Encoder as Encoder,
    PartsEncoder as PartsEncoder,
    SentenceEncoder as SentenceEncoder,
    TransformerEncoder as TransformerEncoder,
)
from .late import ColBERT as ColBERT, Late as Late, encode_late as encode_late
from .rerank import (
    CrossEncoder as CrossEncoder,
    EncoderReranker as EncoderReranker,
    LateReranker as LateReranker,
    MonoT5 as MonoT5,
    Reranker as Reranker,
)
from .sparse import SparseEncoder as SparseEncoder, Splade as Splade, SpladeRetriever as SpladeRetriever
