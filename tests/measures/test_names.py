"""Measures as objects, and their names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fontes.core import ParameterError
from fontes.measures import (
    AP,
    MEASURES,
    RBP,
    RR,
    Bpref,
    Complete,
    IPrec,
    Judged,
    Measure,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    Rprec,
    SetF,
    SetP,
    SetR,
    Success,
    evaluate,
    nDCG,
    parse,
)

EVERY = list(dict.fromkeys(cls() for _, cls in MEASURES.items()))
READY = [m for m in EVERY if not hasattr(m, "max_rel") or m.max_rel]  # the others have tests in test_ir_measures

WRITTEN = {
    "nDCG@10": nDCG @ 10,
    "nDCG(dcg='exp-log2')@10": nDCG(dcg="exp-log2") @ 10,
    "AP": AP,
    "AP(rel=2)@100": AP(rel=2) @ 100,
    "P(rel=2)@5": P(rel=2) @ 5,
    "R": R,
    "RR@5": RR @ 5,
    "Success@1": Success @ 1,
    "RBP(rel=2, p=0.9)": RBP(rel=2, p=0.9),
    "IPrec@0.1": IPrec @ 0.1,
    "SetF(beta=2.0)@3": SetF(beta=2) @ 3,
    "Judged@10": Judged @ 10,
    "Complete@5": Complete @ 5,
}

TREC_EVAL = {
    "map": AP,
    "map_cut_10": AP @ 10,
    "map_cut.10": AP @ 10,
    "ndcg": nDCG,
    "ndcg_cut_10": nDCG @ 10,
    "P_5": P @ 5,
    "recall_100": R @ 100,
    "recip_rank": RR,
    "Rprec": Rprec,
    "bpref": Bpref,
    "success_5": Success @ 5,
    "iprec_at_recall_0.10": IPrec @ 0.1,
    "num_ret": NumRet,
    "num_rel": NumRel,
    "num_rel_ret": NumRelRet,
    "set_P": SetP,
    "set_recall": SetR,
    "set_F": SetF,
}

OTHERS = {
    "MRR@5": RR @ 5,
    "MRR": RR,
    "MAP": AP,
    "MAP@10": AP @ 10,
    "Recall@100": R @ 100,
    "Precision@5": P @ 5,
    "NDCG@10": nDCG @ 10,
    "ndcg@10": nDCG @ 10,
    "p@5": P @ 5,
    "P.5": P @ 5,
    " nDCG ( dcg = exp-log2 ) @ 10 ": nDCG(dcg="exp-log2") @ 10,
    "AP()": AP,
    "P(rel=1)@5": P @ 5,
    "iprec@0.10": IPrec @ 0.1,
}


def test_a_measure_prints_its_canonical_name():
    for name, measure in WRITTEN.items():
        assert str(measure) == repr(measure) == name


def test_a_name_is_parsed_to_the_measure():
    for name, measure in (WRITTEN | TREC_EVAL | OTHERS).items():
        assert parse(name) == measure
        assert hash(parse(name)) == hash(measure)
        assert parse(str(measure)) == measure


def test_a_measure_is_parsed_to_itself():
    assert parse(nDCG @ 10) == nDCG @ 10


def test_every_measure_that_needs_no_cutoff_is_found_by_its_name_in_any_case():
    for measure in [m for m in READY if m.cut != "required"]:
        assert parse(measure.name) == parse(measure.name.lower()) == parse(measure.name.upper()) == measure


def test_cutoff_and_parameters_make_new_measures():
    assert P(rel=2) @ 5 == (P @ 5)(rel=2)
    assert P.cutoff is None
    assert P.rel == 1
    assert P @ 5 != P @ 10
    assert len({P @ 5, P @ 5, P @ 10}) == 2


def test_every_measure_says_its_formula():
    assert all(type(measure).__doc__ for measure in EVERY)


@pytest.fixture
def shallow():
    """A measure that is one class, which is gone after the test."""
    with MEASURES.restored():

        @dataclass(frozen=True, repr=False)
        class Shallow(Measure, name="Shallow", aliases=("shallow_cut_K", "few")):
            """The share of topics with `most` documents or fewer."""

            most: int = 1

            def values(self, ranks):
                return np.minimum(ranks.retrieved, self.depth) <= self.most

        yield Shallow


def test_a_measure_that_is_one_class_is_known_by_its_name_and_aliases_everywhere(shallow):
    assert parse("Shallow") == parse("few") == shallow()
    assert parse("shallow_cut_5") == parse("shallow(most=1)@5") == shallow() @ 5
    assert str(shallow(most=2) @ 3) == "Shallow(most=2)@3"
    with pytest.raises(ParameterError, match="did you mean Shallow"):
        parse("Shalow")
    with pytest.raises(ParameterError, match="did you mean shallow_cut_10"):
        parse("shallow_cut")
    run = {"1": {"a": 1.0, "b": 0.5}, "2": {"a": 1.0}}
    assert dict(evaluate(run, {"1": {"a": 1}, "2": {"a": 1}}, ["few", "shallow_cut_1"])) == {shallow(): 0.5, shallow() @ 1: 1.0}


def test_two_measures_cannot_have_one_name(shallow):
    with pytest.raises(ParameterError, match="two measures are called 'ap'"):

        class Another(Measure, name="AP"):
            """Not the average precision."""


def test_a_class_without_a_name_of_its_own_is_not_registered(shallow):
    class Base(shallow):
        """A base for others."""

    assert Base not in dict(MEASURES.items()).values()
