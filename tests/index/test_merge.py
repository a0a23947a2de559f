"""Merging segments: the bytes of one build of the documents that live, whatever was deleted and however they were split."""

import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to
from support.small_collections import PROPERTY, files

from fontes.core import Doc
from fontes.core.work import work
from fontes.index import build, texts as documents
from fontes.index.build import build_segment, merge_segments
from fontes.index.postings import merge_lists
from fontes.index.segment import Deletions, Leaf, Segment, leaves_of
from fontes.index.settings import IndexSettings, TermWeights
from fontes.text import Analyzer

WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "é", "東", "𝒜", "z"]), max_size=12).map(" ".join)
BAGS = st.dictionaries(st.sampled_from(["a", "b", "é", "𝒜"]), st.sampled_from([0, 0.01, 0.5, 3, 20_000]), max_size=3)
SPLIT = st.lists(st.tuples(WORDS, BAGS, st.booleans(), st.booleans()), max_size=25)


def built(
    docs: Sequence[Doc], folder: Path, weights: TermWeights | None = None, analyzer: str = "standard+words:1-2"
) -> Segment:
    folder.mkdir(parents=True)
    with work(memory=1 << 30, threads=1):
        build_segment(docs, folder, IndexSettings(Analyzer.of(analyzer), ("title", "text"), weights))
    return Segment(folder)


def leaves(parts: Sequence[Segment], dead: Sequence[Sequence[bool]]) -> tuple[Leaf, ...]:
    marks = [np.array(flags, dtype=bool) for flags in dead]
    pairs = zip(parts, marks, strict=True)
    return leaves_of((part, Deletions.of(part.lists, flags) if flags.any() else None) for part, flags in pairs)


def merged(of: Sequence[Leaf], folder: Path, memory: int = 1 << 30, threads: int = 1) -> dict[str, bytes]:
    folder.mkdir()
    with work(memory=memory, threads=threads):
        counts = merge_segments(of, folder)
    segment = Segment(folder)
    Leaf(segment).check()
    assert counts == {
        "documents": len(segment.ids),
        "terms": len(segment.lists.terms),
        "postings": int(segment.lists.df.sum(dtype=np.int64)),
        "tokens": int(segment.lists.cf.sum(dtype=np.int64)),
    }
    return files(folder)


