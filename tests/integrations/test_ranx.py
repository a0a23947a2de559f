"""ranx: runs and judgments there and back, and its measures on them, with the real package."""

import pytest
from support.sockets import MISSING, QRELS, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
ranx = pytest.importorskip("ranx", reason=MISSING.format("ranx"))

from fontes.integrations.ranx import from_ranx, to_ranx  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return build(tmp_path_factory.mktemp("ranx")).bm25(k1=1.2)(TOPICS)


def test_a_run_comes_back_as_it_went(run):
    back = from_ranx(to_ranx(run))
    assert back == ft.Run.of({topic: docs for topic, docs in run.to_dict().items() if docs})
    assert back.provenance["system"] == run.provenance["system"] == to_ranx(run).name
    assert to_ranx(run, name="mine").name == "mine"


def test_judgments_come_back_as_they_went():
    assert from_ranx(to_ranx(ft.Qrels.of(QRELS))).to_dict() == QRELS


def test_measures_of_ranx_agree_where_there_are_no_ties(run):
    qrels = ft.Qrels.of(QRELS)
    untied = ft.Run.of({topic: {doc: -i for i, doc in enumerate(docs)} for topic, docs in run.to_dict().items() if docs})
    names = ["ndcg@10", "map", "mrr", "recall@2"]
    theirs = ranx.evaluate(to_ranx(qrels), to_ranx(untied), names, make_comparable=True)
    ours = ft.evaluate(untied, qrels, ["nDCG@10", "AP", "RR", "R@2"])
    assert [theirs[name] for name in names] == pytest.approx([ours[name] for name in ("nDCG@10", "AP", "RR", "R@2")])


@pytest.mark.parametrize(
    ("convert", "value", "message"),
    [
        (to_ranx, {"q": {"d": 1}}, "to_ranx takes a Run or Qrels of Fontes, not dict"),
        (to_ranx, ft.Run.of({"q": {}}), "the Run is empty"),
        (to_ranx, ft.Qrels(), "the Qrels is empty"),
        (from_ranx, {"q": {"d": 1}}, "from_ranx takes a Run or Qrels of ranx, not dict"),
    ],
)
def test_what_is_wrong_is_said(convert, value, message):
    with pytest.raises(ft.FontesError, match=message):
        convert(value)
