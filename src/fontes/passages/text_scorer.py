"""BM25 of texts outside an index, such as passages and sentences, with the statistics of an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.progress import Report, silent
from ..core.values import Topic
from ..lexical import BM25, Postings, Statistics
from ..lexical.retriever import bag_of
from .reranker import Reranker


@dataclass(frozen=True)
class TextScorer(Reranker, name="text_scorer"):
    """Scores the text of each document of a run by BM25: `bm25 % 10 >> Sentences() >> TextScorer(bm25)`.

    idf and avgdl are those of the index; tf and dl those of the text. No training and no model is needed.

    Args:
        model: A BM25 retriever, which provides variant, k1, b and k3, and whose index provides analyzer and statistics.
        cache: As `Reranker` has it.

    Raises:
        InputError: When called: the run does not know its documents, or a topic has no text.
        ParameterError: When called: `model` is no BM25.
    """

    model: BM25

    def check(self) -> None:
        if not isinstance(self.model, BM25):
            raise ParameterError(f"text_scorer takes a bm25, as in text_scorer(bm25()), not {self.model!r}")
        if self.model.fields is not None:
            raise ParameterError("text_scorer takes a bm25 without fields: a text outside an index has none")
        self.model.check()
        super().check()

    @property
    def fingerprint(self) -> str:
        return f"bm25 {self.model.weighting!r} {self.model.index.fingerprint}"

    def scores(self, pairs: Sequence[tuple[str, str]], progress: Report = silent) -> NDArray[np.float32]:
        self.check()
        index, weighting = self.model.index.state, self.model.weighting
        texts = list(dict.fromkeys(text for _, text in pairs))
        queries = list(dict.fromkeys(query for query, _ in pairs))
        tokens = index.analyzer.many(texts)
        statistics = Statistics.of(index).over(np.array([len(terms) for terms in tokens], dtype=np.float64))
        weights: dict[str, dict[int, float]] = {}
        for place, (text, terms) in enumerate(zip(texts, tokens, strict=True)):
            bag = bag_of(index, Topic("", text), Counter(terms))
            numbers, tf = np.array(list(bag), dtype=np.int64), np.array(list(bag.values())).astype(np.int32)
            posting = Postings(numbers, np.ones(len(bag), np.int64), np.full(len(bag), place, np.int32), tf)
            weights[text] = dict(zip(bag, weighting.postings(statistics, posting).tolist(), strict=True))
        bags: dict[str, dict[int, float]] = {}
        for query, terms in zip(queries, index.analyzer.many(queries), strict=True):
            bag = bag_of(index, Topic("", query), Counter(terms))
            bags[query] = dict(zip(bag, weighting.query(np.array(list(bag.values()))).tolist(), strict=True))
        sums = [sum(part * weights[text].get(term, 0.0) for term, part in bags[query].items()) for query, text in pairs]
        return np.array(sums, dtype=np.float32)
