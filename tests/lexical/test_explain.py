"""Explanations: they add up to the score, and name what went in."""

from __future__ import annotations

import pytest
from support.lexical import MODELS, TOPICS, model, tied_index

from fontes.core import InputError
from fontes.index import Index
from fontes.lexical.bm25 import VARIANTS


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    return tied_index(tmp_path_factory.mktemp("index") / "x")


@pytest.mark.parametrize("parameters", MODELS, ids=str)
def test_an_explanation_adds_up_to_the_score_of_every_hit(index, parameters):
    retriever = model(index, parameters)
    for topic in TOPICS.values():
        for hit in retriever.search(topic, 1000)[::71]:
            explanation = retriever.explain(topic, hit.id)
            assert explanation.value == pytest.approx(hit.score, rel=1e-6, abs=1e-9)
            assert sum(part.value for part in explanation.parts) == pytest.approx(hit.score, rel=1e-6, abs=1e-6)
            for term in explanation.parts:
                posting, query = term.parts
                assert term.value == pytest.approx(posting.value * query.value, rel=1e-7)


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_an_explanation_names_what_went_in(index, variant):
    hit = index.bm25(variant=variant).search("w1")[0]
    explanation = index.bm25(variant=variant).explain("w1 w1 nothing", hit.id)
    text, doc = str(explanation), index.ordinal(hit.id)
    for part in ("'w1'", f"N={len(index)}", f"dl={index.lengths[doc]}", f"df={index.df[index.terms.find('w1')]}", "qtf=2"):
        assert part in text
    idf, tf_part = explanation.parts[0].parts[0].parts
    assert explanation.parts[0].parts[0].value == pytest.approx(idf.value * tf_part.value, rel=1e-12)
    assert explanation.to_dict()["parts"][0]["label"] == "'w1'"


def test_an_explanation_of_tfidf_multiplies_and_divides_to_its_value(index):
    hit = index.tfidf(sublinear_tf=True).search("w1")[0]
    posting = index.tfidf(sublinear_tf=True).explain("w1", hit.id).parts[0].parts[0]
    tf, idf, length = (part.value for part in posting.parts)
    assert posting.value == pytest.approx(tf * idf / length, rel=1e-12)


def test_a_document_without_a_match_is_explained_as_zero(index):
    found = set(index.bm25(k=5_000).search("w1", 5_000).ids)
    other = next(doc for doc in index.ids if doc not in found)
    for retriever in (index.bm25(), index.tfidf()):
        explanation = retriever.explain("w1", other)
        assert explanation.value == 0
        assert explanation.parts == ()
        assert retriever.explain("", other).value == 0


def test_explaining_a_document_that_is_not_there_is_an_error_that_names_it(index):
    for retriever in (index.bm25(), index.tfidf()):
        with pytest.raises(InputError, match="document 'nobody' is not in the index"):
            retriever.explain("w1", "nobody")
