"""Vectors beside an index: killed, out of disk, two at once, damaged, replaced; nothing that was encoded is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.counting_encoder import (
    BLOCK,
    COUNT,
    Counting,
    Several,
    copied,
    plain as plain,
    small_blocks as small_blocks,
    vector_files,
)
from support.processes import full_disk, in_a_child, kill, small_disk
from support.small import blocks_of

from fontes.core import FontesError, ParameterError
from fontes.core.values import Doc
from fontes.core.work import Progress
from fontes.index import Index

# File system operations of an encoding, as Python's audit hooks name them; writing and syncing are counted besides.
OPERATIONS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}


def at_operation(number: int, folder: Path, what: Callable[[], object]) -> list[int]:
    """Does `what` before this operation on a file of the vectors in `folder`, or sync of any; the list then has its number."""
    count = 0
    done: list[int] = []

    def step() -> None:
        nonlocal count
        count += 1
        if count == number:
            done.append(number)
            what()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in OPERATIONS and str(folder) in str(arguments[0]) and "vectors" in str(arguments[0]):
            step()

    sys.addaudithook(hook)
    os.fsync = lambda file: step()  # type: ignore[assignment]
    return done


@pytest.mark.parametrize("step", [23, pytest.param(3, marks=pytest.mark.slow)], ids=["some", "many"])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (Counting, "float32"),
        (Several, "int8"),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((Counting, "int8"), (Several, "float32"))),
        *(pytest.param(kind, "rabitq4", marks=pytest.mark.slow) for kind in (Counting, Several)),
    ],
)
@pytest.mark.parametrize(("what", "status"), [(kill, -signal.SIGKILL), (full_disk, 3)])
def test_an_encoding_stopped_at_any_operation_resumes_and_gives_the_same_bytes(
    tmp_path, plain, kind, dtype, what, status, step
):
    whole = copied(plain, tmp_path)
    Index.open(whole).encode(kind(), dtype=dtype)
    expected = vector_files(whole)
    number, stopped = 0, 0
    while True:
        number += step
        folder = tmp_path / str(number)
        path = copied(plain, folder)
        log = folder / "log"

        def work(number=number, path=path, log=log):
            index = Index.open(path)
            done = at_operation(number, path, what)
            index.encode(kind(str(log)), dtype=dtype)
            if done:
                os._exit(6)  # it could do without this operation

        found = in_a_child(work)
        stopped += found == status
        assert found in (0, 6, status)
        index = Index.open(path)
        assert len(index.bm25().search("fox", 100)) == COUNT  # the index itself is as it was
        index.encode(kind(str(log)), dtype=dtype)
        assert vector_files(path) == expected
        encoded = log.read_text().split()
        assert len(encoded) <= COUNT + BLOCK  # one block at most was encoded twice
        Index.open(path).check()
        if found == 0:
            break
        shutil.rmtree(folder)
    assert stopped >= 50 // step


def test_an_encoding_killed_within_a_block_keeps_the_blocks_before(tmp_path, plain):
    path = copied(plain, tmp_path)
    log = tmp_path / "log"

    @dataclass(frozen=True)
    class Dying(Counting):
        def encode_documents(self, docs: Sequence[Doc]) -> np.ndarray:
            if any(doc.id == "d30" for doc in docs):
                kill()
            return super().encode_documents(docs)

    assert in_a_child(lambda: Index.open(path).encode(Dying(str(log)))) == -signal.SIGKILL
    assert log.read_text().split() == [f"d{n}" for n in range(24)]
    reports: list[Progress] = []
    Index.open(path).encode(Counting(str(log)), progress=reports.append)
    assert log.read_text().split() == [f"d{n}" for n in range(COUNT)]
    assert reports[0].before == 24
    assert [p.done for p in reports] == sorted(p.done for p in reports)
    assert reports[-1].done == reports[-1].total == COUNT
    assert reports[-1].fraction == 1.0
    assert reports[-1].seconds_left == 0
    assert reports[-1].rate == pytest.approx((COUNT - 24) / reports[-1].seconds)


def test_the_time_left_counts_what_this_run_has_done_alone():
    progress = Progress("encoding", 60, 100, 10.0, before=40)
    assert progress.rate == 2
    assert progress.seconds_left == pytest.approx(20)
    assert Progress("encoding", 40, 100, 1.0, before=40).seconds_left is None


def test_a_journal_with_a_torn_line_or_a_damaged_block_is_used_up_to_it(tmp_path, plain):
    for damage in ("line", "block", "missing"):
        path = copied(plain, tmp_path / damage)
        log = tmp_path / damage / "log"

        def work(path=path):
            index = Index.open(path)
            at_operation(35, path, kill)
            index.encode(Counting())

        assert in_a_child(work) == -signal.SIGKILL
        draft = next(path.glob("segment-*/.vectors-*"))
        blocks = len((draft / "journal").read_text().splitlines())
        assert blocks > 2
        if damage == "line":
            with (draft / "journal").open("a") as file:
                file.write("[8, 8, 12")
        elif damage == "block":
            with (draft / "vectors.npy").open("r+b") as file:
                file.seek(128 + (2 * BLOCK + 3) * 12 * 4)
                file.write(b"\0\0")
            blocks = 2
        else:
            (draft / "norms").unlink()
            blocks = 0
        Index.open(path).encode(Counting(str(log)))
        assert log.read_text().split() == [f"d{n}" for n in range(blocks * BLOCK, COUNT)]
        index = Index.open(path)
        index.check()
        assert np.array_equal(index.embeddings(Counting()).decoded(slice(None)), Counting().encode_queries(index.ids.tolist()))


def test_encoding_again_does_nothing_and_overwriting_encodes_all(tmp_path, plain):
    path = copied(plain, tmp_path)
    log = tmp_path / "log"
    index = Index.open(path)
    for _ in range(2):
        index.encode(Counting(str(log)))
    assert len(log.read_text().split()) == COUNT
    opened = Index.open(path)
    before = opened.dense(Counting())("d7")
    index.encode(Counting(str(log)), overwrite=True)
    assert len(log.read_text().split()) == 2 * COUNT
    assert len(list(path.glob("segment-*/*vectors-*"))) == 1
    assert opened.dense(Counting())("d7") == before  # its files are gone, but it has them open
    assert index.dense(Counting())("d7") == before


def test_smaller_vectors_are_made_of_full_ones_without_the_encoder(tmp_path, plain):
    log = tmp_path / "log"
    index = Index.open(copied(plain, tmp_path))
    for encoder in (Counting(str(log)), Several(str(log), fingerprint="several")):
        for dtype in ("float32", "float16", "int8"):
            index.encode(encoder, dtype=dtype)
        full, half, whole = (index.embeddings(encoder, dtype).shares[0].embeddings for dtype in ("float32", "float16", "int8"))
        assert np.array_equal(half.vectors, full.vectors.astype(np.float16))
        steps = np.abs(full.vectors).max(axis=1, keepdims=True) / 127
        assert np.all(np.abs(whole.decoded(slice(None)) - full.vectors) <= 0.5001 * steps)
        assert np.array_equal(half.bounds, full.bounds)
        assert full.vectors.nbytes == 2 * half.vectors.nbytes == 4 * whole.vectors.nbytes
        assert index.embeddings(encoder).dtype == "float32"
    assert len(log.read_text().split()) == 2 * COUNT
    index.check()


def test_float16_and_int8_made_at_once_are_those_made_of_full_vectors(tmp_path, plain):
    made = []
    for first in ((), ("float32",)):
        path = copied(plain, tmp_path / str(len(first)))
        for dtype in (*first, "int8", "float16"):
            Index.open(path).encode(Counting(), dtype=dtype)
        made.append({name: raw for name, raw in vector_files(path).items() if "float32" not in name})
    assert made[0] == made[1]


def test_rebuilding_an_index_removes_its_vectors_and_disturbs_no_open_one(tmp_path):
    docs = [(f"d{n}", f"fox {n}") for n in range(30)]
    index = Index.build(docs, tmp_path / "x")
    index.encode(Counting())
    opened = Index.open(tmp_path / "x")
    Index.build(docs, tmp_path / "x", overwrite=True, drop_vectors=True)
    assert opened.dense(Counting()).search("d3", 1).ids == ["d3"]
    with pytest.raises(ParameterError, match="holds no vectors"):
        Index.open(tmp_path / "x").dense(Counting()).search("d3")
    assert vector_files(tmp_path / "x") == {}


def test_vectors_that_another_process_has_made_meanwhile_are_found(tmp_path, plain):
    path = copied(plain, tmp_path)
    opened = Index.open(path)
    assert in_a_child(lambda: Index.open(path).encode(Counting())) == 0
    assert opened.dense(Counting()).search("d3", 1).ids == ["d3"]


def test_an_index_replaced_while_it_is_encoded_says_so(tmp_path, plain):
    path = copied(plain, tmp_path)

    def replace(vectors: np.ndarray) -> np.ndarray:
        if not (tmp_path / "replaced").exists():
            (tmp_path / "replaced").touch()
            Index.build([("n", "new")], path, overwrite=True, drop_vectors=True)
        return vectors

    with pytest.raises(FontesError, match="was merged meanwhile"):
        Index.open(path).encode(Counting(wrong=replace))
    Index.open(path).check()


def test_two_encodings_at_once_do_not_disturb_each_other(tmp_path, plain):
    path = copied(plain, tmp_path)
    started, go_on = threading.Event(), threading.Event()

    def wait(vectors: np.ndarray) -> np.ndarray:
        started.set()
        assert go_on.wait(30)
        return vectors

    first = threading.Thread(target=lambda: Index.open(path).encode(Counting(wrong=wait)))
    first.start()
    assert started.wait(30)
    with pytest.raises(FontesError, match="is being encoded by another process"):
        Index.open(path).encode(Counting())
    Index.open(path).encode(Counting(fingerprint="another"))
    go_on.set()
    first.join()
    index = Index.open(path)
    index.check()
    assert len(index.info()["vectors"]) == 2


def test_a_full_disk_loses_nothing_that_is_encoded(tmp_path, monkeypatch):
    blocks_of(monkeypatch, 100)
    count, log = 2_000, tmp_path / "log"
    with small_disk(tmp_path / "disk", "2m") as disk:
        index = Index.build([(f"d{n}", "") for n in range(count)], disk / "x")
        filler = disk / "filler"
        status = os.statvfs(disk)
        filler.write_bytes(b"x" * (status.f_bavail * status.f_frsize - 300_000))
        with pytest.raises(
            FontesError, match=r"x: vectors cannot be written: No space left on device; [1-9],?\d+ of 2,000 docu"
        ):
            index.encode(Counting(str(log), dim=100))
        index.check()
        assert not vector_files(disk / "x").keys() & {"artifact.json"}
        filler.unlink()
        index.encode(Counting(str(log), dim=100))
        assert len(log.read_text().split()) <= count + 100
        index.check()
        assert np.array_equal(
            index.embeddings(Counting(dim=100)).decoded(slice(None)), Counting(dim=100).encode_queries(index.ids.tolist())
        )
