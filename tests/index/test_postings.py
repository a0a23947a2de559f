"""The inverted index that a build makes: that of a plain inversion, whatever was written to disk on the way."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.small_collections import PROPERTY, agrees, files, postings

from fontes.index import Index, build, inversion as runs, inversion as written, postings as inverted
from fontes.text import Analyzer

WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "é", "東", "𝒜", "z"]), max_size=12).map(" ".join)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)


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
    monkeypatch.setattr(build, "READ_SIZE", 1)
    monkeypatch.setattr(build, "BATCH", 1_000)
    spilled = []
    append = runs.PostingRuns.append
    monkeypatch.setattr(
        runs.PostingRuns, "append", lambda self, run, spill: (spilled.append(spill), append(self, run, spill))[1]
    )
    docs = [(f"d{n}", f"common w{n} w{n % 7} " * (n % 5)) for n in range(400)]
    index = Index.build(docs, tmp_path / "x", memory=500, analyzer="whitespace")
    assert sum(spilled) > 10
    agrees(index, [Counter(text.split()) for _, text in docs])


@pytest.mark.parametrize("tf", [1, 2, 127, 128, 129, 16_383, 16_384, 100_000, 2_097_152])
def test_a_term_frequency_of_any_size_is_kept(tmp_path, tf):
    index = Index.build([("d1", "a " * tf), ("d2", "a b")], tmp_path / "x", analyzer="whitespace", threads=1)
    agrees(index, [Counter(a=tf), Counter(a=1, b=1)])


@pytest.mark.parametrize("gap", [1, 63, 64, 65, 8_191, 8_192, 8_193, 20_000])
@pytest.mark.parametrize("tf", [1, 128])
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
