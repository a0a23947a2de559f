"""Merging: one segment of the documents that live in several, byte for byte as a build of these documents writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ..core.progress import Progress, Report
from ..core.threads import Workers, in_order
from ..storage.arrays import smallest, write_array
from .columns import SegmentColumns, merge_columns
from .documents import Block, Blocks, DocumentWriter, packed
from .inverted import PostingLists
from .joined import JoinedLists, counted
from .leaf import Leaf, leaves_of
from .postings import write_lists
from .tables import joined


def merge_segments(
    leaves: Sequence[Leaf],
    folder: Path,
    *,
    memory: int,
    threads: int,
    progress: Report,
    columns: Sequence[SegmentColumns] | None = None,
) -> dict[str, int]:
    """Writes the files of one segment: the documents that live in the leaves, in their order.

    Args:
        leaves: The segments, adjacent ones of a reader.
        folder: Where the files go.
        memory: Bounds the bytes that postings take; the terms, the ids and some blocks of text come on top.
        threads: How many threads work side by side.
        progress: Is called now and then.
        columns: The columns of each leaf, where they are not what its segment has.

    Returns:
        The counts of documents, terms, postings and tokens.

    Raises:
        IndexFormatError: A segment is damaged.
    """
    assert columns is None or all(leaf.documents for leaf in leaves)
    leaves = leaves_of((leaf.segment, leaf.deletions) for leaf in leaves)
    ids = joined([leaf.segment.ids for leaf in leaves], [None if leaf.dead is None else leaf.live for leaf in leaves])
    write_array(folder, "doc_ids.bytes", ids.blob)
    write_array(folder, "doc_ids.bounds", smallest(ids.offsets))
    write_array(folder, "doc_ids.order", ids.order)
    segments, each = [leaf.segment for leaf in leaves], max(1, threads - 1)
    with Workers(min(2, threads)) as workers:  # texts and postings do not know of one another
        lists = workers.begin(partial(merge_lists, segments, leaves, folder, memory=memory, threads=each))
        merge_columns(leaves, folder, columns)
        if all(segment.store is not None for segment in segments):
            _merge_texts(leaves, folder, each, progress)
        return {"documents": len(ids), **lists()}


def merge_lists(
    parts: Sequence[PostingLists], leaves: Sequence[Leaf], folder: Path, *, memory: int, threads: int
) -> dict[str, int]:
    """Writes the files of one inverted index: terms, df, cf, postings, doc_lengths.

    Args:
        parts: The inverted indexes of the leaves' documents: their own, or the weights that a model gave their terms.
        leaves: The leaves, the first of which has the ordinals from 0.
        folder: Where the files go.
        memory: Bounds the bytes that postings take.
        threads: How many threads work side by side.

    Returns:
        The counts of terms, postings and tokens.
    """
    own = [leaf if part is leaf.segment else counted(leaf, part) for leaf, part in zip(leaves, parts, strict=True)]
    lists = JoinedLists(parts, own)
    return write_lists(
        folder,
        lists.terms,
        lists.df,
        lists.lengths,
        lambda first, last: lists.postings(np.arange(first, last)),
        memory=memory,
        threads=threads,
    )


def _merge_texts(leaves: Sequence[Leaf], folder: Path, threads: int, progress: Report) -> None:
    start, done, total = time.perf_counter(), 0, sum(leaf.documents for leaf in leaves)
    writer = DocumentWriter(folder)
    try:
        for block in in_order(packed, _blocks(leaves), threads):
            writer.write(block)
            done += len(block.sizes)
            progress(Progress("merging", done, total, time.perf_counter() - start))
        writer.close()
    finally:
        writer.abandon()


def _blocks(leaves: Sequence[Leaf]) -> Iterator[Block]:
    """The documents that live in the blocks of a build; those that a segment has alike stay packed."""
    blocks = Blocks()
    for leaf in leaves:
        for first, block in leaf.segment.store.blocks() if leaf.segment.store is not None else ():
            dead = leaf.dead
            yield from blocks.add(block if dead is None else block.of(~dead[first : first + len(block.sizes)]))
    yield from blocks.rest()
