"""Truncation of documents: a model's limit in tokens, and the share of longer documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.part import Part, walk
from ...index.facts import SAMPLE, sampled
from .architectures import NO_LIMIT
from .base import encoder_in
from .chunked import ChunkedEncoder

if TYPE_CHECKING:
    from ...index import Index


@dataclass(frozen=True)
class TokenLimit:
    """Truncation of an index's documents by a model.

    Args:
        tokens: Maximum tokens read of a text, special ones included.
        documents: Number of counted documents.
        cut: Number of counted documents with more tokens.
        sampled: Whether the counted documents are a sample of the index's documents.
        bytes: Bytes that the documents' vectors take in the index; 0 if it has none.
    """

    tokens: int
    documents: int
    cut: int
    sampled: bool = False
    bytes: int = 0

    @property
    def share(self) -> float:
        """Share of the documents that are truncated, 0 to 1; 0 without documents."""
        return self.cut / self.documents if self.documents else 0.0

    def to_dict(self) -> dict[str, float]:
        """The values as JSON."""
        return {"tokens": self.tokens, "documents": self.documents, "cut": self.cut, "share": round(self.share, 6)}

    def __str__(self) -> str:
        documents = f"{self.documents:,} sampled documents" if self.sampled else f"{self.documents:,} documents"
        return f"reads {self.tokens:,} tokens of a text and cuts {self.cut:,} of {documents} ({self.share:.1%})"


def token_limit(encoder: object, index: Index) -> TokenLimit | None:
    """Measure how many documents of an index an encoder truncates; None if it has no known limit. Loads the model.

    A document of several windows counts as truncated if one of its windows is.

    Args:
        encoder: Any encoder, a `ColBERT` or a `Splade`.
        index: The index; all its documents are read, or 10,000 evenly spaced ones.
    """
    base = encoder_in(encoder) if isinstance(encoder, ChunkedEncoder) else encoder
    if not hasattr(type(base), "document_lengths"):
        return None
    model: Any = encoder
    if (limit := model.length) >= NO_LIMIT:
        return None
    lengths = [length for docs in sampled(index) for length in model.document_lengths(docs)]
    cut = sum(length > limit for length in lengths)
    return TokenLimit(limit, len(lengths), cut, len(index) > SAMPLE, _stored_bytes(model, index))


def _stored_bytes(encoder: Any, index: Index) -> int:
    facts = [entry for entries in index.vectors.facts(index.state).values() for entry in entries]
    return sum(entry["bytes"] for entry in facts if entry.get("fingerprint") == encoder.fingerprint)


def token_limits(stage: Part) -> list[TokenLimit]:
    """Truncation by each encoder inside a stage; encoders without a limit are left out."""
    pairs = [(value, getattr(part, "index", None)) for part in walk(stage) for value in part.params().values()]
    limits = (token_limit(encoder, index) for encoder, index in pairs if index is not None and isinstance(encoder, Part))
    return [limit for limit in limits if limit is not None]
