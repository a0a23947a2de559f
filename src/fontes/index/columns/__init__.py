"""Columns: values of the documents' metadata that filters compare and facets count, beside the inverted index."""

from .facets import facets_of
from .filters import Filter, filter_of, left_out
from .merge import merge_columns
from .schema import Schema
from .stored import SegmentColumns, columns_of
from .writer import ColumnWriter

__all__ = [
    "ColumnWriter",
    "Filter",
    "Schema",
    "SegmentColumns",
    "columns_of",
    "facets_of",
    "filter_of",
    "left_out",
    "merge_columns",
]
