"""Vectors that are damaged, of another format, impossible or not to be written: each an error that says what to do."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.counting_encoder import COUNT, Counting, Several, copied, plain as plain, small_blocks as small_blocks

from fontes.core import FontesError, IndexFormatError, InputError, ParameterError
from fontes.index import Index
from fontes.index.embeddings import vectors as embeddings
from fontes.storage.artifact import seal


@pytest.mark.parametrize("file", ["vectors.npy", "norms.npy", "scales.npy", "bounds.npy", "artifact.json"])
def test_damaged_vectors_are_an_error_that_says_what_to_do_and_the_index_still_works(tmp_path, plain, file):
    path = copied(plain, tmp_path)
    encoder = Several()
    Index.open(path).encode(encoder, dtype="int8")
    damaged = next(path.glob(f"segment-*/vectors-*/{file}"))
    raw = bytearray(damaged.read_bytes())
    raw[-20] ^= 1
    damaged.write_bytes(raw)
    with pytest.raises(IndexFormatError, match=r"encode again with overwrite=True \(fontes encode --overwrite\)"):
        Index.open(path).check()
    damaged.write_bytes(raw[:-8])
    index = Index.open(path)
    assert len(index.bm25().search("fox", 100)) == COUNT
    for broken in (index.check, lambda: index.dense(encoder).search("d1")):
        with pytest.raises(IndexFormatError, match=file):
            broken()
    index.encode(encoder, dtype="int8")
    Index.open(path).check()
    assert len(index.dense(encoder).search("d1", 100)) == COUNT


def test_vectors_of_a_newer_format_are_an_error(tmp_path, plain):
    path = copied(plain, tmp_path)
    Index.open(path).encode(Counting())
    file = next(path.glob("segment-*/vectors-*/artifact.json"))
    seal(file.parent, replace(embeddings.KIND, version=2), {"encoder": "of tomorrow"}, "*.npy")
    with pytest.raises(IndexFormatError, match="vectors of the format 2, newer than the 1"):
        Index.open(path).dense(Counting()).search("d1")


@pytest.mark.parametrize(
    ("wrong", "dtype", "error", "message"),
    [
        (lambda v: np.where(np.arange(len(v))[:, None] == 3, np.nan, v), "float32", InputError, "document 'd3': .*not finite"),
        (lambda v: np.where(np.arange(len(v))[:, None] == 3, np.inf, v), "int8", InputError, "document 'd3': .*not finite"),
        (lambda v: np.where(np.arange(len(v))[:, None] == 5, 7e4, v), "float16", InputError, "'d5': .*float16 cannot hold"),
        (lambda v: v[:-1], "float32", ParameterError, r"shape \(7, 12\) for 8 documents"),
        (lambda v: v[:, :5], "float32", ParameterError, r"at least one of 12 dimensions for each"),
    ],
)
def test_vectors_that_cannot_be_are_an_error_and_are_not_kept(tmp_path, plain, wrong, dtype, error, message):
    path = copied(plain, tmp_path)
    with pytest.raises(error, match=message):
        Index.open(path).encode(Counting(wrong=wrong), dtype=dtype)
    Index.open(path).encode(Counting(), dtype=dtype)
    Index.open(path).check()


def test_info_says_which_vectors_there_are(tmp_path, plain):
    path = copied(plain, tmp_path)
    assert Index.open(path).info()["vectors"] == []
    index = Index.open(path)
    index.encode(Several(), dtype="int8")
    (facts,) = index.info()["vectors"]
    assert facts["encoder"] == repr(Several())
    assert (facts["dtype"], facts["dim"], facts["vectors"], facts["approximate"]) == ("int8", 12, 120, [])
    assert facts["bytes"] == sum(f.stat().st_size for f in path.glob("segment-*/vectors-*/*.npy"))


def test_a_folder_that_cannot_be_written_is_an_error_of_fontes(tmp_path, plain, monkeypatch):
    path = copied(plain, tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    index = Index.open(path)
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(FontesError, match="vectors cannot be written: Read-only file system; nothing was changed"):
        index.encode(Counting())


def test_a_model_file_that_is_missing_is_not_taken_for_a_disk_that_cannot_be_written(tmp_path, plain):
    def broken(vectors: np.ndarray) -> np.ndarray:
        raise FileNotFoundError(2, "No such file or directory", "model.safetensors")

    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        Index.open(copied(plain, tmp_path)).encode(Counting(wrong=broken))
