"""Histories of an index, and the index that is built anew of what is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fontes.core import Run
from fontes.index import Index

Docs = Sequence[tuple[str, str]]


def fresh(docs: Docs, deleted: Iterable[str], path: Path) -> Index:
    """An index that was never changed, of the documents that are left."""
    gone = set(deleted)
    return Index.build([doc for doc in docs if doc[0] not in gone], path)


def answers(run: Run) -> dict[str, tuple[list[str], bytes]]:
    """The ids and the bytes of the scores of each topic."""
    return {topic: (list(ranking.ids), ranking.scores.tobytes()) for topic, ranking in run.items()}


def segment_files(index: Any, beginning: str) -> dict[str, bytes]:
    """The files of all that is attached to an index's only segment and whose name begins so."""
    (leaf,) = index.state.leaves
    folder = leaf.segment.folder
    files = (file for place in folder.glob(f"{beginning}*") for file in place.rglob("*"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}
