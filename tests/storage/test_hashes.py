"""Hashes: SHA-256, of JSON values whatever the order of their keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from fontes.storage.hashes import hash_file, hash_json, hash_text

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1


def test_a_text_and_a_file_have_the_hash_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert hash_text("abc") == hash_file(tmp_path / "x") == ABC
    with pytest.raises(FileNotFoundError):
        hash_file(tmp_path / "y")


def test_the_order_of_keys_does_not_change_the_hash_of_a_value_and_the_order_of_a_list_does() -> None:
    assert hash_json({"a": 1, "b": ["é"]}) == hash_json({"b": ["é"], "a": 1}) == hash_text('{"a": 1, "b": ["\\u00e9"]}')
    assert hash_json([1, 2]) != hash_json([2, 1])
