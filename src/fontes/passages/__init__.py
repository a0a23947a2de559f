"""Documents into passages and back, and duplicates."""

from .aggregate import to_documents
from .documents import PassageDocuments
from .duplicates import Deduplicate, Duplicates, read_duplicates
from .split import Passages

__all__ = ["Deduplicate", "Duplicates", "PassageDocuments", "Passages", "read_duplicates", "to_documents"]
