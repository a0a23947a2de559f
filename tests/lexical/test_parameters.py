"""The parameters of the lexical models: their text, their ranges, and copies with others."""

from __future__ import annotations

import dataclasses

import pytest
from support.each import each
from support.lexical import TOPICS, tied_index

from fontes.core import Cut, ParameterError, Pipeline
from fontes.core.expression import pipeline, tunable
from fontes.core.parameters import parameters as parameters_of
from fontes.index import Index
from fontes.lexical import BM25, RM3, TFIDF, QueryLikelihood
from fontes.lexical.bm25 import VARIANTS

RANGED = (BM25, TFIDF, QueryLikelihood, RM3)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    return tied_index(tmp_path_factory.mktemp("index") / "x")


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_below_one_is_an_error(index, k):
    with pytest.raises(ParameterError, match=f"k must be .*, not {k}"):
        index.bm25(k=k)("w1")
    with pytest.raises(ParameterError, match="whole number from 1 up"):
        index.bm25() % k


def test_a_k_that_is_no_whole_number_is_an_error(index):
    with pytest.raises(ParameterError):
        index.bm25(k=2.5)("w1")


def test_a_cut_is_pushed_down_into_the_retriever(index):
    retriever = index.bm25(k=100)
    assert retriever % 10 == index.bm25(k=10)
    assert retriever % 1000 == retriever
    assert retriever % 10 % 20 == index.bm25(k=10)
    assert retriever >> Cut(7) == index.bm25(k=7)
    assert not isinstance(index.tfidf() % 3, Pipeline)
    assert (retriever % 10)(TOPICS) == retriever(TOPICS).top(10)


def test_a_run_says_where_it_comes_from_and_knows_its_documents(index):
    run = index.bm25(k1=1.2, b=0.75, k=5)(TOPICS)
    assert run.provenance["index"] == str(index.path)
    assert run.provenance["fingerprint"] == index.fingerprint
    assert run.provenance["system"] == "bm25(k1=1.2, b=0.75) % 5"
    assert run.provenance["seconds"] > 0
    assert [doc.id for doc in run["1"].docs()] == run["1"].ids
    assert list(run.topics.values()) == list(TOPICS.values())


TEXTS = [
    ("bm25", {}, "bm25(k1=0.9, b=0.4)"),
    ("bm25", {"k": 100}, "bm25(k1=0.9, b=0.4) % 100"),
    ("bm25", {"k": 5000}, "bm25(k1=0.9, b=0.4, k=5000)"),
    ("bm25", {"k1": 1.2, "b": 1, "k3": 8.0, "threads": 2}, "bm25(k1=1.2, b=1, k3=8.0)"),
    ("bm25", {"variant": "okapi"}, 'bm25(variant="okapi", k1=1.5, b=0.75)'),
    ("bm25", {"variant": "okapi", "epsilon": 0.1}, 'bm25(variant="okapi", k1=1.5, b=0.75, epsilon=0.1)'),
    ("bm25", {"variant": "plus", "delta": 1.0}, 'bm25(variant="plus", k1=0.9, b=0.4)'),
    ("bm25", {"variant": "plus", "delta": 0}, 'bm25(variant="plus", k1=0.9, b=0.4, delta=0)'),
    (
        "bm25",
        {"variant": "l", "k3": 2, "delta": 0.3, "lengths": "lucene", "k": 10},
        'bm25(variant="l", k1=0.9, b=0.4, k3=2, delta=0.3, lengths="lucene") % 10',
    ),
    ("tfidf", {}, "tfidf()"),
    ("tfidf", {"sublinear_tf": True, "norm": None}, "tfidf(sublinear_tf=True, norm=None)"),
    ("ql", {}, "ql(mu=1000.0)"),
    ("ql", {"mu": 500, "lengths": "lucene"}, 'ql(mu=500, lengths="lucene")'),
    ("ql", {"smoothing": "jelinek-mercer"}, 'ql(smoothing="jelinek-mercer", lambda_=0.1)'),
    ("rm3", {}, "rm3()"),
    ("rm3", {"fb_docs": 5, "max_df": 0.2}, "rm3(fb_docs=5, max_df=0.2)"),
]


@each(("factory", "parameters", "text"), TEXTS)
def test_the_text_of_a_stage_has_what_matters_and_makes_an_equal_one(index, factory, parameters, text):
    stage = getattr(index, factory)(**parameters)
    assert repr(stage) == text
    again = pipeline(text, index)
    assert again == stage.with_(threads=None) if "threads" in parameters else again == stage
    assert repr(again) == text
    if factory != "rm3":
        assert again("w1 w2 w9") == stage("w1 w2 w9")


