"""Passages, aggregation to documents, rationales and duplicates."""

from ..formats.duplicates import Duplicates, read_duplicates
from .aggregate import BestPassages, PassageDocuments, sentence_qrels, to_documents
from .duplicates import Deduplicate
from .rationales import Rationale, RationaleDocuments, Rationales, TextScorer, rationales_of, with_rationales
from .split import Passages, Sentences

__all__ = [
    "BestPassages",
    "Deduplicate",
    "Duplicates",
    "PassageDocuments",
    "Passages",
    "Rationale",
    "RationaleDocuments",
    "Rationales",
    "Sentences",
    "TextScorer",
    "rationales_of",
    "read_duplicates",
    "sentence_qrels",
    "to_documents",
    "with_rationales",
]
