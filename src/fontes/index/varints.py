"""Postings as variable-length integers, as older indexes have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.arrays import Bytes, Int64s, Ints
from ..storage.arrays import Arrays
from ..storage.compiled import affordable
from .kernels import unpack_in_numpy, unpack_postings
from .packing import Postings

POSTINGS_PER_STEP = 5  # postings that numpy unpacks in the time of one Python step


class Varints:
    """Postings as variable-length integers; see `kernels`.

    Args:
        postings: The bytes of all terms.
        bounds: Start of each term in them, and the end of the last.
    """

    def __init__(self, postings: Bytes, bounds: Ints) -> None:
        self._postings, self._bounds = postings, bounds

    @classmethod
    def opened(cls, arrays: Arrays, folder: Path, df: Ints) -> Varints | None:
        """Open them; None if there are none. Raises IndexFormatError if they are damaged."""
        if not (folder / "postings.bounds.npy").exists():
            return None
        postings = arrays.array("postings", "|u1", None)
        bounds = arrays.bounds("postings.bounds", len(postings), len(df))
        if np.any(df > bounds[1:] - bounds[:-1]):  # a posting takes at least a byte
            raise arrays.damaged("df", "it has counts that cannot be")
        return cls(postings, bounds)

    def read(self, terms: Int64s, documents: int, edges: Int64s) -> Postings | None:
        """Return the postings of some terms, as `packed.PackedLists.read`."""
        # The types of arrays differ between segments; the loop is compiled for one.
        starts, ends = (bounds[terms].astype(np.int64) for bounds in (self._bounds[:-1], self._bounds[1:]))
        size = int(edges[-1])
        docs, tfs = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
        unpack = unpack_in_numpy if affordable(size // POSTINGS_PER_STEP) else unpack_postings
        is_sound = not size or unpack(self._postings, starts, ends, np.diff(edges), documents, docs, tfs)
        return (docs, tfs) if is_sound else None
