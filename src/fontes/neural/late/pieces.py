"""Work on documents divided by their tokens, for threads to share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def edges_of(tokens: NDArray[np.integer[Any]], most: int) -> list[int]:
    """Edges that divide documents with so many tokens into parts of about `most` tokens."""
    ends = np.cumsum(tokens)
    inner = np.searchsorted(ends, np.arange(most, ends[-1] if len(ends) else 0, most))
    edges: list[int] = np.unique([0, *inner, len(tokens)]).tolist()
    return edges
