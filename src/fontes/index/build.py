"""Building a segment from documents, read, analysed and compressed concurrently; merging segments and remaking them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.strings import Strings
from ..core.values import Doc
from ..core.work import Progress, reporter, resources, thread_count, work
from ..formats.packed import pack_docs
from ..storage.threads import Workers
from .batches import Batch, batches, field_contents
from .columns import COLUMNS, ColumnWriter
from .component import Building, Writer, components
from .inversion import ID_SHARE
from .segment import BASE_COMPONENTS, Deletions, Leaf, leaves_of
from .settings import FIELDS, POSITIONS, IndexSettings
from .tables import IdWriter, join_tables, write_ids
from .texts import TEXTS, DocumentWriter

if TYPE_CHECKING:
    from .draft import Draft

READ_SIZE = 256  # documents read at a time
BATCH, MIN_BATCH = 1 << 20, 1 << 18  # maximum and minimum bytes of text of a batch
IN_FLIGHT = 32  # the batches of all threads take up to 1/IN_FLIGHT of the memory


def build_segment(
    docs: Iterable[Doc],
    folder: Path,
    settings: IndexSettings,
    *,
    further: Sequence[Writer] = (),
    only: Callable[[Doc], bool] | None = None,
    repeated: bool = False,
) -> dict[str, int]:
    """Write the files of one segment.

    Postings, terms and ids share the memory set by `work`; each thread needs a few batches more.

    Args:
        docs: The documents.
        folder: Folder of the files; runs of postings are temporarily beside it.
        settings: Settings of the index.
        further: Writers besides those of the settings' components, such as that of the columns.
        only: Returns whether to take a document, called in order; None takes all.
        repeated: Whether an id may occur twice.

    Returns:
        The counts of documents, terms, postings and tokens.

    Raises:
        InputError: A document cannot be read or stored, an id occurs twice, or a corpus holds no documents.
    """
    report = reporter()
    start, count, memory = time.perf_counter(), 0, resources().memory
    ids = IdWriter(folder, memory // ID_SHARE)
    size = min(BATCH, max(MIN_BATCH, memory // (IN_FLIGHT * thread_count())))
    writers: list[Writer] = []
    try:
        with Workers() as workers:
            building = Building(folder, settings, workers)
            for name in ("postings", "text", *settings.components):
                writers.append(components[name].writer(building))
            writers += further
            for batch in workers.in_order(lambda make: make(), batches(docs, settings, only, size, READ_SIZE)):
                for writer in writers:
                    writer.write(batch, count)
                ids.add(batch.docs.ids)
                count += len(batch.docs)
                report(_progress(docs, count, time.perf_counter() - start))
            if not count:
                from ..formats.corpus import Corpus

                if isinstance(docs, Corpus) and not docs.is_part:
                    raise docs.empty()
            closed = workers.begin(ids.close, repeated)
            for writer in writers:
                writer.finish()
            closed()
            counts = {"documents": count}
            for writer in writers:
                counts |= writer.close()
            return counts
    finally:
        ids.abandon()
        for writer in writers:
            writer.abandon()


def _progress(docs: Any, count: int, seconds: float) -> Progress:
    """Progress of the build, by bytes read of a corpus of known size, otherwise by documents."""
    part = min(1.0, float(docs.position / docs.size)) if getattr(docs, "size", 0) else None
    total = len(docs) if hasattr(docs, "__len__") else None
    return Progress("indexing", count, total, seconds, part=part)


def merge_segments(leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
    """Write the files of one segment: the living documents of adjacent leaves of a state, in order.

    A component that not all segments have is left out; see `Component.conflict`.

    Returns:
        The counts of documents, terms, postings and tokens.

    Raises:
        IndexFormatError: A segment is damaged.
    """
    leaves = leaves_of((leaf.segment, leaf.deletions) for leaf in leaves)
    ids = join_tables([leaf.segment.ids for leaf in leaves], [None if leaf.dead is None else leaf.live for leaf in leaves])
    write_ids(folder, ids)
    names: Iterable[str] = leaves[0].segment.opened if leaves else BASE_COMPONENTS
    first, *other_names = [name for name in names if all(name in leaf.segment.opened for leaf in leaves)]
    threads = thread_count()
    with work(threads=max(1, threads - 1)), Workers(min(2, threads)) as workers:  # the others beside the postings
        first_counts = workers.begin(components[first].merge, leaves, folder)
        other_counts = [components[name].merge(leaves, folder) for name in other_names]
        counts = {"documents": len(ids), **first_counts()}
        for component_counts in other_counts:
            counts |= component_counts
        return counts


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
