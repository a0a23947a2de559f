"""A teacher that grades a document by its words, and a student's rank correlation with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from fontes.neural.rerank import Reranker
from fontes.train import Examples


@dataclass(frozen=True)
class WordGrades(Reranker):
    """Scores a document by the mean grade of its words, whatever the query."""

    words: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        return " ".join(self.words)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        grades = dict(zip(self.words, np.random.default_rng(2).permutation(len(self.words)).tolist(), strict=True))
        return np.array([np.mean([grades.get(word, 0) for word in text.split()]) for _, text in pairs], np.float32)


def agreement(score: Callable[[str, list[str]], Sequence[float]], taught: Examples) -> float:
    """The mean over examples of Kendall's tau between `score(query, texts)` and the teacher's scores."""
    taus = []
    for one in taught:
        passages = (one.positive, *one.negatives)
        own = score(one.query, [passage.text for passage in passages])
        taus.append(kendalltau(own, [passage.score for passage in passages]).statistic)
    return float(np.mean(taus))