@settings(PROPERTY, max_examples=up_to(60, 10))
@given(SPLIT, st.booleans(), st.integers(1, 40), st.sampled_from([1, 24 * 9, 1 << 30]), st.integers(1, 3))
def test_a_merge_writes_the_bytes_of_one_build(tmp_path_factory, rows, weighted, block, memory, threads):
    folder = tmp_path_factory.mktemp("i")
    weights = TermWeights("vector") if weighted else None
    docs = [Doc(f"d{n * 7919 % 64}é", text, "T" * (n % 3), {"vector": bag}) for n, (text, bag, _, _) in enumerate(rows)]
    dead = [row[2] for row in rows]
    cuts = [0, *(n for n, row in enumerate(rows) if row[3]), len(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "MAX_BLOCK_BYTES", block)
        patch.setattr(documents, "MIN_BLOCK", block // 2)
        patch.setattr(documents, "BLOCK_END_FRACTION", 1 << 31)
        parts = [built(docs[a:b], folder / f"part{n}", weights) for n, (a, b) in enumerate(pairwise(cuts))]
        state = leaves(parts, [dead[a:b] for a, b in pairwise(cuts)])
        built([doc for doc, gone in zip(docs, dead, strict=True) if not gone], folder / "fresh", weights)
        assert merged(state, folder / "merged", memory, threads) == files(folder / "fresh")


def test_leaves_from_the_middle_of_a_reader_are_merged_from_ordinal_0_on(tmp_path):
    docs = [Doc(f"d{n}", f"common w{n % 4} w{n}") for n in range(30)]
    parts = [built(docs[a : a + 10], tmp_path / str(a)) for a in (0, 10, 20)]
    state = leaves(parts, [[False] * 10, [n == 3 for n in range(10)], [False] * 10])
    built(docs[10:13] + docs[14:], tmp_path / "fresh")
    assert merged(state[1:], tmp_path / "merged") == files(tmp_path / "fresh")


def test_the_blocks_of_texts_depend_on_the_documents_alone_not_on_the_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_BLOCK_BYTES", 400)
    monkeypatch.setattr(documents, "MIN_BLOCK", 250)
    monkeypatch.setattr(documents, "BLOCK_END_FRACTION", 1 << 30)
    monkeypatch.setattr(build, "READ_SIZE", 1)
    docs = [Doc(f"d{n}", "x" * (n * 37 % 151 + n // 60 * 400)) for n in range(120)]
    expected: list[list[int]] = []  # the sizes of the documents in each block, by the rule in plain words
    for size in (len(doc.text) for doc in docs):
        marked = size * 0x9E3779B1 % 2**32 < 2**30
        if expected and sum(expected[-1]) + size <= 400 and not (marked and sum(expected[-1]) >= 250):
            expected[-1].append(size)
        else:
            expected.append([size])
    assert {len(block) for block in expected} >= {1, 4, 5, 6}
    assert any(sum(block) + after[0] <= 400 for block, after in pairwise(expected))
    for batch in (1, 64, 1_000, 1 << 20):
        monkeypatch.setattr(build, "BATCH", batch)
        segment = built(docs, tmp_path / str(batch))
        assert [block.sizes[:, 1].tolist() for _, block in segment.texts.blocks()] == expected
        assert files(tmp_path / str(batch)) == files(tmp_path / "1")


def test_blocks_that_come_out_alike_are_copied_and_not_compressed_again(tmp_path, monkeypatch):
    draw = np.random.default_rng(5)
    docs = [Doc(f"d{n}", f"w{n} " * int(draw.integers(20, 200))) for n in range(3000)]
    parts = [built(docs[:1000], tmp_path / "1"), built(docs[1000:2500], tmp_path / "2"), built(docs[2500:], tmp_path / "3")]
    built([docs[0], *docs[2:]], tmp_path / "fresh")
    sizes = []
    compress = documents.compressed
    monkeypatch.setattr(documents, "compressed", lambda text: (sizes.append(len(text)), compress(text))[1])
    state = leaves(parts, [[n == 1 for n in range(1000)], [False] * 1500, [False] * 500])
    assert merged(state, tmp_path / "merged") == files(tmp_path / "fresh")
    assert 0 < sum(sizes) < sum(len(doc.text) for doc in docs) / 3


def test_texts_that_an_older_version_packed_by_zlib_are_read_and_merged(tmp_path, monkeypatch):
    docs = [Doc(f"d{n}", f"w{n} " * (n % 90)) for n in range(900)]
    with monkeypatch.context() as patch:
        patch.setattr(documents, "compressed", lambda text: zlib.compress(text, 1))
        old = built(docs[:600], tmp_path / "old")
    assert old.texts.read(["d7"], [7]) == [docs[7]]
    state = leaves([old, built(docs[600:], tmp_path / "new")], [[n == 1 for n in range(600)], [False] * 300])
    merged(state, tmp_path / "merged")
    store = documents.DocumentStore(tmp_path / "merged", 899)
    rest = [docs[0], *docs[2:]]
    assert store.read([doc.id for doc in rest], range(899)) == rest
    store.check()


def test_other_lists_of_the_same_documents_are_merged_with_their_own_deletions(tmp_path):
    texts = [Doc(f"d{n}", f"common w{n % 4}") for n in range(20)]
    others = [Doc(f"d{n}", f"other common v{n % 3} v{n}") for n in range(20)]
    parts = [built(texts[a : a + 10], tmp_path / f"t{a}") for a in (0, 10)]
    lists = [built(others[a : a + 10], tmp_path / f"o{a}") for a in (0, 10)]
    dead = [n in (2, 3, 11) for n in range(20)]
    state = leaves(parts, [dead[:10], dead[10:]])
    built([doc for doc, gone in zip(others, dead, strict=True) if not gone], tmp_path / "fresh")
    (tmp_path / "merged").mkdir()
    with work(memory=1 << 20, threads=2):
        merge_lists([one.lists for one in lists], state, tmp_path / "merged")
    fresh = files(tmp_path / "fresh")
    assert files(tmp_path / "merged") == {name: fresh[name] for name in fresh if not name.startswith(("doc_ids", "text"))}


def test_progress_counts_the_documents(tmp_path):
    state = leaves([built([Doc("d1", "a"), Doc("d2", "b")], tmp_path / "1")], [[True, False]])
    lines = []
    (tmp_path / "merged").mkdir()
    with work(progress=lambda p: lines.append((p.done, p.total))):
        merge_segments(state, tmp_path / "merged")
    assert lines[-1] == (1, 1)
