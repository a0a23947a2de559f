"""Documents as bytes that stand end to end, as builds take them."""

from .documents import Packed, Packing, joined, metadata_bytes, packed, packed_columns

__all__ = ["Packed", "Packing", "joined", "metadata_bytes", "packed", "packed_columns"]
