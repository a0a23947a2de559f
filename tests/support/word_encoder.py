"""An encoder whose vectors count words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import fontes as ft


@dataclass(frozen=True)
class Words:
    """Vectors of three dimensions: how often a text has each of three words; counts the texts that it was given."""

    words: tuple[str, ...] = ("spark", "fair", "rain")
    precision: str = "float32"
    asked: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def dim(self) -> int:
        return len(self.words)

    @property
    def fingerprint(self) -> str:
        return "words " + " ".join(self.words)

    similarity = "dot"

    def encode_documents(self, docs: Sequence[ft.Doc]) -> NDArray[np.float32]:
        self.asked.extend(doc.text for doc in docs)
        return self.encode_queries([doc.text for doc in docs])

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = [[text.lower().count(word) for word in self.words] for text in texts]
        return np.array(counts, dtype=np.float32).reshape(len(texts), self.dim)
