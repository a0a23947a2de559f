"""The stage `ltr`: scores, text, account, provenance, and the models that it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Fontes
from support.ranked import FEATURES, WORDS, candidates, judgments, topics

from fontes.core import Explanation, Run, Topics
from fontes.core.errors import IndexFormatError
from fontes.core.expression import pipeline
from fontes.core.searches import filtered
from fontes.experiments import Experiment
from fontes.formats import read_run, write_qrels, write_topics
from fontes.index import Index
from fontes.ltr import LearningToRank, RankModel, feature_matrix
from fontes.ltr.features import features_of
from fontes.train import RankerSettings, train_ranker

LEARNERS = ("linear", "lightgbm", "setrank")


@pytest.fixture(scope="module")
def models(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for learner in LEARNERS:
        settings = RankerSettings(learner=learner, trees=30, patience=5, least=5, folds=3, group=None)
        train_ranker(index, candidates(index), judgments(topics()), FEATURES, folder / learner, settings)
    return folder


def asked(count: int = 4) -> Topics:
    """Topics that no model has learned from."""
    return Topics.of({f"n{n}": f"{WORDS[n]} {WORDS[n + 3]}" for n in range(count)})


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_score_is_the_models_over_the_features(index: Index, models: Path, learner: str) -> None:
    before = (index.bm25() % 40)(asked())
    after = index.ltr(models / learner)(before)
    matrix = feature_matrix(before, features_of(FEATURES, index))
    scores = RankModel.load(models / learner).predict(matrix, before.bounds).astype(np.float32)
    assert after == before.with_scores(scores)
    assert after != before
    assert after.provenance["ltr"] == {
        "model": RankModel.load(models / learner).digest,
        "learner": learner,
        "features": RankModel.load(models / learner).features,
        "seen": 0,
    }


def test_the_text_makes_the_stage_again_with_or_without_features(index: Index, models: Path) -> None:
    folder = models / "linear"
    for text in (f'bm25() % 40 >> ltr("{folder}")', f'bm25() % 40 >> ltr(features=[{FEATURES}], model="{folder}") % 3'):
        one = pipeline(text, index)
        assert repr(pipeline(repr(one), index)) == repr(one)
        assert pipeline(repr(one), index)(asked()) == one(asked())
    named = index.bm25() % 40 >> LearningToRank(index, folder, features=list(features_of(FEATURES, index)))
    assert named(asked()) == pipeline(f'bm25() % 40 >> ltr("{folder}")', index)(asked())
    assert index.ltr(folder).key() == index.ltr(str(folder)).key() != index.ltr(models / "lightgbm").key()


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_account_sums_to_the_score_and_holds_the_accounts_of_the_features(index: Index, models: Path, learner: str) -> None:
    whole = index.bm25() % 40 >> index.ltr(models / learner)
    run = whole(asked())
    for topic in asked().values():
        for hit in list(run[topic.id])[:5]:
            account = whole.explain(topic, hit.id)
            assert account.value == hit.score
            assert sum(part.value for part in account.parts) == pytest.approx(hit.score, abs=1e-6)
            assert len(account.parts) == 7
            of_bm25 = account.parts[0]
            assert of_bm25.label.startswith("bm25(k1=0.9, b=0.4): ")
            assert of_bm25.parts[0].value == index.bm25().explain(topic, hit.id).value
    assert "is not among the" in whole.explain(asked()["n0"], outside(run, index)).label


def outside(run: Run, index: Index) -> str:
    return next(doc_id for doc_id in index.ids if doc_id not in set(run["n0"].ids))


def test_a_linear_account_is_weight_times_feature(index: Index, models: Path) -> None:
    model = RankModel.load(models / "linear")
    run = index.bm25()(asked())
    hit = run["n1"][2]
    account: Explanation = (index.bm25() >> index.ltr(models / "linear")).explain(asked()["n1"], hit.id)
    row = [(t, h.id) for t, ranking in run.items() for h in ranking].index(("n1", hit.id))
    values = feature_matrix(run, features_of(FEATURES, index))[row]
    weights = model.weights.tolist()  # type: ignore[attr-defined]
    for part, weight, value in zip(account.parts, weights, values.tolist(), strict=False):
        if not np.isnan(value):
            assert part.value == weight * value


def test_a_filter_of_the_pipeline_leaves_model_and_scores_as_they_are(index: Index, models: Path) -> None:
    folder = models / "lightgbm"
    plain = (index.bm25() >> index.ltr(folder))(asked()).to_dict()
    for text in (f'bm25() >> ltr("{folder}")', f'bm25() >> ltr("{folder}", features=({FEATURES}))'):
        some = filtered(pipeline(text, index), "kind == 'k1'")(asked()).to_dict()
        assert some
        for topic_id, ranking in some.items():
            assert ranking
            assert ranking.items() <= plain[topic_id].items()


def test_topics_that_the_model_has_learned_from_are_counted(
    index: Index, models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mixed = Topics([*list(topics().values())[:3], *asked().values()])
    run = (index.bm25() >> index.ltr(models / "linear"))(mixed)
    assert run.provenance["ltr"]["seen"] == 3
    assert "the model has learned from 3 of the 7 topics" in caplog.text


def test_a_damaged_model_is_one_sentence_on_the_command_line(
    index: Index, models: Path, tmp_path: Path, fontes: Fontes
) -> None:
    RankModel.load(models / "linear").save(tmp_path / "m")
    (tmp_path / "m" / "weights.npy").write_bytes((tmp_path / "m" / "weights.npy").read_bytes()[:-1] + b"\x7f")
    code, _, errors = fontes("search", index.path, "spring", "--pipeline", f'bm25() % 9 >> ltr("{tmp_path / "m"}")')
    assert code != 0
    assert "weights.npy has changed; restore it from a copy or train it again: fontes train ranker" in errors
    assert "Traceback" not in errors
    with pytest.raises(IndexFormatError):
        index.ltr(tmp_path / "m").check_needs()


def test_a_run_without_documents_stays_one(index: Index, models: Path) -> None:
    for learner in LEARNERS:
        assert (index.bm25() >> index.ltr(models / learner))({"1": "unknownword"}).rows == 0


def test_an_experiment_applies_a_model_beside_its_file(index: Index, models: Path, tmp_path: Path) -> None:
    write_topics(asked(), tmp_path / "topics.jsonl")
    write_qrels({"n0": {"d1": 1}, "n1": {"d2": 1}}, tmp_path / "qrels.tsv")
    RankModel.load(models / "linear").save(tmp_path / "ranker")
    (tmp_path / "e.toml").write_text(
        f'[collection]\ntopics = "topics.jsonl"\nqrels = "qrels.tsv"\n[index]\npath = "{index.path}"\n'
        "[systems]\nfirst = 'bm25() % 40'\nltr = 'first >> ltr(\"ranker\")'\n"
    )
    with (tmp_path / "e.toml").open("a") as file:
        file.write(f"named = '''first >> ltr(\"ranker\", features=[{FEATURES}])'''\n")
        file.write('boost = \'first >> boost("date", half_life="1y")\'\n')
        file.write("[report]\nallow_empty = true\n")  # ltr and named are the same
    report = Experiment(tmp_path / "e.toml", tmp_path / "out").run()
    assert list(report.systems) == ["first", "ltr", "named", "boost"]
    runs = [read_run(tmp_path / "out" / "runs" / f"{name}.run") for name in ("ltr", "named")]
    assert runs[0] == runs[1]
    assert json.loads((tmp_path / "out" / "experiment.lock").read_text())


@pytest.mark.slow
def test_the_server_takes_the_stage_in_a_pipeline(index: Index, models: Path) -> None:
    pytest.importorskip("fastapi")
    from support.serving import serving

    whole = f'bm25() % 40 >> ltr("{models / "linear"}")'
    with serving(index.path, pipelines={"learned": whole}) as server:
        answer = server.get("/search", params={"q": "spring water", "pipeline": "learned", "k": 3})
    expected = pipeline(whole, index).search("spring water", 3)
    assert [hit["id"] for hit in answer["hits"]] == expected.ids


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_server_ranks_and_explains_with_its_model_and_takes_no_other(index: Index, models: Path, learner: str) -> None:
    pytest.importorskip("fastapi")
    from support.serving import serving

    text = f'bm25() % 40 >> ltr("{models / learner}")'
    stage, topic = pipeline(text, index), asked()["n0"]
    with serving(Path(index.path), pipelines={"learned": text}, any_pipeline=True) as running:
        answer = running.get("/search", params={"q": topic.text, "k": 5})
        assert [(hit["id"], hit["score"]) for hit in answer["hits"]] == [(hit.id, hit.score) for hit in stage.search(topic, 5)]
        first = answer["hits"][0]
        account = running.get("/explain", params={"q": topic.text, "id": first["id"]})
        assert account["value"] == first["score"]
        other = text.replace(learner, "other")
        refused = running.problem("GET", "/search", params={"q": topic.text, "pipeline": other})
        assert refused == (403, "ltr with these parameters is not among what this server has loaded")


def test_a_server_whose_model_is_missing_does_not_start(index: Index, models: Path, fontes: Fontes) -> None:
    code, _, err = fontes("serve", index.path, "--pipeline", f'learned=bm25() >> ltr("{models / "none"}")', "--port", "0")
    assert (code, "none" in err, len(err.splitlines())) == (1, True, 1), err
