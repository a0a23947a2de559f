"""The interface of encoders: one vector for each query, and one or several for each document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from ...core.arrays import Float32s, Indices, Int32s, Int64s
from ...core.errors import ParameterError
from ...core.part import Part
from ...core.values import Doc
from ..models.base import Loaded, Pretrained
from ..models.tokens import StaticTokenizer, Tokens


@runtime_checkable
class Encoder(Protocol):
    """Encodes documents and queries as vectors whose inner product is the score.

    Encoders are frozen dataclasses; their models are loaded on first use. `fingerprint` identifies everything that changes the
    vectors of documents (weights, tokenizer, pooling, window, prompt, normalization) except the precision, which changes them
    by rounding only. Vectors with different fingerprints must not be compared.
    """

    @property
    def dim(self) -> int:
        """Number of dimensions of the vectors."""
        ...

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits."""
        ...

    @property
    def similarity(self) -> str:
        """Meaning of the inner product: "cosine" if all vectors have length 1, else "dot"."""
        ...

    def encode_documents(self, docs: Sequence[Doc]) -> Float32s:
        """Vectors of documents, float32 (documents, dim)."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Float32s:
        """Vectors of queries, float32 (queries, dim)."""
        ...


@runtime_checkable
class PartsEncoder(Encoder, Protocol):
    """An encoder that may return several vectors per document; the document's score is the greatest of their scores."""

    def encode_documents_parts(self, docs: Sequence[Doc]) -> tuple[Float32s, Int64s]:
        """Vectors of documents, float32 (vectors, dim); and bounds, int64 (documents + 1,).

        Document i has the rows bounds[i] to bounds[i + 1], at least one.
        """
        ...


def encoder_in(part: Part) -> Encoder:
    """Return the encoder in the field `encoder` of a part, where a string is the model of a `SentenceEncoder`.

    Raises ParameterError for any other value.
    """
    encoder = part.params()["encoder"]
    if not callable(getattr(encoder, "encode_queries", None)):
        raise ParameterError(f"{part.name}: encoder is an encoder, or the name of a sentence encoder, not {encoder!r}")
    return cast(Encoder, encoder)


class EncoderModel(Loaded, Protocol):
    """The loaded model of an encoder; `dim` is the size of its vectors."""

    dim: int
    tokenizer: Any


M = TypeVar("M", bound=EncoderModel)


@dataclass(frozen=True)
class PretrainedEncoder(Pretrained[M]):
    """Base of encoders with one model.

    Args:
        normalize: Whether vectors are scaled to length 1, for the cosine.
    """

    normalize: bool = field(default=True, kw_only=True)

    @property
    def dim(self) -> int:
        """Number of dimensions of the vectors."""
        return self._model.dim

    @property
    def similarity(self) -> str:
        """Meaning of the inner product: "cosine" with `normalize`, else "dot"."""
        return "cosine" if self.normalize else "dot"

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token of a text, in characters, without special tokens; ParameterError if unknown."""
        tokenizer = self._model.tokenizer
        if isinstance(tokenizer, (Tokens, StaticTokenizer)):
            return tokenizer.spans(text)
        if not tokenizer.is_fast:
            raise ParameterError("windows of tokens need a fast tokenizer, which this model lacks; use unit='words'")
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
        return [(start, end) for start, end in encoded["offset_mapping"] if end > start]

    def _settings(self) -> dict[str, object]:
        """Parameters that change the vectors of documents."""
        return {name: value for name, value in super()._settings().items() if name != "query_prompt"}

    def _vectors(self, lengths: Sequence[int], work: Callable[[Indices], Float32s]) -> Float32s:
        """Vectors that `work` computes for batches of texts of these lengths; of length 1 with `normalize`."""
        if not len(lengths):
            return np.empty((0, self.dim), np.float32)
        vectors = self._in_batches(lengths, work)
        return unit(vectors) if self.normalize else vectors


def document_vectors(encoder: Encoder, docs: Sequence[Doc]) -> tuple[Float32s, Int64s]:
    """Vectors of documents and their bounds by any encoder; see `PartsEncoder.encode_documents_parts`."""
    if isinstance(encoder, PartsEncoder):
        return encoder.encode_documents_parts(docs)
    vectors = encoder.encode_documents(docs)
    return vectors, np.arange(len(vectors) + 1, dtype=np.int64)


def unit(vectors: Float32s) -> Float32s:
    """Scale rows to length 1; rows of zeros are unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


def sample_ids(vocabulary: int, length: int, texts: int = 4) -> list[Int32s]:
    """Token ids of `texts` random texts of `length` tokens, int32, the same at every call; for calibration."""
    ids = np.random.default_rng(0).integers(vocabulary // 30, vocabulary, (texts, length))
    return list(ids.astype(np.int32))
