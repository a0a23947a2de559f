"""Analysis: from text to index terms."""

from .analyzer import Analyzer, stemmers, stopwords
from .passages import Passages, to_documents
from .snippets import Snippet, snippet
from .vocabulary import Vocabulary

__all__ = ["Analyzer", "Passages", "Snippet", "Vocabulary", "snippet", "stemmers", "stopwords", "to_documents"]
