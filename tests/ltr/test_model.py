"""Models of learning to rank: hand-computed linear scores, LightGBM's own trees, and files that are checked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fontes.core import FontesError, Topics
from fontes.core.errors import IndexFormatError, InputError, MissingExtraError
from fontes.ltr import LinearModel, RankModel, TreeModel
from fontes.ltr.model import hashes

MATRIX = np.array([[1.0, 10.0], [np.nan, 20.0], [3.0, np.nan]])


def linear() -> LinearModel:
    return LinearModel({"features": ["a", "b"]}, np.array([2.0, -0.5]), 7.0, np.array([5.0, 4.0]))


def trees() -> TreeModel:
    lightgbm = pytest.importorskip("lightgbm")
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(300, 2))
    inputs[draw.random((300, 2)) < 0.2] = np.nan
    data = lightgbm.Dataset(inputs, np.nan_to_num(inputs[:, 0]) > 0.3, group=[30] * 10, params={"verbosity": -1})
    parameters = {"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 5, "num_threads": 1}
    return TreeModel({"features": ["a", "b"]}, lightgbm.train(parameters, data, 12).model_to_string())


def test_a_linear_score_is_the_constant_and_weight_times_feature_with_the_mean_for_a_missing_one() -> None:
    model = linear()
    assert model.predict(MATRIX).tolist() == [7 + 2 - 5, 7 + 10 - 10, 7 + 6 - 2]
    assert model.contributions(MATRIX).tolist() == [[2.0, -5.0, 7.0], [10.0, -10.0, 7.0], [6.0, -2.0, 7.0]]
    assert model.account(0, np.nan) == "a: weight 2 times its mean 5, as the value is missing"
    assert model.predict(MATRIX[:0]).shape == (0,)
    assert model.importance(np.array([[0.0, 0.0], [2.0, 4.0]])).tolist() == [2 / 3, 1 / 3]


def test_a_linear_score_does_not_depend_on_the_other_rows() -> None:
    draw = np.random.default_rng(1)
    model = LinearModel({"features": list("abcdefghi")}, draw.normal(size=9), 0.1, np.zeros(9))
    matrix = draw.normal(size=(50, 9))
    assert model.predict(matrix).tolist() == [model.predict(row[None])[0] for row in matrix]


def test_trees_score_as_lightgbm_and_their_contributions_sum_to_the_score() -> None:
    import lightgbm

    model = trees()
    matrix = np.random.default_rng(5).normal(size=(200, 2))
    matrix[::7, 0] = np.nan
    assert np.array_equal(model.predict(matrix), lightgbm.Booster(model_str=model.text).predict(matrix))
    np.testing.assert_allclose(model.contributions(matrix).sum(axis=1), model.predict(matrix), rtol=1e-9, atol=1e-12)
    assert len(np.unique(model.predict(matrix))) > 5
    assert model.predict(matrix[:0]).shape == (0,)


@pytest.mark.parametrize("make", [linear, trees])
def test_a_saved_model_loads_equal_and_equal_models_give_equal_bytes(make: object, tmp_path: Path) -> None:
    model: RankModel = make()  # type: ignore[operator]
    model.topics = hashes(Topics.of({"b": "Old  wells", "a": "x"}))
    model.save(tmp_path / "one")
    model.save(tmp_path / "two")
    loaded = RankModel.load(tmp_path / "one")
    assert loaded.facts == model.facts
    assert type(loaded) is type(model)
    assert np.array_equal(loaded.predict(MATRIX), model.predict(MATRIX))
    assert np.array_equal(loaded.topics, hashes(Topics.of({"c": "old wells", "d": "X"})))
    files = {file.name: file.read_bytes() for file in (tmp_path / "one").iterdir()}
    assert files == {file.name: file.read_bytes() for file in (tmp_path / "two").iterdir()}
    assert not any(name.endswith((".pkl", ".pickle", ".joblib")) for name in files)


@pytest.mark.parametrize("make", [linear, trees])
def test_each_changed_byte_and_missing_file_is_one_sentence(make: object, tmp_path: Path) -> None:
    model: RankModel = make()  # type: ignore[operator]
    model.save(tmp_path / "m")
    for file in sorted((tmp_path / "m").iterdir()):
        sound = file.read_bytes()
        for place in (0, len(sound) // 2, len(sound) - 2):
            folder = tmp_path / f"{file.name}-{place}"  # the old place would be known
            model.save(folder)
            changed = bytearray(sound)
            changed[place] ^= 1
            (folder / file.name).write_bytes(changed)
            with pytest.raises(IndexFormatError, match=r"train it again: fontes train ranker$"):
                RankModel.load(folder)
        (folder / file.name).unlink()
        with pytest.raises(IndexFormatError, match="fontes train ranker"):
            RankModel.load(folder)


def test_a_model_that_is_not_there_or_something_else_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no model of learning to rank at .*nowhere; train one: fontes train ranker"):
        RankModel.load(tmp_path / "nowhere")
    with pytest.raises(IndexFormatError, match=r"artifact.json cannot be read"):
        RankModel.load(tmp_path)
    linear().save(tmp_path / "m")
    meta = json.loads((tmp_path / "m" / "artifact.json").read_text())
    (tmp_path / "m" / "artifact.json").write_text(json.dumps({**meta, "version": 99}))
    with pytest.raises(IndexFormatError, match=r"newer than the 1 that this Fontes reads; upgrade Fontes"):
        RankModel.load(tmp_path / "m")
    with pytest.raises(InputError, match="cannot be written"):
        linear().save(tmp_path / "m" / "artifact.json" / "x")


def test_trees_that_are_none_or_of_other_features_are_refused() -> None:
    text = trees().text
    with pytest.raises(IndexFormatError, match="has 2 features, not 1"):
        TreeModel({"features": ["a"]}, text)
    with pytest.raises(FontesError, match=r"trees.txt is no model of LightGBM"):
        TreeModel({"features": ["a"]}, "tree\nnonsense\n")


def test_trees_without_lightgbm_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    text = trees().text
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"needs lightgbm, which is not installed: pip install 'fontes\[ltr\]'"):
        TreeModel({"features": ["a", "b"]}, text)
