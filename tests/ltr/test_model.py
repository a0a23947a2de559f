"""Models of learning to rank: hand-computed linear scores, trees that score as by LightGBM, and files that are checked."""

import sys
from pathlib import Path

import numpy as np
import pytest
from support.each import each

from fontes.core import Topics
from fontes.core.errors import IndexFormatError
from fontes.ltr import LinearModel, RankModel, SetModel, TreeModel
from fontes.ltr.model import hashes, set_scores, set_shapes

MATRIX = np.array([[1.0, 10.0], [np.nan, 20.0], [3.0, np.nan]])


ONE_TREE = """tree
num_tree_per_iteration=1
max_feature_idx=1

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
split_gain=2 1
threshold=1 2
decision_type=8 8
left_child=1 -1
right_child=-3 -2
leaf_value=1 2 4
leaf_count=1 1 2

end of trees
"""


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


def test_a_linear_score_uses_the_mean_for_a_missing_feature() -> None:
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


def sets(features: int = 2, width: int = 16, blocks: int = 2) -> SetModel:
    draw = np.random.default_rng(2)
    weights = {name: draw.normal(size=shape) / 2 for name, shape in set_shapes(features, width, blocks).items()}
    facts = {"features": list("abcdefgh")[:features], "width": width, "blocks": blocks}
    return SetModel(facts, draw.normal(size=features), draw.uniform(1, 2, features), weights)


def test_scores_depend_on_other_candidates_but_not_on_their_order() -> None:
    model, draw = sets(5), np.random.default_rng(3)
    matrix, order = draw.normal(size=(12, 5)), draw.permutation(12)
    scores = model.predict(matrix)
    np.testing.assert_allclose(model.predict(matrix[order]), scores[order], rtol=1e-12)
    assert not np.allclose(model.predict(matrix[:6]), scores[:6])
    assert model.predict(matrix, np.array([0, 6, 6, 12])).tolist() == [*model.predict(matrix[:6]), *model.predict(matrix[6:])]


def test_the_blocks_of_setrank_are_encoder_layers_of_torch() -> None:
    torch = pytest.importorskip("torch")
    model = sets(5, width=24)
    inputs = np.random.default_rng(4).normal(size=(2, 7, 5))
    kept = {name: torch.tensor(array) for name, array in model.weights.items()}
    hidden = torch.tensor(inputs) @ kept["input"][:-1] + kept["input"][-1]
    for attention, inner, outer, norms in zip(*(kept[name] for name in ("attention", "inner", "outer", "norms")), strict=True):
        layer = torch.nn.TransformerEncoderLayer(24, 3, 48, dropout=0.0, batch_first=True, dtype=torch.float64)
        layer.load_state_dict(
            {
                "self_attn.in_proj_weight": torch.cat([matrix[:-1].T for matrix in attention[:3]]),
                "self_attn.in_proj_bias": torch.cat([matrix[-1] for matrix in attention[:3]]),
                "self_attn.out_proj.weight": attention[3][:-1].T,
                "self_attn.out_proj.bias": attention[3][-1],
                "linear1.weight": inner[:-1].T,
                "linear1.bias": inner[-1],
                "linear2.weight": outer[:-1].T,
                "linear2.bias": outer[-1],
                **{f"norm{n + 1}.{name}": norms[n][i] for n in (0, 1) for i, name in enumerate(("weight", "bias"))},
            }
        )
        hidden = layer(hidden)
    expected = (hidden @ kept["output"]).detach().numpy()
    np.testing.assert_allclose(set_scores(np, model.weights, inputs), expected, rtol=1e-9)
    padded = torch.tensor(np.concatenate([inputs, np.full((2, 3, 5), 9.0)], axis=1))
    absent = torch.tensor([0.0] * 7 + [-1e9] * 3, dtype=torch.float64).expand(2, 10)[:, None, None]
    np.testing.assert_allclose(set_scores(torch, kept, padded, absent)[:, :7].detach().numpy(), expected, rtol=1e-9)


def test_contributions_of_setrank_are_changes_of_a_candidate_and_sum_to_its_score() -> None:
    model, matrix = sets(3), np.random.default_rng(5).normal(size=(6, 3))
    matrix[1, 2] = np.nan
    contributions = model.contributions(matrix)
    np.testing.assert_allclose(contributions.sum(axis=1), model.predict(matrix), rtol=1e-9)
    assert contributions[1, 2] == 0
    alone = matrix.copy()
    alone[4, 1:] = np.nan
    first, last = model.predict(alone)[4] - contributions[4, 3], model.predict(matrix)[4]
    alone = matrix.copy()
    alone[4, 0] = np.nan
    assert contributions[4, 0] == pytest.approx((first + last - model.predict(alone)[4]) / 2)
    assert model.contributions(matrix, 4).tolist() == contributions[4:5].tolist()
    assert model.importance(matrix).sum() == pytest.approx(1)
    assert model.account(2, np.nan) == "c: its mean, as the value is missing"


