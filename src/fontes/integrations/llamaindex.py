"""LlamaIndex: a stage as a `BaseRetriever`, without a vector store. Needs `fontes[llamaindex]`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import Doc, Hit, MissingExtraError, ParameterError
from ..core.where import both
from .searching import Search, comparison, metadata_of

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
        stage: Any,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        where: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.similarity_top_k = similarity_top_k
        self._search = Search.of(stage)
        self._where = both(where, None if filters is None or not filters.filters else where_of(filters))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._search(query_bundle.query_str, self.similarity_top_k, self._where))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._search.later(query_bundle.query_str, self.similarity_top_k, self._where))


def where_of(filters: MetadataFilters) -> str:
    """Return filters of LlamaIndex as the text of a filter.

    Raises:
        ParameterError: Fontes does not have an operator.
    """
    conditions = [
        where_of(condition) if isinstance(condition, MetadataFilters) else _comparison(condition)
        for condition in filters.filters
    ]
    if filters.condition == FilterCondition.NOT:
        return f"(not ({' or '.join(conditions)}))"
    conjunction = (filters.condition or FilterCondition.AND).value
    return f"({f' {conjunction} '.join(conditions)})"


def _comparison(condition: MetadataFilter) -> str:
    """Return a single condition as the text of a filter; raise ParameterError if Fontes does not have its operator."""
    if condition.operator == FilterOperator.IS_EMPTY:
        return comparison(condition.key, "==", None)
    if condition.operator in (FilterOperator.ANY, FilterOperator.ALL):
        values = condition.value if isinstance(condition.value, list) else [condition.value]
        conjunction = " or " if condition.operator == FilterOperator.ANY else " and "
        return f"({conjunction.join(comparison(condition.key, 'contains', value) for value in values)})"
    if condition.operator not in SIGNS:
        raise ParameterError(
            f"filter of '{condition.key}': {condition.operator.value} is a search in a text, which is what the query is for"
        )
    return comparison(condition.key, SIGNS[condition.operator], condition.value)


def _nodes(hits: Iterable[tuple[Hit, Doc]]) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=doc.id, text=doc.text, metadata=metadata_of(doc)), score=hit.score) for hit, doc in hits
    ]
