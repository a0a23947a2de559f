"""Reordering of runs by metadata and diversity, without trained models: boosts, sorting, collapsing and MMR."""

from .boost import Boost
from .candidates import Reordering
from .collapse import Collapse
from .mmr import MaximalMarginalRelevance
from .sort import Sort

__all__ = ["Boost", "Collapse", "MaximalMarginalRelevance", "Reordering", "Sort"]
