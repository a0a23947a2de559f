"""Frequencies by field and positions of terms, counted anew from documents, and those that an index has."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fontes.core import Doc
from fontes.index import Index
from fontes.index.batches import field_contents
from fontes.index.parts import Part
from fontes.index.positions import GAP
from fontes.lexical.fields import chosen_fields
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


def is_alive(part: Part, doc: int) -> bool:
    """Whether a document of a part is not deleted."""
    return part.dead is None or not part.dead[doc]


def indexed_frequencies(index: Index) -> Postings:
    """Frequencies by field in an index."""
    found: Postings = {}
    for part in sorted(index.state.parts, key=lambda part: part.leaf.first):
        docs, _ = part.postings(np.arange(len(part.df)))
        rows, at = part.frequencies(np.arange(len(part.df))), 0
        for term, df in zip(part.terms.tolist(), part.df.tolist(), strict=True):
            alive = {
                part.ids[docs[i]]: rows[i].tolist() for i in range(at, at + df) if part.dead is None or not part.dead[docs[i]]
            }
            found |= {term: found.get(term, {}) | alive} if alive else {}
            at += df
    return dict(sorted(found.items(), key=lambda item: item[0].encode()))


def indexed_positions(index: Index) -> Postings:
    """Positions in an index."""
    found: Postings = {}
    for part in sorted(index.state.parts, key=lambda part: part.leaf.first):
        for number, term in enumerate(part.terms.tolist()):
            docs, tfs = part.postings(np.array([number]))
            bounds, places = part.positions.of(number)
            assert np.diff(bounds).tolist() == tfs.tolist()
            rows = zip(docs.tolist(), bounds[:-1], bounds[1:], strict=True)
            alive = {part.ids[doc]: places[a:b].tolist() for doc, a, b in rows if is_alive(part, doc)}
            found |= {term: found.get(term, {}) | alive} if alive else {}
    return dict(sorted(found.items(), key=lambda item: item[0].encode()))


def agrees(index: Index, docs: Sequence[Doc], fields: Sequence[str]) -> None:
    """An index of documents has the frequencies by field and the positions that a plain count of them has."""
    if index.separate:
        expected = frequencies_by_field(docs, index.analyzer, fields)
        assert tuple(fields) == index.separate
        assert indexed_frequencies(index) == expected
        lengths = [[len(index.analyzer(text)) for text in field_contents(doc, fields)] for doc in docs]
        for column, name in enumerate(fields):
            field = chosen_fields(index.state, [name])
            assert field.lengths.tolist() == [row[column] for row in lengths]
            assert field.tokens == sum(row[column] for row in lengths)
            rows = {term: [row[column] for row in of_term.values() if row[column]] for term, of_term in expected.items()}
            assert dict(zip(field.terms.tolist(), field.cf.tolist(), strict=True)).items() >= {
                (term, sum(counts)) for term, counts in rows.items() if counts
            }
            assert [field.df_of(term) for term in rows] == [len(counts) for counts in rows.values()]
    if index.has_positions:
        found, starts = positions(docs, index.analyzer, fields)
        assert indexed_positions(index) == found
        parts = sorted(index.state.parts, key=lambda part: part.leaf.first)
        assert [row for part in parts for row in part.positions.field_starts[part.leaf.live].tolist()] == starts
