"""Reordering of runs by metadata, ids and diversity, without trained models: boosts, sorting, collapsing and MMR."""

from .boost import Boost
from .candidates import Reordering
from .collapse import Collapse
from .mmr import MaximalMarginalRelevance
from .own_documents import NotItself
from .sort import Sort

__all__ = ["Boost", "Collapse", "MaximalMarginalRelevance", "NotItself", "Reordering", "Sort"]
