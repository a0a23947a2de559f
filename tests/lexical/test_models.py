"""Each model's scores are those of its formula, worked out here once more in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.examples import up_to

from fontes.core import Topic
from fontes.index import Index
from fontes.lexical.weighting import in_one_byte

PROPERTY = settings(
    deadline=None, max_examples=up_to(50, 10), database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = ["a", "b", "c", "d", "e", "ff", "é", "東"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join), min_size=1, max_size=12)
QUERIES = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6).map(" ".join)
K1, B = st.floats(0, 4), st.floats(0, 1)
WEIGHTS = st.floats(0.01, 5) | st.floats(-5, -0.01) | st.just(0.0)
Score = Callable[["Collection", str, int, int], float]


class Collection:
    """Bags of words, and what models know of them."""

    def __init__(self, texts: list[str]) -> None:
        self.bags = [Counter(text.split()) for text in texts]
        self.n = len(texts)
        self.df = Counter(term for bag in self.bags for term in bag)
        self.lengths = [bag.total() for bag in self.bags]
        self.avgdl = sum(self.lengths) / self.n


@pytest.fixture
def build(tmp_path_factory) -> Callable[[list[str]], Index]:
    def built(texts: list[str]) -> Index:
        docs = [(f"d{n % 5}{n}", text) for n, text in enumerate(texts)]
        return Index.build(docs, tmp_path_factory.mktemp("i") / "x", analyzer="whitespace", threads=1)

    return built


def expected(collection: Collection, query: dict[str, float], score: Score) -> dict[int, float]:
    """For each document with a term of the query the sum of the score of each term, times the term's query weight."""
    found: dict[int, float] = {}
    for term in sorted(query):
        for doc, bag in enumerate(collection.bags):
            if bag[term]:
                found[doc] = found.get(doc, 0.0) + query[term] * score(collection, term, bag[term], doc)
    return found


def agree(index: Index, retriever, query: str | Topic, wanted: dict[int, float], rounding: float = 1e-6) -> None:
    """The retriever gives just these documents, with these scores to float32 precision, in the one order."""
    ranking = retriever.search(query, 1000)
    scores = {index.ordinal(hit.id): hit.score for hit in ranking}
    assert scores.keys() == wanted.keys()
    for doc, score in wanted.items():
        assert scores[doc] == pytest.approx(score, rel=3e-7, abs=rounding), (doc, score)
    hits = [(hit.score, hit.id) for hit in ranking]
    assert hits == sorted(hits, reverse=True)
    assert [hit.rank for hit in ranking] == list(range(1, len(hits) + 1))
    assert ranking.scores.dtype == np.float32


def norm(c: Collection, doc: int, k1: float, b: float) -> float:
    return k1 * (1 - b + b * c.lengths[doc] / c.avgdl)


def lucene(k1: float, b: float) -> Score:
    return lambda c, term, tf, doc: (
        math.log(1 + (c.n - c.df[term] + 0.5) / (c.df[term] + 0.5)) * tf / (tf + norm(c, doc, k1, b))
    )


def robertson(k1: float, b: float) -> Score:
    return lambda c, term, tf, doc: (
        math.log((c.n - c.df[term] + 0.5) / (c.df[term] + 0.5)) * (k1 + 1) * tf / (tf + norm(c, doc, k1, b))
    )


def okapi(k1: float, b: float, epsilon: float) -> Score:
    def score(c: Collection, term: str, tf: int, doc: int) -> float:
        idf = {t: math.log((c.n - df + 0.5) / (df + 0.5)) for t, df in c.df.items()}
        mean = sum(idf.values()) / len(idf)
        return (idf[term] if idf[term] >= 0 else epsilon * mean) * (k1 + 1) * tf / (tf + norm(c, doc, k1, b))

    return score


def atire(k1: float, b: float) -> Score:
    return lambda c, term, tf, doc: math.log(c.n / c.df[term]) * (k1 + 1) * tf / (tf + norm(c, doc, k1, b))


def plus(k1: float, b: float, delta: float) -> Score:
    return lambda c, term, tf, doc: math.log((c.n + 1) / c.df[term]) * ((k1 + 1) * tf / (tf + norm(c, doc, k1, b)) + delta)


