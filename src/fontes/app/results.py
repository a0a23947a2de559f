"""Rankings as JSON values: what `fontes search --json`, `fontes chat --json` and the server give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import Doc, Ranking
from ..core.ranking import SNIPPET
from ..text import Snippet

if TYPE_CHECKING:
    from ..passages import Rationale


def ranking_as_json(ranking: Ranking, text: bool) -> dict[str, Any]:
    """A ranking as JSON values, with the documents' text, metadata and snippets where `text` says so."""
    hits: list[dict[str, Any]] = [{"rank": h.rank, "id": h.id, "score": h.score} for h in ranking]
    if text and ranking.has_texts:
        docs = ranking.docs()
        for hit, doc, piece in zip(hits, docs, _snippets(ranking, docs), strict=True):
            shown = {"text": piece.text, "matches": [list(match) for match in piece.matches]}
            hit.update(title=doc.title, text=doc.text, metadata=dict(doc.metadata), snippet=shown)
    for hit in hits if has_rationales(ranking) else ():
        hit["rationales"] = [rationale._asdict() for rationale in rationales(ranking, hit["id"])]
    return {"topic": ranking.topic.id, "query": ranking.topic.text, "hits": hits}


def has_rationales(ranking: Ranking) -> bool:
    """Whether sentences were picked of the documents."""
    return callable(getattr(ranking.documents, "rationales", None))


def rationales(ranking: Ranking, doc_id: str) -> list[Rationale]:
    """The sentences that were picked of a document, in the order of its text."""
    documents: Any = ranking.documents
    return documents.rationales(ranking.topic.id, doc_id) if has_rationales(ranking) else []


def _snippets(ranking: Ranking, docs: list[Doc]) -> list[Snippet]:
    """The pieces of documents that fit the topic best."""
    snippets_of: Any = getattr(ranking.documents, "snippets", None)
    if snippets_of is None:
        return [Snippet(doc.text[:SNIPPET], ()) for doc in docs]
    pieces: list[Snippet] = snippets_of(ranking.topic.text, docs)
    return pieces
