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
        for hit, doc in zip(hits, ranking.docs(), strict=True):
            hit.update(title=doc.title, text=doc.text, metadata=dict(doc.metadata), snippet=_shown(ranking, doc))
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


def _shown(ranking: Ranking, doc: Doc) -> dict[str, Any]:
    """The piece of a document that fits the topic best, and where it matches."""
    snippet_of = getattr(ranking.documents, "snippet", None)
    piece = snippet_of(ranking.topic.text, doc) if snippet_of else Snippet(doc.text[:SNIPPET], ())
    return {"text": piece.text, "matches": [list(match) for match in piece.matches]}
