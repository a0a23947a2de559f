"""Functions that generate instructions by Numba and LLVM, and an instruction that loads memory ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from llvmlite import binding, ir as ir
from numba import config as _config, types as _types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic as _intrinsic

if TYPE_CHECKING:
    from numba.core.typing.context import BaseContext as Context
    from numba.core.typing.templates import Signature

cgutils: Any = _cgutils
intrinsic: Any = _intrinsic
types: Any = _types

CACHE_LINE = 64  # bytes of a line of the processor's cache


@cache
def has_feature(name: str) -> bool:
    """Whether the processor for which Numba compiles has a feature by LLVM's name, such as "avx2"."""
    config: Any = _config
    if config.CPU_FEATURES is not None:
        return f"+{name}" in config.CPU_FEATURES.split(",")
    return config.CPU_NAME in (None, "host") and bool(binding.get_host_cpu_features().get(name, False))


def instruction(
    signature: Signature, emit: Callable[..., ir.Value | None]
) -> tuple[Signature, Callable[[Any, ir.IRBuilder, Signature, Sequence[ir.Value]], ir.Value]]:
    """Return what an intrinsic returns: its signature, and the function that generates it.

    `emit` is called with the target, a builder and the arguments, arrays as structures. It returns the result, or None.
    """

    def generate(target: Any, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]) -> ir.Value:
        values = [
            target.make_array(kind)(target, builder, value) if isinstance(kind, _types.Array) else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        result = emit(target, builder, *values)
        return target.get_dummy_value() if result is None else result

    return signature, generate


def function_of(builder: ir.IRBuilder, name: str, result: ir.Type, kinds: Sequence[ir.Type]) -> ir.Function:
    """Return a function of LLVM by its name and types."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), name)


def pointer_at(builder: ir.IRBuilder, pointer: ir.Value, offset: ir.Value, kind: ir.Type) -> ir.Value:
    """Return a pointer to a value of a type at an offset, counted in values of the type of `pointer`."""
    return builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())


def splat(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """Return a vector with a value in all lanes."""
    kind, numbers = ir.VectorType(value.type, lanes), ir.VectorType(ir.IntType(32), lanes)
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(single, single, ir.Constant(numbers, [0] * lanes))


def _prefetch(context: Context, array: _types.Array, row: _types.Type, column: _types.Type) -> object:
    """Ask the processor to load the cache line of `array[row, column]`."""

    def emit(target: Any, builder: ir.IRBuilder, rows: ir.Value, *position: ir.Value) -> None:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = cgutils.get_item_pointer(target, builder, array, rows, position)
        prefetch = function_of(builder, "llvm.prefetch.p0i8", ir.VoidType(), [byte, word, word, word])
        builder.call(prefetch, [builder.bitcast(pointer, byte), word(0), word(3), word(1)])  # data to read, into all caches

    return instruction(types.void(array, types.intp, types.intp), emit)


prefetch = intrinsic(_prefetch)
