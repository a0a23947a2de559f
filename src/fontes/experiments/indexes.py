"""Indexes that are built once in a folder, and found there by what they were built of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import Doc, IndexFormatError
from ..core.progress import Report, silent
from ..storage.hashes import hash_json

if TYPE_CHECKING:
    from ..index import Index
    from ..text import Analyzer

Tell = Callable[[str], None]


def built_once(
    folder: Path,
    documents: Iterable[Doc],
    identity: list[Any],
    analyzer: str | Analyzer,
    fields: Sequence[str],
    vectors: str | None,
    tell: Tell,
    progress: Report = silent,
) -> Index:
    """The index in `folder` of these documents by this analyzer, which is built where it is not there or is damaged.

    `identity`, JSON values, says which documents they are, so that they need not be read to find their index; `tell` is called
    with a line about what was done, `progress` by `Index.build`.
    """
    from ..index import Index
    from ..text import Analyzer

    made = Analyzer.of(analyzer)
    key = hash_json([version("fontes"), *identity, made.to_dict(), list(fields), vectors])
    path = folder / f"{key[:16]}.index"
    if damaged := path.exists():
        try:
            index = Index.open(path, analyzer=made)
            tell("index: as it was built before")
            return index
        except IndexFormatError:
            tell("index: damaged, so it is built again")
    folder.mkdir(parents=True, exist_ok=True)
    index = Index.build(
        documents,
        path,
        analyzer=made,
        fields=tuple(fields),
        vectors=vectors,
        overwrite=damaged,
        progress=progress,
    )
    tell(f"index: {len(index):,} documents")
    return index
