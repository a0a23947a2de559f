"""`calibrated`, `cut` and `abstain` in pipelines: order, provenance, explanations, and what they refuse."""

import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Fontes
from support.ranked import documents, judgments, topics

import fontes as ft
from fontes.calibration import Abstain, Calibrated, Calibration, PromisedCut, promises_of, refused
from fontes.calibration.model import _CALIBRATIONS
from fontes.cluster.shards import _provenance as joined
from fontes.core import Cut, ParameterError, PipelineError, Run, Topics
from fontes.core.expression import pipeline
from fontes.index import Index
from fontes.train import CalibrationSettings, train_calibration

BM25 = "bm25(k1=0.9, b=0.4)"


@pytest.fixture
def new_topics() -> Topics:
    return Topics.of({"n1": "spring oasis water", "n2": "basin geyser river", "n3": "zzz", "n4": "karst delta"})


def test_probabilities_fall_along_each_ranking_and_keep_its_order(index: Index, folder: Path, new_topics: Topics) -> None:
    run = (index.bm25() % 40)(new_topics)
    result = pipeline(f'bm25() % 40 >> calibrated("{folder}")', index)(new_topics)
    assert (result.codes == run.codes).all()
    assert (result.bounds == run.bounds).all()
    assert ((result.scores > 0) & (result.scores < 1)).all()
    one = result["n1"]
    falls = np.diff([hit.score for hit in one])
    assert (falls[np.diff([hit.score for hit in run["n1"]]) < 0] < 0).all()
    facts = result.provenance["calibration"]
    assert (facts["model"], facts["digest"], facts["notes"]) == (str(folder), Calibration.load(folder).digest, [])
    assert pipeline(f'bm25() % 40 >> calibrated("{folder}")', index).search("spring oasis water", k=3).ids == one.ids[:3]


def test_a_cut_keeps_documents_down_to_its_threshold_and_says_what_it_promises(
    index: Index, folder: Path, new_topics: Topics
) -> None:
    stage = pipeline(f'bm25() % 40 >> calibrated("{folder}") >> cut(recall=0.7)', index)
    whole, run = pipeline(f'bm25() % 40 >> calibrated("{folder}")', index)(new_topics), stage(new_topics)
    promise = Calibration.load(folder).promise("recall", 0.7)
    shares = {t: {d: s / (1 + sum(r.values())) for d, s in r.items()} for t, r in whole.to_dict().items()}
    kept = {t: {d for d, share in r.items() if share >= promise.threshold - 1e-9} for t, r in shares.items()}
    assert {t: set(r.ids) for t, r in run.items()} == kept
    assert run.to_dict() == {t: {d: s for d, s in r.items() if d in kept[t]} for t, r in whole.to_dict().items()}
    assert 0 < run.rows < whole.rows
    assert promises_of(run) == [promise.to_dict()]
    assert "a list holds at least 0.7 of the relevant documents in the mean: risk <= 0.3 in expectation" in promise.statement
    assert json.loads(json.dumps(run.provenance["promises"]))
    assert repr(stage) == f'{BM25} % 40 >> calibrated("{folder}") >> cut(recall=0.7)'
    assert pipeline(repr(stage), index)(new_topics).to_dict() == run.to_dict()
    assert len(stage.search("spring oasis water", k=2)) == 2


@pytest.mark.parametrize("later", [" % 2", " >> cut(2)", ' >> boost("price") % 2'])
def test_a_limit_after_a_promised_cut_is_in_the_statement(index: Index, folder: Path, later: str) -> None:
    text = f'bm25() % 40 >> calibrated("{folder}") >> cut(recall=0.7)'
    whole, run = (pipeline(text + end, index)(["spring oasis water"]) for end in ("", later))
    (promise,), (shortened,) = promises_of(whole), promises_of(run)
    assert "cut to the best" not in promise["statement"]
    assert shortened["statement"] == f"{promise['statement']}; but its lists were cut to the best 2 after it"
    assert promises_of(whole.top(2)) == [shortened]


def test_cut_of_a_number_is_the_kernels_cut(index: Index) -> None:
    assert pipeline("bm25() >> cut(3)", index) == index.bm25() % 3
    assert PromisedCut(7) == PromisedCut(7, recall=None) == PromisedCut(7, confidence=0.8) == Cut(7)
    assert repr(Cut(7)) == "cut(7)"


