"""Documents into passages and back, and duplicates."""

from .duplicates import Deduplicate, Duplicates, read_duplicates
from .passages import Passages, to_documents

__all__ = ["Deduplicate", "Duplicates", "Passages", "read_duplicates", "to_documents"]
