"""The result of a search for one query."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..core.arrays import Float32s, Int32s

Best: TypeAlias = tuple[Int32s, Float32s]
"""Documents and scores of a query, best first."""
NO_RESULTS: Best = np.zeros(0, np.int32), np.zeros(0, np.float32)
