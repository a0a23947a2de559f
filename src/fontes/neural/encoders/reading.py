"""The part of documents that a model reads: its limit in tokens, and the share of the documents that are longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ...core.part import Part, walk
from ...core.values import Doc
from ...index.facts import SAMPLE, sampled
from .architectures import ENDLESS
from .base import encoder_in
from .chunked import ChunkedEncoder

if TYPE_CHECKING:
    from ...index import Index


class TokenReader(Protocol):
    """An encoder that reports the lengths of documents in its tokens."""

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a text, including special tokens."""
        ...

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each whole document, including special tokens and the prompt."""
        ...


@dataclass(frozen=True)
class TokenLimit:
    """The part of the documents of an index that a model reads.

    Args:
        tokens: Maximum number of tokens read of a text, including special tokens.
        documents: Number of documents that were counted.
        cut: Number of these with more tokens.
        sampled: Whether these are not all documents of the index.
    """

    tokens: int
    documents: int
    cut: int
    sampled: bool = False

    @property
    def share(self) -> float:
        """The share of the documents that are cut, from 0 to 1; 0 without documents."""
        return self.cut / self.documents if self.documents else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {"tokens": self.tokens, "documents": self.documents, "cut": self.cut, "share": round(self.share, 6)}

    def __str__(self) -> str:
        of = f"{self.documents:,} sampled documents" if self.sampled else f"{self.documents:,} documents"
        return f"reads {self.tokens:,} tokens of a text and cuts {self.cut:,} of {of} ({self.share:.1%})"


def reading(encoder: object, index: Index) -> TokenLimit | None:
    """The part of the documents of an index that an encoder reads; None if it has no limit or does not tell it.

    A document of several windows is cut where one of its windows is. Loads the model.

    Args:
        encoder: Any encoder, a `ColBERT` or a `Splade`.
        index: The index, whose texts are read: all of them, or 10,000 evenly spaced ones.
    """
    inner = encoder_in(encoder) if isinstance(encoder, ChunkedEncoder) else encoder
    if not hasattr(type(inner), "document_lengths"):
        return None
    reader: TokenReader = encoder  # type: ignore[assignment]
    if (limit := reader.length) >= ENDLESS:
        return None
    lengths = [length for docs in sampled(index) for length in reader.document_lengths(docs)]
    return TokenLimit(limit, len(lengths), sum(length > limit for length in lengths), len(index) > SAMPLE)


def readings(stage: Part) -> list[TokenLimit]:
    """The parts of the documents that the encoders inside a stage read; encoders without a limit are left out."""
    pairs = [(value, getattr(part, "index", None)) for part in walk(stage) for value in part.params().values()]
    known = (reading(encoder, index) for encoder, index in pairs if index is not None and isinstance(encoder, Part))
    return [one for one in known if one is not None]
