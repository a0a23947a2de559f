"""Compiled inner products: how stored numbers become float32."""

import os
import subprocess
import sys

import numpy as np
import pytest
from support.each import each

from fontes.neural.dense.products import _decode, multiply

HALVES = np.arange(1 << 16, dtype=np.uint16)
FINITE = HALVES[np.isfinite(HALVES.view(np.float16))]
NONE = np.zeros(0, np.float32)

WIDENED = """
import numpy as np
from fontes.neural.dense.products import _decode
halves = np.arange(1 << 16, dtype=np.uint16)
halves = halves[np.isfinite(halves.view(np.float16))].reshape(-1, 32)
wide = np.empty(halves.shape, np.float32)
_decode(halves, np.zeros(0, np.float32), wide)
assert wide.tobytes() == halves.view(np.float16).astype(np.float32).tobytes()
"""


def test_every_finite_half_is_widened_as_numpy_does() -> None:
    wide = np.empty((len(FINITE) // 32, 32), dtype=np.float32)
    _decode(FINITE.reshape(-1, 32), NONE, wide)
    assert wide.tobytes() == FINITE.view(np.float16).astype(np.float32).tobytes()


@pytest.mark.slow
def test_a_processor_without_the_instruction_widens_halves_too() -> None:
    pytest.importorskip("numba")
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic"}
    subprocess.run([sys.executable, "-c", WIDENED], env=environment, check=True, timeout=240)


@each("count", [1, 3, 4, 7, 50])
@each("dtype", [np.float32, np.float16, np.int8])
def test_quick_products_are_those_of_numpy_for_any_number_of_rows(count: int, dtype: type) -> None:
    draw = np.random.default_rng(count)
    vectors = (20 * draw.standard_normal((count, 37))).astype(dtype)
    scales = draw.random(count, dtype=np.float32) if dtype is np.int8 else NONE
    queries, out = draw.standard_normal((2, 37), dtype=np.float32), np.empty((2, count), dtype=np.float32)
    multiply(queries, vectors.view(np.uint16) if dtype is np.float16 else vectors, scales, out)
    expected = queries.astype(np.float64) @ vectors.astype(np.float64).T * (scales if len(scales) else 1)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3)
