"""The inverted index that a build makes: that of a plain inversion, whatever was written to disk on the way."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.each import each
from support.small import small_batches
from support.small_collections import PROPERTY, agrees, files, postings

from fontes.index import Index, build, inversion as runs, inversion as written, packed_kernels, packing, postings as inverted
from fontes.text import Analyzer

WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "é", "東", "𝒜", "z"]), max_size=12).map(" ".join)


@PROPERTY
@given(st.lists(WORDS, max_size=12), st.sampled_from(["standard", "whitespace", "standard+words:1-2", "cjk+chars:1-2"]))
def test_postings_are_those_of_a_plain_inversion(tmp_path_factory, texts, name):
    analyzer = Analyzer.of(name)
    docs = [(f"d{n}", text) for n, text in enumerate(texts)]
    index = Index.build(docs, tmp_path_factory.mktemp("i") / "x", analyzer=analyzer, threads=1)
    agrees(index, [Counter(analyzer(text)) for text in texts])


@PROPERTY
@given(st.lists(WORDS, min_size=1, max_size=25), st.integers(1, 200), st.sampled_from([1, 24 * 3, 24 * 20]), st.integers(1, 9))
def test_runs_that_were_spilled_and_merged_give_the_same_files(tmp_path_factory, texts, batch, memory, chunk):
    docs = [(f"d{n}", text) for n, text in enumerate(texts)]
    folder = tmp_path_factory.mktemp("i")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "BATCH", batch)
        Index.build(docs, folder / "whole", analyzer="whitespace", threads=1)
        patch.setattr(written, "CHUNK_POSTINGS", chunk)
        patch.setattr(inverted, "CHUNK_POSTINGS", chunk)
        index = Index.build(docs, folder / "spilled", analyzer="whitespace", threads=1, memory=memory)
        agrees(index, [Counter(text.split()) for text in texts])
    assert files(folder / "spilled") == files(folder / "whole")


def test_a_tiny_memory_spills_many_runs(tmp_path, monkeypatch):
    small_batches(monkeypatch, 1_000)
    spilled = []
    append = runs.PostingRuns.append
    monkeypatch.setattr(
        runs.PostingRuns, "append", lambda self, run, spill: (spilled.append(spill), append(self, run, spill))[1]
    )
    docs = [(f"d{n}", f"common w{n} w{n % 7} " * (n % 5)) for n in range(400)]
    index = Index.build(docs, tmp_path / "x", memory=500, analyzer="whitespace")
    assert sum(spilled) > 10
    agrees(index, [Counter(text.split()) for _, text in docs])


@each("tf", [1, 2, 127, 128, 129, 16_383, 16_384, 100_000, 2_097_152])
def test_a_term_frequency_of_any_size_is_kept(tmp_path, tf):
    index = Index.build([("d1", "a " * tf), ("d2", "a b")], tmp_path / "x", analyzer="whitespace", threads=1)
    agrees(index, [Counter(a=tf), Counter(a=1, b=1)])


@each("gap", [1, 63, 64, 65, 8_191, 8_192, 8_193, 20_000])
@each("tf", [1, 128])
def test_a_gap_of_any_size_between_documents_is_kept(tmp_path, gap, tf):
    texts = ["" for _ in range(gap + 1)]
    texts[0] = texts[gap] = "a " * tf
    docs = [(f"d{n}", text) for n, text in enumerate(texts)]
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace", threads=1)
    assert postings(index) == {"a": {0: tf, gap: tf}}
    only_last = Index.build(docs[1:], tmp_path / "y", analyzer="whitespace", threads=1)
    assert postings(only_last) == {"a": {gap - 1: tf}}
    only_last.check()


def test_postings_of_several_terms_come_end_to_end(tmp_path):
    index = Index.build([("d1", "a b b"), ("d2", "b c")], tmp_path / "x", analyzer="whitespace")
    docs, tfs = index.postings(np.array([2, 1, 2], dtype=np.int32))
    assert (docs.tolist(), tfs.tolist()) == ([1, 0, 1, 1], [1, 2, 1, 1])
    docs, tfs = index.postings(np.array([], dtype=np.int32))
    assert (docs.tolist(), tfs.tolist()) == ([], [])


class Counted(list):
    """Counts its reads."""

    reads = 0

    def __getitem__(self, at):
        self.reads += 1
        return super().__getitem__(at)


def test_rare_postings_of_deleted_documents_are_counted_in_one_pass(tmp_path, monkeypatch):
    for name in ("SHORT_BITS", "LONG_BITS"):
        monkeypatch.setattr(packing, name, 1)
    monkeypatch.setattr(packing, "MIN_CODED", 0.0)
    index = Index.build([(f"d{n}", "a b " + "a " * (n % 9)) for n in range(300)], tmp_path / "x", analyzer="whitespace")
    lists = index.state.leaves[0].segment.lists.packed
    code_at, count_marked = packed_kernels.code_at, packed_kernels.count_marked
    monkeypatch.setattr(packed_kernels, "code_at", getattr(code_at, "py_func", code_at))
    (*arrays, (bounds, docs, weights)), row_of, starts = lists.unweighted
    reads, (df, cf) = Counted(docs.tolist()), np.zeros((2, 2), dtype=np.int64)
    packed = (*arrays, (bounds, reads, weights)), row_of, starts
    count_marked.py_func(0, 2, packed, np.ones(300, np.uint8), lists.pairs[0], lists.rest[2], df, cf)
    assert df.tolist() == index.df.tolist() == [300, 300]
    assert cf.tolist() == index.cf.tolist()
    assert lists.rest.shape[1] > 250
    assert reads.reads < 3 * lists.rest.shape[1]


def test_lengths_that_have_no_part_in_codes_are_stored_as_0_however_large_they_are(tmp_path):
    corpus = tmp_path / "c.jsonl"
    rows = [{"id": f"d{n}", "contents": "", "vector": {f"t{t}": 20_000_000 - n for t in range(400)}} for n in range(3)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = Index.build(corpus, tmp_path / "x", vectors="vector")
    assert index.lengths.max() > 1 << 32
    assert np.all(index.state.leaves[0].segment.lists.packed.rest[3] == 0)
    index.check(deep=True)


def test_one_long_document_takes_little_memory():
    tracemalloc.start()
    try:
        packing.TfLengthCodes(np.array([packing.MAX_CODED_LENGTH, 3]), True)
        assert tracemalloc.get_traced_memory()[1] < 5 * packing.MAX_CODED_LENGTH
    finally:
        tracemalloc.stop()
