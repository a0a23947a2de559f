"""Hashes: SHA-256, of JSON values whatever the order of their keys."""

import zlib
from pathlib import Path

import numpy as np
import pytest

from fontes.storage import hashes
from fontes.storage.hashes import block_sums, hash_file, hash_json, hash_text

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1


def test_a_text_and_a_file_have_the_hash_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert hash_text("abc") == hash_file(tmp_path / "x") == ABC
    with pytest.raises(FileNotFoundError):
        hash_file(tmp_path / "y")


def test_a_hash_depends_on_the_order_of_lists_not_of_keys() -> None:
    assert hash_json({"a": 1, "b": ["é"]}) == hash_json({"b": ["é"], "a": 1}) == hash_text('{"a": 1, "b": ["\\u00e9"]}')
    assert hash_json([1, 2]) != hash_json([2, 1])


def test_each_block_of_an_array_has_the_crc_of_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "BLOCK_BYTES", 4)
    assert block_sums(np.frombuffer(b"123456789", dtype=np.uint8)) == [
        zlib.crc32(b"1234"),
        zlib.crc32(b"5678"),
        zlib.crc32(b"9"),
    ]
    monkeypatch.setattr(hashes, "BLOCK_BYTES", 1 << 10)
    assert block_sums(np.frombuffer(b"123456789", dtype=np.uint8)) == [0xCBF43926]  # the check value of CRC-32
    assert block_sums(np.array([[True], [False]])) == [zlib.crc32(b"\1\0")]
    assert block_sums(np.zeros((0, 3), dtype=np.float32)) == []
