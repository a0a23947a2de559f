"""The kernels of late interaction against plain numpy."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from support.each import each

from fontes.index.segment import Leaf
from fontes.neural.late.estimate import Estimator, interaction, levels_of
from fontes.neural.late.maxsim import best_tokens, maxsim, padded, products
from fontes.neural.late.residual import Codec, centroids_for, fit_buckets, kmeans, nearest
from fontes.neural.late.store import FACTS, JoinedTokens, TokenVectors, best, search_settings


def unit(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    vectors = rng.standard_normal((rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def case(tokens: int = 11, dim: int = 24, documents: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    bounds = np.concatenate([[0], np.cumsum(rng.integers(1, 14, documents))])
    return unit(rng, tokens, dim), unit(rng, int(bounds[-1]), dim), bounds


@each("tokens", [1, 15, 16, 17, 32])
@each("dim", [1, 24, 128])
def test_maxsim_is_the_sum_of_the_greatest_products(tokens: int, dim: int) -> None:
    query, vectors, bounds = case(tokens, dim)
    expected = [(query @ vectors[a:b].T).max(axis=1).sum() for a, b in itertools.pairwise(bounds)]
    np.testing.assert_allclose(maxsim(query, vectors, bounds), expected, rtol=1e-5, atol=1e-5)


def test_the_score_of_a_document_does_not_depend_on_the_documents_beside_it() -> None:
    query, vectors, bounds = case()
    together = maxsim(query, vectors, bounds)
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        assert maxsim(query, vectors[a:b], np.array([0, b - a]))[0] == together[i]


def test_a_document_without_tokens_scores_minus_infinity() -> None:
    query, vectors, _ = case()
    scores = maxsim(query, vectors[:3], np.array([0, 3, 3]))
    assert np.isfinite(scores[0])
    assert scores[1] == -np.inf


def test_the_best_tokens_add_up_to_the_score_bit_for_bit() -> None:
    query, vectors, bounds = case()
    scores = maxsim(query, vectors, bounds)
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        places, best = best_tokens(query, vectors[a:b])
        assert np.float32(sum(best.astype(float).tolist())) == scores[i]
        assert places.tolist() == np.argmax(query @ vectors[a:b].T, axis=1).tolist()


def test_of_equal_tokens_the_first_is_the_best() -> None:
    query = np.eye(4, dtype=np.float32)[:2]
    vectors = np.eye(4, dtype=np.float32)[[3, 1, 0, 1, 0, 2]]
    places, best = best_tokens(query, vectors)
    assert places.tolist() == [2, 1]
    assert best.tolist() == [1, 1]


@each("tokens", [1, 16, 17, 40])
def test_products_are_all_similarities(tokens: int) -> None:
    query, vectors, _ = case(tokens)
    out = np.empty((len(vectors), padded(query).shape[1]), dtype=np.float32)
    products(padded(query), vectors, out)
    np.testing.assert_allclose(out[:, :tokens], vectors @ query.T, atol=1e-6)


def test_the_effort_grows_with_the_depth_so_that_as_many_documents_are_left() -> None:
    assert {k: search_settings(k) for k in (1, 10, 11, 100, 1001, 1025, 5000)} == {
        1: (4, -1.0, 2048, 20),
        10: (4, -1.0, 2048, 20),
        11: (4, -1.0, 4096, 64),
        100: (4, -1.0, 4096, 200),
        1001: (4, -1.0, 4096, 1024),
        1025: (4, -1.0, 4100, 1025),
        5000: (4, -1.0, 20_000, 5000),
    }


def test_parameters_replace_the_defaults_and_at_most_a_quarter_gets_exact_scores() -> None:
    assert search_settings(10, 5, 0.5, 8) == (5, 0.5, 8, 2)
    assert search_settings(10, candidates=400) == (4, -1.0, 400, 20)


class Stored(TokenVectors):
    """Token vectors of which only the centroids of the tokens are known."""

    def __init__(self, centroids: np.ndarray, codes: np.ndarray, bounds: np.ndarray) -> None:
        self.codec = SimpleNamespace(centroids=centroids)  # type: ignore[assignment]
        self.codes, self.bounds = codes, bounds
        of_centroid = [
            np.unique(np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))[codes == c]) for c in range(len(centroids))
        ]
        self._lists = np.concatenate(of_centroid)
        self._list_bounds = np.concatenate([[0], np.cumsum(list(map(len, of_centroid)))])
        self.nbits, self.documents = 2, len(bounds) - 1
        self.meta = {**dict.fromkeys(FACTS), "nbits": 2, "digest": ""}

    @property
    def joined(self) -> JoinedTokens:
        """The same, as those of an index with one segment."""
        leaf = Leaf(SimpleNamespace(documents=self.documents))  # type: ignore[arg-type]
        return JoinedTokens([leaf], [self])


def plaid(store: Stored, query: np.ndarray, nprobe: int, threshold: float, ndocs: int) -> list[int]:
    """Figure 5 of the paper, stage by stage, in plain numpy; similarities from -1 to 1 have 255 levels."""
    similarities = store.codec.centroids @ query.T
    levels = np.floor((similarities + 1) * 127.5 + 0.5)
    of_document = [store.codes[a:b] for a, b in itertools.pairwise(store.bounds)]
    probed = np.argsort(-similarities, axis=0)[:nprobe].ravel()
    found = [d for d, codes in enumerate(of_document) if set(probed.tolist()) & set(codes.tolist())]
    for least, most in ((threshold, ndocs), (-np.inf, ndocs // 4)):
        near = similarities.max(axis=1) >= least
        kept = {d: of_document[d][near[of_document[d]]] for d in found}
        scores = {d: levels[codes].max(axis=0, initial=0).sum() for d, codes in kept.items()}
        found = sorted(sorted(found, key=lambda d: -scores[d])[:most])
    return found


@each("nprobe", [1, 3])
@each("ndocs", [8, 40, 100])
def test_the_candidates_are_those_of_the_stages_of_plaid(nprobe: int, ndocs: int) -> None:
    rng = np.random.default_rng(6)
    query, centroids = unit(rng, 5, 6), unit(rng, 40, 6)
    bounds = np.concatenate([[0], np.cumsum(rng.integers(2, 9, 300))])
    store = Stored(centroids, rng.integers(0, 40, int(bounds[-1])).astype(np.int32), bounds)
    found = {}
    for threshold in (-1.0, 0.4, 0.6, 0.8):
        found[threshold] = store.joined.candidates(query, nprobe, threshold, ndocs).tolist()
        assert found[threshold] == plaid(store, query, nprobe, threshold, ndocs)
        assert len(found[threshold]) == ndocs // 4
    assert len({tuple(docs) for docs in found.values()}) > 1, "the threshold makes a difference here"


def test_the_candidates_left_have_the_greatest_estimates() -> None:
    rng = np.random.default_rng(8)
    query, vectors = unit(rng, 5, 6), unit(rng, 1600, 6)
    bounds = np.concatenate([[0], np.sort(rng.choice(np.arange(1, 1600), 299, replace=False)), [1600]])
    codec = Codec.fitted(kmeans(vectors, 40), vectors, 2)
    store = Stored(codec.centroids, nearest(codec.centroids, vectors), bounds)
    store.codec, store.residuals = codec, codec.compress(vectors, store.codes)
    quarter = store.joined.candidates(query, 3, 0.4, 100)
    assert len(quarter) == 25
    similarities = codec.centroids @ padded(query)
    estimator = Estimator.of(codec, query, similarities, levels_of(similarities, len(query), -1))
    scores = estimator.scores(store.codes, store.residuals, store.bounds, quarter)
    for count in (1, 7, 24):
        expected = sorted(quarter[np.argsort(-scores, kind="stable")[:count]].tolist())
        assert store.joined.candidates(query, 3, 0.4, 100, count).tolist() == expected
    by_centroids = interaction(levels_of(similarities, len(query), -1), len(query), store.codes, store.bounds, quarter)
    assert np.argmax(scores) != np.argmax(by_centroids), "residuals make a difference here"
    for count in (25, 30, None):
        assert store.joined.candidates(query, 3, 0.4, 100, count).tolist() == quarter.tolist()


@pytest.mark.parametrize("k", [1024, 1025, 1300])
def test_a_search_for_more_than_1024_documents_finds_as_many(k: int) -> None:
    rng = np.random.default_rng(9)
    query, centroids = unit(rng, 4, 6), unit(rng, 8, 6)
    bounds = np.arange(0, 3 * 1500 + 1, 3)
    store = Stored(centroids, rng.integers(0, 8, int(bounds[-1])).astype(np.int32), bounds)
    docs = store.joined.candidates(query, *search_settings(k))
    assert len(docs) == k
    # Scores in levels differ by rounding, and documents with the same centroids have the same score.
    similarities = centroids @ query.T
    scores = np.array([similarities[store.codes[a:b]].max(axis=0).sum() for a, b in itertools.pairwise(bounds)])
    np.testing.assert_allclose(np.sort(scores[docs])[::-1], np.sort(scores)[::-1][:k], atol=4 / 255)
    rank = rng.permutation(len(scores)).astype(np.uint32)
    everything = np.arange(len(scores))
    expected = sorted(everything.tolist(), key=lambda doc: (np.float32(scores[doc]), rank[doc]), reverse=True)[:k]
    assert best(everything, scores.astype(np.float32), rank, k).tolist() == expected


def test_so_few_documents_as_would_be_left_are_all_candidates() -> None:
    rng = np.random.default_rng(7)
    centroids, bounds = unit(rng, 9, 6), np.arange(11)
    store = Stored(centroids, np.arange(10, dtype=np.int32) % 9, bounds)
    assert store.joined.candidates(centroids[:1], 1, 0.5, 40).tolist() == list(range(10))
    assert store.joined.candidates(centroids[:1], 1, 0.5, 36).tolist() == [0, 9]


@each("nbits", [1, 2, 4])
@each("dim", [16, 30])
def test_residuals_come_back_as_the_value_of_their_bucket(nbits: int, dim: int) -> None:
    vectors = unit(np.random.default_rng(5), 600, dim)
    codec = Codec.fitted(kmeans(vectors, 16), vectors, nbits)
    assert codec.nbits == nbits
    codes = nearest(codec.centroids, vectors)
    packed = codec.compress(vectors, codes)
    assert packed.shape == (600, -(-dim * nbits // 8))
    residuals = vectors - codec.centroids[codes]
    # As ColBERT's codec: torch.bucketize puts a value into the bucket of the cutoffs below it.
    buckets = (residuals[:, :, None] > codec.cutoffs).sum(axis=2)
    expected = codec.centroids[codes] + codec.weights[buckets]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(codec.decompress(codes, packed), expected, atol=1e-6)


def test_more_bits_come_nearer_to_the_vectors() -> None:
    vectors = unit(np.random.default_rng(5), 2000, 32)
    centroids = kmeans(vectors, 32)
    codes, errors = nearest(centroids, vectors), []
    for nbits in (1, 2, 4):
        codec = Codec.fitted(centroids, vectors, nbits)
        errors.append(float(np.linalg.norm(codec.decompress(codes, codec.compress(vectors, codes)) - vectors, axis=1).mean()))
    assert errors[0] > errors[1] > errors[2]


def test_buckets_of_a_normal_distribution_are_those_of_least_squared_error() -> None:
    """Max (IRE Transactions on Information Theory, 1960, table I): bounds, values and error for 4 levels, the error for 16."""
    values = np.random.default_rng(5).standard_normal(400_000)
    cutoffs, weights = fit_buckets(values, 4)
    np.testing.assert_allclose(cutoffs, [-0.9816, 0, 0.9816], atol=0.01)
    np.testing.assert_allclose(weights, [-1.510, -0.4528, 0.4528, 1.510], atol=0.01)
    for count, error in ((4, 0.1175), (16, 0.009497)):
        cutoffs, weights = fit_buckets(values, count)
        assert np.mean((values - weights[np.searchsorted(cutoffs, values)]) ** 2) == pytest.approx(error, rel=0.03)


def test_values_that_are_fewer_than_the_buckets_are_among_the_buckets() -> None:
    cutoffs, weights = fit_buckets(np.repeat([-1.0, 0.0, 2.5], 7), 16)
    assert set(weights[np.searchsorted(cutoffs, [-1.0, 0.0, 2.5])].tolist()) == {-1.0, 0.0, 2.5}


def test_kmeans_finds_groups_that_lie_apart_and_gives_the_same_each_time() -> None:
    rng = np.random.default_rng(0)
    middles = np.eye(8, dtype=np.float32)
    vectors = np.repeat(middles, 50, axis=0) + 0.02 * rng.standard_normal((400, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    centroids = kmeans(vectors, 40)
    np.testing.assert_array_equal(centroids, kmeans(vectors, 40))
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1, atol=1e-5)
    assert (vectors @ centroids.T).max(axis=1).min() > 0.98


def test_the_number_of_centroids_is_a_power_of_two_near_four_roots() -> None:
    assert [centroids_for(tokens) for tokens in (0, 1, 1000, 1_200_000)] == [4, 4, 128, 4096]
