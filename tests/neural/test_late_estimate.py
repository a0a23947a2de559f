"""Centroid interaction and estimates of MaxSim in integers, against plain numpy."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from support.each import each

from fontes.neural.late import estimate
from fontes.neural.late.estimate import Estimator, interaction, levels_of
from fontes.neural.late.maxsim import maxsim, padded
from fontes.neural.late.residual import Codec, kmeans, nearest


def unit(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    vectors = rng.standard_normal((rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Case:
    """A query, and documents of 1 to 30 tokens, compressed; document 3 has no tokens."""

    def __init__(self, tokens: int = 11, dim: int = 24, nbits: int = 4) -> None:
        rng = np.random.default_rng(3)
        lengths = rng.integers(1, 30, 40)
        lengths[3] = 0
        self.bounds = np.concatenate([[0], np.cumsum(lengths)])
        self.docs = np.arange(len(lengths))
        self.query, self.vectors = unit(rng, tokens, dim), unit(rng, int(self.bounds[-1]), dim)
        self.codec = Codec.fitted(kmeans(self.vectors, 32), self.vectors, nbits)
        self.codes = nearest(self.codec.centroids, self.vectors)
        self.residuals = self.codec.compress(self.vectors, self.codes)
        self.similarities = self.codec.centroids @ padded(self.query)
        self.levels = levels_of(self.similarities, tokens, -1)
        self.estimator = Estimator.of(self.codec, self.query, self.similarities, self.levels)

    def scores(self) -> np.ndarray:
        return self.estimator.scores(self.codes, self.residuals, self.bounds, self.docs)

    def expected(self, margin: int) -> np.ndarray:
        """Estimates by plain sums of products of the integers."""
        dim, estimator, per_byte = self.query.shape[1], self.estimator, 8 // self.codec.nbits
        values = estimator.values.T.copy().view(np.int16).reshape(256, per_byte)
        rows = values[self.residuals].reshape(len(self.codes), -1).astype(np.int64)
        columns = estimator.columns.transpose(0, 2, 1).reshape(rows.shape[1], -1).astype(np.int64)
        assert not columns[dim:].any()
        similarities = rows @ columns + estimator.similarities[self.codes]
        scores = []
        for a, b in itertools.pairwise(self.bounds):
            levels = self.levels[self.codes[a:b]].astype(int)[:, : len(self.query)]
            near = (levels >= levels.max(axis=0, initial=0) - margin).any(axis=1)
            scores.append(similarities[a:b][near][:, : len(self.query)].max(axis=0, initial=-(1 << 31)).sum())
        return np.array(scores)


def test_similarities_have_255_levels_from_minus_1_to_1() -> None:
    similarities = np.array([[-1.0, -0.999, 0, 1.0, 1.001, -1.001, 9]], dtype=np.float32)
    assert levels_of(similarities, 6, -1).tolist() == [[0, 0, 128, 255, 255, 0, *[0] * 26]]


@each("tokens", [1, 15, 16, 17, 32, 33, 70])
def test_centroid_interaction_is_the_sum_of_the_greatest_levels(tokens: int) -> None:
    case = Case(tokens)
    docs = np.array([3, 0, 39, 7, 7])
    expected = [
        case.levels[case.codes[case.bounds[d] : case.bounds[d + 1]]].max(axis=0, initial=0).astype(int).sum() for d in docs
    ]
    assert interaction(case.levels, tokens, case.codes, case.bounds, docs).tolist() == expected


def test_centroid_interaction_is_maxsim_of_the_centroids_but_for_rounding() -> None:
    case = Case()
    scores = interaction(case.levels, 11, case.codes, case.bounds, case.docs) / 127.5 - 11
    expected = maxsim(case.query, case.codec.centroids[case.codes], case.bounds)
    full = np.isfinite(expected)
    np.testing.assert_allclose(scores[full], expected[full], atol=11 / 255 + 1e-5)
    assert scores[3] == -11


def test_centroids_below_the_threshold_do_not_count() -> None:
    query, centroids = np.eye(4, dtype=np.float32)[:1], np.array([[0.9, 0, 0, 0], [0.3, 0, 0, 0]], dtype=np.float32)
    codes, bounds = np.array([0, 1, 1], dtype=np.int32), np.array([0, 2, 3])
    levels = levels_of(centroids @ padded(query), 1, 0.5)
    assert interaction(levels, 1, codes, bounds, np.array([0, 1])).tolist() == [242, 0]


def test_a_centroid_as_near_as_the_threshold_counts() -> None:
    similarities = np.full((1, 16), 0.5, dtype=np.float32)
    assert levels_of(similarities, 1, 0.5)[0, 0] == 191
    assert levels_of(similarities, 1, float(np.nextafter(np.float32(0.5), np.float32(1))))[0, 0] == 0


@each("nbits", [1, 2, 4])
@each("dim", [24, 30, 128])
@each("tokens", [1, 16, 17, 33, 70])
def test_estimates_are_the_sums_of_products_of_the_integers(nbits: int, dim: int, tokens: int) -> None:
    case = Case(tokens, dim, nbits)
    assert case.scores().tolist() == case.expected(estimate.MARGIN).tolist()


def test_tokens_that_are_not_near_are_left_out() -> None:
    case = Case(3)
    assert case.expected(estimate.MARGIN).tolist() != case.expected(255).tolist()


@each("nbits", [1, 2, 4])
def test_estimates_are_near_maxsim_of_the_stored_vectors(nbits: int) -> None:
    case = Case(nbits=nbits)
    exact = maxsim(case.query, case.codec.decompress(case.codes, case.residuals), case.bounds)
    full = np.isfinite(exact)
    estimates = case.scores() / case.estimator.unit
    assert np.corrcoef(estimates[full], exact[full])[0, 1] > {1: 0.6, 2: 0.85, 4: 0.97}[nbits]
    assert estimates[3] < estimates[full].min()


def test_the_greatest_buckets_do_not_overflow() -> None:
    """Vectors opposite to their centroid have the greatest residuals, of length 2."""
    centroids, weights = np.eye(2, dtype=np.float32), np.linspace(-2, 0, 16, dtype=np.float32)
    codec = Codec(centroids, (weights[1:] + weights[:-1]) / 2, weights)
    codes, query = np.array([0, 1, 0], dtype=np.int32), -centroids
    residuals = codec.compress(np.concatenate([-centroids, centroids[:1]]), codes)
    similarities = centroids @ padded(query)
    estimator = Estimator.of(codec, query, similarities, levels_of(similarities, 2, -1))
    scores = estimator.scores(codes, residuals, np.arange(4), np.arange(3)) / estimator.unit
    np.testing.assert_allclose(scores, [1, 1, -1], atol=0.001)


PROCESSOR = "import sys, hashlib; sys.path.insert(0, 'tests'); from neural.test_late_estimate import Case; \
print(hashlib.sha256(Case(33, 30).scores().tobytes()).hexdigest())"


@pytest.mark.slow
@pytest.mark.parametrize(("processor", "features"), [("generic", ""), ("haswell", "+avx,+avx2,+fma")])
def test_another_processor_estimates_the_same(processor: str, features: str) -> None:
    digests = []
    for variables in ({}, {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features}):
        done = subprocess.run(
            [sys.executable, "-c", PROCESSOR], env={**os.environ, **variables}, capture_output=True, text=True, check=True
        )
        digests.append(done.stdout)
    assert digests[0] == digests[1]
