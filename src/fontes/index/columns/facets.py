"""Facets: how many of some documents have each value of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ParameterError
from ...core.registry import nearest
from .filters import Columned
from .stored import columns_of


def facets_of(reader: Columned, docs: NDArray[np.integer[Any]], columns: Sequence[str]) -> dict[str, dict[Any, int]]:
    """Counts of values.

    Args:
        reader: One state of an index.
        docs: The ordinals of documents.
        columns: The names of columns.

    Returns:
        For each column its values with the number of the documents that have them, the most frequent first, equal ones in
        ascending order. A document counts once for each keyword of a list, and not at all where it has no value.

    Raises:
        ParameterError: There is no such column.
    """
    known = reader.schema.columns
    for name in columns:
        if name not in known:
            raise ParameterError(f"there is no column '{name}'; {nearest(name, known)}")
    docs = np.sort(docs)
    totals: dict[str, Counter[Any]] = {name: Counter() for name in columns}
    for leaf in reader.leaves:
        first, last = np.searchsorted(docs, [leaf.first, leaf.first + leaf.documents])
        places = leaf.live[docs[first:last] - leaf.first]
        for name, total in totals.items():
            total.update(columns_of(leaf.segment).counts(name, places))
    return {name: dict(sorted(total.items(), key=lambda item: (-item[1], item[0]))) for name, total in totals.items()}
