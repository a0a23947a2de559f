"""ir_measures: runs, judgments and measures there and back, and its values against ours, with the real package."""

import contextlib

import pytest
from support.sockets import MISSING, QRELS, TOPICS, build

import fontes as ft
from fontes.measures.names import parse

pytestmark = pytest.mark.slow
ir_measures = pytest.importorskip("ir_measures", reason=MISSING.format("ir_measures"))

from fontes.integrations.ir_measures import measure_of, qrels_of, run_of, to_ir_measures  # noqa: E402

MEASURED = ["nDCG@10", "AP", "RR", "P@2", "R@100", "P(rel=2)@1", "SetF", "AP(judged_only=True)"]
NAMED = ["RR@5", "nDCG(dcg='exp-log2')@10"]  # ir_measures computes them by scripts that take other ids


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return build(tmp_path_factory.mktemp("measures")).bm25(k1=1.2)(TOPICS)


def test_runs_and_judgments_come_back_as_they_went(run):
    assert run_of(to_ir_measures(run)) == ft.Run.of({topic: docs for topic, docs in run.to_dict().items() if docs})
    grouped = ft.Qrels([("q1", "g1", "a", 1), ("q1", "g1", "b", 1), ("q1", "0", "c", 0)])
    assert list(qrels_of(to_ir_measures(grouped)).rows()) == list(grouped.rows())
    assert to_ir_measures(grouped)[0] == ir_measures.Qrel("q1", "a", 1, "g1")


@pytest.mark.parametrize("name", MEASURED + NAMED)
def test_measures_are_the_same_there_and_back(name):
    assert str(measure_of(to_ir_measures(parse(name)))) == str(parse(name))


@pytest.mark.parametrize("name", MEASURED)
def test_values_of_ir_measures_are_ours(run, name):
    ours = parse(name)
    theirs = to_ir_measures(ours)
    qrels = ft.Qrels.of(QRELS)
    values = ir_measures.calc_aggregate([theirs], to_ir_measures(qrels), to_ir_measures(run))
    assert values[theirs] == pytest.approx(ft.evaluate(run, qrels, [ours])[name])


@pytest.mark.parametrize("name", ["RBP(rel=1)", "RBP(p=0.9)", "RBP(rel=2)", "SetF(beta=2.0)", "SetF"])
def test_the_meaning_of_a_measure_is_kept(name):
    theirs = to_ir_measures(parse(name))
    assert measure_of(theirs) == parse(name)
    assert "rel" in theirs.params or theirs.params.get("beta") in (None, 4.0)


@pytest.mark.parametrize(
    "name",
    ["RBP@10", "ERR", "ERR(max_rel=3)@10", "SetP@5", "SetF@5", "R", "IPrec@0.125", "RR(judged_only=True)@5", "Complete@5"],
)
def test_a_measure_that_ir_measures_refuses_is_an_error(name):
    with pytest.raises(ft.core.ParameterError, match="ir_measures"):
        to_ir_measures(parse(name))


def test_every_measure_of_ir_measures_is_ours_or_an_error():
    known = 0
    for name, measure in ir_measures.measures.registry.items():
        with contextlib.suppress(ft.FontesError):
            known += str(measure_of(measure)).startswith(name[:2])
    assert known >= 8


def test_frames_and_dicts_are_accepted(run):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        [(r.query_id, r.doc_id, r.score) for r in to_ir_measures(run)], columns=["query_id", "doc_id", "score"]
    )
    assert run_of(frame) == run_of(to_ir_measures(run))
    judged = pandas.DataFrame(to_ir_measures(ft.Qrels.of(QRELS)))
    assert qrels_of(judged).to_dict() == qrels_of(QRELS).to_dict() == QRELS


@pytest.mark.parametrize(
    ("convert", "value", "message"),
    [
        (to_ir_measures, {"q": {}}, "takes a Run, Qrels or a measure of Fontes, not dict"),
        (qrels_of, [("q", "d", 1)], "judgment 1 is no Qrel"),
        (measure_of, "NERR42", "NERR42"),
    ],
)
def test_what_is_wrong_is_said(convert, value, message):
    with pytest.raises(ft.FontesError, match=message):
        convert(value)
