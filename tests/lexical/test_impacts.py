"""The pruned search against plain sums; packed lists, and the weights of other models."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.each import each
from support.examples import up_to
from support.small import small_chunks

from fontes import Index, Topic
from fontes.core import IndexFormatError
from fontes.index import packing
from fontes.index.packed_kernels import BINS, WINDOW
from fontes.index.packing import TfLengthCodes
from fontes.lexical import impacts
from fontes.lexical.bm25 import BM25Weighting
from fontes.lexical.searching import bags_of
from fontes.lexical.weighting import Statistics, saturation_of
from fontes.storage.compiled import load

TOPICS = {"1": "w1 w2 w9", "2": "w1"}


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """4,000 documents of words with Zipf's frequencies: some in half of the documents, some in one; lengths vary by block."""
    draws = np.random.default_rng(7)
    docs = []
    for number in range(4000):
        size = int(draws.integers(1, 12 if number // 500 % 2 else 60))
        words = np.minimum(draws.zipf(1.3, size), 3000)
        docs.append((f"{number * 7919 % 4001:04}", " ".join(f"w{w}" for w in words)))
    return Index.build(docs, tmp_path_factory.mktemp("impacts") / "c.index", analyzer="whitespace")


def part_of(index):
    """The only segment of an index."""
    (part,) = index.state.parts
    return part


def plain(index: Index, stage, topic: Topic) -> list[tuple[str, float]]:
    """All matching documents with their scores in the one order, without the kernel."""
    found = impacts.impacts_of(part_of(index), stage.weighting)
    _, (terms,), _, weights = bags_of(index.state.parts, stage.weighting, [topic.weights])
    bounds, docs, of_docs = found.unpacked(terms)
    sums: dict[int, float] = {}
    for term, weight in zip(terms.tolist(), weights.tolist(), strict=True):
        for at in range(bounds[term], bounds[term + 1]):
            doc = int(docs[at])
            sums[doc] = sums.get(doc, 0.0) + weight * float(of_docs[at])
    scored = [(index.ids[doc], float(np.float32(value))) for doc, value in sums.items()]
    return sorted(sorted(scored, reverse=True), key=lambda pair: -pair[1])


@settings(max_examples=up_to(60), deadline=None)
@given(
    words=st.lists(st.integers(1, 60) | st.integers(1, 3000), min_size=1, max_size=12),
    k=st.sampled_from([1, 3, 10, 11, 100, 1000, 2500]),
    model=st.sampled_from(["lucene", "plus", "robertson", "tfidf"]),
    sign=st.sampled_from([1.0, 1.0, -1.0]),
)
def test_the_best_k_are_those_of_plain_sums(collection, words, k, model, sign):
    stage = collection.tfidf(k=k) if model == "tfidf" else collection.bm25(variant=model, k=k)
    weights = {f"w{w}": sign * (1 + i % 3) for i, w in enumerate(words)}
    topic = Topic("1", "", weights=weights)
    assert [(h.id, h.score) for h in stage(topic)["1"]] == plain(collection, stage, topic)[:k]


def test_long_lists_have_rows_of_bounds_and_know_where_their_windows_begin(collection):
    found = impacts.impacts_of(part_of(collection), collection.bm25().weighting)
    bounds_of = found.bounds
    assert len(bounds_of.rows) > 3
    every = np.arange(len(bounds_of.best))
    starts, all_docs, all_weights = found.unpacked(every)
    greatest = found.idfs(every) * bounds_of.best
    for term in np.flatnonzero(found.lists.row_of >= 0).tolist():
        part = slice(int(starts[term]), int(starts[term + 1]))
        docs, weights = all_docs[part], all_weights[part]
        bounds = bounds_of.rows[found.lists.row_of[term]][docs // 64] * greatest[term] / 255
        assert np.all(weights <= bounds * (1 + 1e-6))
        assert np.all(bounds <= greatest[term] * (1 + 1e-6))
        for depth, k in enumerate((10, 100, 1000)):
            least = bounds_of.kth[term, depth] / (BINS - 1) * greatest[term] * (1 - 1e-6)
            assert np.count_nonzero(weights >= least) >= min(k, len(weights))
        windows = np.bincount(docs // WINDOW, minlength=found.lists.starts.shape[1] - 1)
        assert np.array_equal(np.diff(found.lists.starts[found.lists.row_of[term]]), windows)


def test_packed_postings_keep_documents_and_weights(collection):
    terms = np.arange(len(collection.state.terms))
    for stage in (collection.bm25(), collection.bm25(variant="plus"), collection.bm25(lengths="lucene"), collection.bm25("l")):
        found = impacts.impacts_of(part_of(collection), stage.weighting)
        docs, weights = impacts.weighted_postings(part_of(collection), stage.weighting, terms)
        bounds, own_docs, own_weights = found.unpacked(terms)
        assert np.array_equal(own_docs, docs)
        assert np.array_equal(own_weights, weights)
        assert (found.curve is None) == (stage.weighting.variant == "l")
        assert len(found.weights) == (bounds[-1] if found.curve is None else 0)


def test_statistics_of_an_index_are_those_of_its_present_state(tmp_path):
    index = Index.build([("a", "x y")], tmp_path / "x.index")
    assert Statistics.of(index).documents == 1
    index.add([("b", "x")])
    statistics = Statistics.of(index)
    assert (statistics.documents, statistics.df.tolist(), statistics.lengths.tolist()) == (2, [2, 1], [2, 1])


class Doubled(BM25Weighting):
    """BM25 with a method of its own."""

    def postings(self, statistics, postings):
        return 2 * super().postings(statistics, postings)


def test_a_class_that_may_change_bm25s_weights_inherits_no_function_of_tf_and_length(collection):
    terms = np.arange(len(collection.state.terms))
    plain, doubled = (impacts.impacts_of(part_of(collection), cls.of("lucene")) for cls in (BM25Weighting, Doubled))
    assert plain.curve is not None
    assert doubled.curve is None
    assert saturation_of(Doubled.of("lucene"), Statistics.of(collection.state)) is None  # which phrases are weighed by
    assert doubled.unpacked(terms)[2] == pytest.approx(2 * plain.unpacked(terms)[2])


FEW_CODES = {"SHORT_BITS": 3, "LONG_BITS": 3}
LONG_CODES = {"SHORT_BITS": 3}
LIMITS = [
    FEW_CODES,
    LONG_CODES,
    {"WORD": 14},
    {**LONG_CODES, "WORD": 13},
    {"PAIRS": 400},
    {"MAX_CODED_LENGTH": 50},
    {"MIN_CODED": 1.1},
]


@pytest.fixture(scope="module")
def expected(collection):
    """The runs of topics whose terms count for a document or against it."""
    return {(sign, k): collection.bm25(k=k)(signed(sign)) for sign in (1.0, -1.0) for k in DEPTHS}


DEPTHS = (10, 200, 3000)
LONGEST = "w1 w2 w9 w40 w41 w1500"


def signed(sign: float) -> list[Topic]:
    texts = ("w7", "w1", LONGEST, "w3 w4", "w2000 w1 w60")
    return [Topic(text, "", weights=dict.fromkeys(text.split(), sign)) for text in texts]


@each("limits", LIMITS)
def test_postings_with_codes_of_any_length_are_summed_alike(collection, expected, tmp_path, monkeypatch, limits):
    for name, limit in {"MIN_CODED": 0.0, **limits}.items():
        monkeypatch.setattr(packing, name, limit)
    index = Index.build(collection.docs(collection.ids.tolist()), tmp_path / "limited.index", analyzer="whitespace")
    found = impacts.impacts_of(part_of(index), index.bm25().weighting)
    bits, has_rest, width = found.lists.widths.tolist()
    assert (bits < 3) == ("WORD" in limits)
    assert (found.curve is None) == ("MAX_CODED_LENGTH" in limits or "MIN_CODED" in limits) == (not found.lists.by_length)
    assert has_rest == len(found.lists.codes) / len(found.lists.docs) == ("WORD" in limits)
    assert width == (2 if "SHORT_BITS" in limits and "LONG_BITS" not in limits else 1)
    has_row = found.lists.row_of[found.lists.rest[0]] >= 0
    assert (0 < has_row.sum() < found.lists.bounds[-1]) == ("LONG_BITS" in limits or "PAIRS" in limits)
    for (sign, k), run in expected.items():
        topics = signed(sign)
        assert index.bm25(k=k)(topics) == run
        assert index.bm25(k=k).search(topics[2], k).scores.tolist() == run[LONGEST].scores.tolist()


def test_terms_are_processed_in_ranges_of_limited_postings(monkeypatch):
    small_chunks(monkeypatch, 5)
    df = [1, 2, 2, 7, 1, 1, 1, 1, 1, 1]
    assert list(packing.chunks(np.cumsum([0, *df]))) == [(0, 3), (3, 4), (4, 9), (9, 10)]


@pytest.fixture
def large(collection, tmp_path, monkeypatch):
    """A copy of the index that counts as large, so that a thread computes the weights of its postings."""
    monkeypatch.setattr(impacts, "MANY_POSTINGS", 1)
    shutil.copytree(collection.path, tmp_path / "large.index")
    return tmp_path / "large.index"


def threads() -> list[threading.Thread]:
    """Threads that compute weights."""
    return [thread for thread in threading.enumerate() if thread.name == "fontes-impacts"]


@pytest.mark.parametrize("model", ["tfidf", "ql"])
def test_a_search_does_not_wait_for_the_weights_that_a_thread_computes(collection, large, monkeypatch, model):
    topics = {"a": "w1 w2 w9", "b": "w3 w2500 w9 nothing", "c": "w1 w1 w40 w41 w42 w1"}
    with monkeypatch.context() as small:
        small.setattr(impacts, "MANY_POSTINGS", 1 << 40)
        expected = getattr(collection, model)(k=50)(topics)
    begin, complete = threading.Event(), impacts._complete
    monkeypatch.setattr(impacts, "_complete", lambda *a: begin.wait(60) and complete(*a))
    index = Index.open(large)
    stage = getattr(index, model)(k=50)
    for ready in (False, True):
        for name, text in topics.items():
            ranking = stage.search(text, 50)
            assert (ranking.ids, ranking.scores.tolist()) == (expected[name].ids, expected[name].scores.tolist())
        assert len(threads()) == (0 if ready else 1)
        begin.set()
        for thread in threads():
            thread.join()


def test_a_search_by_bm25_of_a_large_index_computes_no_weights_and_starts_no_thread(large, monkeypatch):
    load()
    monkeypatch.setattr(impacts, "bound_terms", lambda *a: pytest.fail("bounds are computed"))
    index = Index.open(large)
    for stage in (index.bm25(), index.bm25(k1=1.5, b=0.75), index.bm25(variant="plus")):
        assert stage.search("w1 w2", 5).ids
    assert not threads()


def test_a_search_does_not_wait_while_a_thread_computes_the_weights(large, monkeypatch):
    load()
    begun, go_on, weighted = threading.Event(), threading.Event(), impacts._weighted
    monkeypatch.setattr(impacts, "_weighted", lambda *a: begun.set() or (go_on.wait(60) and weighted(*a)))
    stage = Index.open(large).tfidf()
    first = stage.search("w1 w2", 5)
    assert begun.wait(60)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(stage.search, "w1 w2", 5)
        try:
            assert second.result(timeout=20).ids == first.ids
        finally:
            go_on.set()


def test_searches_work_if_no_thread_can_compute_impacts(large, monkeypatch):
    load()

    def fail(*a):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    reported: list[object] = []
    monkeypatch.setattr(impacts, "_weighted", fail)
    monkeypatch.setattr(threading, "excepthook", reported.append)
    stage = Index.open(large).tfidf()
    first = stage.search("w1 w2", 5)
    for thread in threads():
        thread.join()
    assert stage.search("w1 w2", 5).ids == first.ids
    assert not reported


def test_lists_that_begin_elsewhere_are_damage(large):
    """Two terms' numbers of documents in each other's place: all sums are as they were."""
    file = next(large.glob("segment-*/df.npy"))
    df = np.load(file)
    places = np.flatnonzero(df == 2)[0], np.flatnonzero(df == 1)[0]
    df[list(places)] = df[list(places[::-1])]
    np.save(file, df)
    with pytest.raises(IndexFormatError, match="damaged"):
        Index.open(large).bm25()(TOPICS)


def test_counts_that_give_weights_that_are_not_finite_are_damage_and_no_crash(large):
    file = next(large.glob("segment-*/doc_lengths.npy"))
    lengths = np.load(file)
    lengths[0], lengths[1] = 0, lengths[0] + lengths[1]
    np.save(file, lengths)
    with pytest.raises(IndexFormatError, match=r"large\.index.*weights that are not finite"), np.errstate(all="ignore"):
        Index.open(large).ql(smoothing="jelinek-mercer")(TOPICS)


def test_an_index_keeps_the_impacts_of_the_last_few_models(collection):
    index = Index.open(collection.path)
    for k1 in range(1, 9):
        index.bm25(k1=k1)(TOPICS)
    assert len(impacts._MODELS.of(index.state.parts[0])) == impacts.MAX_MODELS


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_index_that_cannot_be_written_is_searched_all_the_same(large):
    large.chmod(0o500)
    assert Index.open(large).bm25()(TOPICS)["1"].ids


def test_codes_are_of_the_most_frequent_pairs_that_a_table_has(monkeypatch):
    monkeypatch.setattr(packing, "PAIRS", 12)  # tf of 0 to 3 for each of three lengths
    lengths = np.array([5, 9, 5, 7, 9], dtype=np.int32)
    codes = TfLengthCodes(lengths, True)
    docs, tf = np.array([0, 2, 0, 1, 3, 3, 4, 1], dtype=np.int32), np.array([1, 1, 2, 3, 4, 3, 3, 3], dtype=np.int32)
    codes.count(docs, tf)
    pairs = list(zip(*codes.pairs.tolist(), strict=True))
    assert pairs[0] == (0, 0)
    assert pairs[1] == (3, 9)  # three postings
    assert set(pairs[2:]) == {(1, 5), (2, 5), (3, 7)}
    assert pairs[2] == (1, 5)  # two
    assert [pairs[code] for code in codes.of(docs, tf).tolist()] == [
        (1, 5),
        (1, 5),
        (2, 5),
        (3, 9),
        (0, 0),  # tf 4 has no cell
        (3, 7),
        (3, 9),
        (3, 9),
    ]
    assert codes.covered == 7 / 8


def test_postings_have_weights_of_their_own_where_few_pairs_have_a_code(tmp_path, monkeypatch):
    docs = [("a", "tea tea milk"), ("b", "tea"), ("c", "milk")]
    expected = Index.build(docs, tmp_path / "coded").bm25()({"1": "tea milk"})
    monkeypatch.setattr(packing, "MIN_CODED", 1.1)
    index = Index.build(docs, tmp_path / "uncoded")
    found = impacts.impacts_of(part_of(index), index.bm25().weighting)
    assert found.curve is None
    assert len(found.weights) == found.lists.bounds[-1] == 4
    assert index.bm25()({"1": "tea milk"}) == expected
