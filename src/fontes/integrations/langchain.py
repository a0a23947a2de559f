"""LangChain: a stage as a `BaseRetriever`. Needs `fontes[langchain]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

from ..core import Doc, Hit, MissingExtraError
from .searching import IndexSearch, metadata_of

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import field_validator
except ImportError:
    raise MissingExtraError.of("langchain-core", "langchain", "FontesRetriever of LangChain") from None


class FontesRetriever(BaseRetriever):
    """A retriever of LangChain over a stage or an index: `FontesRetriever(stage=index.bm25())`.

    Documents come best first, with their metadata; the score is in `metadata["score"]`, a title in `metadata["title"]`.
    `invoke`, `ainvoke`, `batch` and the other calls take `k` and `where`, which replace the retriever's own.

    Attributes:
        stage: A stage from topics to a run; an index stands for its BM25.
        k: Number of documents.
        where: Filter of metadata, such as `year >= 2020`.
    """

    stage: Any
    k: int = 4
    where: str | None = None

    @field_validator("stage")
    @classmethod
    def _as_search(cls, stage: object) -> object:
        return stage if isinstance(stage, IndexSearch) else IndexSearch.of(stage)

    @classmethod
    def from_documents(cls, documents: Iterable[object], path: str | Path, *, k: int = 4, **options: Any) -> FontesRetriever:
        """Index documents of LangChain; return a BM25 retriever over them.

        Args:
            documents: Documents; the id of a document without one is its number, from 1. A text in `metadata["title"]` is
                indexed as the title.
            path: The folder of the index.
            k: Number of documents that the retriever returns.
            **options: Further arguments of `Index.build`, such as `analyzer` or `overwrite`.

        Raises:
            InputError: An id occurs twice, or the path exists.
        """
        from ..index import Index

        docs = (_doc(document, number) for number, document in enumerate(documents, 1))
        return cls(stage=Index.build(docs, path, **options), k=k)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        path: str | Path,
        metadatas: Iterable[Mapping[str, object]] | None = None,
        ids: Iterable[str | None] | None = None,
        **options: Any,
    ) -> FontesRetriever:
        """Index texts with their metadata and ids; otherwise as `from_documents`."""
        texts = list(texts)
        rows = zip(texts, metadatas or repeat({}, len(texts)), ids or repeat(None, len(texts)), strict=True)
        documents = (Document(id=doc_id, page_content=text, metadata=dict(metadata)) for text, metadata, doc_id in rows)
        return cls.from_documents(documents, path, **options)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, where: str | None = None
    ) -> list[Document]:
        return _documents(self.stage(query, *self._options(k, where)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None, where: str | None = None
    ) -> list[Document]:
        return _documents(await self.stage.later(query, *self._options(k, where)))

    def _options(self, k: int | None, where: str | None) -> tuple[int, str | None]:
        """Return `k` and `where` of a call; None stands for the retriever's own."""
        return self.k if k is None else k, self.where if where is None else where


def _documents(hits: Iterable[tuple[Hit, Doc]]) -> list[Document]:
    return [Document(id=doc.id, page_content=doc.text, metadata=metadata_of(doc, score=hit.score)) for hit, doc in hits]


def _doc(document: Document, number: int) -> Doc:
    """Return the document to index; `number` is the id of a document without one."""
    metadata = dict(document.metadata)
    title = metadata.pop("title") if isinstance(metadata.get("title"), str) else ""
    return Doc(str(number) if document.id is None else document.id, document.page_content, title, metadata)
