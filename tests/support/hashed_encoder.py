"""An encoder of words by hashing, and a collection and queries of numbered words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from fontes.core.values import Doc, text_of


def generator_of(text: str) -> np.random.Generator:
    """A random generator whose seed is the hash of a text."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


@cache
def vector_of(text: str, dim: int) -> np.ndarray:
    """The random vector of a text, read-only: many tests encode the same words."""
    vector = generator_of(text).standard_normal(dim).astype(np.float32)
    vector.flags.writeable = False
    return vector


@dataclass(frozen=True)
class Hashed:
    """The sum of a random vector for each word."""

    dim: int = 32
    salt: str = ""
    length: float | None = 1.0
    parts: int = 1

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]

    @property
    def similarity(self) -> str:
        return "cosine" if self.length == 1 else "dot"

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        made = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in text.lower().split():
                row += vector_of(self.salt + word, self.dim)
            if self.length and row.any():
                row *= self.length / np.linalg.norm(row)
        return made

    def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
        return self.encode_queries([text_of(doc) for doc in docs])


@dataclass(frozen=True)
class Parts(Hashed):
    """An encoder that gives one vector for each three words of a document."""

    def encode_documents_parts(self, docs: Sequence[Doc]) -> tuple[np.ndarray, np.ndarray]:
        cut = [
            [" ".join(words[i : i + 3]) for i in range(0, len(words), 3)] or [""]
            for words in (text_of(d).split() for d in docs)
        ]
        bounds = np.cumsum([0, *map(len, cut)])
        return self.encode_queries([part for doc in cut for part in doc]), bounds


def made_docs(count: int = 700, longest: int = 11) -> list[tuple[str, str]]:
    draw = np.random.default_rng(3)
    words = np.array([f"w{i}" for i in range(200)])
    return [(f"d{n * 7919 % count}", " ".join(draw.choice(words, draw.integers(3, longest + 1)))) for n in range(count)]


def queries(count: int = 40) -> dict[str, str]:
    draw = np.random.default_rng(5)
    return {f"q{n}": " ".join(f"w{i}" for i in draw.integers(0, 200, 4)) for n in range(count)}
