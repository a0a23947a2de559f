"""Late interaction: ColBERT, its token vectors and their search."""

from .colbert import ColBERT
from .encode import encode_late
from .late import Late

__all__ = ["ColBERT", "Late", "encode_late"]
