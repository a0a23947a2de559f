"""Reordering of runs by metadata, ids and similarity, without trained models: boosts, sorting, collapsing, MMR, companions."""

from .boost import Boost
from .candidates import Reordering
from .collapse import Collapse
from .companions import Companions
from .mmr import MaximalMarginalRelevance
from .own_documents import NotItself
from .sort import Sort

__all__ = ["Boost", "Collapse", "Companions", "MaximalMarginalRelevance", "NotItself", "Reordering", "Sort"]
