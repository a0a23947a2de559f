"""Types of numpy arrays, by the type of their numbers."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)
"""Type of the values of any array."""

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Int8s: TypeAlias = NDArray[np.int8]
Int16s: TypeAlias = NDArray[np.int16]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt16s: TypeAlias = NDArray[np.uint16]
UInt32s: TypeAlias = NDArray[np.uint32]
UInt64s: TypeAlias = NDArray[np.uint64]
Float32s: TypeAlias = NDArray[np.float32]
Float64s: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer]
Floats: TypeAlias = NDArray[np.floating]
Numbers: TypeAlias = NDArray[np.number]
Indices: TypeAlias = NDArray[np.intp]
Objects: TypeAlias = NDArray[np.object_]
Records: TypeAlias = NDArray[np.void]
AnyArray: TypeAlias = NDArray[Any]
"""An array of numbers whose type is known when it is read or computed."""
Int: TypeAlias = int | np.integer
"""A number of Python or of an array, which compiled loops do not tell apart."""