def bm25l(k1: float, b: float, delta: float) -> Score:
    def score(c: Collection, term: str, tf: int, doc: int) -> float:
        length_normalised = tf / (1 - b + b * c.lengths[doc] / c.avgdl) + delta
        return math.log((c.n + 1) / (c.df[term] + 0.5)) * (k1 + 1) * length_normalised / (k1 + length_normalised)

    return score


PLAIN = {"lucene": lucene, "robertson": robertson, "atire": atire}
DEFAULTS = {"okapi": okapi(1.5, 0.75, 0.25), "plus": plus(0.9, 0.4, 1.0), "l": bm25l(0.9, 0.4, 0.5)}


def counts(query: str) -> dict[str, float]:
    return {term: float(count) for term, count in Counter(query.split()).items()}


@PROPERTY
@given(TEXTS, QUERIES, K1, B, st.floats(0, 1), st.floats(0, 2))
def test_bm25_variants_equal_their_formulas_and_the_defaults_are_the_documented_ones(
    build, texts, query, k1, b, epsilon, delta
):
    index, c, bag = build(texts), Collection(texts), counts(query)
    for parameters, score in [
        *(({"variant": name}, formula(k1, b)) for name, formula in PLAIN.items()),
        ({"variant": "okapi", "epsilon": epsilon}, okapi(k1, b, epsilon)),
        *(({"variant": name, "delta": delta}, formula(k1, b, delta)) for name, formula in {"plus": plus, "l": bm25l}.items()),
    ]:
        agree(index, index.bm25(k1=k1, b=b, **parameters), query, expected(c, bag, score))
    agree(index, index.bm25(), query, expected(c, bag, lucene(0.9, 0.4)))
    for variant, score in {**{name: formula(0.9, 0.4) for name, formula in PLAIN.items()}, **DEFAULTS}.items():
        agree(index, index.bm25(variant=variant), query, expected(c, bag, score))


@PROPERTY
@given(TEXTS, st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=12).map(" ".join), st.floats(0, 10))
def test_k3_saturates_the_query_side(build, texts, query, k3):
    index, c = build(texts), Collection(texts)
    bag = {term: (k3 + 1) * qtf / (k3 + qtf) for term, qtf in counts(query).items()}
    agree(index, index.bm25(k3=k3), query, expected(c, bag, lucene(0.9, 0.4)))
    agree(index, index.bm25(variant="l", k3=k3), query, expected(c, bag, bm25l(0.9, 0.4, 0.5)))


def test_k3_of_none_counts_every_occurrence(build):
    index = build(["a b", "b"])
    assert index.bm25().search("a a a")[0].score == pytest.approx(3 * index.bm25().search("a")[0].score, rel=1e-6)
    assert index.bm25(k3=0).search("a a a")[0].score == index.bm25().search("a")[0].score


@PROPERTY
@given(TEXTS, QUERIES, st.sampled_from(["raw", "sublinear", "relative"]), st.booleans(), st.booleans())
def test_tfidf_equals_its_formula(build, texts, query, tf_kind, smooth, scaled):
    index, c = build(texts), Collection(texts)

    def weight(c: Collection, term: str, tf: int, doc: int) -> float:
        idf = math.log((1 + c.n) / (1 + c.df[term])) + 1 if smooth else math.log(c.n / c.df[term])
        return {"raw": tf, "sublinear": 1 + math.log(tf), "relative": tf / c.lengths[doc]}[tf_kind] * idf

    def score(c: Collection, term: str, tf: int, doc: int) -> float:
        if not scaled:
            return weight(c, term, tf, doc)
        row = math.sqrt(sum(weight(c, t, f, doc) ** 2 for t, f in c.bags[doc].items()))
        return weight(c, term, tf, doc) / row if row else 0.0

    bag = {term: count for term, count in counts(query).items() if term in c.df}
    if scaled and bag:
        length = math.sqrt(sum(count**2 for count in bag.values()))
        bag = {term: count / length for term, count in bag.items()}
    retriever = index.tfidf(
        sublinear_tf=tf_kind == "sublinear", relative_tf=tf_kind == "relative", smooth_idf=smooth, norm="l2" if scaled else None
    )
    agree(index, retriever, query, expected(c, bag, score))


