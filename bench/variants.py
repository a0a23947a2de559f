"""Scores of every document for each topic by rank_bm25, bm25s and scikit-learn, from tokens that Fontes analysed.

    python variants.py OUT.npz < JSON of {"docs": [[token]], "topics": [[token]], "k1": 0.9, "b": 0.4}

Runs in the peers' environment; agreement.py calls it. OUT.npz has a float64 matrix (topics, documents) for each model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import bm25s
import numpy as np
from rank_bm25 import BM25Okapi, BM25Plus
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize


def rank_bm25(docs: list[list[str]], topics: list[list[str]], k1: float, b: float) -> Iterator[tuple[str, Any]]:
    for name, model in (("okapi", BM25Okapi(docs, k1=k1, b=b)), ("plus", BM25Plus(docs, k1=k1, b=b))):
        yield f"rank_bm25 {name}", np.array([model.get_scores(topic) for topic in topics])


def bm25s_variants(docs: list[list[str]], topics: list[list[str]], k1: float, b: float) -> Iterator[tuple[str, Any]]:
    methods = {"lucene": "lucene", "robertson": "robertson", "atire": "atire", "plus": "bm25+", "l": "bm25l"}
    for name, method in methods.items():
        delta = 1.0 if name == "plus" else 0.5
        model = bm25s.BM25(method=method, k1=k1, b=b, delta=delta, dtype="float64")
        model.index(docs, show_progress=False)
        known = [[token for token in topic if token in model.vocab_dict] for topic in topics]
        yield f"bm25s {name}", np.array([model.get_scores(topic) if topic else np.zeros(len(docs)) for topic in known])


def scikit_learn(docs: list[list[str]], topics: list[list[str]]) -> Iterator[tuple[str, Any]]:
    """Rows of tf-idf, and the topics as bags of words (Fontes has no idf on the topic's side)."""
    for sublinear in (False, True):
        for norm in ("l2", None):
            rows = TfidfVectorizer(analyzer=list, sublinear_tf=sublinear, norm=norm)
            matrix = rows.fit_transform(docs)
            bags = CountVectorizer(analyzer=list, vocabulary=rows.vocabulary_).transform(topics).astype(np.float64)
            weights = normalize(bags) if norm else bags
            yield f"scikit-learn sublinear_tf={sublinear} norm={norm}", (weights @ matrix.T).toarray()


def main() -> None:
    given = json.load(sys.stdin)
    docs, topics, k1, b = given["docs"], given["topics"], given["k1"], given["b"]
    found = [*rank_bm25(docs, topics, k1, b), *bm25s_variants(docs, topics, k1, b), *scikit_learn(docs, topics)]
    np.savez(sys.argv[1], **dict(found))
    sys.stdout.write("\n{}\n")


if __name__ == "__main__":
    main()
