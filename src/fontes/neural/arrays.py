"""Types of numpy arrays, named by their dtypes."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I8 = NDArray[np.int8]
I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]
Integers = NDArray[np.integer]
Objects = NDArray[np.object_]
Records = NDArray[np.void]

Result = TypeVar("Result", bound=np.generic)
"""Kind of the results of work in batches."""

Best = tuple[I32, F32]
"""Documents and scores of a query, best first."""
NO_RESULTS: Best = np.zeros(0, np.int32), np.zeros(0, np.float32)
