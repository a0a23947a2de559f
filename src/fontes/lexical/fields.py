"""Separate fields of an index: their weights, and some of the fields as an index of these alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.frozen import FrozenDict
from ..core.hints import nearest
from ..core.threads import in_threads
from ..index.inversion import chunks
from ..storage.caches import Attached, Cached, weakly
from ..storage.hashes import hash_json

if TYPE_CHECKING:
    from ..core.strings import Strings
    from ..index.positions import Positions
    from ..index.postings import Searchable
    from ..index.state import State

CHUNK_POSTINGS = 1 << 20  # postings counted at a time
MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6  # weights of fields, which keep scores within float32
EXAMPLE = "fields={'title': 3, 'text': 1}"


@dataclass(frozen=True)
class _Columns:
    names: tuple[str, ...]
    lengths: NDArray[Any]
    tokens: NDArray[Any]
    df: NDArray[Any]
    cf: NDArray[Any]
    lists: ChosenFields

    def frequencies(self, terms: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        return self.lists.frequencies(terms)[1]


class ChosenFields:
    """Some of the separate fields of an index, with the statistics of an index of these alone; see `Searchable`.

    Documents and term numbers are those of the index. A term that is in none of the fields has df 0.

    Args:
        index: The index, or a part of one.
        names: Names of the fields.

    Attributes:
        index: The index.
        lengths: int64; terms of each document in the fields.
        df: int64; documents with each term in one of the fields.
        cf: int64; occurrences of each term in the fields.
        tokens: Sum of `cf`.
    """

    def __init__(self, index: Searchable, names: tuple[str, ...]) -> None:
        self.index, self._base = index, index.field_statistics
        self._columns = [self._base.names.index(name) for name in names]
        self.ids: Strings = index.ids
        self.fingerprint = hash_json([index.fingerprint, names])
        self.terms, self.term_number = index.terms, index.term_number
        chosen = (np.asarray(array)[..., self._columns] for array in (self._base.lengths, self._base.tokens, self._base.cf))
        lengths, tokens, cf = chosen
        self.lengths: NDArray[np.int64] = lengths.sum(axis=1, dtype=np.int64)
        self.cf: NDArray[np.int64] = cf.sum(axis=1, dtype=np.int64)
        self.tokens = int(tokens.sum(dtype=np.int64))
        self.df = self._count_documents()
        self.separate = names
        weak = weakly(self)
        self.field_statistics = _Columns(names, lengths, tokens, np.asarray(self._base.df)[:, self._columns], cf, weak)

    @property
    def is_sound(self) -> bool:
        """Whether the files of the index match its fingerprint."""
        return self.index.is_sound

    @property
    def whole(self) -> Searchable:
        """These fields of the whole index, if `index` is a part of one."""
        whole: Searchable = self.index.whole  # type: ignore[attr-defined]
        return chosen_fields(whole, self.separate)

    @property
    def has_positions(self) -> bool:
        """False: an index has positions for all fields together."""
        return False

    @property
    def positions(self) -> Positions:
        """Raises ParameterError."""
        raise ParameterError("positions are those of all fields; take them of the index")

    def only(self, names: Collection[str]) -> Searchable:
        """Return fewer of the fields."""
        return chosen_fields(self.index, names)

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the postings of terms in the fields, end to end: ordinals of documents, frequencies."""
        docs, frequencies = self.frequencies(terms)
        return docs, frequencies.sum(axis=1, dtype=np.int32)

    def frequencies(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the ordinals of documents, and the frequency in each field, of the postings of terms."""
        frequencies = self._base.frequencies(terms)[:, self._columns]
        rows = frequencies.any(axis=1)
        return self.index.postings(terms)[0][rows], frequencies[rows]

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return repr(self.index)

    def _count_documents(self) -> NDArray[np.int64]:
        """Return the number of documents with each term in one of the fields."""
        if len(self._columns) == 1:
            return np.asarray(self._base.df)[:, self._columns[0]].astype(np.int64)
        df, index_df = np.zeros(len(self.terms), dtype=np.int64), self.index.df

        def part(edges: tuple[int, int]) -> None:
            first, last = edges
            present = self._base.frequencies(np.arange(first, last))[:, self._columns].any(axis=1)
            terms = np.repeat(np.arange(last - first), index_df[first:last])
            df[first:last] = np.bincount(terms[present], minlength=last - first)

        in_threads(part, list(chunks(index_df, CHUNK_POSTINGS)))
        return df


_CHOSEN: Attached[Searchable, Cached[tuple[str, ...], ChosenFields]] = Attached("chosen_fields", lambda index: Cached())


def chosen_fields(index: Searchable, names: Collection[str]) -> Searchable:
    """Return some fields of an index as an index of these alone; the index itself for all of its fields."""
    separate = index.field_statistics.names
    chosen = tuple(name for name in separate if name in names)
    if chosen == tuple(separate):
        return index
    if isinstance(index, ChosenFields):
        return index.only(chosen)
    return _CHOSEN.of(index).get(chosen, lambda: ChosenFields(weakly(index), chosen))


def field_weights(index: State, weights: Mapping[str, float] | None) -> FrozenDict[float] | None:
    """Return the weights of fields as floats, without weights of 0; None for None.

    Raises:
        ParameterError: A weight is no number in its range, none is above 0, or a name is unknown.
    """
    if weights is None:
        return None
    if not isinstance(weights, Mapping) or not weights:
        raise ParameterError(f"fields must give names of fields their weights, as {EXAMPLE}, not {weights!r}")
    for name, weight in weights.items():
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not number or not (weight == 0 or MIN_WEIGHT <= weight <= MAX_WEIGHT):
            raise ParameterError(
                f"the weight of the field '{name}' must be 0 or from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, not {weight!r}"
            )
    positive = {name: float(weight) for name, weight in weights.items() if weight != 0}
    if not positive:
        raise ParameterError(f"all fields have the weight 0; give one at least a weight above 0, as {EXAMPLE}")
    names = index.field_statistics.names or weights  # the fields of an index that is only planned may be unknown
    check_names(weights, names, f"{index.path} has no field")
    return FrozenDict(positive)


def check_names(names: Collection[str], valid: Collection[str], problem: str) -> None:
    """Raise ParameterError for a name that is not valid, with the nearest valid name.

    Args:
        names: The names.
        valid: The valid names.
        problem: Beginning of the message, which the name follows.
    """
    for name in names:
        if name not in valid:
            raise ParameterError(f"{problem} '{name}'; {nearest(name, valid)}")
