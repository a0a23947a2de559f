"""Small collections, what an index of them must hold, and folders as they are, for tests of builds."""

from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from support.examples import up_to

from fontes.core import Doc
from fontes.index import Index

PROPERTY = settings(
    deadline=None, max_examples=up_to(60, 10), database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
DOCS = [
    Doc("d1", "The fox jumps over the lazy dog.", "Foxes", {"year": 2020, "by": "Reynard"}),
    Doc("d2", "A dog sleeps."),
    Doc("d3", "Foxes and dogs, dogs and foxes.", "Both"),
]


def postings(index: Index) -> dict[str, dict[int, int]]:
    """The inverted index as dicts: term to ordinal to term frequency."""
    terms = {}
    for number, term in enumerate(index.terms):
        docs, tfs = index.postings(np.array([number]))
        assert docs.tolist() == sorted(set(docs.tolist()))
        terms[term] = dict(zip(docs.tolist(), tfs.tolist(), strict=True))
    return terms


def inverted(bags: list[Counter[str]]) -> dict[str, dict[int, int]]:
    terms: dict[str, dict[int, int]] = {}
    for ordinal, bag in enumerate(bags):
        for term, tf in bag.items():
            terms.setdefault(term, {})[ordinal] = tf
    return terms


def files(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


def agrees(index: Index, bags: list[Counter[str]]) -> None:
    """The index has the statistics of these bags of words, and is sound."""
    expected = inverted(bags)
    assert postings(index) == expected
    assert index.terms.tolist() == sorted(expected, key=str.encode)
    assert index.df.tolist() == [len(expected[t]) for t in index.terms]
    assert index.cf.tolist() == [sum(expected[t].values()) for t in index.terms]
    assert index.lengths.tolist() == [bag.total() for bag in bags]
    assert index.tokens == sum(bag.total() for bag in bags)
    index.check(deep=True)
