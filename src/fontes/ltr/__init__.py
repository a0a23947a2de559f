"""Learning to rank: features of candidates, models that weigh them, and the stage that applies a model."""

from .features import Column, Coverage, Feature, Length, QueryLength, Score, feature_matrix
from .model import LinearModel, RankModel, SetModel, TreeModel
from .stage import LearningToRank

__all__ = [
    "Column",
    "Coverage",
    "Feature",
    "LearningToRank",
    "Length",
    "LinearModel",
    "QueryLength",
    "RankModel",
    "Score",
    "SetModel",
    "TreeModel",
    "feature_matrix",
]