@PROPERTY
@given(TEXTS, QUERIES, st.booleans())
def test_tfidf_rows_are_those_of_scikit_learn(build, texts, query, sublinear):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    index = build(texts)
    if not any(texts):
        return
    vectorizer = text.TfidfVectorizer(analyzer=str.split, smooth_idf=True, sublinear_tf=sublinear, norm="l2")
    matrix = vectorizer.fit_transform(texts)
    bag = np.zeros(matrix.shape[1])
    for term, count in Counter(query.split()).items():
        if term in vectorizer.vocabulary_:
            bag[vectorizer.vocabulary_[term]] = count
    scores = matrix @ (bag / np.linalg.norm(bag)) if bag.any() else np.zeros(len(texts))
    wanted = {doc: float(score) for doc, score in enumerate(scores) if score > 0}
    agree(index, index.tfidf(smooth_idf=True, sublinear_tf=sublinear), query, wanted)


@PROPERTY
@given(TEXTS, st.dictionaries(st.sampled_from([*WORDS, "unknown"]), WEIGHTS, max_size=5))
def test_the_weights_of_a_topic_replace_its_text(build, texts, weights):
    index, c = build(texts), Collection(texts)
    topic = Topic("t", "a b c", weights=weights)
    bag = {term: weight for term, weight in weights.items() if weight}
    agree(index, index.bm25(), topic, expected(c, bag, lucene(0.9, 0.4)), rounding=4e-6)


def test_a_floor_keeps_okapi_from_falling_below_zero_for_a_frequent_term(build):
    texts = ["a b", "a c", "a d", "e"]
    index, c = build(texts), Collection(texts)
    idf = {t: math.log((4 - df + 0.5) / (df + 0.5)) for t, df in c.df.items()}
    assert idf["a"] < 0
    explained = index.bm25(variant="okapi").explain("a", index.ids[0])
    assert explained.parts[0].parts[0].parts[0].value == pytest.approx(0.25 * sum(idf.values()) / len(idf))


def test_words_that_are_no_term_of_the_index_do_not_count_in_okapis_mean_idf(tmp_path):
    docs = [("1", "a b c"), ("2", "a b d"), ("3", "a b"), ("4", "e f")]
    c = Collection(["a_b b_c", "a_b b_d", "a_b", "e_f"])
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace+words:2-2", threads=1)
    found = {hit.id: hit.score for hit in index.bm25(variant="okapi").search("a b")}
    wanted = expected(c, {"a_b": 1.0}, okapi(1.5, 0.75, 0.25))
    assert found == pytest.approx({docs[doc][0]: score for doc, score in wanted.items()}, rel=1e-6)


@pytest.mark.parametrize("variant", ["robertson", "atire", "okapi"])
def test_matches_with_a_score_of_zero_or_less_are_returned(build, variant):
    index = build(["a", "a", "a b", "c"] if variant == "robertson" else ["a", "a", "a"])
    ranking = index.bm25(variant=variant, epsilon=1.0).search("a")
    assert len(ranking) == 3
    assert all(hit.score <= 0 for hit in ranking)
    hits = [(hit.score, hit.id) for hit in ranking]
    assert hits == sorted(hits, reverse=True)


def test_a_term_in_every_document_counts_little_but_counts(build):
    ranking = build(["a x", "a a y", "a z z"]).bm25().search("a")
    assert len(ranking) == 3
    assert all(hit.score > 0 for hit in ranking)
    assert build(["a x", "a a y"]).tfidf().search("a").scores.tolist() == [0.0, 0.0]


def test_k1_of_zero_counts_a_term_once_and_b_of_one_divides_by_the_whole_length(build):
    texts = ["a", "a a a b", "b b", "c", "c"]
    index, c = build(texts), Collection(texts)
    formulas = {name: formula(2, 1) for name, formula in PLAIN.items()}
    formulas |= {"okapi": okapi(2, 1, 0.25), "plus": plus(2, 1, 1.0), "l": bm25l(2, 1, 0.5)}
    for variant, formula in formulas.items():
        binary = {hit.score for hit in index.bm25(variant=variant, k1=0, b=1).search("a")}
        assert len(binary) == 1
        agree(index, index.bm25(variant=variant, k1=2, b=1), "a", expected(c, {"a": 1.0}, formula))


