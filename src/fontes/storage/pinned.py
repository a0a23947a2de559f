"""Arrays passed to compiled loops by address, since unwrapping each array of a call takes longer than a short search.

This module loads Numba; only modules whose loops are compiled anyway import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Int64s

numba: Any = import_module("numba")
intrinsic: Any = import_module("numba.extending").intrinsic
carray = numba.carray
borrowed: Any = import_module("numba.core.imputils").impl_ret_borrowed


NOTHING = np.zeros(1, np.int64)
ADDRESS_OF_NOTHING = NOTHING.ctypes.data


def pinned(arrays: Sequence[tuple[NDArray[np.generic] | None, type[np.generic]]]) -> Int64s:
    """Return the address and size of each array, for `view`. The caller must keep the arrays alive.

    Args:
        arrays: Arrays of any shape, each with the type as which loops view it; None: empty.

    Raises:
        ValueError: An array is of another type, or not contiguous.
    """
    rows = []
    for array, dtype in arrays:
        if array is None:
            rows += [ADDRESS_OF_NOTHING, 0]
            continue
        if array.dtype != dtype or not array.flags.c_contiguous:
            raise ValueError(f"an array of {array.dtype} cannot be viewed as contiguous {np.dtype(dtype)}")
        rows += [array.ctypes.data, array.size]
    return np.array(rows, dtype=np.int64)


def _address(typing: Any, address: Any, dtype: Any) -> object:
    pointer = numba.types.CPointer(dtype.dtype)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> object:
        return builder.inttoptr(values[0], context.get_value_type(pointer))

    return pointer(address, dtype), generate


address = intrinsic(_address)
"""In a compiled loop: the pointer to values of a type at an address."""


def _read_only(typing: Any, array: Any) -> object:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> object:
        return borrowed(context, builder, signature.return_type, values[0])

    return array.copy(readonly=True)(array), generate


read_only = intrinsic(_read_only)
"""In a compiled loop: an array as one that is not written to, as those of `fixed` that Python passes."""


def _view(table: Any, number: int, dtype: Any) -> Any:
    return read_only(carray(address(table[2 * number], dtype), table[2 * number + 1]))


def _buffer(table: Any, number: int, dtype: Any) -> Any:
    return carray(address(table[2 * number], dtype), table[2 * number + 1])


buffer = numba.njit(inline="always")(_buffer)
"""In a compiled loop: the pinned array with this number, flat, viewed as a type, to write to."""
view = numba.njit(inline="always")(_view)
"""In a compiled loop: the pinned array with this number, flat, viewed as a type; it cannot be written to.

It has the type of arrays that `fixed` returns, so that a loop is compiled once for both.
"""
