"""Arrays on disk: numpy's own files, read by memory map; anything else in their place is an error that says what to do."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.each import each

from fontes.core import IndexFormatError
from fontes.storage.arrays import UNSIGNED, Arrays, ByteWriter, is_permutation, is_utf8, read_array, smallest, write_array


@each(
    "array",
    [
        np.arange(10, dtype=np.int64),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.zeros((0, 5), dtype=np.float32),
        np.array([True, False]),
        np.arange(12, dtype=np.float16).reshape(3, 4)[:, ::2],
    ],
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


def test_whole_numbers_take_the_smallest_type_that_holds_them() -> None:
    for greatest, dtype in [(0, np.uint8), (255, np.uint8), (256, np.uint16), (2**32 - 1, np.uint32), (2**32, np.uint64)]:
        assert smallest(np.array([0, greatest], dtype=np.int64)).dtype == dtype
        assert smallest(np.zeros(0, dtype=np.int64)).dtype == np.uint8


def test_an_array_is_read_by_its_type_and_shape_where_a_length_may_be_any(tmp_path: Path) -> None:
    write_array(tmp_path, "x", np.arange(4, dtype=np.int32))
    write_array(tmp_path, "y", np.zeros((3, 2), dtype=np.float32))
    assert Arrays(tmp_path).array("x", "<i4", 4).tolist() == [0, 1, 2, 3]
    assert Arrays(tmp_path).array("y", "<f4", None, 2).shape == (3, 2)


def test_bounds_that_rise_are_read_and_may_be_of_a_number_of_parts(tmp_path: Path) -> None:
    write_array(tmp_path, "x", np.array([0, 3, 3, 5], dtype=np.uint8))
    assert Arrays(tmp_path).bounds("x", 5, 3).tolist() == [0, 3, 3, 5]


@each("numbers", [[0, 4, 4], []])
def test_numbers_are_from_0_up_to_what_they_number(tmp_path: Path, numbers: list[int]) -> None:
    write_array(tmp_path, "x", np.array(numbers, dtype=np.int32))
    assert Arrays(tmp_path).numbers("x", 5, "<i4", None).tolist() == numbers


def written_strings(folder: Path, blob: bytes, bounds: list[int], order: list[int]) -> Arrays:
    write_array(folder, "x.bytes", np.frombuffer(blob, dtype=np.uint8))
    write_array(folder, "x.bounds", np.array(bounds, dtype=np.uint8))
    write_array(folder, "x.order", np.array(order, dtype=np.uint32))
    return Arrays(folder)


def test_strings_are_utf8_within_their_bounds_and_have_an_order(tmp_path: Path) -> None:
    strings = written_strings(tmp_path, "béa".encode(), [0, 3, 3, 4], [1, 2, 0]).strings("x", 3, ordered=False)
    assert strings.tolist() == ["bé", "", "a"]
    assert [strings.find(string) for string in ("bé", "", "a", "b")] == [0, 1, 2, -1]


@pytest.mark.parametrize("use", [lambda table: table.order, lambda table: table.rank, lambda table: table.find("b")])
def test_an_order_with_a_string_twice_is_damage_when_it_is_used(tmp_path: Path, use: Any) -> None:
    """What is not there has no rank, and compiled loops index arrays by ranks."""
    strings = written_strings(tmp_path, b"abcd", [0, 1, 2, 3, 4], [1, 1, 1, 3]).strings("x", ordered=False)
    assert strings.tolist() == ["a", "b", "c", "d"]
    for _ in range(2):
        with pytest.raises(IndexFormatError, match=r"x\.order\.npy is damaged: it has a number twice"):
            use(strings)


def test_a_permutation_has_each_number_once() -> None:
    for numbers, sound in [([], True), ([0], True), ([2, 0, 1], True), ([1], False), ([0, 0], False), ([0, 2], False)]:
        assert is_permutation(np.array(numbers, dtype=np.int64)) is sound


def test_the_types_of_counts_are_those_that_the_smallest_type_can_be(tmp_path: Path) -> None:
    for number, kind in enumerate(UNSIGNED):
        write_array(tmp_path, "x", smallest(np.array([256 ** (1 << number) - 1], dtype=np.uint64)))
        assert read_array(tmp_path, "x", dtype=kind).itemsize == 1 << number


@given(st.lists(st.text(alphabet="aé東𝄞\x7f", max_size=4), max_size=5), st.integers(0, 40), st.integers(0, 255))
def test_bytes_are_utf8_where_each_text_can_be_decoded(texts: list[str], at: int, byte: int) -> None:
    encoded = [text.encode() for text in texts]
    blob, bounds = bytearray(b"".join(encoded)), np.cumsum([0, *map(len, encoded)]).astype(np.uint32)
    if at < len(blob):
        blob[at] = byte
    pieces = [bytes(blob[a:b]) for a, b in itertools.pairwise(bounds.tolist())]
    try:
        sound = all(piece.decode() is not None for piece in pieces)
    except UnicodeDecodeError:
        sound = False
    assert is_utf8(np.frombuffer(bytes(blob), dtype=np.uint8), bounds) == sound
