"""Numba's and LLVM's functions for generating instructions, typed as Any; and an instruction that loads memory ahead."""

from functools import cache
from typing import Any

from llvmlite import binding as _binding, ir as _ir
from numba import config as _config, types as _types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic as _intrinsic

cgutils: Any = _cgutils
intrinsic: Any = _intrinsic
ir: Any = _ir
types: Any = _types

CACHE_LINE = 64  # bytes of a line of the processor's cache


@cache
def has_feature(name: str) -> bool:
    """Whether the processor for which Numba compiles has a feature by LLVM's name, such as "avx2"."""
    config: Any = _config
    if config.CPU_FEATURES is not None:
        return f"+{name}" in config.CPU_FEATURES.split(",")
    return config.CPU_NAME in (None, "host") and bool(_binding.get_host_cpu_features().get(name, False))


def _prefetch(context: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask the processor to load the cache line of `array[row, column]`."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, byte, word = signature.args[0], ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = cgutils.get_item_pointer(
            target, builder, kind, target.make_array(kind)(target, builder, arguments[0]), arguments[1:]
        )
        function = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.bitcast(pointer, byte), word(0), word(3), word(1)])  # data to read, into all caches
        return target.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


prefetch: Any = intrinsic(_prefetch)
