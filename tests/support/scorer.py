"""BM25 by scanning the terms of all documents: what every search must give, to the bit. It knows no index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from support.naive_queries import Text, frequency

from fontes.core.query import Clause, Group, Leaf, Term

Hits = list[tuple[str, np.float32]]
IDF: dict[str, Callable[[float, Any], Any]] = {
    "lucene": lambda n, df: np.log(1 + (n - df + 0.5) / (df + 0.5)),
    "atire": lambda n, df: np.log(n / df),
    "robertson": lambda n, df: np.log((n - df + 0.5) / (df + 0.5)),
}


class Scorer:
    """Scores of documents.

    Args:
        texts: The terms of each document by id; None is a dropped word.
        variant: One of IDF.
        k1: As of BM25.
        b: As of BM25.
    """

    def __init__(self, texts: Mapping[str, Text], variant: str = "lucene", k1: float = 0.9, b: float = 0.4) -> None:
        self.texts, self.idf, self.k1, self.b = texts, IDF[variant], k1, b
        self.factor = 1.0 if variant == "lucene" else k1 + 1
        self.lengths = {doc: sum(term is not None for term in text) for doc, text in texts.items()}
        self.mean = sum(self.lengths.values()) / max(1, len(texts))

    def weights(self, clause: Leaf) -> dict[str, np.float32]:
        """The weight of a clause in each document that has it."""
        tfs = {doc: tf for doc, text in self.texts.items() if (tf := frequency(text, clause))}
        idf = self.idf(len(self.texts), np.array([float(max(1, len(tfs)))]))[0]
        lengths = {doc: 1 - self.b + self.b * float(self.lengths[doc]) / self.mean for doc in tfs}
        return {doc: np.float32(idf * (self.factor * tf / (tf + self.k1 * lengths[doc]))) for doc, tf in tfs.items()}

    def bag(self, weights: Mapping[str, float], k: int, passes: Callable[[str], bool] = lambda doc: True) -> Hits:
        """The best documents that have one of some terms and pass."""
        terms = {term: self.weights(Term(term)) for term in sorted(weights) if weights[term]}
        docs = {doc for of_term in terms.values() for doc in of_term if passes(doc)}
        return _best({doc: sum(weights[term] * float(w[doc]) for term, w in terms.items() if doc in w) for doc in docs}, k)

    def query(self, query: Group, k: int, passes: Callable[[str], bool] = lambda doc: True) -> Hits:
        """The best documents for required, optional and excluded clauses without groups."""
        order = sorted((c for c in scored(query) if type(c) is Term), key=lambda c: c.term)
        order += [c for c in scored(query) if type(c) is not Term]
        lists = [(clause.weight, self.weights(clause)) for clause in order]
        docs = [doc for doc in self.texts if passes(doc) and self.matches(query, doc)]
        return _best({doc: sum(weight * float(of[doc]) for weight, of in lists if doc in of) for doc in docs}, k)

    def matches(self, query: Group, doc: str) -> bool:
        """Whether a document has what a query requires, and nothing that it excludes."""

        def has(clause: Clause) -> bool:
            return frequency(self.texts[doc], clause) > 0  # type: ignore[arg-type]

        if any(map(has, query.must_not)):
            return False
        return all(map(has, query.must)) if query.must else any(map(has, query.should))


def scored(query: Group) -> Sequence[Any]:
    """The clauses that score."""
    return (*query.must, *query.should)


def _best(sums: Mapping[str, float], k: int) -> Hits:
    scores = [(np.float32(total), doc) for doc, total in sums.items()]
    return [(doc, score) for score, doc in sorted(scores, reverse=True)[:k]]
