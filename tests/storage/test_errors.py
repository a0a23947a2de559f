"""What errors of files and stored arrays say: the file at fault, what is wrong with it, and what to do."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from support.each import each
from support.errors import check_error
from support.zipped import zipped

from fontes.core import IndexFormatError, InputError
from fontes.formats import read_corpus, write_run
from fontes.storage.arrays import Arrays, read_array, write_array

LINE = b'{"_id":"1","text":"a"}\n'
MANY = b"".join(b'{"_id":"%d","text":"%d"}\n' % (i, i**9) for i in range(20_000))


def locked() -> bytes:
    """An archive whose member has a password."""
    content = bytearray(zipped(("c.jsonl", LINE)))
    for start in (6, content.index(b"PK\x01\x02") + 8):  # the flags of both headers
        content[start] |= 1
    return bytes(content)


ZIP = zipped(("c.jsonl", LINE))


@each(
    ("content", "names", "remedy"),
    [
        *(
            (pack(MANY)[:-20], "cut off", "fetch it again")
            for pack in (gzip.compress, bz2.compress, lzma.compress, zstandard.compress)
        ),
        (bz2.compress(LINE)[:14] + b"\xff" * 40, "bzip2 file is damaged", ""),
        (lzma.compress(LINE)[:14] + b"\xff" * 40, "xz file is damaged", ""),
        (zstandard.compress(LINE)[:5] + b"\xff" * 40, "zstd file is damaged", ""),
        (ZIP[:60], "zip file is damaged", ""),
        (ZIP.replace(ZIP[14:18], b"\0\0\0\0"), "zip file is damaged", ""),
        (zipped(), "zip archive without files", ""),
        (locked(), "'c.jsonl' has a password", "unpack it"),
        (b"\x1f\x9d\x90abc", "file of compress", "gzip -d "),
        (b"7z\xbc\xaf\x27\x1cabc", "file of 7-Zip", "7z x "),
        (b"\x04\x22\x4d\x18abc", "file of LZ4", "lz4 -d "),
        (gzip.compress(bz2.compress(LINE)), "compressed twice, by bzip2 and gzip", "once"),
        (b"Rar!\x1a\x07\0abc", "file of RAR", "unrar x "),
        (b"\0\x01\x02", "gzip file is damaged", ""),
    ],
)
def test_a_compressed_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, names: str, remedy: str) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(content)
    check_error(lambda: list(read_corpus(path, "jsonl")), InputError, f"{path}: … {names}", remedy)


@each(
    ("name", "names", "remedy"),
    [
        ("r.zip", "r.zip: zip archives are read", ".gz, .bz2, .xz, .zst"),
        ("no/a.run", "no/a.run: cannot be written", ""),
        ("", "cannot be written", ""),
    ],
)
def test_a_place_that_cannot_be_written_is_named_and_stays_empty(tmp_path: Path, name: str, names: str, remedy: str) -> None:
    check_error(lambda: write_run({"q": {"d": 1.0}}, tmp_path / name), InputError, f"{tmp_path / name} … {names}", remedy)
    assert list(tmp_path.iterdir()) == []


def edited(path: Path, old: bytes, new: bytes) -> None:
    """Another text in the header of a file, which stays as long."""
    content = path.read_bytes()
    header, values = content[:128], content[128:]
    path.write_bytes(header.replace(old, new).rstrip(b" \n").ljust(127) + b"\n" + values)


SHAPES = (b"(097,)", b"(998,)", b"()", b"(99999999999999999999,)", b"(0,)", b"(997, 2)", b"(0, 9223372036854775808)")
INT = np.arange(997, dtype=np.int32)


@each(
    ("values", "change", "read", "names"),
    [
        *(
            (None, c, lambda _, folder: read_array(folder, "x", "ask"), "missing or damaged")
            for c in (None, b"", b"\x93NUMPY", b"PK\x03\x04" * 40)
        ),
        (None, b"\x93NUMPY\x01\x00\xff\xff{}", lambda _, folder: read_array(folder, "x", "ask"), "missing or damaged"),
        *(
            (INT, (b"(997,)", shape), lambda _, folder: read_array(folder, "x", "ask"), "missing or damaged")
            for shape in SHAPES
        ),
        *(
            (INT, (b"<i4", kind), lambda a, _: a.array("x", "<i4", 997), "missing or damaged")
            for kind in (b"<u4", b"<f4", b"<i2")
        ),
        *(
            (np.zeros((3, 2), np.float32), None, lambda a, _, s=shape: a.array("x", "<f4", *s), "shape (3, 2)")
            for shape in ((3,), (None, 3), (6, 1), (None,))
        ),
        *(
            (np.array(bounds, np.uint16), None, lambda a, _: a.bounds("x", 5), "damaged")
            for bounds in ([], [1, 2, 5], [0, 3, 2, 5], [0, 3, 4], [0, 3, 6])
        ),
        (np.array([0, 3, 3, 5], np.uint8), None, lambda a, _: a.bounds("x", 5, 2), "shape"),
        *((np.array(n, np.int32), None, lambda a, _: a.numbers("x", 5, "<i4", None), "0 up to 5") for n in ([0, 5], [-1, 2])),
    ],
)
def test_an_array_that_is_damaged_is_named_with_the_advice_of_the_caller(
    tmp_path: Path, values: Any, change: Any, read: Callable[[Arrays, Path], object], names: str
) -> None:
    if values is not None:
        write_array(tmp_path, "x", values)
        if change is not None:
            edited(tmp_path / "x.npy", *change)
    elif change is not None:
        (tmp_path / "x.npy").write_bytes(change)
    check_error(lambda: read(Arrays(tmp_path, "ask"), tmp_path), IndexFormatError, f"x.npy … {names}", "; ask")


@each(
    ("blob", "bounds", "order", "file"),
    [
        (b"b\xe9a", [0, 2, 3], [1, 0], "x.bytes"),
        ("béa".encode(), [0, 2, 4], [1, 0], "x.bytes"),  # in the middle of a letter
        (b"\xc3b\xa9a", [0, 3, 4], [1, 0], "x.bytes"),  # its halves apart
        (b"b\xed\xa0\x80a", [0, 4, 5], [1, 0], "x.bytes"),  # half of a surrogate pair
        (b"ba", [0, 1, 3], [1, 0], "x.bounds"),
        (b"ba", [0, 1, 2], [1, 1], "x.order"),
        (b"ba", [0, 1, 2], [2, 0], "x.order"),
        (b"ba", [0, 1, 2], [0], "x.order"),
    ],
)
def test_strings_that_cannot_be_read_name_the_file_at_fault(
    tmp_path: Path, blob: bytes, bounds: list[int], order: list[int], file: str
) -> None:
    write_array(tmp_path, "x.bytes", np.frombuffer(blob, dtype=np.uint8))
    write_array(tmp_path, "x.bounds", np.array(bounds, dtype=np.uint8))
    write_array(tmp_path, "x.order", np.array(order, dtype=np.uint32))
    check_error(lambda: Arrays(tmp_path).strings("x", ordered=False), IndexFormatError, f"{file}.npy … damaged")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is there on Linux only")
def test_a_full_disk_is_named() -> None:
    check_error(lambda: write_run({"q": {"d": 1.0}}, "/dev/full"), InputError, "/dev/full: … No space left on device")
