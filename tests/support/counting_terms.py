"""A learned sparse encoder without a model, which writes down what it encoded; weights depend on the words alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from support.hashed_encoder import generator_of

from fontes.core.values import Doc
from fontes.index.embeddings.weights import TermVectors

SIZE = 50


@dataclass(frozen=True)
class CountingTerms:
    """Each word of a text has a few terms of the vocabulary, with weights; a term has its greatest one."""

    log: str = field(default="", repr=False)
    fingerprint: str = field(default="counting terms", repr=False)
    wrong: Callable[[TermVectors], TermVectors] | None = field(default=None, repr=False)

    @property
    def vocabulary(self) -> list[str]:
        return [f"t{number:02}" for number in range(SIZE)]

    def encode_documents(self, docs: Sequence[Doc]) -> TermVectors:
        if self.log:
            with Path(self.log).open("a") as file:
                file.writelines(f"{doc.id}\n" for doc in docs)
        vectors = self.encode_queries([doc.text for doc in docs])
        return self.wrong(vectors) if self.wrong else vectors

    def encode_queries(self, texts: Sequence[str]) -> TermVectors:
        rows = [self.row(text) for text in texts]
        numbers = [np.flatnonzero(row) for row in rows]
        bounds = np.cumsum([0, *map(len, numbers)])
        weights = [row[own] for row, own in zip(rows, numbers, strict=True)]
        terms = np.concatenate([np.zeros(0, int), *numbers]).astype(np.int32)
        return TermVectors(self.vocabulary, bounds, terms, np.concatenate([np.zeros(0, np.float32), *weights]))

    def row(self, text: str) -> np.ndarray:
        """The weights of all terms, float32."""
        row = np.zeros(SIZE, np.float32)
        for word in text.split():
            terms, weights = weights_of(word)
            row[terms] = np.maximum(row[terms], weights)
        return row


@cache
def weights_of(word: str) -> tuple[np.ndarray, np.ndarray]:
    """The terms of a word, and their weights."""
    draws = generator_of(word)
    return draws.integers(0, SIZE, 4), draws.gamma(1.0, 0.7, 4).astype(np.float32)
