"""Encoders: texts in, vectors out."""

from .base import Encoder, PartsEncoder
from .chunked import ChunkedEncoder
from .sentence import SentenceEncoder
from .transformer import TransformerEncoder

__all__ = ["ChunkedEncoder", "Encoder", "PartsEncoder", "SentenceEncoder", "TransformerEncoder"]
