"""Postings as variable-length integers: what a build spools before it packs them, and what older indexes have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.strings import offsets_of
from ..storage.arrays import UNSIGNED, Arrays
from ..storage.compiled import affordable
from .kernels import unpack_in_numpy, unpack_postings

POSTINGS_PER_STEP = 5  # postings that numpy unpacks in the time of one Python step
Postings = tuple[NDArray[np.int32], NDArray[np.int32]]  # documents, term frequencies


class Varints:
    """Postings as variable-length integers; see `kernels`.

    Args:
        postings: The bytes of all terms.
        bounds: Start of each term in them, and the end of the last.
    """

    def __init__(self, postings: NDArray[np.uint8], bounds: NDArray[np.integer[Any]]) -> None:
        self._postings, self._bounds = postings, bounds

    @classmethod
    def opened(cls, arrays: Arrays, folder: Path, df: NDArray[np.integer[Any]], name: str = "postings") -> Varints | None:
        """Open NAME and NAME.bounds; None if there are none. Raises IndexFormatError if they are damaged."""
        if not (folder / f"{name}.bounds.npy").exists():
            return None
        postings = arrays.array(name, "|u1", None)
        bounds = arrays.bounds(f"{name}.bounds", len(postings), len(df))
        if np.any(df > bounds[1:] - bounds[:-1]):  # a posting takes at least a byte
            raise arrays.damaged("df", "it has counts that cannot be")
        return cls(postings, bounds)

    def read(self, terms: NDArray[np.int64], documents: int, edges: NDArray[np.int64]) -> Postings | None:
        """Return the postings of some terms, as `packed.PackedLists.read`."""
        # The types of arrays differ between segments; the loop is compiled for one.
        starts, ends = (bounds[terms].astype(np.int64) for bounds in (self._bounds[:-1], self._bounds[1:]))
        size = int(edges[-1])
        docs, tfs = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
        unpack = unpack_in_numpy if affordable(size // POSTINGS_PER_STEP) else unpack_postings
        is_sound = not size or unpack(self._postings, starts, ends, np.diff(edges), documents, docs, tfs)
        return (docs, tfs) if is_sound else None


class Spooled:
    """The files of `ListsWriter` before postings are packed, as `packing.Counted`."""

    def __init__(self, folder: Path) -> None:
        arrays = Arrays(folder)
        self.df, self.lengths = (arrays.array(name, UNSIGNED, None) for name in ("df", "doc_lengths"))
        self._varints = Varints.opened(arrays, folder, self.df, "varints")

    def postings(self, terms: NDArray[np.integer[Any]]) -> Postings:
        """Concatenated postings of terms."""
        assert self._varints is not None
        postings = self._varints.read(terms.astype(np.int64), len(self.lengths), offsets_of(self.df[terms]))
        assert postings is not None
        return postings
