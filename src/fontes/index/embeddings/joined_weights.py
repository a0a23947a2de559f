"""The weights of terms of the living documents of several segments as one inverted index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...core.strings import Strings
from ...storage.hashes import hash_json
from ..joined import JoinedLists, counted
from ..leaf import Leaf
from ..tables import joined
from .weights import SCALE, Scaled, WeightLists


class JoinedWeights(Scaled, JoinedLists):
    """The weights of a reader's documents by one encoder, as lexical search takes them: see `inverted.Searchable`.

    Args:
        leaves: The segments.
        lists: The weights of each segment's documents, deleted ones too.
        facts: What is known where there are no segments: encoder, settings, fingerprint.

    Attributes:
        meta: Encoder, settings, fingerprint, precision, scale.
    """

    def __init__(self, leaves: Sequence[Leaf], lists: Sequence[WeightLists], facts: dict[str, Any]) -> None:
        self.segments = tuple(leaves)
        self.lists = tuple(lists)
        source = {"scale": SCALE, **facts} if not lists else lists[0].meta
        names = ("encoder", "settings", "fingerprint", "precision", "scale")
        self.meta: dict[str, Any] = {name: source.get(name) for name in names}
        super().__init__(self.lists, [counted(leaf, of_leaf) for leaf, of_leaf in zip(leaves, lists, strict=True)])

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def ids(self) -> Strings:
        """The ids of the documents."""
        live = [None if leaf.dead is None else leaf.live for leaf in self.segments]
        return joined([leaf.segment.ids for leaf in self.segments], live)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all files, and of which documents live."""
        pairs = zip(self.segments, self.lists, strict=True)
        return hash_json([[of_leaf.fingerprint, leaf.state] for leaf, of_leaf in pairs])

    @cached_property
    def is_sound(self) -> bool:
        """Whether the files are as they were written."""
        return all(of_leaf.is_sound for of_leaf in self.lists)

    def info(self) -> dict[str, Any]:
        """What there is: encoder, fingerprint, scale, counts, bytes."""
        counts = {"documents": len(self), "terms": len(self.terms), "postings": int(self.df.sum(dtype=np.int64))}
        return {**self.meta, **counts, "bytes": sum(of_leaf.info()["bytes"] for of_leaf in self.lists)}
