"""Parts: the segments of an index as lexical search goes through them, one after the other, and what consists of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Bools, Indices, Int32s, Int64s, Ints
from ..core.errors import ParameterError
from ..core.strings import Strings
from ..storage.caches import LazyAttribute, weak_proxy
from .field_statistics import FIELDS
from .positions import POSITIONS
from .postings import JoinedLists, PostingLists, SegmentLists
from .segment import Deletions, Leaf
from .tables import find_positions, join_tables

if TYPE_CHECKING:
    from .positions import PositionLists

MANY_TERMS = 64  # terms for which the counts of all terms in the whole index are computed at once


class Part:
    """A segment in one state of an index: the postings of its documents, deleted ones too, and counts of the whole index.

    Args:
        whole: What the postings are a part of.
        leaf: The segment and its deletions.
        lists: The postings.
    """

    def __init__(self, whole: Searchable, leaf: Leaf, lists: SegmentLists) -> None:
        self.whole, self.leaf, self.lists = weak_proxy(whole), leaf, lists
        self.segment, self.ids = leaf.segment, leaf.segment.ids
        self.lengths, self.terms, self.df, self.cf = lists.lengths, lists.terms, lists.df, lists.cf
        self.term_number, self.postings = lists.term_number, lists.postings

    def __len__(self) -> int:
        return self.segment.documents

    def __repr__(self) -> str:
        return str(self.segment.folder)

    @property
    def dead(self) -> Bools | None:
        """bool, (documents,): whether each is deleted; None if none is."""
        return self.leaf.dead

    @cached_property
    def deletions(self) -> Deletions | None:
        """The deleted documents, counted in the postings; None without any."""
        return self.lists.deletions(self.leaf)

    @property
    def positions(self) -> PositionLists:
        """Positions of terms in the documents; ParameterError if none are stored."""
        self.whole.require_positions()
        return POSITIONS.of(self.segment)

    def frequencies(self, terms: Ints) -> Int32s:
        """Return the frequencies by field of the terms' postings, (postings, fields); ParameterError if none are stored."""
        return self.whole.frequencies(self, terms)

    def living(self, terms: Ints, of: str = "df") -> Int64s:
        """Return the counts, `of` "df" or "cf", of some terms over the living documents of the part; 0 for the number -1."""
        counts: Int64s
        counts_of_part = getattr(self, of)
        if len(counts_of_part) and (not len(terms) or terms.min() >= 0):
            counts = counts_of_part[terms].astype(np.int64)
        else:
            at_least_first = counts_of_part[np.maximum(terms, 0)] if len(counts_of_part) else 0
            counts = np.where(terms >= 0, at_least_first, 0).astype(np.int64)
        if self.leaf.dead is not None and (deletions := self.deletions) is not None and len(deletions.terms):
            at = np.minimum(np.searchsorted(deletions.terms, terms), len(deletions.terms) - 1)
            counts -= np.where(deletions.terms[at] == terms, getattr(deletions, of)[at], 0)
        return counts

    def df_of(self, term: str) -> int:
        """Return the number of living documents of the part that have a term."""
        number = self.term_number(term)
        if number < 0:
            return 0
        return self.df.item(number) if self.leaf.dead is None else int(self.living(np.array([number]))[0])

    def in_whole(self, terms: Ints, of: str = "df") -> Int64s:
        """Return the counts, `of` "df" or "cf", of some terms of the part over all living documents of the whole index."""
        if len(terms) > MANY_TERMS or "_counts" in vars(self):
            counts: Int64s = self._counts[of][terms]
            return counts
        counts, names = self.living(terms, of), self.terms.take(terms) if self._others else []
        for part in self._others:
            counts += part.living(np.array([part.term_number(name) for name in names], dtype=np.int64), of)
        return counts

    @property
    def _others(self) -> list[Part]:
        return [part for part in self.whole.parts if part.segment is not self.segment]

    @cached_property
    def _counts(self) -> dict[str, Int64s]:
        """The counts of all terms of the part in the whole index."""
        terms = np.arange(len(self.df))
        counts = {of: self.living(terms, of) for of in ("df", "cf")}
        for part in self._others:
            numbers = find_positions(self.terms, part.terms)
            for of in counts:
                counts[of] += part.living(numbers, of)
        return counts

    def ordinals(self, docs: Int32s) -> Int32s:
        """Return the ordinals in the index of some living documents."""
        if self.leaf.dead is None:
            return docs + np.int32(self.leaf.first) if self.leaf.first else docs
        return self.leaf.ordinals[docs]

    def located(self, ordinals: Ints) -> tuple[Indices, Int32s]:
        """Return which of some documents, given as ordinals in the index, the part has, and their positions in the segment."""
        leaf = self.leaf
        rows = np.flatnonzero((ordinals >= leaf.first) & (ordinals < leaf.first + leaf.documents))
        docs = ordinals[rows].astype(np.int32) - np.int32(leaf.first)
        return rows, docs if leaf.dead is None else leaf.live[docs].astype(np.int32)


