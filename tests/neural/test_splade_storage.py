"""Weights of terms beside an index: killed, out of disk, damaged, replaced, impossible; nothing that was encoded is lost."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.counting_encoder import BLOCK, COUNT, copied, small_blocks as small_blocks
from support.counting_terms import SIZE, CountingTerms
from support.processes import DONE, in_a_child, small_disk, stopped_before
from support.small import small_chunks

from fontes.core import FontesError, IndexFormatError, InputError, ParameterError
from fontes.core.work import Progress
from fontes.index import Index
from fontes.index.embeddings import weights
from fontes.index.embeddings.weights import SCALE, TermVectors
from fontes.index.leftovers import clean, leftovers
from fontes.storage.artifact import META, seal


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "x"
    Index.build([(f"d{n}", f"fox w{n} w{n % 7}" if n % 9 else "") for n in range(COUNT)], path)
    return path


def stored(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file() and "sparse" in str(f)}


def only(stored: Any) -> Any:
    """The weights of the only segment."""
    (part,) = stored.parts
    return part.lists


def test_what_is_stored_are_the_weights_to_four_decimals(tmp_path, plain):
    index = Index.open(copied(plain, tmp_path))
    index.encode(CountingTerms())
    lists = index.weights(CountingTerms())
    matrix = np.zeros((COUNT, SIZE))
    for number, term in enumerate(lists.terms):
        docs, counts = lists.postings(np.array([number]))
        matrix[docs, int(term[1:])] = counts / SCALE
    expected = np.stack([CountingTerms().row(doc.text) for doc in index.docs(index.ids)])
    assert np.array_equal(matrix, np.rint(expected.astype(np.float64) * SCALE) / SCALE)
    assert np.abs(matrix - expected).max() <= 0.5001 / SCALE
    assert lists.lengths.tolist() == np.rint(matrix * SCALE).sum(axis=1).tolist()
    (facts,) = index.info()["weights"]
    assert (facts["encoder"], facts["documents"], facts["postings"]) == ("CountingTerms()", COUNT, int((matrix > 0).sum()))
    assert facts["bytes"] == sum(f.stat().st_size for f in only(lists).folder.glob("*.npy"))
    index.check()


@pytest.mark.parametrize("every", [20, pytest.param(3, marks=pytest.mark.slow)], ids=["some", "many"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_an_encoding_killed_at_any_operation_resumes_and_gives_the_same_bytes(tmp_path, plain, overwrite, every):
    whole = copied(plain, tmp_path)
    Index.open(whole).encode(CountingTerms())
    expected = stored(whole)
    number, killed = 1, 0
    while True:
        folder = tmp_path / str(number)
        path = copied(whole if overwrite else plain, folder)
        log = folder / "log"

        def work(path: Path = path, log: Path = log) -> None:
            Index.open(path).encode(CountingTerms(str(log)), overwrite=overwrite)

        status, _, _ = stopped_before(number, signal.SIGKILL, path, work)
        assert status in (DONE, -signal.SIGKILL)
        index = Index.open(path)
        assert len(index.bm25().search("fox", 100)) == COUNT - 7  # the index itself is as it was
        if overwrite:
            assert len(index.splade(CountingTerms()).search("w7")) > 0  # by the old weights or the new
        index.encode(CountingTerms(str(log)), overwrite=overwrite)
        assert stored(path) == expected
        assert overwrite or len(log.read_text().split()) <= COUNT + BLOCK  # one block at most was encoded twice
        Index.open(path).check()
        shutil.rmtree(folder)
        if status == DONE:
            break
        killed += 1
        number += every
    assert killed > 30 // every


def test_a_killed_encoding_keeps_its_finished_blocks_and_is_reported_as_left_over(tmp_path, plain):
    path = copied(plain, tmp_path)
    log = tmp_path / "log"

    def die(vectors: TermVectors) -> TermVectors:
        if "d31" in log.read_text().split():
            os.kill(os.getpid(), signal.SIGKILL)
        return vectors

    assert in_a_child(lambda: Index.open(path).encode(CountingTerms(str(log), wrong=die))) == -signal.SIGKILL
    (left,) = leftovers(path)
    assert left.what == "an encoding that was stopped; fontes encode resumes it"
    log.write_text("")
    reports: list[Progress] = []
    Index.open(path).encode(CountingTerms(str(log)), progress=reports.append)
    assert log.read_text().split() == [f"d{n}" for n in range(24, COUNT)]
    assert (reports[0].before, reports[-1].done) == (24, COUNT)
    assert leftovers(path) == []


def test_what_a_stopped_encoding_left_is_removed_when_it_is_asked_for(tmp_path, plain):
    path = copied(plain, tmp_path)

    def broken(vectors: TermVectors) -> TermVectors:
        raise InputError("no more")

    with pytest.raises(InputError, match="no more"):
        Index.open(path).encode(CountingTerms(wrong=broken))
    gone, staying = clean(path)
    assert (len(gone), staying, stored(path)) == (1, [], {})


def test_encoding_again_does_nothing_and_overwriting_encodes_all(tmp_path, plain):
    path = copied(plain, tmp_path)
    log = tmp_path / "log"
    index = Index.open(path)
    for _ in range(2):
        index.encode(CountingTerms(str(log)))
    assert len(log.read_text().split()) == COUNT
    opened = Index.open(path)
    before = opened.splade(CountingTerms()).search("w7")
    index.encode(CountingTerms(str(log)), overwrite=True)
    assert len(log.read_text().split()) == 2 * COUNT
    assert len(list(path.glob("segment-*/*sparse-*"))) == 1
    for each in (opened, index, Index.open(path)):  # the first has the old files open
        assert each.splade(CountingTerms()).search("w7").ids == before.ids


def test_weights_of_encoders_are_separate_and_blocks_on_disk_change_nothing(tmp_path, plain, monkeypatch):
    path = copied(plain, tmp_path)
    Index.open(path).encode(CountingTerms())
    monkeypatch.setattr(weights, "MEMORY", 24 * 20)
    small_chunks(monkeypatch, 7)
    Index.open(path).encode(CountingTerms(fingerprint="another"))
    index = Index.open(path)
    assert [facts["fingerprint"] for facts in index.info()["weights"]].count("another") == 1
    one, other = (only(index.weights(CountingTerms(fingerprint=name))) for name in ("counting terms", "another"))
    for file in one.folder.glob("*.npy"):
        assert (other.folder / file.name).read_bytes() == file.read_bytes()
    assert one.folder != other.folder
    index.check()


def test_an_index_with_weights_is_overwritten_only_where_that_is_asked_for(tmp_path, plain):
    path = copied(plain, tmp_path)
    Index.open(path).encode(CountingTerms())
    with pytest.raises(InputError, match=r"holds vectors, which a new index lacks: CountingTerms\(\) \(weights of terms\)"):
        Index.build([("a", "b")], path, overwrite=True)
    Index.build([("a", "b")], path, overwrite=True, drop_vectors=True)
    assert Index.open(path).info()["weights"] == []


@pytest.mark.parametrize("file", ["postings.npy", "df.npy", "terms.bytes.npy", "doc_lengths.npy", META])
def test_damaged_weights_are_an_error_that_says_what_to_do_and_the_index_still_works(tmp_path, plain, file):
    path = copied(plain, tmp_path)
    Index.open(path).encode(CountingTerms())
    damaged = next(path.glob(f"segment-*/sparse-*/{file}"))
    raw = bytearray(damaged.read_bytes())
    raw[-3] ^= 1
    damaged.write_bytes(raw)
    with pytest.raises(IndexFormatError, match=r"encode again with overwrite=True \(fontes encode --overwrite\)"):
        Index.open(path).check()
    damaged.write_bytes(raw[:-2])
    index = Index.open(path)
    assert len(index.bm25().search("fox", 100)) == COUNT - 7
    for broken in (index.check, lambda: index.splade(CountingTerms()).search("w1")):
        with pytest.raises(IndexFormatError, match=file):
            broken()
    index.encode(CountingTerms())
    Index.open(path).check()
    assert len(index.splade(CountingTerms()).search("w1")) > 0


def test_forged_weights_and_those_of_a_newer_format_are_refused_before_the_search_reads_them(tmp_path, plain):
    path = copied(plain, tmp_path)
    Index.open(path).encode(CountingTerms())
    folder = next(path.glob("segment-*/sparse-*"))
    facts = {
        key: json.loads((folder / META).read_text())[key]
        for key in ("encoder", "settings", "fingerprint", "scale", "terms", "postings")
    }
    seal(folder, weights.KIND, {**facts, "documents": 10_000}, "*.npy")
    with pytest.raises(IndexFormatError, match="has the weights of 10000 documents, not 60"):
        Index.open(path).splade(CountingTerms()).search("w1")
    counts = np.load(folder / "postings.npy")
    counts[64:104] |= 128  # the first postings, so that documents lie beyond the last
    np.save(folder / "postings.npy", counts)
    seal(folder, weights.KIND, {**facts, "documents": COUNT}, "*.npy")
    with pytest.raises(IndexFormatError, match="its postings do not fit its terms"):
        Index.open(path).splade(CountingTerms())({"1": " ".join(f"w{n}" for n in range(20))})
    with pytest.raises(IndexFormatError, match="do not fit"):
        Index.open(path).check(deep=True)
    seal(folder, replace(weights.KIND, version=2), {"encoder": "of tomorrow"}, "*.npy")
    with pytest.raises(IndexFormatError, match="weights of terms of the format 2, newer than the 1"):
        Index.open(path).splade(CountingTerms()).search("w1")


def changed(name: str, number: int, value: float) -> object:
    """Gives weights in which one number is another."""

    def change(vectors: TermVectors) -> TermVectors:
        array = getattr(vectors, name).copy()
        array[number] = value
        return replace(vectors, **{name: array})

    return change


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (changed("weights", 0, np.nan), InputError, r"document 'd1': CountingTerms\(\) returned the weight nan"),
        (changed("weights", 5, -1.0), InputError, r".* returned the weight -1; weights lie between 0 and 200,000"),
        (changed("weights", -1, 1e6), InputError, r"document 'd7': .* returned the weight 1e\+06"),
        (
            changed("terms", 0, SIZE),
            ParameterError,
            "not one ascending list of numbers of its vocabulary for each of 8 documents",
        ),
        (changed("terms", 1, 0), ParameterError, "not one ascending list"),
        (lambda v: replace(v, bounds=v.bounds[:-1]), ParameterError, "not one ascending list"),
    ],
)
def test_weights_that_cannot_be_are_an_error_and_are_not_kept(tmp_path, plain, wrong, error, message):
    path = copied(plain, tmp_path)
    with pytest.raises(error, match=message):
        Index.open(path).encode(CountingTerms(wrong=wrong))
    Index.open(path).encode(CountingTerms())
    Index.open(path).check()


def test_a_full_disk_keeps_what_is_encoded(tmp_path, plain):
    with small_disk(tmp_path / "disk", "1m") as disk:
        path = copied(plain, disk)
        filler = disk / "filler"

        def fill(vectors: TermVectors) -> TermVectors:
            with filler.open("wb") as file:
                file.write(b"0" * (os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
            return vectors

        with pytest.raises(
            FontesError, match=r"weights cannot be written: No space left on device; \d+ of 60 documents are encoded"
        ):
            Index.open(path).encode(CountingTerms(wrong=fill))
        filler.unlink()
        Index.open(path).encode(CountingTerms())
        Index.open(path).check()


def test_an_empty_index_and_documents_without_terms_have_weights_all_the_same(tmp_path):
    for docs in ([], [("a", ""), ("b", "")]):
        index = Index.build(docs, tmp_path / f"x{len(docs)}")
        index.encode(CountingTerms())
        index.check()
        assert len(index.splade(CountingTerms()).search("w1")) == 0