def test_abstain_empties_the_rankings_with_a_low_p_value(index: Index, folder: Path, new_topics: Topics) -> None:
    run = pipeline(f'bm25() % 40 >> calibrated("{folder}") >> abstain(0.2)', index)(new_topics)
    calibration = Calibration.load(folder)
    whole = pipeline(f'bm25() % 40 >> calibrated("{folder}")', index)(new_topics)
    p_values = dict(zip(whole, calibration.p_values(whole).tolist(), strict=True))
    assert refused(run) == {t: p for t, p in p_values.items() if p <= 0.2}
    assert "n3" in refused(run)
    assert refused(run).keys() < p_values.keys()
    asked = pipeline(f'bm25() % 40 >> calibrated("{folder}")', index)(topics())
    p_values = dict(zip(asked, calibration.p_values(asked).tolist(), strict=True))
    middle = sorted(p_values.values())[9]
    assert middle < 1
    assert refused(Abstain(middle + 1e-9)(asked)) == {t: p for t, p in p_values.items() if p <= middle}
    assert all(len(run[t]) == (0 if t in refused(run) else len(whole[t])) for t in run)
    assert refused(whole) == {}
    assert "at most 0.2 of those whose answer the collection holds are refused" in promises_of(run)[0]["statement"]


def test_a_promise_after_abstain_adds_its_risk(index: Index, folder: Path, new_topics: Topics) -> None:
    run = pipeline(f'bm25() % 40 >> calibrated("{folder}") >> abstain(0.2) >> cut(recall=0.7)', index)(new_topics)
    assert [promise["kind"] for promise in promises_of(run)] == ["answerable", "recall"]
    assert promises_of(run)[1]["statement"].endswith("; but abstain before it raises the risk to 0.5 at most")


def test_an_explanation_leads_from_decision_to_probability_to_score(index: Index, folder: Path) -> None:
    text = f'bm25() % 40 >> calibrated("{folder}") >> abstain(0.2) >> cut(recall=0.7)'
    query = "spring oasis water"
    best = index.bm25().search(query, k=1)[0]
    explanation = pipeline(text, index).explain(query, best.id)
    assert explanation.label.startswith("kept: expected share of the relevant documents >= ")
    assert 0 < explanation.parts[1].value < explanation.value
    answered = explanation.parts[0]
    assert answered.label.startswith("the topic is answered: p-value ")
    probability = answered.parts[0]
    assert probability.label == "probability, logistic in the log odds"
    score, log_odds = probability.parts
    assert score.value == pytest.approx(best.score)
    assert log_odds.value == pytest.approx(sum(part.value for part in log_odds.parts))
    assert probability.value == pytest.approx(1 / (1 + np.exp(-log_odds.value)), rel=1e-6)
    assert explanation.value == pytest.approx(probability.value)
    last = index.bm25().search(query, k=40)[-1]
    assert pipeline(text, index).explain(query, last.id).label.startswith("left out: expected share of")
    assert pipeline(text, index).explain("zzz", best.id).label.startswith("abstain refused the topic: p-value")


def test_another_pipeline_is_refused_and_another_collection_noted(index: Index, folder: Path, tmp_path: Path) -> None:
    made_elsewhere = (index.bm25() % 40)(Topics.of(["spring"]))
    assert Calibrated(folder)(made_elsewhere).provenance["calibration"]["notes"] == []
    filtered = pipeline(f'bm25(where="price > 0") % 40 >> calibrated("{folder}") >> cut(recall=0.7)', index)(["spring"])
    assert promises_of(filtered)[0]["statement"].endswith("; but the filter is another than in the training")
    larger = Index.build(documents(120), tmp_path / "larger.index")
    run = pipeline(f'bm25() % 40 >> calibrated("{folder}") >> cut(recall=0.7)', larger)(["spring"])
    assert promises_of(run)[0]["statement"].endswith("; but the collection is another than in the training, or has changed")
    unknown = Calibrated(folder)(Run.of({"1": {"d1": 2.0}}, Topics.of(["spring"])))
    assert unknown.provenance["calibration"]["notes"] == [
        "whether it is the pipeline of the training is unknown, whose longest ranking has 40 documents and here 1"
    ]


