"""Columns: values of the documents' metadata that filters compare and facets count, beside the inverted index."""

from .facets import facet_columns, facets_of
from .filters import Filter, filter_of, left_out
from .merge import columns_anew, merge_columns
from .schema import Schema, joined_schema, stored_kind
from .stored import SegmentColumns, columns_of
from .writer import ColumnWriter

__all__ = [
    "ColumnWriter",
    "Filter",
    "Schema",
    "SegmentColumns",
    "columns_anew",
    "columns_of",
    "facet_columns",
    "facets_of",
    "filter_of",
    "joined_schema",
    "left_out",
    "merge_columns",
    "stored_kind",
]
