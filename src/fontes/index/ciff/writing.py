"""Writing CIFF: the messages of an index, some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..inversion import chunks
from .header import VERSION, Header, header_of, varint
from .kernels import write_lists, write_records

if TYPE_CHECKING:
    from ..state import State

POSTINGS = 1 << 20  # in a piece, more where a term has more
RECORDS = 1 << 18  # documents in a piece


def ciff_messages(reader: State, description: str | None) -> Iterator[bytes]:
    """The bytes of a CIFF file of the documents that live, in pieces.

    Args:
        reader: The index.
        description: What the header says of it; None for what there is to say.
    """
    header = _header(reader, _described(reader) if description is None else description).message()
    yield varint(len(header)) + header
    terms, starts = reader.terms.blob, reader.terms.offsets
    for first, last in chunks(reader.df, POSTINGS):
        df, cf = (counts[first:last].astype(np.int64) for counts in (reader.df, reader.cf))
        docs, tfs = reader.postings(np.arange(first, last))
        yield write_lists(terms, starts[first : last + 1].astype(np.int64), df, cf, docs, tfs).tobytes()
    ids, bounds = reader.ids.blob, reader.ids.offsets
    for first in range(0, len(reader), RECORDS):
        last = min(len(reader), first + RECORDS)
        lengths = reader.lengths[first:last].astype(np.int64)
        yield write_records(ids, bounds[first : last + 1].astype(np.int64), first, lengths).tobytes()


def _described(reader: State) -> str:
    """What the CIFF file said that the index was made of; of any other index what made its terms."""
    if reader.ciff is not None:
        return header_of(reader.ciff).description
    analyzer = reader.manifest["analyzer"]
    steps = (
        f"tokenizer {analyzer['tokenizer']}, {len(analyzer['stopwords'])} stop words, stemmer {analyzer['stemmer'] or 'none'}"
    )
    return f"{reader.name}: Fontes {reader.manifest['fontes']}; {', '.join(reader.fields)}; {steps}"


def _header(reader: State, description: str) -> Header:
    """Counts of what there is; of a part of a collection with what else that has."""
    documents, terms, tokens = len(reader), len(reader.terms), reader.tokens
    mean = tokens / documents if documents else 0.0
    header = Header(VERSION, terms, documents, terms, documents, tokens, mean, description)
    if reader.ciff is None:
        return header
    before = header_of(reader.ciff)
    if (documents, terms) == (before.num_docs, before.num_postings_lists):
        return replace(before, description=description)
    total = terms + before.total_postings_lists - before.num_postings_lists
    header = replace(header, total_postings_lists=max(terms, total))
    if before.total_docs == before.num_docs:
        return header
    total_terms, mean = before.total_terms_in_collection, before.average_doclength
    return replace(header, total_docs=before.total_docs, total_terms_in_collection=total_terms, average_doclength=mean)
