"""Passages, aggregation to documents, rationales and duplicates."""

from .aggregate import BestPassages, PassageDocuments, sentence_qrels, to_documents
from .duplicates import Deduplicate, Duplicates, read_duplicates
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
