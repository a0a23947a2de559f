"""Training of models of learning to rank: what they learn, folds without leakage, figures, and refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Fontes
from support.ranked import FEATURES, candidates, documents, judgments, topics

from fontes.core import ParameterError, Qrels, Topic, Topics
from fontes.core.errors import InputError
from fontes.formats import read_run, write_corpus, write_qrels, write_topics
from fontes.index import Index
from fontes.ltr import LinearModel, RankModel
from fontes.measures import evaluate
from fontes.train import RankerSettings, train_ranker, validate_ranker
from fontes.train.learners import Scale
from fontes.train.splits import units_without_leakage
from fontes.tuning.folds import folds_of

pytest.importorskip("sklearn")
SMALL: dict[str, Any] = {"group": None, "trees": 30, "patience": 5, "least": 5, "folds": 3}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(documents(), tmp_path_factory.mktemp("ltr") / "springs.index", separate=True)


@pytest.mark.parametrize("learner", ["linear", "lightgbm", "setrank"])
def test_a_model_ranks_held_out_topics_better_and_is_reproducible(index: Index, tmp_path: Path, learner: str) -> None:
    run, qrels, settings = candidates(index), judgments(topics()), RankerSettings(learner=learner, **SMALL)
    one = train_ranker(index, run, qrels, FEATURES, tmp_path / "one", settings)
    train_ranker(index, run, qrels, FEATURES, tmp_path / "two", settings)
    assert one.score > one.before + 0.05
    assert one.score == pytest.approx(evaluate(one.run, qrels, "nDCG@10")["nDCG@10"])
    assert one.before == pytest.approx(evaluate(run, qrels, "nDCG@10")["nDCG@10"])
    assert sum(one.importance.values()) == pytest.approx(1, abs=1e-5)
    assert list(one.importance) == RankModel.load(tmp_path / "one").features
    assert one.candidates == run.rows
    assert "importance:" in str(one)
    assert json.dumps(one.to_dict())
    files = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1]


def test_a_linear_model_finds_the_weights_that_order_every_pair(index: Index) -> None:
    run, long = candidates(index), {doc["_id"]: int(len(doc["text"].split()) > 6) for doc in documents()}
    rows = [(topic, "0", hit.id, long[hit.id]) for topic, ranking in run.items() for hit in ranking]
    training = train_ranker(
        index, run, Qrels(rows), "score(), length()", settings=RankerSettings(learner="linear", folds=3, group=None)
    )
    model = training.model
    assert isinstance(model, LinearModel)
    assert model.weights[1] > 0
    assert training.score == 1.0
    assert training.importance["length()"] > 0.8


def test_the_number_of_trees_is_chosen_on_held_out_topics(index: Index) -> None:
    run, qrels = candidates(index), judgments(topics())
    training = train_ranker(index, run, qrels, FEATURES, settings=RankerSettings(**{**SMALL, "trees": 300}))
    assert 1 <= training.chosen["trees"] < 300


@pytest.mark.slow
def test_estimators_of_scikit_learn_are_kept_as_weights_and_others_refused(index: Index, tmp_path: Path) -> None:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.svm import SVR

    run, qrels = candidates(index), judgments(topics())
    for estimator in (Ridge(), LogisticRegression()):
        training = train_ranker(index, run, qrels, FEATURES, settings=RankerSettings(folds=3, group=None), estimator=estimator)
        assert training.model.learner == "linear"
        assert training.score > training.before
    for wrong, name in ((RandomForestRegressor(), "RandomForestRegressor"), (Ridge, "Ridge"), (SVR(), "SVR"), (3, "int")):
        with pytest.raises(ParameterError, match=f"{name} is no unfitted linear model of scikit-learn"):
            train_ranker(index, run, qrels, FEATURES, settings=RankerSettings(folds=3, group=None), estimator=wrong)


def test_ridge_gives_the_weights_of_scikit_learn_itself(index: Index) -> None:
    from sklearn.linear_model import Ridge

    from fontes.ltr import feature_matrix
    from fontes.ltr.features import features_of

    run, qrels = candidates(index), judgments(topics())
    training = train_ranker(
        index, run, qrels, "bm25(), length()", settings=RankerSettings(folds=3, group=None), estimator=Ridge(alpha=1e-9)
    )
    matrix = feature_matrix(run, features_of("bm25(), length()", index))
    grades = [qrels[t].get(hit.id, 0) for t, ranking in run.items() for hit in ranking]
    expected = Ridge(alpha=1e-9).fit(matrix, grades).predict(matrix)
    np.testing.assert_allclose(training.model.predict(matrix), expected, rtol=1e-6, atol=1e-9)


def test_duplicates_and_groups_stay_in_one_fold() -> None:
    texts = {f"q{n}": f"{'abcdefgh'[n % 8] * 12} about {n % 8} of them" for n in range(24)}
    folds = folds_of(units_without_leakage(Topics.of(texts), Qrels()), 4, 0)
    assert set(folds.values()) == {0, 1, 2, 3}
    assert all(folds[f"q{n}"] == folds[f"q{n % 8}"] for n in range(24))
    shared = Qrels((f"q{n}", "0", f"d{n // 6}", 1) for n in range(8))
    units = units_without_leakage(Topics.of({f"q{n}": "abcdefgh"[n] * 9 for n in range(8)}), shared, groups="document")
    folds = folds_of(units, 2, 0)
    assert len({folds[f"q{n}"] for n in range(6)}) == 1


def test_topics_to_validate_on_that_duplicate_topics_to_learn_from_are_refused(index: Index) -> None:
    run, qrels = candidates(index), judgments(topics())
    ids = list(run.topics)
    learned = [topic for topic in run.topics.values() if topic.id in ids[:14]]
    held = [topic for topic in run.topics.values() if topic.id in ids[14:]]
    first, rest = ((index.bm25() % 40)(Topics(own)) for own in (learned, held))
    settings = RankerSettings(learner="linear", group=None)
    training = train_ranker(index, first, qrels, FEATURES, settings=settings, validation=(rest, judgments(Topics(held))))
    assert list(training.run.topics) == ids[14:]
    assert training.topics == 14
    copied = Topics([*held, Topic("copy", learned[0].text.upper())])
    judged = Qrels([*judgments(Topics(held)).rows(), ("copy", "0", "d1", 1)])
    with pytest.raises(InputError, match="topic 'copy' to validate on has the text of topic 'q0' to learn from, or nearly"):
        train_ranker(index, first, qrels, FEATURES, settings=settings, validation=((index.bm25() % 40)(copied), judged))
    both = RankerSettings(learner="linear", group="document")
    with pytest.raises(InputError, match="is relevant on both sides; divide topics with `fontes split --group document`"):
        train_ranker(index, first, qrels, FEATURES, settings=both, validation=(rest, judgments(Topics(held))))


@pytest.mark.slow
def test_nested_validation_ranks_each_topic_by_a_model_without_it(index: Index) -> None:
    run, qrels = candidates(index), judgments(topics())
    result = validate_ranker(index, run, qrels, FEATURES, RankerSettings(learner="linear", folds=3, group=None), folds=4)
    assert sorted(topic for fold in result.folds for topic in fold.topics) == sorted(qrels)
    assert result.score == pytest.approx(evaluate(result.run, qrels, "nDCG@10")["nDCG@10"])
    assert result.score == pytest.approx(
        np.average([f.score for f in result.folds], weights=[len(f.topics) for f in result.folds])
    )
    assert "nested cross-validation: nDCG@10" in str(result)
    assert len(result.to_dict()["folds"]) == 4


def test_topics_that_share_documents_stay_in_one_fold(index: Index) -> None:
    run = candidates(index)
    alone = Qrels((t, "0", ranking[n % 4].id, 1) for n, (t, ranking) in enumerate(run.items()))
    result = validate_ranker(index, run, alone, "score(), length()", RankerSettings(learner="linear", folds=2), folds=2)
    fold_of = {topic: n for n, fold in enumerate(result.folds) for topic in fold.topics}
    of_docs: dict[str, set[int]] = {}
    for topic, _, doc, _ in alone.rows():
        of_docs.setdefault(doc, set()).add(fold_of[topic])
    assert all(len(folds) == 1 for folds in of_docs.values())
    assert len(of_docs) < len(alone)


def test_the_command_trains_measures_and_says_how_to_use_the_model(index: Index, tmp_path: Path, fontes: Fontes) -> None:
    write_topics(topics(), tmp_path / "topics.jsonl")
    write_qrels(judgments(topics()), tmp_path / "qrels.txt")
    common = (index.path, "--topics", tmp_path / "topics.jsonl", "--qrels", tmp_path / "qrels.txt", "--features", FEATURES)
    more = (
        "--learner",
        "linear",
        "--group",
        "None",
        "--folds",
        3,
        "--nested",
        3,
        "--held-out",
        tmp_path / "held.run",
        "-o",
        tmp_path / "m",
    )
    code, output, errors = fontes("train", "ranker", *common, *more, "--pipeline", "bm25() % 40")
    assert code == 0, errors
    assert "a linear model from" in output
    assert "nested cross-validation: nDCG@10" in output
    assert f'use it as bm25() % 40 >> ltr("{tmp_path / "m"}")' in output
    assert set(read_run(tmp_path / "held.run")) == set(topics())
    code, output, errors = fontes("train", "ranker", *common, *more[:6], "-o", tmp_path / "j", "--json")
    assert json.loads(output)["chosen"]["strength"] > 0
    code, output, errors = fontes("train", "ranker", *common, "--features", "bm25(), column('kind')", "-o", tmp_path / "k")
    assert code != 0
    assert "the column 'kind' holds text" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_the_command_holds_out_the_topics_of_a_split(tmp_path: Path, fontes: Fontes) -> None:
    folder, ids = tmp_path / "springs", list(topics())
    (folder / "qrels").mkdir(parents=True)
    write_corpus(documents(), folder / "corpus.jsonl")
    write_topics(topics(), folder / "queries.jsonl")
    for split, own in (("train", ids[:14]), ("dev", ids[14:])):
        write_qrels(Qrels(row for row in judgments(topics()).rows() if row[0] in own), folder / "qrels" / f"{split}.tsv")
    index = Index.build(folder / "corpus.jsonl", tmp_path / "s.index")
    learned = (
        "--topics",
        folder,
        "--qrels",
        folder,
        "--split",
        "train",
        "--validation",
        "dev",
        "--learner",
        "linear",
        "--group",
        "None",
    )
    features = ("--features", "bm25(), length()", "--held-out", tmp_path / "dev.run", "-o", tmp_path / "m")
    code, _, errors = fontes("train", "ranker", index.path, *learned, *features)
    assert code == 0, errors
    assert set(read_run(tmp_path / "dev.run")) == set(ids[14:])


def test_a_constant_feature_has_no_scale_however_its_mean_is_rounded() -> None:
    constant = np.full(22 * 20, np.log(3.0))
    scale = Scale.of(np.column_stack([constant, np.arange(len(constant))]))
    assert np.ptp(constant) == 0 != np.abs(constant - scale.means[0]).max()
    assert scale.deviations[0] == 1.0
    assert scale.deviations[1] > 100
