"""The recipe of TREC CAsT 2021, and what can be proved of it on the organisers' own runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import fontes as ft

BASELINES = ["org_convdr", "org_convdr_bert", "org_manual_ance", "org_manual_ance_bert", "org_manual_bm25"]

# How many of the 239 topics of each come out with the ids whole as the organisers have them: those without a document of The
# Washington Post whose id has a "-".
WITHOUT_CUT_IDS = [94, 94, 101, 101, 131]


def baseline(shared: Path, name: str) -> tuple[ft.Run, ft.Run]:
    """The organisers' run of passages, and the run of documents that they made of it."""
    folder = shared / "cast2021" / "baselines"
    return ft.read_run(folder / f"{name}.trec"), ft.read_run(folder / f"doc_{name}.run")


def printed(ranking: ft.Ranking) -> list[tuple[str, str]]:
    """Ids and scores with the eight decimals of the organisers' runs of documents."""
    return [(hit.id, f"{hit.score:.8f}") for hit in ranking]


@pytest.mark.parametrize("name", BASELINES)
def test_passages_become_the_organisers_documents_where_ids_are_cut_as_they_did(shared: Path, name: str) -> None:
    passages, theirs = baseline(shared, name)
    ours = ft.to_documents("max", separator="-", split_at="first")(passages)
    assert len(theirs) == 239
    assert set(ours) == set(theirs)
    assert [t for t in theirs if printed(ours[t]) != printed(theirs[t])] == []


@pytest.mark.parametrize(("name", "same"), list(zip(BASELINES, WITHOUT_CUT_IDS, strict=True)))
def test_whole_ids_differ_from_the_organisers_where_theirs_are_cut_and_nowhere_else(shared: Path, name: str, same: int) -> None:
    passages, theirs = baseline(shared, name)
    ours = ft.to_documents("max", separator="-")(passages)
    assert sum(printed(ours[t]) == printed(theirs[t]) for t in theirs) == same
    for topic in theirs:
        cut = [hit_id.partition("-")[0] for hit_id in ours[topic].ids]
        assert sorted(set(cut)) == sorted(theirs[topic].ids)


def test_the_judgments_know_the_whole_ids(shared: Path) -> None:
    judged = {d for grades in ft.read_qrels(shared / "cast2021" / "qrels" / "test_docs.tsv").values() for d in grades}
    of_the_post = {d for d in judged if d.startswith("WAPO_")}
    passages, theirs = baseline(shared, "org_manual_bm25")
    ours = ft.to_documents("max", separator="-")(passages)
    assert (len(of_the_post & set(ours.ids)), len(of_the_post & set(theirs.ids))) == (245, 186)


# nDCG@3, nDCG@500, AP@500, R@500 and RR by trec_eval (pytrec_eval-terrier 0.5.11, relevance_level=2), means over the 158 judged
# topics: the organisers' runs of documents, and the same made of their runs of passages with whole ids.
MEASURES = ["nDCG@3", "nDCG@500", "AP(rel=2)@500", "R(rel=2)@500", "RR(rel=2)@500"]
OFFICIAL = {
    "org_convdr": ([0.3542, 0.3644, 0.1929, 0.4181, 0.4986], [0.3611, 0.3722, 0.1968, 0.4257, 0.5048]),
    "org_convdr_bert": ([0.411, 0.3893, 0.2303, 0.4181, 0.5998], [0.4234, 0.3984, 0.2357, 0.4257, 0.6065]),
    "org_manual_ance": ([0.53, 0.4716, 0.2971, 0.5255, 0.7105], [0.5482, 0.4849, 0.3084, 0.5386, 0.7271]),
    "org_manual_ance_bert": ([0.5196, 0.483, 0.3156, 0.5255, 0.6757], [0.5399, 0.4979, 0.3288, 0.5386, 0.7017]),
    "org_manual_bm25": ([0.3974, 0.3901, 0.2067, 0.4606, 0.5825], [0.4069, 0.4001, 0.213, 0.4714, 0.5944]),
}


@pytest.mark.parametrize("name", BASELINES)
def test_the_official_measures_are_those_of_trec_eval(shared: Path, name: str) -> None:
    qrels = ft.read_qrels(shared / "cast2021" / "qrels" / "test_docs.tsv")
    passages, theirs = baseline(shared, name)
    for run, expected in zip((theirs, ft.to_documents("max", separator="-")(passages)), OFFICIAL[name], strict=True):
        found = ft.evaluate(run, qrels, MEASURES)
        assert [round(found[m], 4) for m in MEASURES] == expected


@pytest.mark.parametrize("name", BASELINES)
def test_the_official_measures_of_each_topic_are_those_of_trec_eval(shared: Path, name: str) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = ft.read_qrels(shared / "cast2021" / "qrels" / "test_docs.tsv")
    run = ft.to_documents("max", separator="-")(baseline(shared, name)[0])
    asked = {"ndcg_cut.3,500", "map_cut.500", "recall.500", "recip_rank"}
    expected = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), asked, relevance_level=2).evaluate(run.top(500).to_dict())
    found = ft.evaluate(run, qrels, MEASURES)
    for measure, key in zip(MEASURES, ["ndcg_cut_3", "ndcg_cut_500", "map_cut_500", "recall_500", "recip_rank"], strict=True):
        for topic, value in found.per_topic(measure).items():
            assert value == pytest.approx(expected[topic][key], abs=1e-9)