def test_topics_of_the_training_are_counted_in_a_warning(index: Index, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fontes.calibration"):
        run = pipeline(f'bm25() % 40 >> calibrated("{folder}")', index)(topics(5))
    assert run.provenance["calibration"]["seen"] == 5
    assert "the calibration has learned from 5 of the 5 topics" in caplog.text


def test_a_damaged_a_missing_and_a_changed_calibration_are_refused(
    index: Index, folder: Path, tmp_path: Path, new_topics: Topics, fontes: Fontes
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    run = pipeline(f'bm25() % 40 >> calibrated("{copy}")', index)(new_topics)
    loaded = Calibration.load(copy)
    loaded.facts["note"] = "another"
    loaded.save(copy)
    assert promises_of(PromisedCut(recall=0.7)(run))  # a server goes on while it is trained again
    _CALIBRATIONS.clear()
    with pytest.raises(ParameterError, match=r"copy has changed since the run; run the pipeline again"):
        PromisedCut(recall=0.7)(run)
    code, _, errors = fontes("search", index.path, "spring", "--pipeline", f'bm25() % 9 >> calibrated("{folder}")')
    assert code != 0
    assert "was trained for" in errors
    assert "Traceback" not in errors


def test_decisions_on_a_run_take_the_calibration_from_its_provenance(index: Index, folder: Path, new_topics: Topics) -> None:
    run = pipeline(f'bm25() % 40 >> calibrated("{folder}")', index)(new_topics)
    assert PromisedCut(recall=0.7)(run).rows < run.rows
    assert set(refused(Abstain(0.2)(run))) >= {"n3"}
    decisions = Abstain(0.2) >> PromisedCut(recall=0.7)
    assert decisions(run).to_dict() == PromisedCut(recall=0.7)(Abstain(0.2)(run)).to_dict()


def test_log_odds_of_calibrated_runs_add_up(index: Index, folder: Path, new_topics: Topics) -> None:
    one = f'bm25() % 40 >> calibrated("{folder}")'
    run = pipeline(one, index)(new_topics)
    odds = np.log(run.scores.astype(np.float64) / (1 - run.scores.astype(np.float64)))
    fused = ft.fuse(run, run, method="logodds", weights=[1, 0.5])
    assert fused.scores == pytest.approx(1.5 * odds, rel=1e-5)
    stage = pipeline(f'fuse({one}, {one}, method="logodds")', index)
    assert stage(new_topics).scores == pytest.approx(2 * odds, rel=1e-5)
    best = run["n1"][0]
    explanation = stage.explain("spring oasis water", best.id)
    assert explanation.parts[0].label.startswith(f"log odds of {best.score:g} in ")
    assert explanation.parts[0].parts[0].label == "probability, logistic in the log odds"
    missing = ft.fuse({"1": {"a": 0.9, "b": 0.2}}, {"1": {"c": 0.5}}, method="logodds").to_dict()["1"]
    assert missing == pytest.approx({"a": np.log(9), "b": np.log(1 / 4), "c": np.log(1 / 4)}, rel=1e-6)


def test_an_experiment_runs_shared_prefixes_once_and_gives_the_same_lists(index: Index, tmp_path: Path) -> None:
    fused = ft.fuse(index.bm25(), index.ql()) % 30
    settings = CalibrationSettings(map="logistic", share=0.2, group=None, near=1.0)
    qrels = judgments(topics())
    train_calibration(fused(topics()), qrels, tmp_path / "fused", settings)
    stages = {"whole": fused, "cut": fused >> Calibrated(tmp_path / "fused") >> PromisedCut(recall=0.7)}
    for _ in range(2):  # the second time from the cache
        result = ft.compare(stages, topics(), qrels, ["R"], cache=tmp_path / "cache")
        assert result.systems["cut"].run.to_dict() == stages["cut"](topics()).to_dict()
        assert promises_of(result.systems["cut"].run)[0]["level"] == 0.7
    shutil.move(tmp_path / "fused", tmp_path / "moved")
    _CALIBRATIONS.clear()
    stages = {f"cut {level}": fused >> Calibrated(tmp_path / "moved") >> PromisedCut(recall=level) for level in (0.6, 0.65)}
    for system in ft.compare(stages, topics(), qrels, ["R"], cache=tmp_path / "cache").systems.values():
        assert system.run.provenance["calibration"]["model"] == str(tmp_path / "moved")
    with pytest.raises(PipelineError, match="needs probabilities"):
        ft.compare(
            {"a": fused >> Calibrated(tmp_path / "moved") >> index.sort("price") >> PromisedCut(recall=0.7)}, topics(), qrels
        )


def test_pieces_of_a_run_join_their_refused_topics() -> None:
    parts = [
        {"refused": {"a": 0.1}, "promises": [1]},
        {"refused": {}, "promises": [1]},
        {"refused": {"c": 0.2}, "promises": [1]},
    ]
    assert joined(parts) == {"refused": {"a": 0.1, "c": 0.2}, "promises": [1]}