@pytest.mark.parametrize("options", [{}, {"zero_as_missing": True}, {"use_missing": False}, {"bagging_fraction": 0.5}], ids=str)
def test_trees_score_and_explain_as_lightgbm(options: dict[str, object]) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    draw = np.random.default_rng(4)
    inputs = draw.normal(size=(600, 5))
    inputs[:, 1], inputs[:, 2] = draw.integers(-2, 3, 600), inputs[:, 2] * 1e-35
    inputs[draw.random((600, 5)) < 0.2] = np.nan
    data = lightgbm.Dataset(inputs, np.nan_to_num(inputs[:, 0]) + draw.normal(size=600) > 0.3, group=[30] * 20)
    parameters = {"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 3, "num_threads": 1, "bagging_freq": 1}
    booster = lightgbm.train(parameters | options, data, 30)
    model = TreeModel({"features": list("abcde")}, booster.model_to_string())
    matrix = np.concatenate([inputs, inputs * 10.0 ** draw.integers(-40, 40, size=inputs.shape)])
    scores, contributions = model.predict(matrix), model.contributions(matrix[::40])
    assert np.array_equal(scores, booster.predict(matrix, raw_score=True))
    np.testing.assert_allclose(contributions, booster.predict(matrix[::40], pred_contrib=True), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(contributions.sum(axis=1), scores[::40], rtol=1e-9, atol=1e-12)
    gains = booster.feature_importance("gain")
    np.testing.assert_allclose(model.importance(matrix), gains / gains.sum(), rtol=1e-4)
    assert len(np.unique(scores)) > 50
    assert model.predict(matrix[:0]).shape == (0,)
    assert model.contributions(matrix[:0]).shape == (0, 6)


def test_one_tree_by_hand() -> None:
    model = TreeModel({"features": ["a", "b"]}, ONE_TREE)
    rows = [[0.0, 2.0], [0.0, 2.5], [1.5, 0.0], [np.nan, 0.0], [0.0, np.nan]]
    assert model.predict(np.array(rows)).tolist() == [1, 2, 4, 4, 2]
    # mean (1 · 1 + 2 · 1 + 4 · 2) / 4; with a alone 1.5, with b alone (1 + 4) / 2
    assert model.contributions(np.array([[0.0, 2.0]])).tolist() == [[-1.375, -0.375, 2.75]]


@pytest.mark.parametrize("make", [linear, trees, sets])
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


@pytest.mark.parametrize("make", [linear, trees, sets])
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


CHANGES = {
    "no model of LightGBM": ("max_feature_idx=1", ""),
    "has the features 0 to 2, not 0 to 1": ("max_feature_idx=1", "max_feature_idx=2"),
    "several scores for a candidate": ("iteration=1", "iteration=2"),
    "the mean of trees": ("max_feature_idx", "average_output\nmax_feature_idx"),
    "tree 0 has no threshold": ("threshold", "thresholds"),
    "tree 0: it has 2 values of leaf_value, not 3": ("leaf_value=1 2 4", "leaf_value=1 2"),
    "tree 0: it has 3 values of leaf_value, not -2": ("num_leaves=3", "num_leaves=-2"),
    "tree 0: it has 3 values of leaf_value, not 99,999,999,999": ("num_leaves=3", "num_leaves=99999999999"),
    "categorical splits or linear leaves": ("num_cat=0", "num_cat=1"),
    "linear leaves": ("num_cat=0", "num_cat=0\nis_linear=1"),
    "features that are not from 0 to 1": ("split_feature=0 1", "split_feature=0 2"),
    "split_feature has features": ("split_feature=0 1", "split_feature=-1 1"),
    "decision_type has unknown types": ("decision_type=8 8", "decision_type=8 9"),
    "do not name each split and leaf once": ("left_child=1 -1", "left_child=1 -3"),
    "right_child do not name": ("right_child=-3 -2", "right_child=-3 -9"),
    "child has a smaller number than its parent": ("left_child=1 -1", "left_child=-1 1"),
    "threshold has values that are not numbers": ("threshold=1 2", "threshold=1 nan"),
    "could not convert string to float: 'x'": ("threshold=1 2", "threshold=1 x"),
    "leaf_value has values that are not numbers": ("leaf_value=1 2", "leaf_value=nan 2"),
    "its scores are too large": ("leaf_value=1 2", "leaf_value=1 1e39"),
    "leaf_count has values that are not above 0": ("leaf_count=1 1", "leaf_count=0 1"),
    "damaged: tree 0: .*too large": ("split_feature=0 1", f"split_feature=0 {10**30}"),
}


@each(("problem", "change"), CHANGES.items())
def test_trees_that_do_not_fit_together_are_one_sentence(problem: str, change: tuple[str, str], tmp_path: Path) -> None:
    model = TreeModel({"features": ["a", "b"]}, ONE_TREE)
    model.text = ONE_TREE.replace(*change)
    assert model.text != ONE_TREE
    model.save(tmp_path / "m")
    with pytest.raises(IndexFormatError, match=rf"m.trees\.txt .*{problem}.*; restore it .*: fontes train ranker$"):
        RankModel.load(tmp_path / "m")


def test_no_folder_reaches_lightgbm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # an import of it is an error
    model = TreeModel({"features": ["a", "b"]}, ONE_TREE)
    model.save(tmp_path / "m")
    assert RankModel.load(tmp_path / "m").predict(MATRIX).tolist() == [2, 4, 4]
    model.text = ONE_TREE.replace("left_child=1", "left_child=7")
    model.save(tmp_path / "n")
    with pytest.raises(IndexFormatError, match="do not name each split and leaf once"):
        RankModel.load(tmp_path / "n")
