"""Numba's and LLVM's functions for generating instructions, typed as Any."""

from typing import Any

from llvmlite import ir as _ir
from numba import types as _types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic as _intrinsic

cgutils: Any = _cgutils
intrinsic: Any = _intrinsic
ir: Any = _ir
types: Any = _types
