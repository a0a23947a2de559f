"""Haystack: a pipeline of Fontes as a component. Needs `fontes[haystack]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..core import Doc, Hit, MissingExtraError, ParameterError, expression
from ..index import Index
from .searching import IndexSearch, comparison, joined, metadata_of, negated, where_text

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError:
    raise MissingExtraError.of("haystack-ai", "haystack", "FontesRetriever of Haystack") from None


FIELDS = {field.name for field in fields(Document)}


@component
class FontesRetriever:
    """A retriever of Haystack: `FontesRetriever("papers.index", "bm25(k1=1.2)", top_k=5)`.

    A saved pipeline of Haystack has the path of the index;
    `Pipeline.loads(text, allowed_modules=["fontes.integrations.haystack"])` loads it.

    Documents come best first, with their scores and metadata; a title is in `meta["title"]`. A filter is a dict as Haystack
    defines it, or a text such as `year >= 2020`. The filter of a call replaces that of the component, as with
    `FilterPolicy.REPLACE`.

    Args:
        index: The folder of an index, its address, or an `Index`.
        pipeline: Expression of a stage from topics to a run.
        top_k: Number of documents.
        filters: Filter of metadata.

    Raises:
        IndexFormatError: There is no index.
        ParameterError: The expression or the filter is invalid.
    """

    def __init__(
        self,
        index: str | Path | Index,
        pipeline: str = "bm25()",
        top_k: int = 10,
        filters: dict[str, Any] | str | None = None,
    ) -> None:
        self.index = index if isinstance(index, Index) else Index.open(index)
        self.search = IndexSearch.of(expression.pipeline(pipeline, self.index))
        self.pipeline, self.top_k, self.filters = pipeline, top_k, filters
        where_of(filters, self.search)  # raises ParameterError for an invalid filter

    def to_dict(self) -> Any:
        """Return the component for a saved pipeline: the path of the index, the expression, `top_k` and the filter."""
        return default_to_dict(self, index=str(self.index.path), pipeline=self.pipeline, top_k=self.top_k, filters=self.filters)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FontesRetriever:
        """Return the component of a saved pipeline, which opens the index."""
        retriever: FontesRetriever = default_from_dict(cls, data)
        return retriever

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | str | None = None, top_k: int | None = None) -> dict[str, Any]:
        """Search; return the documents under "documents".

        Args:
            query: The query.
            filters: Filter that replaces the component's own.
            top_k: Number of documents that replaces the component's own.
        """
        return _documents(self.search(query, *self._options(filters, top_k)))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | str | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """Search in a thread; arguments and result are those of `run`."""
        return _documents(await self.search.later(query, *self._options(filters, top_k)))

    def _options(self, filters: dict[str, object] | str | None, top_k: int | None) -> tuple[int, str | None]:
        """Return the number of documents and the filter of a call; None stands for the component's own."""
        return self.top_k if top_k is None else top_k, where_of(filters or self.filters, self.search)


def where_of(filters: dict[str, object] | str | None, search: IndexSearch) -> str | None:
    """Return a filter of Haystack as the text of a filter; None for one that every document passes.

    Raises:
        ParameterError: The filter is malformed, or the search does not have an operator, a column or a comparison.
    """
    if not filters:
        return None
    if isinstance(filters, str):
        return filters
    types = search.types
    return None if types is None else where_text(_condition(filters, types), types)


def _condition(filters: dict[str, Any], types: Mapping[str, str]) -> str | bool:
    """Return a filter or a part of one as the text of a filter, or whether it is true of all documents or of none."""
    try:
        if "field" in filters:
            return _comparison(filters["field"], filters["operator"], filters["value"], types)
        conjunction = {"AND": "and", "OR": "or", "NOT": "and"}[filters["operator"]]
        whole = joined(conjunction, [_condition(inner, types) for inner in filters["conditions"]])
        return negated(whole) if filters["operator"] == "NOT" else whole
    except (KeyError, AttributeError, TypeError):
        raise ParameterError(f"{filters!r} is no filter of Haystack: field, operator, value; or operator, conditions") from None


def _comparison(field: str, sign: str, value: object, types: Mapping[str, str]) -> str | bool:
    """Return a comparison as the text of a filter, or whether it is true of all documents or of none."""
    column, orders = field.removeprefix("meta."), sign in (">", ">=", "<", "<=")
    if field in FIELDS:
        raise ParameterError(f"filter of '{field}': documents are filtered only by their metadata, 'meta.NAME'")
    if orders and value is None:
        comparison(column, "==", None, types)  # raises for an unknown column
        return False
    if orders and types.get(column) == "keyword":
        raise ParameterError(
            f"filter of '{column}': Haystack orders numbers and dates, not the strings of '{column}'; "
            f"build the index with --columns {column}=date if they are dates"
        )
    return comparison(column, sign, value, types)


def _documents(hits: Iterable[tuple[Hit, Doc]]) -> dict[str, object]:
    """Return the output of the component."""
    documents = [Document(id=doc.id, content=doc.text, meta=metadata_of(doc), score=hit.score) for hit, doc in hits]
    return {"documents": documents}
