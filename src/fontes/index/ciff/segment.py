"""A segment out of a CIFF file: what a build of the same postings writes, without texts."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.progress import Progress, Report
from ...core.strings import Strings
from ...core.work import resources
from ...storage.arrays import ByteWriter, read_array
from ...storage.files import reading
from ..inversion import Postings, write_lists
from ..tables import IdWriter
from .kernels import gather, out_of_order
from .reading import CiffReader


def ciff_segment(path: str | Path, folder: Path, *, progress: Report) -> tuple[dict[str, int], dict[str, Any]]:
    """Writes the files of one segment: ids, terms, postings, and the lengths that the file has.

    Postings go to disk beside the segment as they are read; the terms, the ids and the longest list are in memory.

    Args:
        path: The CIFF file, packed where its name ends in .gz; "-" is standard input.
        folder: Where the segment's files go.
        progress: Is called now and then.

    Returns:
        The counts of documents, terms, postings and tokens; and what the manifest says of the file.

    Raises:
        InputError: It is no CIFF file, is damaged or does not fit together.
    """
    start = time.perf_counter()
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    spools = [ByteWriter(folder.parent, name) for name in ("docs", "tfs")]
    tables: list[tuple[NDArray[np.uint8], NDArray[np.int64]]] = []
    dfs, ids, lengths = [np.zeros(0, np.int64)], [], [np.zeros(0, np.int64)]
    try:
        with reading(path) as source:
            reader = CiffReader(source)
            for lists in reader.lists():
                for spool, values in zip(spools, (lists.docs, lists.tfs), strict=True):
                    spool.write(values.view(np.uint8))
                tables.append((lists.blob, lists.bounds))
                dfs.append(lists.df)
                part = min(1.0, source.position / size) if size else None
                progress(Progress("reading", len(lists.df), None, time.perf_counter() - start, part=part))
            for records in reader.records():
                ids.append((records.blob, records.bounds))
                lengths.append(records.lengths)
            surplus = reader.surplus()
            reader.check_mean()
        for spool in spools:
            spool.close()
    finally:
        for spool in spools:
            spool.abandon()
    terms = _table(tables)
    df = np.concatenate(dfs)
    order = _order(terms, reader.name)
    _write_ids(folder, [_table([part]) for part in ids], reader.name)
    docs, tfs = (read_array(folder.parent, name).view("<i4") for name in ("docs", "tfs"))
    postings = _Spooled(df, docs, tfs, order)
    if order is not None:
        terms, df = terms.reordered(order), df[order]
    counts = write_lists(folder, terms, df, np.concatenate(lengths), postings)
    return {"documents": reader.header.num_docs, **counts}, {**asdict(reader.header), "surplus": surplus}


def _write_ids(folder: Path, parts: list[Strings], name: str) -> None:
    """Writes the ids of a file."""
    writer = IdWriter(folder, resources().memory)
    try:
        for part in parts:
            writer.add(part)
        writer.close(repeated=False)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    finally:
        writer.abandon()


class _Spooled:
    """The postings of a file on disk, as `write_lists` asks for them.

    Args:
        df: How many postings each list of the file has.
        docs: The documents of all.
        tfs: Their frequencies.
        order: For each term, ascending, the number of its list; None where the lists are in this order.
    """

    def __init__(
        self, df: NDArray[np.int64], docs: NDArray[np.int32], tfs: NDArray[np.int32], order: NDArray[np.int32] | None
    ) -> None:
        self._bounds = np.zeros(len(df) + 1, dtype=np.int64)
        np.cumsum(df, out=self._bounds[1:])
        self._df, self._docs, self._tfs, self._order = df, docs, tfs, order

    def __call__(self, first: int, last: int) -> Postings:
        """Those of the terms from one number up to another."""
        if self._order is None:
            own = slice(int(self._bounds[first]), int(self._bounds[last]))
            return self._docs[own], self._tfs[own]
        places = self._order[first:last]
        cursor = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(self._df[places], out=cursor[1:])
        docs, tfs = np.empty(cursor[-1], dtype=np.int32), np.empty(cursor[-1], dtype=np.int32)
        gather(self._bounds, self._docs, self._tfs, places, cursor, docs, tfs)
        return docs, tfs


def _table(parts: list[tuple[NDArray[np.uint8], NDArray[np.int64]]]) -> Strings:
    """The strings of tables end to end."""
    blob = np.concatenate([np.zeros(0, np.uint8), *(blob for blob, _ in parts)])
    ends = np.cumsum([0, *(len(blob) for blob, _ in parts)], dtype=np.int64)
    shifted = (bounds[1:] + end for (_, bounds), end in zip(parts, ends.tolist(), strict=False))
    return Strings(blob, np.concatenate([np.zeros(1, np.int64), *shifted]))


def _order(terms: Strings, name: str) -> NDArray[np.int32] | None:
    """The numbers of the terms in ascending order; None where they are in it.

    Raises:
        InputError: They are in the order neither of their bytes nor, as Java sorts, of their UTF-16, or one comes twice.
    """
    if (wrong := out_of_order(terms.blob, terms.offsets, False)) < 0:
        return None
    if (wrong := out_of_order(terms.blob, terms.offsets, True)) < 0:
        return terms.order.astype(np.int32)
    before, term = terms[wrong - 1], terms[wrong]
    problem = f"comes twice, as {wrong:,} and {wrong + 1:,}" if before == term else f"({wrong + 1:,}) comes after '{before}'"
    raise InputError(f"{name}: the postings list of '{term}' {problem}; they must be in the order of their terms")
