"""The pruned search against plain sums, and the cache of impacts."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to

from fontes import Index, Topic
from fontes.core import IndexFormatError
from fontes.lexical import impacts, packed
from fontes.lexical.bm25 import BM25Weighting
from fontes.lexical.kernel import BINS, WINDOW
from fontes.lexical.packed import Codes
from fontes.lexical.searching import bags_of
from fontes.lexical.weighting import Statistics, saturation_of
from fontes.storage import caches
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


def plain(index: Index, stage, topic: Topic) -> list[tuple[str, float]]:
    """All matching documents with their scores in the one order, without the kernel."""
    found = impacts.impacts_of(index, stage.weighting)
    _, (terms,), _, weights = bags_of((index,), stage.weighting, stage._counts([topic]))
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
    found = impacts.impacts_of(collection, collection.bm25().weighting)
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


def test_postings_are_packed_and_unpacked_with_the_documents_and_weights_of_the_model(collection):
    terms = np.arange(len(collection.state.terms))
    for stage in (collection.bm25(), collection.bm25(variant="plus"), collection.bm25(lengths="lucene"), collection.bm25("l")):
        found = impacts.impacts_of(collection, stage.weighting)
        docs, weights = impacts.weighted_postings(collection, stage.weighting, terms)
        bounds, own_docs, own_weights = found.unpacked(terms)
        assert np.array_equal(own_docs, docs)
        assert np.array_equal(own_weights, weights)
        assert (found.curve is None) == (stage.weighting.variant == "l")
        assert len(found.weights) == (bounds[-1] if found.curve is None else 0)


class Doubled(BM25Weighting):
    """BM25 with a method of its own."""

    def postings(self, statistics, postings):
        return 2 * super().postings(statistics, postings)


def test_a_class_that_may_change_bm25s_weights_inherits_no_function_of_tf_and_length(collection):
    terms = np.arange(len(collection.state.terms))
    plain, doubled = (impacts.impacts_of(collection, cls.of("lucene")) for cls in (BM25Weighting, Doubled))
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
    {**LONG_CODES, "WORD": 12},
    {"PAIRS": 400},
    {"MAX_CODED_LENGTH": 50},
    {"MIN_CODED": 1.1},
]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_postings_with_codes_of_any_length_and_without_are_summed_alike(collection, monkeypatch, sign, limits):
    texts = ("w7", "w1", "w1 w2 w9 w40 w41 w1500", "w3 w4", "w2000 w1 w60")
    topics = [Topic(text, "", weights=dict.fromkeys(text.split(), sign)) for text in texts]
    depths = (10, 200, 3000)
    expected = [collection.bm25(k=k)(topics) for k in depths]
    for name, limit in {"MIN_CODED": 0.0, **limits}.items():
        monkeypatch.setattr(packed, name, limit)
    index = Index.open(collection.path)
    found = impacts.impacts_of(index, index.bm25().weighting)
    bits, has_rest, width = found.lists.widths.tolist()
    assert (bits == 0) == (found.curve is None or limits.get("WORD") == 12)
    assert (found.curve is None) == ("MAX_CODED_LENGTH" in limits or "MIN_CODED" in limits)
    assert has_rest == len(found.lists.codes) / len(found.lists.docs) == ("WORD" in limits)
    assert width == (0 if found.curve is None else 2 if "SHORT_BITS" in limits and "LONG_BITS" not in limits else 1)
    has_row = found.lists.row_of[found.lists.rest[0]] >= 0
    assert (0 < has_row.sum() < found.lists.bounds[-1]) == (
        found.curve is not None and ("LONG_BITS" in limits or "PAIRS" in limits)
    )
    assert [index.bm25(k=k)(topics) for k in depths] == expected
    assert [index.bm25(k=k).search(topics[2], k).scores.tolist() for k in depths] == [
        run[texts[2]].scores.tolist() for run in expected
    ]


def test_terms_are_worked_on_in_ranges_of_so_many_postings_or_one_by_one_where_they_have_more(monkeypatch):
    monkeypatch.setattr(impacts, "CHUNK_POSTINGS", 5)
    df = [1, 2, 2, 7, 1, 1, 1, 1, 1, 1]
    assert list(impacts.chunks(np.cumsum([0, *df]))) == [(0, 3), (3, 4), (4, 9), (9, 10)]


@pytest.fixture
def large(collection, tmp_path, monkeypatch):
    """A copy of the index that counts as large, so that its impacts are kept on disk, in a cache of its own."""
    monkeypatch.setattr(impacts, "MIN_STORED_POSTINGS", 1)
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    shutil.copytree(collection.path, tmp_path / "large.index")
    return tmp_path / "large.index"


def models(path) -> list[str]:
    """The names of what is kept of an index, which has nothing in its own folder."""
    assert {f.name.partition("-")[0] for f in path.iterdir()} == {"manifest.json", "segment"}
    return sorted(f.name for f in (caches.cache_folder() / "impacts").glob("*/*"))


def test_impacts_of_a_large_index_are_kept_and_used_again(large, monkeypatch):
    first = Index.open(large).bm25()(TOPICS)
    assert len(models(large)) == 2  # the lists and one model
    monkeypatch.setattr(impacts, "_weighted", lambda *a: pytest.fail("worked out again"))
    assert Index.open(large).bm25()(TOPICS) == first


@pytest.mark.parametrize("model", ["bm25", "tfidf", "ql"])
def test_a_search_does_not_wait_for_the_weights_of_a_large_index_which_a_thread_computes(collection, large, monkeypatch, model):
    topics = {"a": "w1 w2 w9", "b": "w3 w2500 w9 nothing", "c": "w1 w1 w40 w41 w42 w1"}
    with monkeypatch.context() as small:
        small.setattr(impacts, "MIN_STORED_POSTINGS", 1 << 40)
        expected = getattr(collection, model)(k=50)(topics)
    begin, complete = threading.Event(), impacts._complete
    monkeypatch.setattr(impacts, "_complete", lambda *a: begin.wait(60) and complete(*a))
    index = Index.open(large)
    stage = getattr(index, model)(k=50)
    for ready in (False, True):
        for name, text in topics.items():
            ranking = stage.search(text, 50)
            assert (ranking.ids, ranking.scores.tolist()) == (expected[name].ids, expected[name].scores.tolist())
        threads = [thread for thread in threading.enumerate() if thread.name == "fontes-impacts"]
        assert len(threads) == (0 if ready else 1)
        assert models(large) == [] or ready
        begin.set()
        for thread in threads:
            thread.join()
        assert len(models(large)) == 2  # the lists and one model


def test_a_search_does_not_wait_while_a_thread_computes_the_bounds(large, monkeypatch):
    load()
    begun, go_on, bound = threading.Event(), threading.Event(), impacts._bound
    monkeypatch.setattr(impacts, "_bound", lambda *a: begun.set() or (go_on.wait(60) and bound(*a)))
    stage = Index.open(large).bm25()
    first = stage.search("w1 w2", 5)
    assert begun.wait(60)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(stage.search, "w1 w2", 5)
        try:
            assert second.result(timeout=20).ids == first.ids
        finally:
            go_on.set()


def test_impacts_that_a_thread_cannot_compute_as_at_the_end_of_a_process_leave_searches_as_they_are(large, monkeypatch):
    load()

    def fail(*a):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    reported: list[object] = []
    monkeypatch.setattr(impacts, "_packed", fail)
    monkeypatch.setattr(threading, "excepthook", reported.append)
    stage = Index.open(large).bm25()
    first = stage.search("w1 w2", 5)
    for thread in threading.enumerate():
        if thread.name == "fontes-impacts":
            thread.join()
    assert stage.search("w1 w2", 5).ids == first.ids
    assert not reported


def test_impacts_that_are_worked_out_in_memory_are_not_kept_on_disk(large, monkeypatch):
    def zeros(index, lists, curve):
        return impacts._empty(impacts._bound_shapes(index, lists, curve))

    monkeypatch.setattr(impacts, "_bound", zeros)
    index = Index.open(large)
    with impacts.in_memory():
        with impacts.in_memory():
            impacts.impacts_of(index, index.bm25(k1=1.0).weighting)
        impacts.impacts_of(index, index.bm25(k1=1.1).weighting)
        assert models(large) == ["lists"]
    impacts.impacts_of(index, index.bm25(k1=1.2).weighting)
    assert len(models(large)) == 2


def test_impacts_that_are_truncated_or_gone_are_worked_out_again(large):
    first = Index.open(large).bm25()(TOPICS)
    for folder in (caches.cache_folder() / "impacts").glob("*/*"):
        for file in folder.iterdir():
            file.write_bytes(file.read_bytes()[:-3])
    assert Index.open(large).bm25()(TOPICS) == first
    shutil.rmtree(caches.cache_folder())
    assert Index.open(large).bm25()(TOPICS) == first


@pytest.mark.parametrize(
    "name", ["docs", "place_codes", "places", "starts", "pairs", "weights", "best", "kth", "positive", "rows"]
)
def test_impacts_with_a_flipped_bit_are_worked_out_again(large, name):
    model = "tfidf" if name == "weights" else "bm25"
    first = getattr(Index.open(large), model)()(TOPICS)
    (file,) = (caches.cache_folder() / "impacts").glob(f"*/*/{name}.npy")
    sound = file.read_bytes()
    for at in (128, (128 + len(sound)) // 2, len(sound) - 1):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 0x40]) + sound[at + 1 :])
        assert getattr(Index.open(large), model)()(TOPICS) == first
        assert file.read_bytes() == sound


def test_impacts_of_other_lists_of_postings_are_worked_out_again(large):
    """Two terms' numbers of documents in each other's place: all sums are as they were, the lists begin elsewhere."""
    Index.open(large).bm25()(TOPICS)
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


def test_the_cache_keeps_the_last_few_models(large):
    index = Index.open(large)
    for k1 in range(1, 9):
        index.bm25(k1=k1)(TOPICS)
    assert len(models(large)) == impacts.MAX_MODELS + 1
    assert len(impacts._MODELS.of(index.state.parts[0])) == impacts.MAX_MODELS


def test_a_new_index_in_the_place_of_an_old_one_does_not_use_its_impacts(large):
    Index.open(large).bm25()(TOPICS)
    index = Index.build([("a", "w1 w1"), ("b", "w1 w2")], large, analyzer="whitespace", overwrite=True)
    assert index.bm25()("w1 w2")["1"].ids == ["b", "a"]
    for thread in threading.enumerate():
        if thread.name == "fontes-impacts":
            thread.join()
    assert not any(name.startswith(".") for name in models(large))


def test_impacts_of_an_index_that_is_not_what_its_fingerprint_says_are_not_kept(large):
    sound = Index.open(large).bm25()(TOPICS)
    shutil.rmtree(caches.cache_folder())
    file = next(large.glob("segment-*/doc_lengths.npy"))
    lengths = np.load(file)
    assert lengths[0] != lengths[-1]
    lengths[[0, -1]] = lengths[[-1, 0]]
    np.save(file, lengths)  # the size, the sum and the fingerprint are still those of the manifest
    Index.open(large).bm25()(TOPICS)
    assert models(large) == []
    assert sound.provenance["fingerprint"] == Index.open(large).fingerprint


def test_the_impacts_of_the_indexes_used_longest_ago_go(large, tmp_path, monkeypatch):
    other = Index.build([("a", "w1 w1"), ("b", "w1 w2")], tmp_path / "other", analyzer="whitespace")
    Index.open(large).bm25()(TOPICS)
    for folder in (caches.cache_folder() / "impacts").iterdir():
        os.utime(folder, (1, 1))
    monkeypatch.setattr(impacts.CACHE, "limit", 1)
    other.bm25()(TOPICS)
    assert [f.name for f in (caches.cache_folder() / "impacts").iterdir()] == [other.base.fingerprint[:32]]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_index_that_cannot_be_written_is_searched_all_the_same(large):
    large.chmod(0o500)
    assert Index.open(large).bm25()(TOPICS)["1"].ids


def test_a_cache_that_cannot_be_written_is_no_error(large):
    caches.cache_folder().write_text("in the way")
    assert Index.open(large).bm25()(TOPICS)["1"].ids


def test_codes_are_of_the_most_frequent_pairs_that_a_table_has(monkeypatch):
    monkeypatch.setattr("fontes.lexical.packed.PAIRS", 12)  # tf of 0 to 3 for each of three lengths
    lengths = np.array([5, 9, 5, 7, 9], dtype=np.int32)
    codes = Codes(lengths)
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


def test_postings_have_weights_of_their_own_where_few_have_a_code(tmp_path, monkeypatch):
    index = Index.build([("a", "tea tea milk"), ("b", "tea"), ("c", "milk")], tmp_path / "i")
    expected = index.bm25()({"1": "tea milk"})
    monkeypatch.setattr("fontes.lexical.packed.PAIRS", 1)  # no tf has a cell
    again = Index.open(index.path)
    found = impacts.impacts_of(again, again.bm25().weighting)
    assert found.curve is None
    assert len(found.weights) == found.lists.bounds[-1] == 4
    assert again.bm25()({"1": "tea milk"}) == expected
