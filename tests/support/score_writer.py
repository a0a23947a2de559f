"""Writes scores into a file, in a process of its own."""

from pathlib import Path

import numpy as np

from fontes.rerank.reranker import ScoreFile, pair_keys


def keys(first: int, last: int, model: str = "m") -> list[bytes]:
    return pair_keys(model, [(f"q{i}", f"d{i}") for i in range(first, last)])


def write(path: Path, first: int) -> None:
    for at in range(first, first + 2000, 100):
        ScoreFile(path).write(keys(at, at + 100), np.full(100, first, dtype=np.float32))
