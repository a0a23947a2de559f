"""LlamaIndex: a stage as a `BaseRetriever`, without a vector store. Needs `fontes[llamaindex]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..core import Doc, Hit, MissingExtraError, ParameterError
from ..core.where import both
from .searching import IndexSearch, comparison, joined, metadata_of, negated, where_text

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
except ImportError:
    raise MissingExtraError.of("llama-index-core", "llamaindex", "FontesRetriever of LlamaIndex") from None

SIGNS = {
    FilterOperator.NIN: "not in",
    FilterOperator.CONTAINS: "contains",
    **{operator: operator.value for operator in FilterOperator if operator.value in ("==", "!=", ">", ">=", "<", "<=", "in")},
}


class FontesRetriever(BaseRetriever):
    """A retriever of LlamaIndex over a stage or an index: `FontesRetriever(index.bm25(), similarity_top_k=5)`.

    Nodes come best first, with their scores and metadata; a title is in `metadata["title"]`.

    Args:
        stage: A stage from topics to a run; an index stands for its BM25.
        similarity_top_k: Number of nodes.
        filters: Filters of LlamaIndex on metadata.
        where: Filter of Fontes, such as `year >= 2020`. Documents must satisfy both `filters` and `where`.
        **options: Further arguments of `BaseRetriever`.

    Raises:
        ParameterError: The filters have an operator that Fontes does not have, such as a match in a text.
    """

    def __init__(
        self,
        stage: object,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        where: str | None = None,
        **options: object,
    ) -> None:
        super().__init__(**options)
        self.similarity_top_k = similarity_top_k
        self._search = IndexSearch.of(stage)
        self._where = both(where, None if filters is None else where_of(filters, self._search))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._search(query_bundle.query_str, self.similarity_top_k, self._where))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._search.later(query_bundle.query_str, self.similarity_top_k, self._where))


def where_of(filters: MetadataFilters, search: IndexSearch) -> str | None:
    """Return filters of LlamaIndex as the text of a filter; None for those that every document passes.

    Raises:
        ParameterError: The search does not have an operator, a column or a comparison.
    """
    types = search.types if filters.filters else None
    return None if types is None else where_text(_condition(filters, types), types)


def _condition(filters: MetadataFilters, types: Mapping[str, str]) -> str | bool:
    """Return filters as the text of a filter, or whether they are true of all documents or of none."""
    parts = [
        _condition(inner, types) if isinstance(inner, MetadataFilters) else _comparison(inner, types)
        for inner in filters.filters
    ]
    if not parts:
        return True
    if filters.condition == FilterCondition.NOT:
        return negated(joined("or", parts))
    return joined((filters.condition or FilterCondition.AND).value, parts)


def _comparison(single: MetadataFilter, types: Mapping[str, str]) -> str | bool:
    """Return a single condition as the text of a filter, or whether it is true of all documents or of none."""
    column, operator, value = single.key, single.operator, single.value
    if operator == FilterOperator.IS_EMPTY:
        return comparison(column, "==", None, types)
    if operator in (FilterOperator.ANY, FilterOperator.ALL):
        if not isinstance(value, list):
            raise ParameterError(f"filter of '{column}': {operator.value} takes a list of values, not {value!r}")
        parts = [comparison(column, "contains", item, types) for item in value]
        present = comparison(column, "!=", None, types)
        return joined("or", parts) if operator == FilterOperator.ANY else joined("and", [present, *parts])
    if operator not in SIGNS:
        raise ParameterError(f"filter of '{column}': {operator.value} is a search in a text, which is what the query is for")
    if value is None:
        raise ParameterError(f"filter of '{column}': {operator.value} takes a value; is_empty selects documents without one")
    return comparison(column, SIGNS[operator], value, types)


def _nodes(hits: Iterable[tuple[Hit, Doc]]) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=doc.id, text=doc.text, metadata=metadata_of(doc)), score=hit.score) for hit, doc in hits
    ]
