"""The component of postings: the inverted index of documents, read, joined over segments, checked and merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core.arrays import Bools, Int32s, Int64s, Ints
from ..core.errors import IndexFormatError
from ..core.strings import Strings, offsets_of
from ..storage.arrays import REMEDY, UNSIGNED, Arrays, fixed
from ..storage.threads import in_threads
from .component import Building, Component, Described, components
from .inversion import InvertedWriter, chunks, write_lists
from .kernels import append_postings
from .packed import Bounds, PackedLists
from .packed_kernels import count_marked
from .packing import PackedFile, chunks as packed_chunks, pack_in_memory
from .segment import Deletions, Leaf
from .tables import Finder, union
from .varints import Varints

if TYPE_CHECKING:
    from .segment import Segment


CHUNK_POSTINGS = 1 << 22  # postings checked at a time
CACHED_TERMS = 1_000_000  # cached term numbers


class SegmentLists(Protocol):
    """Inverted index of a segment's documents: of their texts, of some of their fields, or of a model's weights of terms.

    Attributes:
        lengths: Unsigned or int64, (documents,): sum of each document's frequencies.
        terms: Terms, ascending.
        df: Unsigned or int64, (terms,): documents with each term.
        cf: Unsigned or int64, (terms,): sum of each term's frequencies.
    """

    lengths: Ints
    terms: Strings
    df: Ints
    cf: Ints

    @property
    def packed(self) -> PackedLists:
        """The postings as they are searched; IndexFormatError if they are damaged."""
        ...

    @property
    def limits(self) -> Bounds | None:
        """Stored bounds of the postings; None without any."""
        ...

    def term_number(self, term: str) -> int:
        """Position of a term in `terms`; -1 for an unknown one."""
        ...

    def postings(self, terms: Ints) -> tuple[Int32s, Int32s]:
        """Concatenated postings of terms: positions of documents in the segment, frequencies."""
        ...

    def deletions(self, leaf: Leaf) -> Deletions | None:
        """The deletions of a leaf, counted in these lists."""
        ...


class PostingLists:
    """The files of an inverted index in a folder.

    Args:
        folder: The folder.
        documents: Number of documents.
        remedy: Advice of errors about damaged files.
        counts: Expected numbers of "terms", "postings" and "tokens"; missing ones are not checked.
        summed: Whether lengths are sums of frequencies; lengths from CIFF may differ.

    Attributes:
        lengths: Unsigned, (documents,): terms of each document.
        terms: Terms, ascending.
        df: Unsigned, (terms,): documents with each term.
        cf: Unsigned, (terms,): occurrences of each term.

    Raises:
        IndexFormatError: A file is missing or damaged.
    """

    def __init__(
        self,
        folder: Path,
        documents: int,
        remedy: str = REMEDY,
        counts: Mapping[str, object] | None = None,
        summed: bool = True,
    ) -> None:
        self.documents, self._summed = documents, summed
        self._folder, self._remedy = folder, remedy
        arrays = Arrays(folder, remedy)
        self.lengths = arrays.array("doc_lengths", UNSIGNED, documents)
        self.terms = arrays.strings("terms", ordered=True)
        self.df, self.cf = (arrays.array(name, UNSIGNED, len(self.terms)) for name in ("df", "cf"))
        self._number = lru_cache(CACHED_TERMS)(Finder(self.terms))
        self._check_counts(arrays, counts or {})
        self._stored: PackedFile | Varints
        if older := Varints.opened(arrays, folder, self.df):
            self._stored = older
        else:
            blob, damaged = arrays.array("postings", "|u1", None), partial(arrays.damaged, "postings")
            self._stored = PackedFile(blob, self.df, self.lengths, damaged)

    def term_number(self, term: str) -> int:
        """Position of a term in `terms`; -1 for an unknown one."""
        return self._number(term)

    def postings(self, terms: Ints) -> tuple[Int32s, Int32s]:
        """Return the concatenated postings of the terms with these numbers: ordinals and term frequencies, both int32.

        Raises:
            IndexFormatError: The bytes are no postings of the terms.
        """
        numbers = np.asarray(terms, dtype=np.int64)
        postings = self._stored.read(numbers, self.documents, offsets_of(self.df[numbers]))
        if postings is None:
            raise IndexFormatError(f"{self._folder} is damaged: its postings do not fit its terms; {self._remedy}")
        return postings

    @property
    def is_older(self) -> bool:
        """Whether the files are of an older format, which a merge replaces."""
        return isinstance(self._stored, Varints) or self._stored.is_older

    @cached_property
    def packed(self) -> PackedLists:
        """The postings as they are searched; IndexFormatError if they are damaged."""
        return pack_in_memory(self) if isinstance(self._stored, Varints) else self._stored.lists

    @property
    def limits(self) -> Bounds | None:
        """The stored bounds of the postings; None in an older index."""
        return None if isinstance(self._stored, Varints) else self._stored.bounds

    def counted(self, mask: Bools) -> tuple[Int64s, Int64s]:
        """Return df and cf of each term over the documents in `mask`: bool, (documents,).

        Raises:
            IndexFormatError: The bytes are no postings of the terms.
        """
        lists, (df, cf) = self.packed, np.zeros((2, len(self.df)), dtype=np.int64)
        marked, tables = fixed(mask.view(np.uint8)), (fixed(lists.pairs[0]), fixed(lists.rest[2]))
        in_threads(
            lambda edges: count_marked(*edges, lists.unweighted, marked, *tables, df, cf), list(packed_chunks(lists.bounds))
        )
        self._require(not np.any(cf > self.cf), "the counts of its terms do not fit their postings")
        return df, cf

    def check(self) -> None:
        """Raise IndexFormatError unless all arrays fit together."""
        terms = self.terms.tolist()
        self._require(all(a < b for a, b in pairwise(terms)), "its terms are not in order")
        lengths = np.zeros(self.documents, dtype=np.int64)
        for first, last in chunks(self.df, CHUNK_POSTINGS):
            numbers = np.arange(first, last)
            docs, tfs = self.postings(numbers)
            terms_of_postings = np.repeat(numbers, self.df[first:last])
            self._require(
                np.array_equal(np.bincount(terms_of_postings - first, tfs, last - first), self.cf[first:last]),
                "the counts of its terms do not fit their postings",
            )
            lengths += np.bincount(docs, tfs, self.documents).astype(np.int64)
        fit = np.array_equal(lengths, self.lengths) or not self._summed
        self._require(fit, "the lengths of its documents do not fit their postings")

    def deletions(self, leaf: Leaf) -> Deletions | None:
        """The deletions of a leaf, counted in these lists."""
        if leaf.dead is None or leaf.segment.lists is self:
            return leaf.deletions
        return Deletions.of(self, leaf.dead)

    def _check_counts(self, arrays: Arrays, counts: Mapping[str, Any]) -> None:
        """Raise IndexFormatError unless counts of terms and documents are possible and add up to `counts`."""
        if np.any((self.df < 1) | (self.df > self.documents)):
            raise arrays.damaged("df", "it has counts that cannot be")
        if counts.get("terms", len(self.terms)) != len(self.terms):
            raise arrays.damaged("terms.bounds", f"it has {len(self.terms):,} terms, not {counts['terms']:,}")
        arrays.check_sum("df", self.df, counts.get("postings"), "postings")
        arrays.check_sum("cf", self.cf, counts.get("tokens"), "tokens")
        if self._summed:
            arrays.check_sum("doc_lengths", self.lengths, int(self.cf.sum(dtype=np.uint64)), "tokens")

    def _require(self, condition: bool, problem: str) -> None:
        if not condition:
            raise IndexFormatError(f"{self._folder} is damaged: {problem}; {self._remedy}")


class JoinedLists:
    """Inverted indexes of several leaves, joined over their living documents; attributes are those of `PostingLists`.

    Args:
        parts: Inverted index of each leaf.
        leaves: The leaves, with their deletions counted in `parts`.

    Attributes:
        numbers: int32 for each leaf: the number of each term in its part; -1 for none.
    """

    def __init__(self, parts: Sequence[SegmentLists], leaves: Sequence[Leaf]) -> None:
        self.parts, self.leaves = parts, leaves
        self._df = [part.df.astype(np.int64) for part in parts]  # in the one type for which the loop is compiled
        self.lengths: Ints = np.concatenate(
            [np.zeros(0, np.uint8), *(part.lengths[leaf.live] for part, leaf in zip(parts, leaves, strict=True))]
        )
        terms, numbers = union([part.terms for part in parts])
        df, cf = np.zeros(len(terms), dtype=np.int64), np.zeros(len(terms), dtype=np.int64)
        for part, leaf, part_numbers in zip(parts, leaves, numbers, strict=True):
            deletions = leaf.deletions
            df[part_numbers] += part.df if deletions is None else deletions.subtracted(part.df, "df")
            cf[part_numbers] += part.cf if deletions is None else deletions.subtracted(part.cf, "cf")
        used = np.flatnonzero(df)
        self.terms = terms if len(used) == len(terms) else terms.reordered(used).ascending()
        self.df: Ints = df[used]
        self.cf: Ints = cf[used]
        self.numbers = [_inverse(part_numbers, len(terms))[used] for part_numbers in numbers]
        self._number = lru_cache(CACHED_TERMS)(Finder(self.terms))

    def term_number(self, term: str) -> int:
        """Position of a term in `terms`; -1 for an unknown one."""
        return self._number(term)

    def postings(self, terms: Ints) -> tuple[Int32s, Int32s]:
        """Return postings as `PostingLists.postings` does."""
        cursor = offsets_of(self.df[terms])
        ends = cursor[1:].copy()
        docs, tfs = np.empty(cursor[-1], dtype=np.int32), np.empty(cursor[-1], dtype=np.int32)
        for part, leaf, part_df, part_numbers in zip(self.parts, self.leaves, self._df, self.numbers, strict=True):
            numbers = part_numbers[terms]
            part_postings = part.postings(numbers[numbers >= 0])
            fit = append_postings(numbers, part_df, *part_postings, leaf.ordinals, cursor, docs, tfs)
            if not fit:
                break
        if not np.array_equal(cursor[:-1], ends):
            folders = " or ".join(str(leaf.segment.folder) for leaf in self.leaves if leaf.deletions is not None)
            raise IndexFormatError(f"{folders} is damaged: deletions do not fit the postings; {REMEDY}")
        return docs, tfs


def merge_lists(parts: Sequence[PostingLists], leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
    """Write one inverted index of the living documents of `leaves`, whose ordinals start at 0, in `folder`.

    `parts` are the inverted indexes of the leaves' documents: their own, or term weights. Returns the counts of terms, postings
    and tokens.
    """
    counted_leaves = [replace(leaf, deletions=part.deletions(leaf)) for leaf, part in zip(leaves, parts, strict=True)]
    lists = JoinedLists(parts, counted_leaves)
    return write_lists(folder, lists.terms, lists.df, lists.lengths, lambda first, last: lists.postings(np.arange(first, last)))


class Postings(Component[PostingLists], name="postings"):
    """The inverted index of the documents' terms, and their lengths."""

    def open(self, segment: Segment) -> PostingLists:
        return PostingLists(segment.folder, segment.documents, counts=segment.entry, summed=segment.has_texts)

    def writer(self, building: Building) -> InvertedWriter:
        return InvertedWriter(building)

    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        return merge_lists([leaf.segment.lists for leaf in leaves], leaves, folder)

    def check(self, leaf: Leaf, deep: bool) -> None:
        if deep:
            leaf.segment.lists.check()

    def facts(self, state: Described) -> dict[str, object]:
        mean = state.tokens / len(state) if len(state) else 0.0
        counts = {"terms": len(state.terms), "postings": state.count("postings"), "tokens": state.tokens}
        return {**counts, "mean_length": mean}


POSTINGS: Postings = components["postings"]


def _inverse(numbers: Int32s, count: int) -> Int32s:
    inverse = np.full(count, -1, dtype=np.int32)
    inverse[numbers] = np.arange(len(numbers), dtype=np.int32)
    return inverse
