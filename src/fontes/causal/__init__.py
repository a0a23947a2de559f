"""Narratives, their keyphrases, and the queries made of them."""

from .filter import CausalFilter
from .narratives import IRRELEVANT, relevant_part
from .pairs import CausalPair, causal_pairs
from .pairs_cues import CUES
from .strategies import META, CausalKeywords, Narrative, TitleAndNarrative
from .topicrank import TopicRank

__all__ = [
    "CUES",
    "IRRELEVANT",
    "META",
    "CausalFilter",
    "CausalKeywords",
    "CausalPair",
    "Narrative",
    "TitleAndNarrative",
    "TopicRank",
    "causal_pairs",
    "relevant_part",
]