class Searchable(ABC):
    """Documents with terms, as lexical search needs them: an index's texts, some of their fields, or a model's weights.

    Attributes:
        leaves: The segments.
    """

    leaves: Sequence[Leaf]

    @property
    def separate(self) -> tuple[str, ...]:
        """Names of the fields whose frequencies and lengths are stored separately; () without any."""
        return ()

    @property
    def has_positions(self) -> bool:
        """Whether positions of terms are stored."""
        return False

    @abstractmethod
    def lists_of(self, leaf: Leaf) -> SegmentLists:
        """Return the postings of a segment."""

    @property
    def whole(self) -> Searchable:
        """That of which the counts are: itself, unless a process holds only some shards of an index."""
        return self

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The segments as they are searched one after the other, the largest first."""
        leaves = sorted(self.leaves, key=lambda leaf: -leaf.segment.documents)
        return tuple(Part(self.whole, leaf, self.lists_of(leaf)) for leaf in leaves)

    @cached_property
    def ids(self) -> Strings:
        """Document ids, in document order."""
        live = [None if leaf.dead is None else leaf.live for leaf in self.leaves]
        return join_tables([leaf.segment.ids for leaf in self.leaves], live)

    @cached_property
    def tokens(self) -> int:
        """Number of terms of all documents together."""
        living = (part.lengths if part.dead is None else part.lengths[~part.dead] for part in self.parts)
        return sum(int(lengths.sum(dtype=np.int64)) for lengths in living)

    @cached_property
    def documents_with_terms(self) -> int:
        """Number of documents with at least one term."""
        return sum(
            _WITH_TERMS.of(part.lists) - (0 if part.dead is None else int(np.count_nonzero(part.lengths[part.dead])))
            for part in self.parts
        )

    def frequencies(self, part: Part, terms: Ints) -> Int32s:
        """Return the frequencies by field of postings of a part, (postings, fields); ParameterError if none are stored."""
        self.require_fields()
        return FIELDS.of(part.segment).frequencies(terms)

    def require_positions(self) -> None:
        """Raise ParameterError unless positions are stored."""
        raise ParameterError(f"{self!r} has no positions")

    def require_fields(self) -> None:
        """Raise ParameterError unless fields are stored separately."""
        if not self.separate:
            raise ParameterError(f"{self!r} has no separate fields")

    @cached_property
    def joined(self) -> PostingLists | JoinedLists:
        """The postings of all living documents under one numbering of terms, for what is no search."""
        parts = sorted(self.parts, key=lambda part: part.leaf.first)
        if len(parts) == 1 and parts[0].dead is None and isinstance(parts[0].lists, PostingLists):
            return parts[0].lists
        leaves = [replace(part.leaf, deletions=part.deletions) for part in parts]
        return JoinedLists([part.lists for part in parts], leaves)

    @property
    def lengths(self) -> Ints:
        """Number of terms of each document."""
        return self.joined.lengths

    @property
    def terms(self) -> Strings:
        """Terms in ascending order."""
        return self.joined.terms

    @property
    def df(self) -> Ints:
        """Document frequency of each term."""
        return self.joined.df

    @property
    def cf(self) -> Ints:
        """Collection frequency of each term."""
        return self.joined.cf

    def term_number(self, term: str) -> int:
        """Position of a term in `terms`; -1 for an unknown term."""
        return self.joined.term_number(term)

    def postings(self, terms: Ints) -> tuple[Int32s, Int32s]:
        """Concatenated postings of the terms with these numbers: ordinals, ascending within a term; term frequencies."""
        return self.joined.postings(np.asarray(terms))

    def df_of(self, term: str) -> int:
        """Number of documents with a term."""
        return sum(part.df_of(term) for part in self.parts)

    def __len__(self) -> int:
        return sum(leaf.documents for leaf in self.leaves)


def _with_terms(lists: SegmentLists) -> int:
    return int(np.count_nonzero(lists.lengths))


_WITH_TERMS: LazyAttribute[SegmentLists, int] = LazyAttribute("with_terms", _with_terms)
