"""Building a segment from documents, which are read, analysed and compressed concurrently; and merging segments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from ..core.errors import InputError, ParameterError
from ..core.progress import Progress
from ..core.strings import encodable
from ..core.values import Doc
from ..core.work import reporter, resources, thread_count, work
from ..storage.threads import Workers
from ..text import Analyzer
from .batches import batches
from .component import Building, Writer, components
from .inversion import ID_SHARE
from .segment import BASE_COMPONENTS, Leaf, leaves_of
from .tables import IdWriter, join_tables, write_ids

READ_SIZE = 256  # documents read at a time
BATCH, MIN_BATCH = 1 << 20, 1 << 18  # maximum and minimum bytes of text of a batch
IN_FLIGHT = 32  # the batches of all threads take up to 1/IN_FLIGHT of the memory
FIELDS, POSITIONS = "fields", "positions"  # components that are built with the postings
MAX_FIELDS = 100  # maximum number of fields with separate statistics
SCALE = 100  # factor of the documents' term weights, which are stored as whole numbers


@dataclass(frozen=True)
class TermWeights:
    """Term weights in place of texts, for example from learned sparse encoders, stored as weight times SCALE.

    Args:
        field: Key of the weights in the metadata.
    """

    field: str

    def of(self, doc: Doc) -> dict[str, int]:
        """Return the term weights of a document as whole numbers; raise InputError if it has none, or invalid ones."""
        vector = doc.metadata.get(self.field)
        if not isinstance(vector, Mapping):
            raise InputError(f"document '{doc.id}' has no vector '{self.field}': a JSON object of terms and weights")
        scaled = {}
        for term, weight in vector.items():
            if not isinstance(weight, Real) or not 0 <= (value := float(weight) * SCALE) < 2**31 - 1:
                raise InputError(f"document '{doc.id}', term '{term}': the weight {weight!r} is not a number from 0 up")
            if round(value):
                scaled[encodable(str(term))] = round(value)
        return scaled


@dataclass(frozen=True)
class IndexSettings:
    """Settings of an index: which fields of a document are indexed, and by which analyzer.

    Args:
        analyzer: Makes the terms of texts and queries.
        fields: The fields whose text is indexed.
        weights: Term weights that are indexed in place of texts; None indexes texts.
        components: Names of further components that are built with the documents; see `component.Component`.
    """

    analyzer: Analyzer
    fields: tuple[str, ...]
    weights: TermWeights | None = None
    components: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        analyzer: Any,
        fields: Sequence[str],
        vectors: str | None,
        further: Sequence[str] = (),
        separate: bool = False,
        positions: bool = False,
    ) -> IndexSettings:
        """Return the settings for arguments of `Index.build`.

        Raises:
            ParameterError: The fields are no list of names, an analyzer or component is unknown, or they are incompatible.
        """
        if isinstance(fields, str) or not fields:
            raise ParameterError("fields must be a list of field names, such as ('title', 'text')")
        all_components = [*further, *([FIELDS] if separate else []), *([POSITIONS] if positions else [])]
        names = tuple(components[name].name for name in dict.fromkeys(all_components))
        settings = cls(Analyzer.of(analyzer), tuple(fields), None if vectors is None else TermWeights(vectors), names)
        if settings.weights is not None and (settings.separate or settings.positions):
            raise ParameterError("term weights (vectors) have neither fields nor positions; leave out separate and positions")
        if settings.separate and (len(set(settings.fields)) < len(settings.fields) or len(settings.fields) > MAX_FIELDS):
            raise ParameterError(f"separate fields must differ from each other, and be {MAX_FIELDS} at most")
        if settings.positions and not settings.allows_positions:
            raise ParameterError("positions need an analyzer of one term for each token; leave out its n-grams, or positions")
        return settings

    def with_positions(self) -> IndexSettings:
        """Return these settings with positions; ParameterError if they allow none."""
        weights = None if self.weights is None else self.weights.field
        return self.of(self.analyzer, self.fields, weights, self.components, positions=True)

    @property
    def allows_positions(self) -> bool:
        """Whether texts are indexed, by one term for each token, so that positions can be stored."""
        return self.weights is None and self.analyzer.words == (1, 1) and self.analyzer.chars is None

    @property
    def separate(self) -> bool:
        """Whether frequencies and lengths of each field are stored."""
        return FIELDS in self.components

    @property
    def positions(self) -> bool:
        """Whether positions are stored."""
        return POSITIONS in self.components

    @property
    def apart(self) -> bool:
        """Whether each field is analysed by itself, so that no n-gram or phrase crosses fields."""
        return len(self.fields) > 1 and (self.separate or self.positions)

    @property
    def facts(self) -> dict[str, Any]:
        """Entries of the manifest."""
        return {
            "analyzer": self.analyzer.to_dict(),
            "fields": list(self.fields) if self.weights is None else [self.weights.field],
            "scale": None if self.weights is None else SCALE,
            **({"components": list(self.components)} if self.components else {}),
        }


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
