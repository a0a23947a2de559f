"""Text analysis: from text to index terms."""

from .analyzer import Analyzer, stemmers, stopwords
from .snippets import Snippet, snippet
from .vocabulary import Vocabulary

__all__ = ["Analyzer", "Snippet", "Vocabulary", "snippet", "stemmers", "stopwords"]
