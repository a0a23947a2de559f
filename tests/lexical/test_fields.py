"""Models over weighted fields: their scores are those of their formulas, worked out here once more in plain Python."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.each import each
from support.examples import up_to
from support.naive_queries import random_query

from fontes.cluster.shards import PartOfIndex
from fontes.core import Doc, Topic, Topics, expression
from fontes.core.query import AnyOf, Group, Phrase, Term
from fontes.index import Index
from fontes.index.field_statistics import FIELDS as COMPONENT
from fontes.lexical import Statistics
from fontes.lexical.bm25 import VARIANTS
from fontes.lexical.weighting import in_one_byte
from fontes.storage.compiled import load

PROPERTY = settings(
    deadline=None, max_examples=up_to(25), database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FIELDS = ("title", "text", "tags")
WORDS = ["a", "b", "c", "d", "é", "東"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
DOCS = st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=10)
QUERY = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=5).map(" ".join)
WEIGHT = st.floats(0.1, 8) | st.integers(1, 5)
WEIGHTS = st.dictionaries(st.sampled_from(FIELDS), WEIGHT, min_size=1)
B = st.floats(0, 1)
Bag = dict[str, Counter[str]]
Score = Callable[["Collection", str, Bag], float]


class Collection:
    """Bags of words by field, of the fields that have a weight, and what models know of them."""

    def __init__(self, texts: list[tuple[str, ...]], weights: Mapping[str, float]) -> None:
        self.weights = weights
        self.docs = [
            {field: Counter(text.split()) for field, text in zip(FIELDS, row, strict=True) if field in weights} for row in texts
        ]
        self.n = len(texts)
        self.df = Counter(term for doc in self.docs for term in set().union(*doc.values()))
        self.df_of = {field: Counter(term for doc in self.docs for term in doc[field]) for field in weights}
        self.cf_of = {field: sum((doc[field] for doc in self.docs), Counter()) for field in weights}

    def tokens(self, field: str) -> int:
        return self.cf_of[field].total()

    def scores(self, query: str, score: Score) -> dict[int, float]:
        """For each document that has a term of the query in these fields, the sum over the terms."""
        found: dict[int, float] = {}
        for term, count in sorted(Counter(query.split()).items()):
            for ordinal, doc in enumerate(self.docs):
                if any(bag[term] for bag in doc.values()):
                    found[ordinal] = found.get(ordinal, 0.0) + count * score(self, term, doc)
        return found


def length_part(b: float, dl: float, avgdl: float) -> float:
    return 1 - b + b * dl / avgdl


def bm25f(variant: str, k1: float, b: Any) -> Score:
    """Robertson, Zaragoza and Taylor (2004) with one b; Zaragoza et al. (2004) with one a field."""
    known = VARIANTS[variant]

    def score(c: Collection, term: str, doc: Bag) -> float:
        if isinstance(b, Mapping):
            length = 1.0
            tf = 0.0
            for field, weight in c.weights.items():
                if doc[field][term]:
                    dl = doc[field].total()
                    tf += weight * doc[field][term] / length_part(b[field], dl, c.tokens(field) / c.n)
        else:
            tf = sum(weight * doc[field][term] for field, weight in c.weights.items())
            dl = sum(weight * doc[field].total() for field, weight in c.weights.items())
            length = length_part(b, dl, sum(weight * c.tokens(field) for field, weight in c.weights.items()) / c.n)
        idf = known.idf(c.n, c.df[term])
        if known.floored and idf < 0:
            idf = 0.25 * np.mean([known.idf(c.n, df) for df in c.df.values()])
        return float(idf * known.tf_part(tf, length, k1, known.delta or 0.0))

    return score


def summed(variant: str, k1: float, b: Any) -> Score:
    """The weighted sum of the BM25 of each field."""
    known = VARIANTS[variant]

    def score(c: Collection, term: str, doc: Bag) -> float:
        total = 0.0
        for field, weight in c.weights.items():
            if tf := doc[field][term]:
                own = b[field] if isinstance(b, Mapping) else b
                length = length_part(own, doc[field].total(), c.tokens(field) / c.n)
                idf = known.idf(c.n, c.df_of[field][term])
                if known.floored and idf < 0:
                    idf = 0.25 * np.mean([known.idf(c.n, df) for df in c.df_of[field].values()])
                total += weight * float(idf * known.tf_part(tf, length, k1, known.delta or 0.0))
        return total

    return score


def mixture(smoothing: str, mu: float, lambda_: float) -> Score:
    """Ogilvie and Callan (2003), as a log ratio to a document without words, or without the term."""

    def score(c: Collection, term: str, doc: Bag) -> float:
        with_term = without = 0.0
        for field, weight in c.weights.items():
            cf, tf, dl = c.cf_of[field][term], doc[field][term], doc[field].total()
            p = (cf + 1) / (c.tokens(field) + 1) if cf else 0.0
            share = weight / sum(c.weights.values())
            if smoothing == "dirichlet":
                with_term += share * (tf + mu * p) / (dl + mu)
                without += share * p
            else:
                with_term += share * ((1 - lambda_) * (tf / dl if tf else 0) + lambda_ * p)
                without += share * lambda_ * p
        return max(math.log(with_term / without), 0.0)

    return score


def docs_of(texts: list[tuple[str, ...]], first: int = 0) -> list[Doc]:
    return [
        Doc(f"d{n % 5}{n}", text, title, {"tags": tags, "odd": n % 2, "year": 2000 + n % 10})
        for n, (title, text, tags) in enumerate(texts, first)
    ]


def built(path: Path, docs: list[Doc], fields: tuple[str, ...] = FIELDS, separate: bool = True, **kept: Any) -> Index:
    return Index.build(docs, path, analyzer="whitespace", fields=fields, separate=separate, threads=1, **kept)


@pytest.fixture
def build(tmp_path_factory) -> Callable[[list[tuple[str, ...]]], Index]:
    """An index in two segments, with documents in between that are deleted."""

    def of(texts: list[tuple[str, ...]]) -> Index:
        docs, half = docs_of(texts), (len(texts) + 1) // 2
        gone = [Doc(f"gone{n}", "a b gone", "b c", {"tags": "a a"}) for n in range(2)]
        index = built(tmp_path_factory.mktemp("i") / "x", [*docs[:half], *gone])
        index.add([*docs[half:], Doc("gone2", "a", "東")])
        index.delete(["gone0", "gone1", "gone2"])
        return index

    return of


def agree(index: Index, stage: Any, query: str, wanted: dict[int, float]) -> None:
    """The stage gives just these documents with these scores, by search, over a run, in the matrix and where explained."""
    ranking = stage.search(query, 1000)
    scores = {index.ordinal(hit.id): hit.score for hit in ranking}
    assert scores.keys() == wanted.keys()
    for doc, score in wanted.items():
        assert scores[doc] == pytest.approx(score, rel=1e-6, abs=1e-6), (doc, score)
    run = stage([("q", query)])
    assert [(hit.id, hit.score) for hit in run["q"]] == [(hit.id, hit.score) for hit in ranking]
    product = stage.matrix() @ stage.vector(query)
    for hit in ranking:
        assert product[index.ordinal(hit.id)] == pytest.approx(hit.score, rel=1e-6, abs=1e-6)
        assert stage.explain(query, hit.id).value == pytest.approx(hit.score, rel=1e-6, abs=1e-6)
    assert stage.matches(Topic("q", query)).tolist() == sorted(wanted)


@PROPERTY
@given(
    texts=DOCS,
    query=QUERY,
    weights=WEIGHTS,
    variant=st.sampled_from(list(VARIANTS)),
    k1=st.floats(0.01, 3),
    smoothing=st.sampled_from(["dirichlet", "jelinek-mercer"]),
    data=st.data(),
)
def test_bm25f_sums_of_bm25_and_mixtures_of_language_models_are_their_formulas(
    build, texts, query, weights, variant, k1, smoothing, data
):
    """BM25 with one b, and with one for each field; in a sum each field is a collection."""
    index, c = build(texts), Collection(texts, weights)
    b = data.draw(B | st.fixed_dictionaries(dict.fromkeys(weights, B)))
    stage = index.bm25(variant=variant, k1=k1, b=b, fields=weights)
    agree(index, stage, query, c.scores(query, bm25f(variant, k1, b)))
    agree(index, stage.with_(combine="sum"), query, c.scores(query, summed(variant, k1, b)))
    likelihood = index.ql(smoothing=smoothing, mu=20.0, lambda_=0.3, fields=weights)
    agree(index, likelihood, query, c.scores(query, mixture(smoothing, 20.0, 0.3)))


@PROPERTY
@given(texts=DOCS, query=QUERY, weights=WEIGHTS, relative=st.booleans(), norm=st.sampled_from(["l2", None]))
def test_tfidf_of_fields_weighs_frequencies_and_has_rows_of_unit_length(build, texts, query, weights, relative, norm):
    index, c = build(texts), Collection(texts, weights)

    def weight(c: Collection, term: str, doc: Bag) -> float:
        tf = sum(weight * doc[field][term] for field, weight in weights.items())
        dl = sum(weight * doc[field].total() for field, weight in weights.items())
        return (tf / dl if relative else tf) * math.log(c.n / c.df[term])

    def score(c: Collection, term: str, doc: Bag) -> float:
        terms = set().union(*(bag for bag in doc.values()))
        row = math.hypot(*(weight(c, other, doc) for other in terms)) or 1.0
        known = [count for word, count in Counter(query.split()).items() if c.df[word]]
        return weight(c, term, doc) / (row * math.hypot(*known) if norm else 1.0)

    agree(index, index.tfidf(fields=weights, relative_tf=relative, norm=norm), query, c.scores(query, score))


MODELS: list[tuple[str, dict[str, Any]]] = [
    *(("bm25", {"variant": variant}) for variant in VARIANTS),
    ("bm25", {"lengths": "lucene", "k3": 2.0}),
    *(("tfidf", {"norm": norm, "sublinear_tf": sub}) for norm in ("l2", None) for sub in (True, False)),
]


def rows(index: Any, model: str, **parameters: Any) -> list[list[tuple[str, bytes]]]:
    run = getattr(index, model)(**parameters)([(query, query) for query in ("a", "a b 東", "é d d", "c unknown")])
    return [[(hit.id, np.float32(hit.score).tobytes()) for hit in ranking] for ranking in run.values()]


@pytest.fixture(scope="module")
def random_docs() -> list[Doc]:
    draw = np.random.default_rng(5)
    texts = [
        tuple(" ".join(draw.choice(WORDS, draw.integers(0, most), p=(0.4, 0.25, 0.15, 0.1, 0.06, 0.04))) for most in (4, 60, 9))
        for _ in range(300)
    ]
    return docs_of(texts)


@pytest.fixture(scope="module")
def index(random_docs, tmp_path_factory) -> Index:
    return built(tmp_path_factory.mktemp("fields") / "x", random_docs)


@pytest.fixture(scope="module")
def alone(random_docs, tmp_path_factory) -> dict[tuple[str, ...], Index]:
    """Indexes of some fields, joined."""
    folder = tmp_path_factory.mktemp("alone")
    groups = (FIELDS, ("title",), ("tags", "title"))
    return {names: built(folder / "-".join(names), random_docs, names, separate=False) for names in groups}


@each(("model", "parameters"), MODELS)
def test_weights_of_1_give_byte_for_byte_the_run_of_joined_fields(index, alone, model, parameters):
    joined = alone[FIELDS]
    assert rows(index, model, **parameters, fields=dict.fromkeys(FIELDS, 1)) == rows(joined, model, **parameters)


@each(("model", "parameters"), MODELS)
def test_some_fields_with_weights_of_1_give_the_run_of_an_index_of_these_alone(index, alone, model, parameters):
    for names in (("title",), ("tags", "title")):
        weights, expected = {**dict.fromkeys(names, 1), "text": 0}, rows(alone[names], model, **parameters)
        assert rows(index, model, **parameters, fields=weights) == expected
        if model == "bm25" and len(names) == 1:
            assert rows(index, model, **parameters, fields=weights, combine="sum") == expected


def test_a_mixture_of_one_field_is_the_model_of_an_index_of_it(index, alone):
    for smoothing in ("dirichlet", "jelinek-mercer"):
        for query in ("a b", "東 é"):
            hits = index.ql(smoothing=smoothing, fields={"title": 3}).search(query, 1000)
            expected = {hit.id: hit.score for hit in alone["title",].ql(smoothing=smoothing).search(query, 1000)}
            assert {hit.id: hit.score for hit in hits} == pytest.approx(expected, rel=1e-5, abs=1e-6)


STAGES: list[tuple[str, dict[str, Any]]] = [
    ("bm25", {"fields": {"title": 3, "text": 1}}),
    ("bm25", {"fields": {"title": 3, "text": 1, "tags": 0.5}, "b": {"title": 0.3, "text": 0.8}}),
    ("bm25", {"fields": {"title": 2, "text": 1, "tags": 1}, "combine": "sum", "variant": "okapi"}),
    ("bm25", {"fields": {"title": 3, "text": 1}, "combine": "sum", "lengths": "lucene"}),
    ("tfidf", {"fields": {"title": 3, "text": 1, "tags": 1}}),
    ("tfidf", {"fields": {"title": 3}, "norm": None, "relative_tf": True}),
    ("ql", {"fields": {"title": 1, "text": 2, "tags": 1}}),
    ("ql", {"fields": {"title": 1, "tags": 1}, "smoothing": "jelinek-mercer"}),
]


def test_a_part_of_an_index_scores_with_the_statistics_of_the_whole(random_docs, tmp_path):
    docs = [*random_docs, Doc("gone", "a 東 only", "a", {"tags": "b"})]
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace", fields=FIELDS, separate=True, shards=3)
    index.delete(["gone"])
    parts = [type(index)(PartOfIndex(index.state, [shard])) for shard in range(3)]
    for model, parameters in STAGES:
        found: dict[str, bytes] = {}
        for part in parts:
            found |= dict(rows(part, model, **parameters)[0])
        assert found == dict(rows(index, model, **parameters)[0]), (model, parameters)


@each(("model", "parameters"), STAGES)
def test_pruned_and_filtered_searches_give_the_beginning_of_the_whole_ranking(index, model, parameters):
    stage = getattr(index, model)(**parameters)
    whole = [(hit.id, hit.score) for hit in stage.search("a b é 東", 1000)]
    assert [(hit.id, hit.score) for hit in stage.search("a b é 東", 7)] == whole[:7]
    some = stage.with_(where="odd == 1").search("a b é 東", 1000)
    allowed = {hit.id for hit in index.bm25(where="odd == 1").search("a b c d é 東", 1000)}
    assert [(hit.id, hit.score) for hit in some] == [row for row in whole if row[0] in allowed]


@each(("model", "parameters"), STAGES)
def test_the_text_makes_the_stage_again(index, model, parameters):
    stage = getattr(index, model)(**parameters)
    again = expression.pipeline(repr(stage), index)
    assert again == stage
    assert hash(again) == hash(stage)
    assert again.key() == stage.key()
    assert rows(index, model, **parameters) == [
        [(hit.id, np.float32(hit.score).tobytes()) for hit in again.search(query, 1000)]
        for query in ("a", "a b 東", "é d d", "c unknown")
    ]


def test_stages_are_equal_whose_weights_are(index):
    stage = index.bm25(fields={"title": 3, "text": 1})
    same = index.bm25(k1=0.9, b=0.4, fields={"text": 1.0, "title": 3.0, "tags": 0})
    assert stage == same
    assert hash(stage) == hash(same)
    assert stage.key() == same.key()
    assert stage.weighting == same.weighting
    assert stage.key() != index.bm25(fields={"title": 2, "text": 1}).key()
    assert stage.key() != index.bm25().key()
    by_field = index.bm25(fields={"title": 3, "text": 1}, b={"title": 0.2})
    assert by_field == index.bm25(fields={"title": 3, "text": 1}, b={"text": 0.4, "title": 0.2})
    assert by_field != index.bm25(fields={"title": 3, "text": 1}, b=0.4)
    assert index.ql(fields={"title": 3}).key() == index.ql(fields={"title": 3.0, "text": 0}).key()
    assert repr(stage) == 'bm25(k1=0.9, b=0.4, fields={"title": 3, "text": 1})'
    assert repr(by_field) == 'bm25(k1=0.9, b={"title": 0.2, "text": 0.4}, fields={"title": 3, "text": 1})'
    assert stage.with_(**{"fields.title": 5, "b.text": 0.7}) == index.bm25(
        fields={"title": 5, "text": 1}, b={"title": 0.4, "text": 0.7}
    )
    assert index.bm25().with_(**{"fields.title": 5}).fields == {"title": 5, "text": 1, "tags": 1}


def walked(explanation: Any) -> list[Any]:
    return [explanation, *(inner for part in explanation.parts for inner in walked(part))]


def test_an_explanation_of_bm25f_adds_up_by_field(index):
    stage = index.bm25(fields={"title": 3, "text": 1, "tags": 0.5})
    for hit in stage.search("a 東", 20):
        for term in stage.explain("a 東", hit.id).parts:
            idf, tf_part = term.parts[0].parts
            tf, length = tf_part.parts
            assert term.parts[0].value == pytest.approx(idf.value * tf_part.value, rel=1e-12)
            assert tf.value == pytest.approx(sum(field.value for field in tf.parts), rel=1e-12)
            assert tf_part.value == pytest.approx(tf.value / (tf.value + 0.9 * length.value), rel=1e-12)
    text = str(stage.explain("a", stage.search("a")[0].id))
    assert "weight 3 times tf=" in text
    assert "tf: sum over fields" in text


def test_an_explanation_with_a_b_for_each_field_divides_each_by_its_length(index):
    stage = index.bm25(fields={"title": 3, "text": 1}, b={"title": 0.3, "text": 0.8})
    hit = stage.search("a")[0]
    (tf,) = stage.explain("a", hit.id).parts[0].parts[0].parts[1].parts
    assert tf.value == pytest.approx(sum(field.value for field in tf.parts), rel=1e-12)
    for field in tf.parts:
        name, _, rest = field.label.partition(": weight ")
        weight, _, rest = rest.partition(" times tf=")
        assert field.value == pytest.approx(float(weight) * int(rest.split()[0]) / field.parts[0].value, rel=1e-12)
        assert f"b={ {'title': 0.3, 'text': 0.8}[name]:g}" in field.parts[0].label


def test_an_explanation_of_a_sum_has_the_bm25_of_each_field_alone(index):
    stage = index.bm25(fields={"title": 3, "text": 1}, combine="sum")
    for hit in stage.search("a", 5):
        posting = stage.explain("a", hit.id).parts[0].parts[0]
        assert posting.value == pytest.approx(sum(field.value for field in posting.parts), rel=1e-12)
        for field in posting.parts:
            name = field.label.partition(":")[0]
            alone = index.bm25(fields={name: 1}).explain("a", hit.id).parts[0].parts[0]
            assert field.value == pytest.approx({"title": 3, "text": 1}[name] * alone.value, rel=1e-12)
            assert f"df={Statistics.of(index.state).field(name).df[index.term_number('a')]:.0f}" in str(field)


def test_an_explanation_of_a_mixture_adds_up_its_fields(index):
    for smoothing in ("dirichlet", "jelinek-mercer"):
        stage = index.ql(fields={"title": 3, "text": 1}, smoothing=smoothing)
        posting = stage.explain("a", stage.search("a")[0].id).parts[0].parts[0]
        mixed, without = posting.parts
        assert mixed.value == pytest.approx(sum(field.value for field in mixed.parts), rel=1e-12)
        assert posting.value == pytest.approx(math.log(mixed.value / without.value), rel=1e-9)


def test_lengths_of_lucene_are_the_weighted_length_in_one_byte(index):
    stage = index.bm25(fields={"title": 2.5, "text": 1}, lengths="lucene", k1=1.2, b=0.75)
    hit = stage.search("a")[0]
    doc = index.ordinal(hit.id)
    title, text, _ = COMPONENT.of(index.state.leaves[0].segment).lengths[doc]
    kept = in_one_byte(np.array([math.floor(2.5 * int(title) + int(text) + 0.5)]))[0]
    assert f"kept as {kept:g}" in str(stage.explain("a", hit.id))


def test_feedback_and_sums_of_stages_take_models_over_fields(index):
    stage = index.bm25(fields={"title": 3, "text": 1})
    assert len((stage >> index.rm3() >> stage).search("a 東", 5)) == 5
    assert len((0.5 * stage + 0.5 * index.ql(fields={"tags": 1})).search("a 東", 5)) == 5


def test_documents_without_a_term_in_these_fields_do_not_match(tmp_path):
    index = built(
        tmp_path / "x", [Doc("1", "spring", "geyser"), Doc("2", "geyser", "spring"), Doc("3", "geyser", "", {"tags": ""})]
    )
    assert [hit.id for hit in index.bm25(fields={"title": 1}).search("geyser")] == ["1"]


def test_a_structured_query_of_terms_is_the_bag_of_them(index):
    stage = index.bm25(fields={"title": 3, "text": 1, "tags": 2})
    query = Topic("q", "a 東", query=Group(should=(Term("a"), Term("東"))))
    assert [(h.id, h.score) for h in stage.search(query, 50)] == [(h.id, h.score) for h in stage.search("a 東", 50)]


@each(("model", "parameters"), [row for row in STAGES if len(row[1]["fields"]) == 3])
def test_clauses_of_structured_queries_are_weighed_by_field(index, model, parameters):
    stage = getattr(index, model)(**parameters)
    one = Topic("q", "", query=Group(must=(AnyOf(("東",)), Term("a", field="title"))))
    alone = getattr(index, model)(**{**parameters, "fields": {"title": 1}, **({"b": 0.3} if "b" in parameters else {})})
    of_title = {hit.id: hit.score for hit in alone.with_(combine="frequencies").search("a", 1000)} if model == "bm25" else None
    whole = {hit.id: hit.score for hit in stage.search("東", 1000)}
    ranking = stage.search(one, 1000)
    assert len(ranking) > 3
    for hit in ranking:
        explanation = stage.explain(one, hit.id)
        assert explanation.value == pytest.approx(hit.score, rel=1e-6)
        if of_title is not None and parameters.get("variant") != "okapi":
            assert hit.score == pytest.approx(whole[hit.id] + of_title[hit.id], rel=1e-5)


def test_structured_queries_in_some_fields_give_the_run_of_an_index_of_these_alone(random_docs, tmp_path):
    """Phrases and windows, too: they are counted in the fields that have a weight, and by the compiled loops as by sums."""
    whole, alone = (
        built(tmp_path / str(len(fields)), random_docs, fields, positions=True) for fields in (FIELDS, ("title", "text"))
    )
    draw = random.Random(4)
    topics = Topics(Topic(str(n), "", query=random_query(draw, WORDS, positions=True)) for n in range(24))
    load()
    for model, parameters in STAGES:
        weights = {"title": 3.0, "text": 1.0} if len(parameters["fields"]) > 1 else {"text": 1.0}
        own = {**parameters, "fields": weights}
        runs = [getattr(index, model)(**own)(topics) for index in (whole, alone)]
        assert [[(hit.id, np.float32(hit.score).tobytes()) for hit in ranking] for ranking in runs[0].values()] == [
            [(hit.id, np.float32(hit.score).tobytes()) for hit in ranking] for ranking in runs[1].values()
        ], own
    stage = whole.bm25(fields={"title": 3, "text": 1})
    topic = Topic("q", "", query=Group(should=(Phrase(("a", "b"), (0, 1)), Term("c", field="tags"))))
    for hit in stage.search(topic, 20):
        explanation = stage.explain(topic, hit.id)
        assert explanation.value == pytest.approx(hit.score, rel=1e-6)
        assert not any(" at " in part.label and "tags " in part.label for part in explanation.parts)


@pytest.mark.parametrize("name", ["cranfield", pytest.param("scifact", marks=pytest.mark.slow)])
def test_weights_of_1_give_the_run_of_joined_fields_on_real_collections(shared, tmp_path, name):
    corpus, topics = shared / name / "corpus.jsonl", shared / name / "queries.jsonl"
    separate = Index.build(corpus, tmp_path / "separate", separate=True)
    joined = Index.build(corpus, tmp_path / "joined")

    def digest(run: Any) -> str:
        columns = run.bounds.tobytes() + np.asarray(run.codes).tobytes() + run.scores.tobytes()
        return hashlib.sha256(columns).hexdigest()

    for model, parameters in (("bm25", {}), ("bm25", {"variant": "okapi", "lengths": "lucene"}), ("tfidf", {})):
        weighted = getattr(separate, model)(**parameters, fields={"title": 1, "text": 1})(topics)
        assert digest(weighted) == digest(getattr(joined, model)(**parameters)(topics))
        assert digest(getattr(separate, model)(**parameters)(topics)) == digest(weighted)
