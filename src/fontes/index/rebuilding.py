"""Making segments of stored documents again: with other components, or with other metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.strings import Strings
from ..core.values import Doc
from ..formats.packed import pack_docs
from .batches import Batch, field_contents
from .build import READ_SIZE, build_segment
from .columns import COLUMNS, ColumnWriter
from .component import components
from .segment import Deletions, Leaf
from .settings import FIELDS, POSITIONS, IndexSettings
from .tables import write_ids
from .texts import TEXTS, DocumentWriter

if TYPE_CHECKING:
    from .draft import Draft


class StoredDocuments:
    """The living documents of some segments, in order."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves

    def __len__(self) -> int:
        return sum(leaf.documents for leaf in self._leaves)

    def __iter__(self) -> Iterator[Doc]:
        for leaf in self._leaves:
            ids, texts = leaf.segment.ids, leaf.segment.texts
            for first in range(0, leaf.documents, READ_SIZE):
                positions = leaf.live[first : first + READ_SIZE].tolist()
                yield from texts.read([ids[position] for position in positions], positions)


def rebuild_all(draft: Draft, settings: IndexSettings) -> None:
    """Build one segment of each shard again, as a new index of its documents has it; columns and vectors are copied."""

    def write(leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        counts = build_segment(StoredDocuments(leaves), folder, settings)
        return counts | COLUMNS.merge(leaves, folder)

    for first, last in draft.sort_by_shard():
        draft.merge(first, last, write)


def is_indexed_alike(old: Doc, new: Doc, settings: IndexSettings) -> bool:
    """Whether two documents differ in metadata alone that are not indexed, so that their terms and vectors are equal."""
    if not set(settings.components) <= {FIELDS, POSITIONS}:  # another package's may be made of metadata
        return False
    if settings.weights is not None and old.metadata.get(settings.weights.field) != new.metadata.get(settings.weights.field):
        return False
    fields = settings.fields if settings.weights is None else ()
    return (old.title, old.text, field_contents(old, fields)) == (new.title, new.text, field_contents(new, fields))


def deleted_between(before: Leaf, after: Leaf) -> Leaf:
    """Return the documents of a segment that were deleted between two states of it, as if all others were deleted."""
    dead = np.ones(before.segment.documents, dtype=np.bool_)
    dead[before.live] = True if after.dead is None else ~after.dead[before.live]
    counts = []
    for of in ("df", "cf"):
        all_counts = getattr(before.segment.lists, of)
        living = [
            all_counts if leaf.deletions is None else leaf.deletions.subtracted(all_counts, of) for leaf in (before, after)
        ]
        counts.append(all_counts + living[1].astype(np.int64) - living[0])
    terms = np.flatnonzero(counts[0])
    return Leaf(before.segment, 0, Deletions(dead, terms, counts[0][terms], counts[1][terms]))


def copy_documents(leaf: Leaf, docs: Sequence[Doc], folder: Path, columns: ColumnWriter) -> dict[str, int]:
    """Write a segment of the living documents of another, with new metadata; postings and the like are copied.

    Args:
        leaf: The documents in their segment.
        docs: The documents with their new metadata, in the same order.
        folder: Folder of the files.
        columns: Writes the columns.

    Returns:
        The counts of documents, terms, postings and tokens.
    """
    write_ids(folder, Strings.of([doc.id for doc in docs]))
    counts = {"documents": len(docs)}
    for name in leaf.segment.opened:
        if components[name] not in (TEXTS, COLUMNS):
            counts |= components[name].merge([leaf], folder)
    for writer in (DocumentWriter(folder), columns):
        writer.write(Batch(pack_docs(docs), []), 0)
        writer.finish()
        writer.close()
    return counts