def test_defaults_that_are_written_out_make_an_equal_retriever(index):
    assert index.bm25() == index.bm25(k1=0.9, b=0.4)
    assert hash(index.bm25()) == hash(index.bm25(k1=0.9, b=0.4))
    assert index.bm25().key() == index.bm25(k1=0.9, b=0.4).key()
    assert index.bm25(variant="okapi") == index.bm25(variant="okapi", k1=1.5, b=0.75)
    assert index.bm25(variant="l") == index.bm25(variant="l", delta=0.5)
    assert index.bm25() != index.bm25(variant="robertson")
    assert index.bm25() != index.bm25(k1=1.5)
    assert index.bm25() != index.bm25(k=10)
    assert index.bm25() != index.tfidf()


def test_a_variant_that_is_changed_brings_its_own_defaults(index):
    assert repr(index.bm25().with_(variant="okapi")) == 'bm25(variant="okapi", k1=1.5, b=0.75)'


def test_each_variant_of_bm25_is_named_where_the_parameter_is_described():
    for variant in VARIANTS.values():
        assert variant.source
    described = parameters_of(BM25)["variant"].description
    assert all(name in described for name in VARIANTS)


def test_models_know_what_values_of_their_parameters_to_try(index):
    make, space = tunable("bm25(k1=tune(), b=tune(), k3=tune()) >> rm3(fb_terms=tune()) >> ql(mu=tune())", index)
    assert space == {
        "bm25__k1": (0.1, 4.5, 0.2),
        "bm25__b": (0.0, 1.0, 0.1),
        "bm25__k3": [None, 0.0, 2.0, 8.0],
        "rm3__fb_terms": [5, 10, 20, 50],
        "ql__mu": (100, 3000, 100),
    }
    expected = index.bm25(k1=2.1, k3=8.0) >> index.rm3(fb_terms=5) >> index.ql()
    assert make(bm25__k1=2.1, bm25__k3=8.0, rm3__fb_terms=5) == expected
    assert {(cls, name): p.range for cls in RANGED for name, p in parameters_of(cls).items() if p.range} == {
        (BM25, "k1"): (0.1, 4.5, 0.2),
        (BM25, "b"): (0.0, 1.0, 0.1),
        (BM25, "k3"): [None, 0.0, 2.0, 8.0],
        (BM25, "delta"): (0.0, 1.5, 0.1),
        **{(cls, "fields"): (0.5, 10.0, 0.5) for cls in (BM25, TFIDF, QueryLikelihood)},
        (TFIDF, "sublinear_tf"): [False, True],
        (TFIDF, "smooth_idf"): [False, True],
        (TFIDF, "norm"): ["l2", None],
        (QueryLikelihood, "mu"): (100, 3000, 100),
        (QueryLikelihood, "lambda_"): (0.05, 0.95, 0.05),
        (RM3, "fb_docs"): [5, 10, 20],
        (RM3, "fb_terms"): [5, 10, 20, 50],
        (RM3, "original_weight"): (0.1, 0.9, 0.1),
    }
    for cls in RANGED:
        for name, parameter in parameters_of(cls).items():
            if name == "fields":  # whose range is that of a weight
                continue
            for value in parameter.range if isinstance(parameter.range, list) else (parameter.range or ())[:2]:
                variant = {"variant": "plus"} if name == "delta" else {}
                cls(index, **variant, **{name: value}).check()


def test_with_changes_a_copy_alone(index):
    retriever = index.bm25()
    changed = retriever.with_(k1=2.0, k=3)
    assert (changed.k1, changed.k, retriever.k1, retriever.k) == (2.0, 3, None, 1000)
    assert changed.with_(k1=None, k=1000) == retriever
    assert hash(index.bm25()) == hash(retriever)


def test_stages_and_weightings_cannot_be_changed_in_place(index):
    stages = index.bm25(), index.tfidf(), index.ql(), index.rm3()
    for value in (*stages, *(stage.weighting for stage in stages[:3])):
        for field in dataclasses.fields(value):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, field.name, getattr(value, field.name))
        assert {value: 1}[dataclasses.replace(value)] == 1


@pytest.mark.parametrize("retriever", ["bm25", "tfidf"])
def test_with_an_unknown_parameter_is_an_error_that_lists_the_known(index, retriever):
    with pytest.raises(ParameterError, match=r"has no parameter 'kk'; did you mean 'k'"):
        getattr(index, retriever)().with_(kk=1)


