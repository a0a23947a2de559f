"""Columns beside the inverted index: values of the documents' metadata, which filters compare and facets count."""

from .facets import FacetColumns, facet_columns, facets_of
from .filters import Filter, explain_exclusion, filter_of
from .lookup import column_type, column_values, date_forms, greatest_value
from .schema import Schema, joined_schema, stored_kind
from .values import SegmentColumns
from .writer import COLUMNS, ColumnWriter, converted_columns

__all__ = [
    "COLUMNS",
    "ColumnWriter",
    "FacetColumns",
    "Filter",
    "Schema",
    "SegmentColumns",
    "column_type",
    "column_values",
    "converted_columns",
    "date_forms",
    "explain_exclusion",
    "facet_columns",
    "facets_of",
    "filter_of",
    "greatest_value",
    "joined_schema",
    "stored_kind",
]
