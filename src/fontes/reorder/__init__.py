"""Reordering by metadata and diversity: boosts, sorting, collapsing and MMR, without a model of their own."""

from .boost import Boost
from .candidates import Reordering

__all__ = ["Boost", "Reordering"]
