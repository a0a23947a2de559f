"""Base class of rerankers, their scores on disk, and mixtures of their scores with those of a run."""

from .reranker import Interpolated, Reranker

__all__ = ["Interpolated", "Reranker"]
