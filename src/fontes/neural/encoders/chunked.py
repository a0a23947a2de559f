"""Encoding of documents in windows, a simple alternative to encoders of long texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from ...core.arrays import Float32s, Int64s
from ...core.errors import ParameterError
from ...core.part import Part
from ...core.strings import offsets_of
from ...core.values import Doc, text_of
from ...core.work import Progress, reported_as
from ..models.base import check_fields, hexadecimal
from .base import Encoder, encoder_in, unit

POOLINGS = ("max", "mean")
UNITS = ("words", "tokens")
WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class ChunkedEncoder(Part, name="chunked_encoder"):
    """Encodes documents in overlapping windows.

    Each window is encoded as a document: with the prompt of `encoder`, and truncated to its `max_length`; choose a shorter
    `window`. With "max" a document has several vectors, which `encode_documents_parts` returns.

    Args:
        encoder: Encodes windows and queries; a string is the model of a `SentenceEncoder`.
        window: Words or tokens per window; the last one of a document may be shorter.
        stride: Words or tokens from the start of a window to that of the next.
        unit: "words" (separated by blanks), or "tokens" of the encoder's own tokenizer.
        pooling: "max": a vector per window, and the greatest score counts; "mean": the mean of the window vectors.

    Raises:
        ParameterError: On use: a parameter is outside its range.
    """

    encoder: Encoder | str = field(metadata={"string": "sentence_encoder"})
    window: int = 150
    stride: int = 75
    unit: str = field(default="words", metadata={"choices": UNITS})
    pooling: str = field(default="max", metadata={"choices": POOLINGS})

    @property
    def _encoder(self) -> Encoder:
        return encoder_in(self)

    @property
    def dim(self) -> int:
        """Number of dimensions of the vectors."""
        return self._encoder.dim

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits, which identify the encoder and the windows."""
        self.check()
        return hexadecimal("ChunkedEncoder", self._encoder.fingerprint, self.window, self.stride, self.unit, self.pooling)

    @property
    def similarity(self) -> str:
        """Meaning of the inner product: "cosine" or "dot", as for the encoder."""
        return self._encoder.similarity

    def encode_documents(self, docs: Sequence[Doc]) -> Float32s:
        """Vectors of documents, float32 (documents, dim); ParameterError with pooling="max"."""
        if self.pooling == "max":
            problem = "with pooling='max' a document has several vectors: use encode_documents_parts, or pooling='mean'"
            raise ParameterError(problem)
        return self.encode_documents_parts(docs)[0]

    def encode_documents_parts(self, docs: Sequence[Doc]) -> tuple[Float32s, Int64s]:
        """Vectors of documents and their bounds, as in `PartsEncoder`; with "mean" one vector per document."""
        self.check()
        windows = [self.windows(text_of(doc)) for doc in docs]
        bounds = offsets_of(list(map(len, windows)))
        parts = [Doc(f"{number}", text) for texts in windows for number, text in enumerate(texts)]
        documents, total = len(docs), max(1, int(bounds[-1]))

        def of_documents(state: Progress) -> Progress:  # the encoder counts windows
            return replace(state, done=state.done * documents // total, total=documents, part=state.fraction)

        with reported_as(of_documents):
            vectors = self._encoder.encode_documents(parts)
        if self.pooling == "max" or not docs:
            return vectors, bounds
        means: Float32s = np.add.reduceat(vectors, bounds[:-1], axis=0)
        means /= np.diff(bounds)[:, None]
        return (unit(means) if self.similarity == "cosine" else means), np.arange(len(docs) + 1, dtype=np.int64)

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a window; AttributeError if the encoder has no `length`."""
        return int(self._encoder.length)  # type: ignore[attr-defined]

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each document's longest window, special tokens and prompt included."""
        windows = [self.windows(text_of(doc)) for doc in docs]
        bounds = offsets_of(list(map(len, windows)))
        lengths = self._encoder.document_lengths([Doc("", text) for texts in windows for text in texts])  # type: ignore[attr-defined]
        return [max(lengths[start:end]) for start, end in pairwise(bounds)]

    def encode_queries(self, texts: Sequence[str]) -> Float32s:
        """Vectors of queries, float32 (queries, dim)."""
        return self._encoder.encode_queries(texts)

    def windows(self, text: str) -> list[str]:
        """Windows of a text, at least one."""
        self.check()
        spans = [match.span() for match in WORD.finditer(text)] if self.unit == "words" else self._token_spans(text)
        starts = range(0, max(1, len(spans) - self.window + self.stride), self.stride)
        window_spans = [spans[start : start + self.window] for start in starts]
        return [text[window[0][0] : window[-1][1]] if window else text for window in window_spans]

    def _token_spans(self, text: str) -> list[tuple[int, int]]:
        spans: Callable[[str], list[tuple[int, int]]] | None = getattr(self._encoder, "spans", None)
        if spans is None:
            raise ParameterError(f"{type(self._encoder).__name__} does not report its tokens; use unit='words'")
        return spans(text)

    def check(self) -> None:
        check_fields(self)
        if self.window < 1 or not 1 <= self.stride <= self.window:
            rule = "window must be 1 or more, and stride from 1 to window, to leave no gaps"
            raise ParameterError(f"{rule}; not {self.window}, {self.stride}")
        super().check()
