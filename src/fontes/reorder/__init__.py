"""Reordering by metadata and diversity: boosts, sorting, collapsing and MMR, without a model of their own."""

from .boost import Boost
from .candidates import Reordering
from .collapse import Collapse
from .mmr import MaximalMarginalRelevance
from .sort import Sort

__all__ = ["Boost", "Collapse", "MaximalMarginalRelevance", "Reordering", "Sort"]