@each(
    ("changes", "words"),
    [
        ({"variant": "bm26"}, "no BM25 variant 'bm26'; there are lucene"),
        ({"b": 1.01}, "b between 0 and 1"),
        ({"b": -0.1}, "b between 0 and 1"),
        ({"b": float("nan")}, "b between 0 and 1"),
        ({"k1": -0.5}, "k1 must be 0 or more"),
        ({"k1": float("inf")}, "k1 must be 0 or more"),
        ({"k1": float("nan")}, "k1 must be 0 or more"),
        ({"k3": -1}, "k3 must be 0 or more, or None"),
        ({"k3": float("nan")}, "k3 must be 0 or more, or None"),
        ({"lengths": "bytes"}, "lengths must be 'exact' or 'lucene'"),
        ({"delta": 1.0}, "BM25 lucene has no delta; plus and l have"),
        ({"variant": "plus", "delta": float("nan")}, "delta"),
        ({"variant": "plus", "delta": -1.0}, "delta"),
        ({"variant": "l", "delta": float("inf")}, "delta"),
        ({"variant": "okapi", "epsilon": float("nan")}, "epsilon"),
    ],
)
def test_a_parameter_of_bm25_outside_its_range_is_an_error(index, changes, words):
    with pytest.raises(ParameterError, match=words):
        index.bm25().with_(**changes)("w1")
    with pytest.raises(ParameterError, match=words):
        index.bm25(**changes).explain("w1", index.ids[0])
    with pytest.raises(ParameterError, match=words):
        index.bm25(**changes).check()


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"norm": "l1"}, "norm must be 'l2' or None"), ({"sublinear_tf": True, "relative_tf": True}, "do not go together")],
)
def test_a_parameter_of_tfidf_outside_its_range_is_an_error(index, changes, words):
    with pytest.raises(ParameterError, match=words):
        index.tfidf().with_(**changes)("w1")


@each(
    ("changes", "words"),
    [
        ({"smoothing": "laplace"}, "smoothing must be 'dirichlet' or 'jelinek-mercer', not 'laplace'"),
        ({"mu": 0}, "mu must be above 0"),
        ({"mu": float("inf")}, "mu must be above 0"),
        ({"lambda_": 0.0}, "lambda_ between 0 and 1"),
        ({"lambda_": 1.0}, "lambda_ between 0 and 1"),
        ({"lengths": "bytes"}, "lengths must be 'exact' or 'lucene'"),
        ({"k": 0}, "k must be a whole number"),
        ({"threads": -1}, "threads must be at least 1"),
    ],
)
def test_a_parameter_of_query_likelihood_outside_its_range_is_an_error(index, changes, words):
    for work in (lambda stage: stage("w1"), lambda stage: stage.check()):
        with pytest.raises(ParameterError, match=words):
            work(index.ql(**changes))


@each("changes", [{"fb_docs": 0}, {"fb_terms": 0}, {"original_weight": 1.1}, {"original_weight": -0.1}])
def test_a_parameter_of_rm3_outside_its_range_is_an_error(index, changes):
    for work in (lambda stage: stage(index.bm25()("w1")), lambda stage: stage.check()):
        with pytest.raises(ParameterError, match="fb_docs and fb_terms must be 1 or more"):
            work(index.rm3(**changes))


@each(
    ("text", "words"),
    [
        ("bm25(b=2)", "column 1: k1 must be 0 or more and b between 0 and 1"),
        ('bm25(variant="lucen")', "did you mean 'lucene'"),
        ("bm25(k1='high')", "k1 must be float or None"),
        ("rm3() >> bm25(k=0)", "column 10: k must be a whole number"),
        ("learned_sparse()", "holds texts, not vectors"),
    ],
)
def test_a_text_with_a_wrong_parameter_is_refused_before_anything_is_searched(index, text, words):
    with pytest.raises(ParameterError, match=words):
        pipeline(text, index)


def test_a_wrong_parameter_fails_when_the_retriever_is_made_and_the_nearest_is_named(index):
    for make in (lambda: index.bm25(k=1.2), lambda: pipeline("bm25(k=1.2)", index)):
        with pytest.raises(ParameterError, match=r"k must be .*, not 1\.2; did you mean k1=1\.2\?"):
            make()
    for make in (lambda: index.bm25(k_1=1.2), lambda: pipeline("bm25(k_1=1.2)", index)):
        with pytest.raises(ParameterError, match=r"bm25 has no parameter 'k_1'; did you mean 'k1'\?"):
            make()
    with pytest.raises(ParameterError, match="there is no BM25 variant 'lucine'; did you mean 'lucene'"):
        index.bm25(variant="lucine")
    with pytest.raises(ParameterError, match=r"k must be .*, not 2\.5$"):
        index.tfidf(k=2.5)
    with pytest.raises(ParameterError, match="mu"):
        index.ql(mu=-1)
