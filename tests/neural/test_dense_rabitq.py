"""RaBitQ codes: the paper's estimator by definition, without bias, the same for any shape and history."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.counting_encoder import COUNT, Counting, Several, copied, plain as plain, small_blocks as small_blocks
from support.examples import up_to
from support.hashed_encoder import Hashed, Parts, made_docs, queries

from fontes.core import IndexFormatError
from fontes.index import Index
from fontes.index.embeddings import rabitq
from fontes.index.embeddings.rabitq import BITS
from fontes.index.embeddings.vectors import KIND
from fontes.neural.dense.codes import multiply_codes, rounding_error
from fontes.storage.artifact import read_meta, seal, settings as facts_of

DIMS = st.sampled_from([8, 12, 63, 64, 65, 100, 128, 200, 384])


def draws(seed: int, rows: int, dim: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


def matrix(dim: int) -> np.ndarray:
    """The rotation by its definition, with matrices: (padded, padded)."""
    size = rabitq.padded(dim)
    part = 1 << (size.bit_length() - 1)
    raw = hashlib.shake_256(f"fontes rabitq {size}".encode()).digest(size // 2)
    signs = 1 - 2.0 * np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little").reshape(4, size)
    hadamard = np.ones((1, 1))
    while len(hadamard) < part:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]]) / np.sqrt(2)
    half = np.eye(size // 2)
    kac = np.block([[half, half], [half, -half]]) / np.sqrt(2) if part < size else np.eye(size)
    whole = np.eye(size)
    for turn in range(4):
        step, start = np.eye(size), 0 if turn % 2 == 0 else size - part
        step[start : start + part, start : start + part] = hadamard
        whole = kac @ step @ np.diag(signs[turn]) @ whole
    return whole


@pytest.mark.parametrize("dim", [8, 64, 100, 128, 200, 384])
def test_the_rotation_is_that_of_its_definition_and_keeps_products(dim: int) -> None:
    rows, whole = draws(dim, 20, dim), matrix(dim)
    np.testing.assert_allclose(whole @ whole.T, np.eye(len(whole)), atol=1e-12)
    np.testing.assert_allclose(rabitq.rotated(rows), rows.astype(np.float64) @ whole[:, :dim].T, atol=1e-12)
    np.testing.assert_allclose(rabitq.rotated_back(rabitq.rotated(rows), dim), rows, rtol=1e-6)


def test_the_rotation_never_changes() -> None:
    made = np.round(rabitq.rotated(np.eye(100)), 9) + 0.0
    assert hashlib.sha256(made.tobytes()).hexdigest()[:16] == "764b2fd3d230bbe8"


@settings(max_examples=up_to(30), deadline=None)
@given(st.integers(0, 2**32), DIMS, st.sampled_from([1, 2, 4]))
def test_a_code_is_the_grid_vector_with_the_greatest_cosine(seed: int, dim: int, bits: int) -> None:
    rows = draws(seed, 3, dim)
    codes, factors, lengths = rabitq.encoded(rows, bits)
    grid, full = rabitq.unpacked(codes, bits).astype(np.float64), rabitq.rotated(rows)
    assert codes.shape == (3, rabitq.padded(dim) * bits // 8)
    assert set(np.unique(grid)) <= set(range(1 - 2**bits, 2**bits, 2))
    assert np.all((grid > 0) == (full >= 0))
    np.testing.assert_allclose(factors, (full**2).sum(1) / (grid * full).sum(1), rtol=1e-6)
    np.testing.assert_allclose(lengths, np.linalg.norm(grid * factors[:, None].astype(np.float64), axis=1), rtol=1e-12)
    cosines = (grid * full).sum(1) / np.linalg.norm(grid, axis=1)
    for scale in np.linspace(0.05, 2.0**bits, 300) / np.abs(full).max(axis=1).mean():
        other = np.minimum(np.floor(np.abs(full) * scale), 2 ** (bits - 1) - 1) * 2 + 1
        assert np.all((other * np.abs(full)).sum(1) / np.linalg.norm(other, axis=1) <= cosines * (1 + 1e-12))


@settings(max_examples=up_to(20), deadline=None)
@given(st.integers(0, 2**32), DIMS, st.sampled_from([1, 2, 4]), st.integers(1, 9))
def test_quick_products_of_codes_are_those_of_numpy(seed: int, dim: int, bits: int, count: int) -> None:
    codes, factors, lengths = rabitq.encoded(draws(seed, count, dim), bits)
    asked, out = rabitq.rotated(draws(seed + 1, 2, dim)).astype(np.float32), np.empty((2, count), np.float32)
    multiply_codes(asked, codes, factors, bits, out)
    expected = asked.astype(np.float64) @ (rabitq.unpacked(codes, bits) * factors[:, None].astype(np.float64)).T
    unit = (asked.shape[1] + 8) * 2.0**-24
    rounded = np.array([[rounding_error(query, float(length), bits) for length in lengths] for query in asked])
    assert np.all(np.abs(out - expected) <= unit * np.linalg.norm(asked, axis=1)[:, None] * lengths + rounded)
    assert rounded.max() <= 1e-3 * np.linalg.norm(asked, axis=1).max() * lengths.max()


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_the_estimator_has_no_bias(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # One pair of vectors under many rotations.
    pair = draws(5, 2, 96)
    pair[1] += pair[0]
    true, estimates = float(pair[0].astype(np.float64) @ pair[1].astype(np.float64)), []
    for seed in range(2_000):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (4, 128))
        monkeypatch.setattr(rabitq, "signs_of", lambda size, signs=signs: signs)
        codes, factors, _ = rabitq.encoded(pair[:1], bits)
        estimates.append(float(factors[0] * (rabitq.unpacked(codes, bits)[0] @ rabitq.rotated(pair[1:])[0])))
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert error < 0.01 * true
    assert abs(np.mean(estimates) - true) < 4 * error


def test_more_bits_estimate_better() -> None:
    rows, asked = draws(1, 500, 128), draws(2, 1, 128)
    true = rows.astype(np.float64) @ asked[0].astype(np.float64)
    errors = []
    for bits in (1, 2, 4):
        codes, factors, _ = rabitq.encoded(rows, bits)
        errors.append(np.std(rabitq.unpacked(codes, bits) @ rabitq.rotated(asked)[0] * factors - true))
    assert errors[0] > 1.9 * errors[1] > 5 * errors[2]


def test_vectors_of_any_length_have_codes_and_zeros_have_none() -> None:
    row = draws(3, 1, 40)
    plain_codes = rabitq.encoded(row, 4)
    for power in (-100, -20, 20, 40):
        codes, factors, _ = rabitq.encoded(np.ldexp(row, power), 4)
        assert np.array_equal(codes, plain_codes[0])
        assert factors[0] == np.ldexp(plain_codes[1][0], power)
    for bits in (1, 2, 4):
        _, factors, lengths = rabitq.encoded(np.zeros((1, 40), np.float32), bits)
        assert factors[0] == lengths[0] == 0


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    made = Index.build(made_docs(), tmp_path_factory.mktemp("rabitq") / "x", analyzer="whitespace")
    for dtype in ("float32", *BITS):
        made.encode(Hashed(), dtype=dtype)
    return made


@pytest.mark.parametrize("dtype", BITS)
def test_a_score_is_the_estimator_of_the_stored_code_in_float64(index: Index, dtype: str) -> None:
    dense, stored = index.dense(Hashed(), dtype=dtype, k=25), index.embeddings(Hashed(), dtype).shares[0].embeddings
    grid, full = rabitq.unpacked(stored.vectors, BITS[dtype]), rabitq.rotated(Hashed().encode_documents(index.docs(index.ids)))
    some, ids = stored.norms > 0, np.array(index.ids.tolist())
    factors = np.zeros(len(full), np.float32)
    factors[some] = (full[some] ** 2).sum(1) / (full[some] * grid[some]).sum(1)
    np.testing.assert_array_equal(stored.scales, factors)
    run = dense(queries())
    for topic, text in queries().items():
        asked = rabitq.rotated(Hashed().encode_queries([text])).astype(np.float32)[0].astype(np.float64)
        scores = (factors * (grid.astype(np.float64) @ asked)).astype(np.float32)
        best = sorted(zip(scores[some], ids[some].tolist(), strict=True), reverse=True)[:25]
        np.testing.assert_allclose(run[topic].scores, [score for score, _ in best], rtol=1e-6, atol=1e-7)
        found = dict(zip(index.ids.tolist(), scores, strict=True))
        np.testing.assert_allclose(run[topic].scores, [found[doc] for doc in run[topic].ids], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", BITS)
def test_every_way_to_a_score_gives_the_same_one(index: Index, dtype: str) -> None:
    pytest.importorskip("faiss")
    dense = index.dense(Hashed(), dtype=dtype, k=20)
    run, topics = dense(queries()), list(queries())[:8]
    assert dense.candidate_scores(run).tobytes() == run.scores.tobytes()
    for algorithm in ("Flat", "hnsw"):
        near = dense.with_(algorithm=algorithm, threads=1)(queries())
        assert near == run if algorithm == "Flat" else dense.candidate_scores(near).tobytes() == near.scores.tobytes()
    for topic in topics:
        explained = dense.explain(queries()[topic], run[topic].ids[0])
        assert np.float32(explained.value) == run[topic].scores[0]
        length, other, cosine = (part.value for part in explained.parts[:3])
        assert length * other * cosine == pytest.approx(explained.value)


def test_codes_of_an_encoder_or_of_its_full_vectors_are_the_same(tmp_path: Path, plain: Path) -> None:
    for encoder in (Counting(), Several(fingerprint="several")):
        (tmp_path / encoder.fingerprint).mkdir()
        at_once, later = (copied(plain, tmp_path / encoder.fingerprint / name) for name in "ab")
        Index.open(later).encode(encoder)
        for dtype in BITS:
            made = []
            for path in (at_once, later):
                opened = Index.open(path)
                opened.encode(encoder, dtype=dtype)
                folder = opened.embeddings(encoder, dtype).shares[0].embeddings.folder
                made.append({file.name: file.read_bytes() for file in folder.iterdir()})
            assert made[0] == made[1]
            Index.open(at_once).check(deep=True)
        assert Index.open(later).embeddings(encoder).dtype == "float32"
        assert Index.open(at_once).embeddings(encoder).dtype == "rabitq4"


def test_codes_take_bits_and_two_numbers_a_vector(tmp_path: Path, plain: Path) -> None:
    opened, encoder = Index.open(copied(plain, tmp_path)), Counting(dim=384)
    for dtype, bits in BITS.items():
        opened.encode(encoder, dtype=dtype)
        stored = opened.embeddings(encoder, dtype).shares[0].embeddings
        assert stored.vectors.nbytes == COUNT * 384 * bits // 8
        assert stored.dim == 384
        assert opened.info()["vectors"][-1]["dim"] == 384


@pytest.mark.parametrize("file", ["vectors.npy", "norms.npy", "scales.npy", "bounds.npy"])
def test_damaged_codes_are_found(tmp_path: Path, plain: Path, file: str) -> None:
    path = copied(plain, tmp_path)
    Index.open(path).encode(Several(), dtype="rabitq2")
    damaged = next(path.glob(f"segment-*/vectors-*-rabitq2-*/{file}"))
    raw = bytearray(damaged.read_bytes())
    raw[-20] ^= 1
    damaged.write_bytes(raw)
    with pytest.raises(IndexFormatError, match="encode again with overwrite=True"):
        Index.open(path).check()
    damaged.write_bytes(raw[:-8])
    with pytest.raises(IndexFormatError, match=file):
        Index.open(path).dense(Several()).search("d1")
    Index.open(path).encode(Several(), dtype="rabitq2")
    Index.open(path).check(deep=True)


def test_norms_that_do_not_fit_the_codes_are_found(tmp_path: Path, plain: Path) -> None:
    path = copied(plain, tmp_path)
    Index.open(path).encode(Counting(), dtype="rabitq4")
    folder = next(path.glob("segment-*/vectors-*-rabitq4-*"))
    scales = np.load(folder / "scales.npy")
    scales[3] *= 2
    np.save(folder / "scales.npy", scales)
    seal(folder, KIND, facts_of(read_meta(folder, KIND)), "*.npy")
    Index.open(path).check()
    with pytest.raises(IndexFormatError, match="its norms do not fit its vectors"):
        Index.open(path).check(deep=True)


def test_eight_dimensions_are_enough(tmp_path: Path, plain: Path) -> None:
    opened = Index.open(copied(plain, tmp_path))
    opened.encode(Counting(dim=8), dtype="rabitq1")
    assert len(opened.dense(Counting(dim=8)).search("d1", 100)) == COUNT


def test_full_vectors_rescore_candidates_of_codes(index: Index) -> None:
    full = index.dense(Hashed(), dtype="float32", k=10)
    run = index.dense(Hashed(), dtype="rabitq1", k=len(index))(queries())
    assert run.with_scores(full.candidate_scores(run)).top(10) == full(queries())


@pytest.mark.parametrize("dtype", BITS)
def test_the_best_of_several_vectors_gives_the_score(index: Index, dtype: str) -> None:
    encoder = Parts(dim=24)
    index.encode(encoder, dtype=dtype)
    stored = index.embeddings(encoder, dtype).shares[0].embeddings
    asked = rabitq.rotated(encoder.encode_queries(["w1 w2"])).astype(np.float32)[0].astype(np.float64)
    products = stored.scales * (rabitq.unpacked(stored.vectors, BITS[dtype]).astype(np.float64) @ asked)
    products[stored.norms == 0] = -np.inf
    best = np.maximum.reduceat(products, stored.bounds[:-1])
    ranking = index.dense(encoder, dtype=dtype).search("w1 w2", 30)
    np.testing.assert_allclose(ranking.scores, [best[index.ids.tolist().index(doc)] for doc in ranking.ids], rtol=1e-6)
    np.testing.assert_allclose(ranking.scores, np.sort(best)[::-1][:30], rtol=1e-6)
