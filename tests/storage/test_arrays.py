"""Arrays on disk: numpy's own files, read by memory map; anything else in their place is an error that says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fontes.core import IndexFormatError
from fontes.storage.arrays import ByteWriter, read_array, smallest, write_array


@pytest.mark.parametrize(
    "array",
    [
        np.arange(10, dtype=np.int64),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.zeros((0, 5), dtype=np.float32),
        np.array([True, False]),
        np.arange(12, dtype=np.float16).reshape(3, 4)[:, ::2],
    ],
    ids=["numbers", "big-endian", "empty", "booleans", "a view"],
)
def test_an_array_is_a_file_that_numpy_reads_and_comes_back_as_it_was(tmp_path: Path, array: np.ndarray) -> None:
    write_array(tmp_path, "x", array)
    for stored in (np.load(tmp_path / "x.npy", allow_pickle=False), read_array(tmp_path, "x")):
        assert stored.shape == array.shape
        assert stored.tolist() == array.tolist()
        assert stored.dtype.byteorder in "<|="


def test_an_array_that_was_read_cannot_be_written_to(tmp_path: Path) -> None:
    write_array(tmp_path, "x", np.arange(3))
    with pytest.raises(ValueError, match="read-only"):
        read_array(tmp_path, "x")[0] = 1


def test_bytes_that_are_written_piece_by_piece_are_one_array(tmp_path: Path) -> None:
    writer = ByteWriter(tmp_path, "x")
    writer.write(b"abc")
    writer.write(np.frombuffer(b"de", dtype=np.uint8))
    assert writer.length == 5
    writer.close()
    assert np.load(tmp_path / "x.npy").tobytes() == b"abcde"


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY", b"PK\x03\x04" * 40, b"\x93NUMPY\x01\x00\xff\xff{}"])
def test_what_is_no_array_is_an_error_with_the_advice_of_the_caller(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(IndexFormatError, match=r"x\.npy is missing or damaged .*; ask somebody"):
        read_array(tmp_path, "x", "ask somebody")


@pytest.mark.parametrize(
    ("greatest", "dtype"), [(0, np.uint8), (255, np.uint8), (256, np.uint16), (2**32 - 1, np.uint32), (2**32, np.uint64)]
)
def test_whole_numbers_take_the_smallest_type_that_holds_them(greatest: int, dtype: type) -> None:
    assert smallest(np.array([0, greatest], dtype=np.int64)).dtype == dtype
    assert smallest(np.zeros(0, dtype=np.int64)).dtype == np.uint8
