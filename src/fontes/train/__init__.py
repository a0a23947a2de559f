"""Training: splits without leakage."""

from .split_duplicates import Duplicate
from .splits import Leakage, Part, Split, leakage, split

__all__ = ["Duplicate", "Leakage", "Part", "Split", "leakage", "split"]