def small_float(length: int) -> int:
    """Lucene's SmallFloat: byte4ToInt(intToByte4(length)), after the Java code."""

    def long_to_int4(value: int) -> int:
        bits = value.bit_length()
        if bits < 4:
            return value
        shift = bits - 4
        return (value >> shift & 0x07) | (shift + 1) << 3

    def int4_to_long(value: int) -> int:
        bits, shift = value & 0x07, (value >> 3) - 1
        return bits if shift == -1 else (bits | 0x08) << shift

    free = 255 - long_to_int4(2**31 - 1)
    byte = length if length < free else free + long_to_int4(length - free)
    assert 0 <= byte < 256
    return byte if byte < free else free + int4_to_long(byte - free)


def test_lucenes_lengths_are_those_of_its_small_float():
    lengths = [*range(5_000), *(2**n + d for n in range(12, 31) for d in (-1, 0, 1, 23, 24, 25, 39, 40)), 2**31 - 1]
    found = in_one_byte(np.array(lengths, dtype=np.uint32)).tolist()
    assert found == [small_float(length) for length in lengths]
    assert len({small_float(length) for length in lengths}) > 140
    assert in_one_byte(np.array([7, 39, 255], dtype=np.uint8)).tolist() == [7, 39, small_float(255)]


@PROPERTY
@given(TEXTS, st.integers(1, 9), QUERIES)
def test_lengths_of_lucene_are_rounded_and_documents_without_terms_are_not_counted(build, texts, times, query):
    texts = [" ".join([text] * times) for text in texts]
    index, c = build(texts), Collection(texts)
    filled = [length for length in c.lengths if length]
    c.n = len(filled)
    c.avgdl = sum(filled) / len(filled) if filled else 0.0
    c.lengths = [small_float(length) for length in c.lengths]
    agree(index, index.bm25(lengths="lucene"), query, expected(c, counts(query), lucene(0.9, 0.4)))
    agree(index, index.bm25(lengths="lucene", variant="l"), query, expected(c, counts(query), bm25l(0.9, 0.4, 0.5)))


def dirichlet(mu: float) -> Score:
    def score(c: Collection, term: str, tf: int, doc: int) -> float:
        p = (sum(bag[term] for bag in c.bags) + 1) / (sum(c.lengths) + 1)
        return max(math.log(1 + tf / (mu * p)) + math.log(mu / (c.lengths[doc] + mu)), 0.0)

    return score


def jelinek_mercer(lambda_: float) -> Score:
    def score(c: Collection, term: str, tf: int, doc: int) -> float:
        p = (sum(bag[term] for bag in c.bags) + 1) / (sum(c.lengths) + 1)
        return math.log(1 + (1 - lambda_) * tf / c.lengths[doc] / (lambda_ * p))

    return score


@PROPERTY
@given(TEXTS, QUERIES, st.floats(0.5, 3000), st.floats(0.01, 0.99))
def test_query_likelihood_equals_its_formulas(build, texts, query, mu, lambda_):
    index, c = build(texts), Collection(texts)
    agree(index, index.ql(mu=mu), query, expected(c, counts(query), dirichlet(mu)))
    smoothed = index.ql(smoothing="jelinek-mercer", lambda_=lambda_)
    agree(index, smoothed, query, expected(c, counts(query), jelinek_mercer(lambda_)))
    agree(index, index.ql(), query, expected(c, counts(query), dirichlet(1000)))


def test_query_likelihood_with_lucenes_lengths_rounds_them(build):
    texts = [" ".join(["a"] * 30 + ["b"] * 33), "b c", "c " * 60]
    index, c = build(texts), Collection(texts)
    p = (30 + 1) / (sum(c.lengths) + 1)
    dl = small_float(63)
    assert dl < 63
    explained = index.ql(mu=10, lengths="lucene").explain("a", index.ids[0])
    assert explained.value == pytest.approx(math.log(1 + 30 / (10 * p)) + math.log(10 / (dl + 10)), rel=1e-6)
