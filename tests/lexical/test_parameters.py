"""The parameters of the lexical models: their text, their ranges, and copies with others."""

import dataclasses

import pytest
from support.each import each
from support.lexical import TOPICS

from fontes.core import Cut, Pipeline
from fontes.core.expression import pipeline, tunable
from fontes.core.parameters import parameters as parameters_of
from fontes.lexical import BM25, RM3, TFIDF, QueryLikelihood
from fontes.lexical.bm25 import VARIANTS

RANGED = (BM25, TFIDF, QueryLikelihood, RM3)


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
