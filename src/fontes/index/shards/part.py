"""Some shards of an index, searched with the statistics of the whole: what one machine of several holds."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import IndexFormatError
from ...storage.arrays import REMEDY
from ...storage.hashes import hash_json
from ..files import complete, shard_of
from ..inverted import Searchable
from ..state import State
from ..tables import union


class PartOfIndex(State):
    """The documents of some shards of a state. Their scores are those that they have in the whole.

    Its terms have the numbers of the whole, and their postings are those of its own documents.

    Args:
        whole: The state.
        shards: The numbers of the shards.

    Attributes:
        whole: The state, whose statistics count.
    """

    def __init__(self, whole: State, shards: Collection[int]) -> None:
        segments = [entry for entry in whole.manifest["segments"] if shard_of(entry) in shards]
        super().__init__(whole.path, complete(_facts(whole.manifest), segments), whole.analyzer, whole)
        self.whole = whole
        self.fingerprint = hash_json([whole.fingerprint, self.manifest["fingerprint"]])  # of the statistics, too
        self.actors = None

    @cached_property
    def _lists(self) -> Any:
        return PartLists(super()._lists, self.whole)

    @property
    def tokens(self) -> int:
        """How many terms all documents of the whole have together."""
        return self.whole.tokens

    @property
    def is_sound(self) -> bool:
        """Whether the files of the whole are what its fingerprint says."""
        return self.whole.is_sound


class PartLists:
    """The postings of some documents under the terms of the whole.

    Args:
        own: The inverted index of the documents.
        whole: That of all documents.

    Attributes:
        lengths: Unsigned, one a document: its terms.
        terms: The terms of the whole, in ascending order.
        df: One a term: the documents with it here, perhaps none.
        cf: One a term: its occurrences here.
    """

    def __init__(self, own: Any, whole: Searchable) -> None:
        self._own, self.lengths, self.terms, self.term_number = own, own.lengths, whole.terms, whole.term_number
        terms, (_, places) = union([whole.terms, own.terms])  # type: ignore[list-item]
        if len(terms) != len(whole.terms):
            raise IndexFormatError(f"{whole!r} is damaged: a shard has terms that the whole has not, or not in order; {REMEDY}")
        self._number = np.full(len(whole.terms), -1, dtype=np.int32)
        self._number[places] = np.arange(len(places), dtype=np.int32)
        self.df, self.cf = np.zeros(len(whole.terms), dtype=np.int64), np.zeros(len(whole.terms), dtype=np.int64)
        self.df[places], self.cf[places] = own.df, own.cf

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """See `Index.postings`."""
        numbers = self._number[terms]
        postings: tuple[NDArray[np.int32], NDArray[np.int32]] = self._own.postings(numbers[numbers >= 0])
        return postings


def _facts(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in ("fingerprint", "segments")}
