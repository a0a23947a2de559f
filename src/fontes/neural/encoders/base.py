"""What an encoder is: texts in, one vector for each query, and one or several for each document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...core.values import Doc

if TYPE_CHECKING:
    from ...core.progress import Progress


@runtime_checkable
class Encoder(Protocol):
    """Turns documents and queries into vectors whose inner product is the score.

    Encoders are frozen dataclasses; their models are loaded when they are first used. `fingerprint` names everything that
    changes the vectors of documents (weights, tokenizer, pooling, window, prompt, normalization), save the precision that
    they are computed in, which changes them by rounding alone. Vectors of encoders with different fingerprints must not be
    compared.
    """

    @property
    def dim(self) -> int:
        """The number of dimensions of the vectors."""
        ...

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits."""
        ...

    @property
    def similarity(self) -> str:
        """What the inner product is: "cosine" where all vectors have length 1, else "dot"."""
        ...

    def encode_documents(self, docs: Sequence[Doc], progress: Callable[[Progress], None] | None = None) -> NDArray[np.float32]:
        """The vectors of documents, (number of documents, dim), float32, in their order."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, (number of queries, dim), float32, in their order."""
        ...


@runtime_checkable
class PartsEncoder(Encoder, Protocol):
    """An encoder that may give several vectors for a document, whose score is then the greatest of them."""

    def encode_documents_parts(
        self, docs: Sequence[Doc], progress: Callable[[Progress], None] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """(vectors, bounds): the rows bounds[i] to bounds[i + 1] of `vectors` belong to document i, one at least."""
        ...


def document_vectors(
    encoder: Encoder, docs: Sequence[Doc], progress: Callable[[Progress], None] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The vectors of documents by any encoder: (vectors, bounds) as `PartsEncoder` has them.

    vectors   float32, (number of vectors, dim)
    bounds    int64, (number of documents + 1,): the rows bounds[i] to bounds[i + 1] belong to document i
    """
    if isinstance(encoder, PartsEncoder):
        return encoder.encode_documents_parts(docs, progress)
    vectors = encoder.encode_documents(docs, progress)
    return vectors, np.arange(len(vectors) + 1, dtype=np.int64)


def text_of(doc: Doc) -> str:
    """What is encoded of a document: title, a space and text, without spaces around."""
    return f"{doc.title} {doc.text}".strip()


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; rows of zeros stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


def digest(*parts: object) -> str:
    """32 hexadecimal digits of plain values."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def sample_ids(vocabulary: int, length: int, texts: int = 4) -> list[NDArray[np.int32]]:
    """Token ids, always the same, of texts to calibrate with."""
    drawn = np.random.default_rng(0).integers(vocabulary // 30, vocabulary, (texts, length))
    return list(drawn.astype(np.int32))
