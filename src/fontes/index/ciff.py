"""Indexes of CIFF files, and CIFF files of indexes; `fontes.formats.ciff` reads and writes the messages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import UInt32s
from ..core.errors import InputError
from ..core.strings import Strings, offsets_of
from ..core.work import Progress, reporter, resources
from ..formats.ciff import RECORDS, VERSION, CiffReader, Header, encoded, header_of, messages, record_messages, term_messages
from ..storage.arrays import ByteWriter, read_array
from ..storage.files import reading
from .inversion import chunks, write_lists
from .packing import Postings
from .tables import IdWriter, concatenate_tables

if TYPE_CHECKING:
    from .state import State

POSTINGS = 1 << 20  # postings written at a time, more for a term that has more


def ciff_segment(path: str | Path, folder: Path) -> tuple[dict[str, int], dict[str, object]]:
    """Write the files of one segment: ids, terms, postings and the lengths in the file, but no texts.

    Postings are spooled to disk beside the segment while they are read; the terms and the longest list are in memory.

    Returns:
        The counts of documents, terms, postings and tokens; and the facts about the file for the manifest.
    """
    report = reporter()
    start = time.perf_counter()
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    spools, ids = [ByteWriter(folder.parent, name) for name in ("docs", "tfs")], IdWriter(folder, resources().memory)
    tables, dfs, lengths = [Strings.of([])], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    try:
        with reading(path) as source:
            reader = CiffReader(source)
            for table, df, *postings in reader.lists():
                for spool, values in zip(spools, postings, strict=True):
                    spool.write(values.view(np.uint8))
                tables.append(table)
                dfs.append(df)
                part = min(1.0, source.position / size) if size else None
                report(Progress("reading", len(df), None, time.perf_counter() - start, part=part))
            for table, table_lengths in reader.records():
                ids.add(table)
                lengths.append(table_lengths)
            facts = {**asdict(reader.header), "surplus": reader.surplus()}
            reader.check_mean()
        for spool in spools:
            spool.close()
        terms = concatenate_tables(tables)
        order = _order(terms, reader.name)
        try:
            ids.close(repeated=False)
        except InputError as error:
            raise InputError(f"{reader.name}: {error}") from None
    finally:
        for spool in spools:
            spool.abandon()
        ids.abandon()
    df = np.concatenate(dfs)
    bounds = offsets_of(df)
    docs, tfs = (read_array(folder.parent, name).view("<i4") for name in ("docs", "tfs"))

    def spooled(first: int, last: int) -> Postings:
        if order is None:
            rows = slice(int(bounds[first]), int(bounds[last]))
            return docs[rows], tfs[rows]
        lists = order[first:last]
        counts = df[lists]
        indices = np.arange(counts.sum()) + np.repeat(bounds[lists] - (np.cumsum(counts) - counts), counts)
        return docs[indices], tfs[indices]

    ordered, counts = (terms, df) if order is None else (terms.reordered(order), df[order])
    written = write_lists(folder, ordered, counts, np.concatenate(lengths), spooled)
    return {"documents": reader.header.num_docs, **written}, facts


def _order(terms: Strings, name: str) -> UInt32s | None:
    """Numbers of the terms in ascending order; None if they ascend already. Java tools sort terms by UTF-16."""
    words = terms.tolist()
    if all(first < second for first, second in pairwise(words)):
        return None
    java = [term.encode("utf-16-be") for term in words]
    wrong = next((number for number, (first, second) in enumerate(pairwise(java), 1) if first >= second), None)
    if wrong is None:
        return terms.order
    previous, term = words[wrong - 1 : wrong + 1]
    problem = (
        f"comes twice, as {wrong:,} and {wrong + 1:,}" if previous == term else f"({wrong + 1:,}) comes after '{previous}'"
    )
    raise InputError(f"{name}: the postings list of '{term}' {problem}; they must be in the order of their terms")


def ciff_messages(state: State, description: str | None) -> Iterator[bytes]:
    """Yield the bytes of a CIFF file of the living documents, in pieces; None as description describes the index."""
    header = _header(state, _default_description(state) if description is None else description)
    yield encoded([messages().Header(**asdict(header))])
    for first, last in chunks(state.df, POSTINGS):
        terms, df, cf = state.terms[first:last], state.df[first:last], state.cf[first:last]
        yield encoded(term_messages(terms, df, cf, *state.postings(np.arange(first, last))))
    for first in range(0, len(state), RECORDS):
        last = first + RECORDS
        yield encoded(record_messages(state.ids[first:last], first, state.lengths[first:last]))


def _default_description(state: State) -> str:
    if state.ciff is not None:
        return header_of(state.ciff).description
    analyzer = state.manifest["analyzer"]
    words, stemmer = len(analyzer["stopwords"]), analyzer["stemmer"] or "none"
    steps = f"tokenizer {analyzer['tokenizer']}, {words} stop words, stemmer {stemmer}"
    return f"{state.name}: Fontes {state.manifest['fontes']}; {', '.join(state.fields)}; {steps}"


def _header(state: State, description: str) -> Header:
    """Header with the counts of an index; with the totals of the collection if the index is of a part of it."""
    documents, terms, tokens = len(state), len(state.terms), state.tokens
    mean = tokens / documents if documents else 0.0
    description = description.encode(errors="replace").decode()
    header = Header(VERSION, terms, documents, terms, documents, tokens, mean, description)
    if state.ciff is None:
        return header
    original = header_of(state.ciff)
    if (documents, terms) == (original.num_docs, original.num_postings_lists):
        return replace(original, description=description)
    total = terms + original.total_postings_lists - original.num_postings_lists
    header = replace(header, total_postings_lists=max(terms, total))
    if original.total_docs == original.num_docs:
        return header
    total_terms, mean = original.total_terms_in_collection, original.average_doclength
    return replace(header, total_docs=original.total_docs, total_terms_in_collection=total_terms, average_doclength=mean)
