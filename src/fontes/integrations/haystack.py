"""Haystack: a pipeline over an index as a component. Needs `fontes[haystack]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core import MissingExtraError, ParameterError, expression
from ..index import Index
from .searching import Search, comparison, metadata_of

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError:
    raise MissingExtraError.of("haystack-ai", "haystack", "FontesRetriever of Haystack") from None


@component
class FontesRetriever:
    """A retriever of Haystack: `FontesRetriever("papers.index", "bm25(k1=1.2)", top_k=5)`.

    A saved pipeline names the index by its path, and is loaded by
    `Pipeline.loads(text, allowed_modules=["fontes.integrations.haystack"])`.

    Documents come best first, with their scores and metadata, and `meta["title"]`, if they have one. Filters are those of
    Haystack, or texts such as `year >= 2020`; those of a call replace those of the component, as `FilterPolicy.REPLACE` does.

    Args:
        index: The folder of an index, its address, or an `Index`.
        pipeline: An expression that goes from topics to a run.
        top_k: Number of documents.
        filters: Filter of metadata.

    Raises:
        IndexFormatError: There is no index.
        ParameterError: The expression or a filter is wrong.
    """

    def __init__(
        self,
        index: str | Path | Index,
        pipeline: str = "bm25()",
        top_k: int = 10,
        filters: dict[str, Any] | str | None = None,
    ) -> None:
        self.index = index if isinstance(index, Index) else Index.open(index)
        self.search = Search.of(expression.pipeline(pipeline, self.index))
        self.pipeline, self.top_k, self.filters = pipeline, top_k, filters
        where_of(filters)

    def to_dict(self) -> Any:
        """Return what a saved pipeline holds: the path of the index, the expression, `top_k` and the filter."""
        return default_to_dict(self, index=str(self.index.path), pipeline=self.pipeline, top_k=self.top_k, filters=self.filters)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FontesRetriever:
        """Return the component of a saved pipeline; the index is opened again."""
        return default_from_dict(cls, data)  # type: ignore[no-any-return]

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | str | None = None, top_k: int | None = None) -> dict[str, Any]:
        """Search; returns the documents under "documents".

        Args:
            query: The query.
            filters: Filter in place of that of the component.
            top_k: Number of documents in place of that of the component.
        """
        return _documents(self.search(query, self.top_k if top_k is None else top_k, where_of(filters or self.filters)))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | str | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """Search in a thread; takes and returns what `run` does."""
        hits = await self.search.later(query, self.top_k if top_k is None else top_k, where_of(filters or self.filters))
        return _documents(hits)


def where_of(filters: dict[str, Any] | str | None) -> str | None:
    """Return a filter of Haystack as the text of a filter; None for an empty one.

    Raises:
        ParameterError: The filter is malformed, or has an operator that Fontes has not.
    """
    if not filters:
        return None
    if isinstance(filters, str):
        return filters
    try:
        if "field" in filters:
            return comparison(filters["field"].removeprefix("meta."), filters["operator"], filters["value"])
        parts = [f"({where_of(condition)})" for condition in filters["conditions"]]
        joint = {"AND": " and ", "OR": " or ", "NOT": " and "}[filters["operator"]]
        return f"(not ({joint.join(parts)}))" if filters["operator"] == "NOT" else f"({joint.join(parts)})"
    except (KeyError, AttributeError, TypeError):
        raise ParameterError(f"{filters!r} is no filter of Haystack: field, operator, value; or operator, conditions") from None


def _documents(hits: Any) -> dict[str, Any]:
    return {"documents": [Document(id=d.id, content=d.text, meta=metadata_of(d), score=hit.score) for hit, d in hits]}
