"""What errors of learning to rank say: the feature, model, topic or document at fault, and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.errors import check_error
from support.ranked import FEATURES, candidates, documents, judgments, topics

from fontes.core import FontesError, IndexFormatError, InputError, ParameterError, PipelineError, Run, Topics
from fontes.core.arrays import Float64s
from fontes.core.expression import pipeline
from fontes.core.function import stage
from fontes.index import Index
from fontes.ltr import Feature, LinearModel, RankModel, feature_matrix
from fontes.ltr.features import check_features, features_of
from fontes.train import RankerSettings, train_ranker


@dataclass(frozen=True)
class Infinite(Feature):
    """An infinite value for one document."""

    value: float = field(default=float("inf"))

    def values(self, run: Run) -> Float64s:
        return np.where(np.arange(run.rows) == 3, self.value, 0.0)


@pytest.fixture(scope="module")
def model(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "linear"
    settings = RankerSettings(learner="linear", folds=3, group=None)
    train_ranker(index, candidates(index), judgments(topics()), FEATURES, folder, settings)
    return folder


def other(folder: Path, **options: Any) -> Index:
    return Index.build(documents(5), folder / "other.index", overwrite=True, **options)


elsewhere = stage(lambda run: {"q0": {"elsewhere": 1.0}}, takes=Run, gives=Run)


@each(
    ("features", "names", "remedy"),
    [
        ('column("dat")', "column 'dat'", "did you mean 'date'?"),
        ('column("kind")', "the column 'kind' holds text", "numbers or dates or truth values"),
        ('length("body")', "no field 'body'", ""),
        ("bm25(), bm25() % 9", "bm25(k1=0.9, b=0.4) is given twice", ""),
        ("()", "no features", ""),
        ("bm25(), 3", "3 is no feature", "retrievers such as bm25()"),
        ("query()", "query() is no feature", ""),
        (7, "features", "a list, such as"),
        ('dense("no-such-folder/model")', "no-such-folder", ""),
    ],
)
def test_features_that_cannot_be_used(index: Index, features: Any, names: str, remedy: str) -> None:
    check_error(lambda: check_features(features_of(features, index.state), index.state), FontesError, names, remedy)


@each(
    ("call", "error", "names", "remedy"),
    [
        (
            lambda i, m, p: check_features((other(p).bm25(),), i.state),
            ParameterError,
            "other.index, not over … springs.index",
            "take one index",
        ),
        (
            lambda i, m, p: feature_matrix(Run.of({"q0": {"d9": 1.0}}, topics()), [other(p).bm25()]),
            InputError,
            "bm25: document 'd9'",
            "",
        ),
        (
            lambda i, m, p: feature_matrix(candidates(i), [0.5 * i.bm25()]),
            PipelineError,
            "bm25",
            "retrievers and rerankers can",
        ),
        (lambda i, m, p: feature_matrix(candidates(i), [elsewhere]), PipelineError, "gives other documents or topics", ""),
        (
            lambda i, m, p: feature_matrix(candidates(i), [Infinite()]),
            InputError,
            "topic 'q0', document 'd … Infinite() is inf",
            "",
        ),
        (
            lambda i, m, p: feature_matrix(candidates(i), [Infinite(-np.inf)]),
            InputError,
            "topic 'q0', document 'd … Infinite(value=-inf) is -inf",
            "finite numbers",
        ),
        # the stage
        (lambda i, m, p: i.ltr(m).explain("x", "d0"), PipelineError, "ltr", "documents of a run"),
        (
            lambda i, m, p: pipeline(f'bm25() >> ltr("{m}", features=[bm25(), tfidf()])', i)("spring"),
            ParameterError,
            "bm25( … not from tfidf()",
            "leave features out",
        ),
        (
            lambda i, m, p: i.ltr(m, features=features_of(FEATURES, i)[::-1]).check_needs(),
            ParameterError,
            "another order",
            "leave features out",
        ),
        (
            lambda i, m, p: (lambda o: o.ltr(m)(candidates(o)))(other(p, analyzer="whitespace", separate=True)),
            ParameterError,
            "another analyzer or other fields than … other.index",
            "",
        ),
        (
            lambda i, m, p: (lambda o: (o.bm25() >> o.ltr(m)).search("y"))(
                Index.build([{"_id": "a", "title": "x", "text": "y"}], p / "b.index", separate=True)
            ),
            ParameterError,
            "column 'date'",
            "the index has no columns",
        ),
        (lambda i, m, p: i.ltr(p / "none")(candidates(i)), InputError, "none", "train one: fontes train ranker"),
        (lambda i, m, p: i.ltr(3), ParameterError, "model … not 3", "the folder of a model"),
        (lambda i, m, p: i.ltr(m)(Run.of({"n0": {"zz": 1.0}}, Topics.of({"n0": "x"}))), InputError, "document 'zz'", ""),
    ],
)
def test_candidates_and_models(
    index: Index,
    model: Path,
    tmp_path: Path,
    call: Callable[[Index, Path, Path], object],
    error: type[FontesError],
    names: str,
    remedy: str,
) -> None:
    check_error(lambda: call(index, model, tmp_path), error, names, remedy)


def test_models_that_are_not_there_or_something_else(tmp_path: Path) -> None:
    model = LinearModel({"features": ["a", "b"]}, np.array([2.0, -0.5]), 7.0, np.array([5.0, 4.0]))
    nowhere = lambda: RankModel.load(tmp_path / "nowhere")  # noqa: E731
    check_error(nowhere, InputError, "nowhere", "train one: fontes train ranker")
    check_error(lambda: RankModel.load(tmp_path), IndexFormatError, "artifact.json cannot be read")
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "artifact.json"
    check_error(lambda: model.save(file / "x"), InputError, "artifact.json … cannot be written")
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    newer = "99, newer than the 1 that this Fontes reads"
    check_error(lambda: RankModel.load(tmp_path / "m"), IndexFormatError, newer, "upgrade Fontes")
