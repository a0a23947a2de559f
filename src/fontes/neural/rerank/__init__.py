"""Rerankers: a model scores each topic with each of its documents."""

from ...rerank.reranker import Reranker
from .crossencoder import CrossEncoder
from .encoders import EncoderReranker, LateReranker
from .monot5 import MonoT5

__all__ = ["CrossEncoder", "EncoderReranker", "LateReranker", "MonoT5", "Reranker"]
