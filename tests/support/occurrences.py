"""Frequencies by field and positions of terms, counted anew from documents, and those that an index has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fontes.core import Doc
from fontes.index import Index
from fontes.index.batches import field_contents
from fontes.index.positions import GAP
from fontes.text import Analyzer

Postings = dict[str, dict[str, list[Any]]]  # term, document, what its posting carries


def placed(analyzer: Analyzer, text: str) -> tuple[list[tuple[str, int]], int]:
    """The terms of a text with their positions, and how many tokens it has."""
    spans = analyzer.spans(text)
    return [(term, place) for place, (_, _, terms) in enumerate(spans) for term in terms], len(spans)


def frequencies_by_field(docs: Sequence[Doc], analyzer: Analyzer, fields: Sequence[str]) -> Postings:
    """How often each term occurs in each field of each document."""
    found: Postings = {}
    for doc in docs:
        for field, text in enumerate(field_contents(doc, fields)):
            for term, count in Counter(analyzer(text)).items():
                found.setdefault(term, {}).setdefault(doc.id, [0] * len(fields))[field] = count
    return found


def positions(docs: Sequence[Doc], analyzer: Analyzer, fields: Sequence[str]) -> tuple[Postings, list[list[int]]]:
    """Where each term stands in each document, and where its fields start."""
    found: Postings = {}
    starts = []
    for doc in docs:
        own, start, end = [], 0, 0
        for text in field_contents(doc, fields):
            terms, size = placed(analyzer, text)
            for term, place in terms:
                found.setdefault(term, {}).setdefault(doc.id, []).append(start + place)
            own.append(start)
            end = start + size
            start = end + GAP
        starts.append([*own, end])
    return found, starts


def indexed_frequencies(index: Index) -> Postings:
    """Frequencies by field in an index."""
    found: Postings = {}
    docs, _ = index.postings(np.arange(len(index.terms)))
    rows = index.field_statistics.frequencies(np.arange(len(index.terms)))
    ids, at = index.ids.tolist(), 0
    for term, df in zip(index.terms.tolist(), index.df.tolist(), strict=True):
        found[term] = {ids[docs[place]]: rows[place].tolist() for place in range(at, at + df)}
        at += df
    return found


def indexed_positions(index: Index) -> Postings:
    """Positions in an index."""
    found: Postings = {}
    ids = index.ids.tolist()
    for number, term in enumerate(index.terms.tolist()):
        docs, tfs = index.postings(np.array([number]))
        bounds, places = index.positions.of(number)
        assert np.diff(bounds).tolist() == tfs.tolist()
        found[term] = {ids[doc]: places[a:b].tolist() for doc, a, b in zip(docs, bounds[:-1], bounds[1:], strict=True)}
    return found


def agrees(index: Index, docs: Sequence[Doc], fields: Sequence[str]) -> None:
    """An index of documents has the frequencies by field and the positions that a plain count of them has."""
    if index.separate:
        statistics, expected = index.field_statistics, frequencies_by_field(docs, index.analyzer, fields)
        assert statistics.names == tuple(fields) == index.separate
        assert indexed_frequencies(index) == expected
        lengths = [[len(index.analyzer(text)) for text in field_contents(doc, fields)] for doc in docs]
        assert statistics.lengths.tolist() == lengths
        assert statistics.tokens.tolist() == np.sum(lengths or [[0] * len(fields)], axis=0).tolist()
        terms = index.terms.tolist()
        assert statistics.cf.tolist() == [np.sum(list(expected[term].values()), axis=0).tolist() for term in terms]
        assert statistics.df.tolist() == [
            [sum(row[field] > 0 for row in expected[term].values()) for field in range(len(fields))] for term in terms
        ]
    if index.has_positions:
        found, starts = positions(docs, index.analyzer, fields)
        assert indexed_positions(index) == found
        assert index.positions.field_starts.tolist() == (starts or [])
