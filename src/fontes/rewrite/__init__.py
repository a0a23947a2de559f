"""Rewriting of topics: turns of conversations into self-contained queries, posts into plain sentences."""

from ..text.posts import PlainPosts
from .canardt5 import CanardT5
from .conversation import Conversation
from .hqe import HQE
from .quretec import QuReTeC
from .reasoning import WithReasoning
from .statements import ManualStatements, Statements, statement_scores, statements_of
from .terms import RewritingScores, TermScores, relevant_terms, rewriting_scores, term_scores
from .turns import AsTyped, Automatic, LastTurns, Manual, Raw, WeightedTurns

__all__ = [
    "HQE",
    "AsTyped",
    "Automatic",
    "CanardT5",
    "Conversation",
    "LastTurns",
    "Manual",
    "ManualStatements",
    "PlainPosts",
    "QuReTeC",
    "Raw",
    "RewritingScores",
    "Statements",
    "TermScores",
    "WeightedTurns",
    "WithReasoning",
    "relevant_terms",
    "rewriting_scores",
    "statement_scores",
    "statements_of",
    "term_scores",
]
