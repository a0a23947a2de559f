"""Narratives, their keyphrases, and the queries made of them."""

from .narratives import IRRELEVANT, relevant_part
from .strategies import CausalKeywords, Narrative, TitleAndNarrative
from .topicrank import TopicRank

__all__ = ["IRRELEVANT", "CausalKeywords", "Narrative", "TitleAndNarrative", "TopicRank", "relevant_part"]
