"""Analysis: from text to index terms."""

from .analyzer import Analyzer, stemmers, stopwords
from .vocabulary import Vocabulary

__all__ = ["Analyzer", "Vocabulary", "stemmers", "stopwords"]
