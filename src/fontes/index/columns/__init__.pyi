from .facets import FacetColumns as FacetColumns, facet_columns as facet_columns, facets_of as facets_of
from .filters import Filter as Filter, explain_exclusion as explain_exclusion, filter_of as filter_of
from .lookup import (
    column_type as column_type,
    column_values as column_values,
    date_forms as date_forms,
    greatest_value as greatest_value,
)
from .schema import Schema as Schema, joined_schema as joined_schema, stored_kind as stored_kind
from .values import SegmentColumns as SegmentColumns
from .writer import COLUMNS as COLUMNS, ColumnWriter as ColumnWriter, converted_columns as converted_columns
