"""`fontes merge`: merge the segments of an index."""

from __future__ import annotations

import time
from typing import Annotated

from ..options import Analyzer, IndexPath, Json, Memory, Threads, option
from ..output import print_change, reporting
from ..pipelines import open_index


def merge(
    index: IndexPath,
    memory: Memory = None,
    threads: Threads = None,
    drop_vectors: Annotated[
        bool, option("Drop vectors that only some documents have, which prevent a merge.", True, "--drop-vectors")
    ] = False,
    positions: Annotated[
        bool, option("Also store the positions of terms, found in the stored texts.", True, "--positions")
    ] = False,
    analyzer: Analyzer = None,
    json: Json = False,
) -> None:
    """Merge the segments of an index, and drop deleted documents. Running searches are not disturbed."""

    opened = open_index(index, analyzer)
    start = time.perf_counter()
    with reporting(json, compiling=True):
        change = opened.merge(memory=memory, threads=threads, drop_vectors=drop_vectors, positions=positions)
    print_change(index, change, "merged", time.perf_counter() - start, json)
