"""Narratives, their keyphrases, and queries built from them."""

from .chains import Cause, Chain, Source, causes
from .cues import CUES
from .evidence import CausalEvidence, CausalHead
from .linking import CausalChains
from .narratives import IRRELEVANT, META, CausalKeywords, Narrative, TitleAndNarrative, relevant_part
from .pairs import CausalFilter, CausalPair, causal_pairs
from .topicrank import TopicRank

__all__ = [
    "CUES",
    "IRRELEVANT",
    "META",
    "CausalChains",
    "CausalEvidence",
    "CausalFilter",
    "CausalHead",
    "CausalKeywords",
    "CausalPair",
    "Cause",
    "Chain",
    "Narrative",
    "Source",
    "TitleAndNarrative",
    "TopicRank",
    "causal_pairs",
    "causes",
    "relevant_part",
]
