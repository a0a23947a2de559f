"""`fontes add`: add documents to an index."""

from __future__ import annotations

import time
from typing import Annotated

from ..options import Analyzer, Format, IdPrefixes, IndexPath, Json, Memory, Parts, Threads, documents, option, reads_files
from ..output import counted, print_change, reporting
from ..pipelines import open_index


@reads_files("id", "title", "text", "skip_bad")
def add(
    index: IndexPath,
    part: Parts,
    duplicates: Annotated[str, option("Ids that the index has: error, skip or replace.")] = "error",
    format: Format = None,
    id_prefix: IdPrefixes = None,
    analyzer: Analyzer = None,
    memory: Memory = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Add documents to an index, or replace some that it has. Running searches are not disturbed."""
    from ...formats.corpus import with_prefixes

    opened = open_index(index, analyzer)
    docs = with_prefixes(part, id_prefix or (), lambda parts: documents(parts, format))
    start = time.perf_counter()
    with reporting(json, compiling=True):
        change = opened.add(docs, duplicates=duplicates, memory=memory, threads=threads)
    older = "an older one" if change.replaced == 1 else "older ones"
    replaced = f", {change.replaced:,} in place of {older}" if change.replaced else ""
    skipped = f", {change.skipped:,} skipped" if change.skipped else ""
    print_change(
        index, change, f"{counted(change.added, 'document')} added{replaced}{skipped}", time.perf_counter() - start, json
    )
