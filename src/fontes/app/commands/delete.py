"""`fontes delete`: delete documents of an index."""

from __future__ import annotations

import time
from typing import Annotated

from ...core.errors import ParameterError
from ..options import IndexPath, Json, argument, option
from ..output import counted, print_change
from ..pipelines import open_index


def delete(
    index: IndexPath,
    id: Annotated[list[str] | None, argument("Ids of documents; - reads one per line.")] = None,
    where: Annotated[str | None, option("Filter, in place of ids: all documents that pass it.")] = None,
    missing: Annotated[str, option("Ids that the index lacks: error or skip.")] = "error",
    json: Json = False,
) -> None:
    """Delete documents from an index. Running searches are not disturbed."""

    if not id and where is None:
        raise ParameterError("name documents by their ids, or by a filter, --where; none is deleted")
    opened = open_index(index)
    start = time.perf_counter()
    change = opened.delete(_read_ids() if id == ["-"] else id or (), where=where, missing=missing)
    skipped = f", {change.skipped:,} skipped" if change.skipped else ""
    print_change(index, change, f"{counted(change.deleted, 'document')} deleted{skipped}", time.perf_counter() - start, json)


def _read_ids() -> list[str]:
    from ...storage.files import STANDARD, reading

    with reading(STANDARD) as source:
        return [line for _, line in source.texts()]
