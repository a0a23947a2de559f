"""What a stage of learning to rank notices: broken weights, other vectors, a model trained again, topics it has learned."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from support.each import each
from support.ranked import WORDS, candidates, documents, topics
from support.static_models import model2vec, table

from fontes.core import ParameterError, Run, Topics
from fontes.core.arrays import Float64s
from fontes.core.errors import IndexFormatError
from fontes.index import Index
from fontes.ltr import Feature, LinearModel, RankModel, feature_matrix
from fontes.ltr.features import feature_names, features_of
from fontes.ltr.model import hashes
from fontes.ltr.stage import analyzer_facts, fingerprints

FEATURES = ["bm25()", "length()"]


def linear(index: Index, features: object = FEATURES, weights: tuple[float, ...] = (1.0, -0.5)) -> LinearModel:
    """A model as if it had been trained over an index."""
    parts = features_of(features, index)
    names = feature_names(parts)
    models = {name: found for name, part in zip(names, parts, strict=True) if (found := fingerprints(part))}
    facts = {"features": names, "analyzer": analyzer_facts(index), "models": models}
    return LinearModel(facts, np.array(weights), 0.25, np.zeros(len(weights)))


@each("value", [np.nan, np.inf, -np.inf])
@each("part", ["weights", "means", "constant"])
def test_a_model_with_numbers_that_are_missing_or_infinite_is_not_loaded(
    index: Index, tmp_path: Path, part: str, value: float
) -> None:
    model = linear(index)
    setattr(model, part, value if part == "constant" else np.array([1.0, value]))
    model.save(tmp_path / "m")
    with pytest.raises(IndexFormatError, match=r"has weights that are no finite numbers; .*fontes train ranker"):
        RankModel.load(tmp_path / "m")


@dataclass(frozen=True)
class Least(Feature):
    """Minus infinity for one document."""

    value: float = field(default=-np.inf)

    def values(self, run: Run) -> Float64s:
        return np.where(np.arange(run.rows) == 2, self.value, 0.0)


def test_minus_infinity_is_no_feature_and_a_missing_value_is_one(index: Index) -> None:
    run = candidates(index)
    assert np.isnan(feature_matrix(run, [Least(np.nan)])[2, 0])


def test_a_model_that_is_trained_again_in_its_folder_is_read_again(index: Index, tmp_path: Path) -> None:
    run = candidates(index)
    scores = []
    for weights in ((1.0, 0.0), (0.0, 1.0)):
        linear(index, weights=weights).save(tmp_path / "m")
        scores.append(index.ltr(tmp_path / "m")(run).scores)
    matrix = feature_matrix(run, features_of(FEATURES, index))
    assert [sorted(own.tolist()) for own in scores] == [
        sorted((matrix[:, n] + 0.25).astype(np.float32).tolist()) for n in (0, 1)
    ]


def test_the_key_of_the_stage_is_of_model_index_and_features(index: Index, tmp_path: Path) -> None:
    other = Index.build(documents(50), tmp_path / "o.index", separate=True, positions=True)
    linear(index).save(tmp_path / "m")
    linear(index).save(tmp_path / "copy")
    linear(index, weights=(1.0, 0.5)).save(tmp_path / "n")
    key = index.ltr(tmp_path / "m").key()
    assert key == index.ltr(tmp_path / "copy").key()
    assert len({key, index.ltr(tmp_path / "n").key(), other.ltr(tmp_path / "m").key()}) == 3


def test_vectors_of_a_feature_are_made_and_another_encoder_is_refused(tmp_path: Path) -> None:
    index = Index.build(documents(), tmp_path / "v.index")
    feature = f'dense("{model2vec(tmp_path / "encoder", {"normalize": False})}")'
    linear(index, feature, (1.0,)).save(tmp_path / "m")
    stage = index.bm25() % 40 >> index.ltr(tmp_path / "m")
    stage.prepare()
    assert np.isfinite(stage(topics()).scores).all()
    shutil.rmtree(tmp_path / "encoder")
    model2vec(tmp_path / "encoder", {"normalize": False}, embeddings=2 * table())
    changed = Index.open(tmp_path / "v.index")
    with pytest.raises(
        ParameterError, match=r"the model behind the feature .* has changed since .*m was trained; train it again"
    ):
        changed.ltr(tmp_path / "m").check_needs()


@pytest.mark.parametrize(("count", "is_told"), [(0, False), (1, False), (2, True)])
def test_a_warning_is_about_several_topics_and_not_about_the_query_of_a_user(
    index: Index, tmp_path: Path, caplog: pytest.LogCaptureFixture, count: int, is_told: bool
) -> None:
    model = linear(index)
    learned = list(topics().values())[:count]
    model.topics = np.sort(hashes(Topics(learned)))
    model.save(tmp_path / "m")
    asked = Topics([*learned, *Topics.of({"new": f"{WORDS[0]} {WORDS[7]}"}).values()])
    with caplog.at_level(logging.WARNING, "fontes.ltr"):
        run = index.ltr(tmp_path / "m")(index.bm25()(asked))
    assert run.provenance["ltr"]["seen"] == count
    assert (f"has learned from {count} of the {count + 1} topics" in caplog.text) == is_told
