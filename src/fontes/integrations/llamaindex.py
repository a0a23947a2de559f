"""LlamaIndex: a stage as a `BaseRetriever`, without a vector store. Needs `fontes[llamaindex]`."""

from __future__ import annotations

from typing import Any

from ..core import MissingExtraError, ParameterError
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

    Nodes come best first, with their scores, metadata, and `metadata["title"]`, if they have one.

    Args:
        stage: From topics to a run; an index stands for its BM25.
        similarity_top_k: Number of nodes.
        filters: Filters of metadata as LlamaIndex writes them.
        where: A filter as Fontes writes it, such as `year >= 2020`; with `filters`, both hold.
        **options: Further arguments of `BaseRetriever`.

    Raises:
        ParameterError: The filters have an operator that Fontes has not, such as a match in a text.
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
        ParameterError: An operator is unknown to Fontes.
    """
    parts = [
        where_of(condition) if isinstance(condition, MetadataFilters) else _compared(condition) for condition in filters.filters
    ]
    if filters.condition == FilterCondition.NOT:
        return f"(not ({' or '.join(parts)}))"
    return f"({f' {(filters.condition or FilterCondition.AND).value} '.join(parts)})"


def _compared(condition: MetadataFilter) -> str:
    if condition.operator == FilterOperator.IS_EMPTY:
        return comparison(condition.key, "==", None)
    if condition.operator in (FilterOperator.ANY, FilterOperator.ALL):
        values = condition.value if isinstance(condition.value, list) else [condition.value]
        joint = " or " if condition.operator == FilterOperator.ANY else " and "
        return f"({joint.join(comparison(condition.key, 'contains', value) for value in values)})"
    if condition.operator not in SIGNS:
        raise ParameterError(
            f"filter of '{condition.key}': {condition.operator.value} is a search in a text, which is what the query is for"
        )
    return comparison(condition.key, SIGNS[condition.operator], condition.value)


def _nodes(hits: Any) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=doc.id, text=doc.text, metadata=metadata_of(doc)), score=hit.score) for hit, doc in hits
    ]
