"""Rankings, and the one order that they are in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .html import of_ranking
from .strings import Strings
from .values import Doc, Documents, Hit, Topic


class Ranking(Sequence[Hit]):
    """The documents of one topic, best first."""

    __slots__ = ("_codes", "_documents", "_ids", "_scores", "topic")

    def __init__(
        self,
        topic: Topic,
        ids: Strings,
        codes: NDArray[np.int32],
        scores: NDArray[np.float32],
        documents: Documents | None = None,
    ) -> None:
        self.topic = topic
        self._ids = ids
        self._codes = codes
        self._scores = scores
        self._documents = documents

    @property
    def ids(self) -> list[str]:
        """The document ids, best first."""
        return self._ids.take(self._codes)

    @property
    def documents(self) -> Documents | None:
        """The way to the documents' text, where there is one."""
        return self._documents

    @property
    def scores(self) -> NDArray[np.float32]:
        """The scores, best first."""
        return self._scores

    def docs(self) -> list[Doc]:
        """The documents, best first.

        Raises:
            InputError: The run does not know its documents.
        """
        if self._documents is None:
            raise InputError("this run does not know its documents; run.with_(documents=index) tells it")
        return self._documents.docs(self.ids)

    @overload
    def __getitem__(self, rank: int) -> Hit: ...
    @overload
    def __getitem__(self, rank: slice) -> list[Hit]: ...
    def __getitem__(self, rank: int | slice) -> Hit | list[Hit]:
        if isinstance(rank, slice):
            return list(self)[rank]
        if not -len(self) <= rank < len(self):
            raise IndexError(rank)
        rank %= len(self)
        return Hit(self._ids[int(self._codes[rank])], float(self._scores[rank]), rank + 1)

    def __iter__(self) -> Iterator[Hit]:
        return map(Hit, self.ids, self._scores.tolist(), range(1, len(self) + 1))

    def __len__(self) -> int:
        return len(self._codes)

    def __str__(self) -> str:
        return "\n".join(f"{hit.rank:>4}  {hit.score:>10.4f}  {hit.id}" for hit in self)

    def _repr_html_(self) -> str:
        """The first hits, with marked snippets where the documents are known, for notebooks."""
        return of_ranking(self)

    def __repr__(self) -> str:
        return f"Ranking({len(self)} documents for topic '{self.topic.id}')"


def order_keys(scores: NDArray[np.float32], ranks: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """One uint64 a row that sorts as the one order does: descending keys are descending scores, then descending ids.

    `ranks` are the places of the ids in ascending order. -0.0 counts as 0.0.
    """
    bits = (scores.astype(np.float32) + np.float32(0)).view(np.uint32)
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000))
    return (ordered.astype(np.uint64) << np.uint64(32)) | ranks.astype(np.uint64)
