"""Surface forms: the words of documents before stemming and stop-word removal, with their frequencies.

They are counted in the stored texts at first use. The forms of a large segment are stored in `words/` in the user's cache, by
the hashes of its files, so that after additions only new segments are read.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Bools, Bytes, Int32s, Int64s
from ..core.errors import IndexFormatError
from ..core.strings import Strings, concatenated, offsets_of, utf8
from ..index.batches import PLAIN, content
from ..index.postings import JoinedLists
from ..index.tables import find_positions, union
from ..storage.arrays import UNSIGNED, smallest, write_array
from ..storage.artifact import Artifact, ArtifactKind
from ..storage.caches import Cached, DiskCache, LazyAttribute
from ..storage.hashes import hash_json
from ..text import Analyzer
from ..text.tokenizers import TOKENIZERS

if TYPE_CHECKING:
    from ..index.segment import Segment
    from ..index.state import State

SAMPLE = 1 << 27  # maximum bytes of a segment's texts of which every block is read; of larger ones every second, third … block
CHUNK_BYTES = 1 << 22  # bytes analysed at a time
DOCUMENTS = 1000  # documents decoded at a time, if metadata are indexed
MIN_CACHED_BYTES = 1 << 22  # minimum bytes of a segment's texts for its forms to be cached on disk
CACHE = DiskCache("words", 1 << 30)
KIND = ArtifactKind("fontes-words", 1, "words", "they are counted again when they are needed")


@dataclass(frozen=True)
class SurfaceForms:
    """Words as they stand in texts, lower-cased and normalised by the analyzer.

    Args:
        words: The words, ascending.
        counts: int64; occurrences of each word.
        terms: int32; number of each word's index term; -1 for a word without one, such as a stop word.
    """

    words: Strings
    counts: Int64s
    terms: Int32s

    def where(self, mask: Bools) -> SurfaceForms:
        """Return the forms at which the mask is true."""
        indices = np.flatnonzero(mask)
        return SurfaceForms(self.words.reordered(indices).ascending(), self.counts[indices], self.terms[indices])


def is_gram(analyzer: Analyzer) -> bool:
    """Whether no term is a whole word: terms are n-grams of characters, or of at least two words."""
    return analyzer.chars is not None or analyzer.words[0] > 1


def unstemmed(analyzer: Analyzer) -> Analyzer:
    """Return the analyzer whose terms are surface forms: without n-grams, stemming and stop words."""
    return replace(analyzer, words=(1, 1), chars=None, stemmer="", stopwords=())


def whole_words(analyzer: Analyzer) -> Analyzer:
    """Return the analyzer without n-grams."""
    return replace(analyzer, words=(1, 1), chars=None)


def surface_forms(state: State) -> SurfaceForms:
    """Return the surface forms in a state; these are its terms if terms are words already, or if it has no texts."""
    analyzer = state.analyzer
    is_stemmed = analyzer.stemmer or is_gram(analyzer)
    if not is_stemmed or analyzer.tokenizer not in TOKENIZERS or not state.has_texts or state.scale is not None:
        forms = SurfaceForms(state.terms, state.cf.astype(np.int64), np.arange(len(state.terms), dtype=np.int32))
        return forms if analyzer.words == (1, 1) else forms.where(_without_blanks(state.terms))
    parts = [_FORMS.of(leaf.segment).get("", functools.partial(_segment_forms, leaf.segment, state)) for leaf in state.leaves]
    words, indices = union([part.words for part in parts])
    counts, terms = np.zeros(len(words), dtype=np.int64), np.full(len(words), -1, dtype=np.int32)
    joined = state.joined.numbers if isinstance(state.joined, JoinedLists) else None
    for i, (leaf, part, part_numbers) in enumerate(zip(state.leaves, parts, indices, strict=True)):
        counts[part_numbers] += part.counts
        leaf_terms = leaf.segment.lists.terms
        if joined is None:
            numbers = np.append(find_positions(leaf_terms, state.terms), -1).astype(np.int32)
        else:
            numbers = np.full(len(leaf_terms) + 1, -1, dtype=np.int32)
            numbers[joined[i]] = np.arange(len(joined[i]), dtype=np.int32)
            numbers[-1] = -1  # which the terms set that the segment lacks
        # The index -1, of a form without a term, selects the appended -1.
        terms[part_numbers] = np.maximum(terms[part_numbers], numbers[part.terms])
    forms = SurfaceForms(words, counts, terms)
    return forms if is_gram(analyzer) else forms.where(terms >= 0)


def _without_blanks(terms: Strings) -> Bools:
    blanks = offsets_of(terms.blob == ord(" "))
    without: Bools = blanks[terms.offsets[1:]] == blanks[terms.offsets[:-1]]
    return without


_FORMS: LazyAttribute[Segment, Cached[str, SurfaceForms]] = LazyAttribute("surface_forms", lambda segment: Cached(1))


def _segment_forms(segment: Segment, state: State) -> SurfaceForms:
    size = segment.texts.size
    if size < MIN_CACHED_BYTES:
        return _count_forms(segment, state)
    manifest = {name: state.manifest[name] for name in ("analyzer", "fields")}
    folder = CACHE.folder / hash_json([segment.entry["files"], manifest, SAMPLE])[:32]
    with contextlib.suppress(IndexFormatError):
        return _read_forms(folder, len(segment.lists.terms))
    forms = _count_forms(segment, state)
    if state.is_sound:
        with contextlib.suppress(OSError):
            CACHE.put(folder, KIND, {}, lambda draft: _write_forms(forms, draft))
    return forms


def _write_forms(forms: SurfaceForms, folder: Path) -> None:
    write_array(folder, "words.bytes", forms.words.blob)
    write_array(folder, "words.bounds", smallest(forms.words.offsets))
    write_array(folder, "counts", smallest(forms.counts))
    write_array(folder, "terms", smallest(forms.terms + 1))


def _read_forms(folder: Path, terms: int) -> SurfaceForms:
    """Read the forms in a folder of the cache. Raises IndexFormatError if they are missing or damaged."""
    artifact = Artifact(folder, KIND)
    artifact.check()
    CACHE.use(folder)
    words = artifact.arrays.strings("words", ordered=True)
    counts = artifact.arrays.array("counts", UNSIGNED, len(words))
    numbers = artifact.arrays.numbers("terms", terms + 1, UNSIGNED, len(words))
    return SurfaceForms(words, counts.astype(np.int64), numbers.astype(np.int32) - 1)


def _count_forms(segment: Segment, state: State) -> SurfaceForms:
    """Count the forms of a segment, including deleted documents, with the numbers of the segment's terms."""
    vocabulary = unstemmed(state.analyzer).vocabulary()
    step = max(1, -(-segment.texts.size // SAMPLE))
    counts = np.zeros(0, dtype=np.int64)
    for text, bounds in _contents(segment, state.fields, step):
        numbers, _ = vocabulary.encode_table(text, bounds)
        counted = np.bincount(numbers, minlength=len(vocabulary))
        counted[: len(counts)] += counts
        counts = counted
    table = vocabulary.table()
    words = table.reordered(table.order).ascending()
    return SurfaceForms(words, step * counts[table.order], _term_numbers(words, state.analyzer, segment.lists.terms))


def _term_numbers(words: Strings, analyzer: Analyzer, terms: Strings) -> Int32s:
    """Return the number of each word's term; -1 for a word with no term or several."""
    vocabulary = replace(whole_words(analyzer), tokenizer="whitespace").vocabulary()
    numbers, bounds = vocabulary.encode_table(np.frombuffer(words.blob.tobytes(), dtype=np.uint8), words.offsets)
    vocabulary_terms = np.append(find_positions(vocabulary.table(), terms), -1)
    firsts = np.append(numbers, np.int32(len(vocabulary)))[bounds[:-1]]
    return np.where(np.diff(bounds) == 1, vocabulary_terms[firsts], -1).astype(np.int32)


def _contents(segment: Segment, fields: Sequence[str], step: int) -> Iterator[tuple[Bytes, Int64s]]:
    """Yield the texts of every `step`-th block in pieces: concatenated bytes and offsets."""
    if not set(fields) <= set(PLAIN):
        for first in range(0, segment.documents, DOCUMENTS * step):
            docs = segment.docs(first, min(first + DOCUMENTS, segment.documents))
            yield concatenated([utf8(content(doc, fields)) for doc in docs])
        return
    parts: list[bytes] = []
    sizes: list[Int64s] = []
    indexed = np.array([name in fields for name in (*PLAIN, "")])
    for number, (_, block) in enumerate(segment.texts.blocks()):
        if number % step:
            continue
        indexed_sizes = np.where(indexed, block.sizes, 0).ravel().astype(np.int64)
        parts.append(np.frombuffer(block.load(), dtype=np.uint8)[np.repeat(indexed_sizes > 0, block.sizes.ravel())].tobytes())
        sizes.append(indexed_sizes)
        if sum(map(len, parts)) >= CHUNK_BYTES:
            yield _joined(parts, sizes)
            parts, sizes = [], []
    yield _joined(parts, sizes)


def _joined(parts: list[bytes], sizes: list[Int64s]) -> tuple[Bytes, Int64s]:
    return np.frombuffer(b"".join(parts), dtype=np.uint8), offsets_of(np.concatenate([np.zeros(0, np.int64), *sizes]))
