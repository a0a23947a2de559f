"""What a learned sparse encoder is: texts in, weights of terms out."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import getattr_static
from typing import Protocol, TypeGuard, runtime_checkable

from ...core.progress import Report, silent
from ...core.values import Doc
from ...index.embeddings.weights import TermVectors


@runtime_checkable
class SparseEncoder(Protocol):
    """Turns documents and queries into weights of terms, whose inner product is the score.

    Weights are above 0. `fingerprint` names everything that changes those of documents, as that of a dense `Encoder` does.
    """

    @property
    def vocabulary(self) -> Sequence[str]:
        """The terms by number, each once."""
        ...

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits."""
        ...

    def encode_documents(self, docs: Sequence[Doc], progress: Report = silent) -> TermVectors:
        """The weights of documents, in their order."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> TermVectors:
        """The weights of queries, in their order."""
        ...


def is_sparse(encoder: object) -> TypeGuard[SparseEncoder]:
    """Whether an encoder gives weights of terms; its model is not loaded for the answer."""
    return getattr_static(encoder, "vocabulary", None) is not None and hasattr(encoder, "encode_documents")
