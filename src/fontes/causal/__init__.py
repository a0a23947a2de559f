"""Narratives, their keyphrases, and the queries made of them."""

from .chains import Cause, Chain, Source, causes
from .evidence import CausalEvidence
from .evidence_head import CausalHead
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
