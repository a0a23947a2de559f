"""Trees in LightGBM's text format, read, checked and applied without LightGBM, which would trust the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import Float64s, Int64s
from ..storage.compiled import inner, kernel

LEFT, ZERO_IS_MISSING, NAN_IS_MISSING = 2, 4, 8  # bits of a split's decision: where missing values go, and which these are
DECISIONS = (0, LEFT, ZERO_IS_MISSING, ZERO_IS_MISSING | LEFT, NAN_IS_MISSING, NAN_IS_MISSING | LEFT)
ZERO = 1e-35  # LightGBM reads values of at most this size as 0
MAX_SCORE = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of a model; splits and leaves are numbered across all trees. A leaf's number is stored as -1 - number.

    Args:
        roots: int64, (trees,); first split of each tree, or its only leaf.
        features: int64, (splits,); column of the feature matrix.
        thresholds: float64, (splits,); greatest value that goes to the left; infinite where only missing values go elsewhere.
        decisions: int64, (splits,); one of `DECISIONS`.
        children: int64, (splits, 2); the split or leaf to the left and to the right.
        shares: float64, (splits, 2); share of the training candidates that went to the left and to the right.
        gains: float64, (splits,); gain in training.
        values: float64, (leaves,); score.
    """

    roots: Int64s
    features: Int64s
    thresholds: Float64s
    decisions: Int64s
    children: Int64s
    shares: Float64s
    gains: Float64s
    values: Float64s

    @classmethod
    def read(cls, text: str, features: int) -> Trees:
        """Read and check a model with this number of features.

        Raises:
            ValueError: The text is no such model; the message is a predicate, such as "has 2 features, not 3".
        """
        head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
        header = _entries(head)
        if not blocks or not header.get("max_feature_idx", "").isdecimal():
            raise ValueError("is no model of LightGBM")
        if header["max_feature_idx"] != str(features - 1):
            raise ValueError(f"has the features 0 to {header['max_feature_idx'][:20]}, not 0 to {features - 1}")
        if header.get("num_tree_per_iteration") != "1" or "average_output" in header:
            raise ValueError("has several scores for a candidate, or the mean of trees as the score")
        trees: list[Trees] = []
        splits = leaves = 0
        for number, block in enumerate(blocks):
            try:
                trees.append(_tree(_entries(block), features, splits, leaves))
            except KeyError as error:
                raise ValueError(f"is damaged: tree {number} has no {error.args[0]}") from None
            except (ValueError, OverflowError) as error:
                raise ValueError(f"is damaged: tree {number}: {error}") from None
            splits, leaves = splits + len(trees[-1].features), leaves + len(trees[-1].values)
        if sum(float(np.abs(tree.values).max()) for tree in trees) > MAX_SCORE:
            raise ValueError("is damaged: its scores are too large")
        return cls(*(np.concatenate([getattr(tree, name) for tree in trees]) for name in cls.__dataclass_fields__))

    def predict(self, matrix: Float64s) -> Float64s:
        """Return the sum of the leaves of each row, float64 (rows,), added in the order of the trees, as by LightGBM."""
        splits = self.features, self.thresholds, self.decisions, self.children
        return np.asarray(_predict(_with_zeros(matrix), self.roots, *splits, self.values))

    def contributions(self, matrix: Float64s) -> Float64s:
        """Return the Shapley value of each feature, then the mean score in training, float64 (rows, features + 1).

        A feature that is left out sends a row to both sides, by their shares (path-dependent TreeSHAP, Lundberg et al., 2018).
        """
        parents, sides = np.full((2, len(self.features) + len(self.values)), -1)
        for side, children in enumerate(self.children.T):
            numbers = np.where(children < 0, len(self.features) - 1 - children, children)  # leaves after all splits
            parents[numbers], sides[numbers] = np.arange(len(self.features)), side
        splits = self.features, self.thresholds, self.decisions, self.shares
        return np.asarray(_contributions(_with_zeros(matrix), parents, sides, *splits, self.values))

    def gain(self, features: int) -> Float64s:
        """Return the sum of each feature's gains, float64 (features,)."""
        return np.bincount(self.features, np.maximum(self.gains, 0.0), features).astype(np.float64)


def _entries(block: str) -> dict[str, str]:
    """Return the values of lines KEY=VALUE by key; "" for a line without a value."""
    return {key: value for key, _, value in (line.partition("=") for line in block.splitlines())}


def _tree(entries: Mapping[str, str], features: int, first_split: int, first_leaf: int) -> Trees:
    """Return one checked tree, its splits and leaves numbered from `first_split` and `first_leaf`.

    Raises KeyError for a missing entry, and ValueError or OverflowError for an invalid one.
    """
    leaves = int(entries["num_leaves"])
    if entries.get("num_cat", "0") != "0" or entries.get("is_linear", "0") != "0":
        raise ValueError("it has categorical splits or linear leaves, which ltr does not apply")

    def column(name: str, count: int, kind: Callable[[str], object] = float) -> Any:
        numbers = [kind(number) for number in entries[name].split()]
        if len(numbers) != count:
            raise ValueError(f"it has {len(numbers):,} values of {name}, not {count:,}")
        array = np.array(numbers, dtype=np.int64 if kind is int else np.float64)
        if np.isnan(array).any():
            raise ValueError(f"{name} has values that are not numbers")
        return array

    values = column("leaf_value", leaves)
    if leaves == 1:
        ints, floats, pairs = np.zeros(0, dtype=np.int64), np.zeros(0), (0, 2)
        root = np.array([-1 - first_leaf])
        return Trees(root, ints, floats, ints, ints.reshape(pairs), floats.reshape(pairs), floats, values)
    splits = leaves - 1
    names = column("split_feature", splits, int)
    decisions = column("decision_type", splits, int)
    children = np.column_stack([column(f"{side}_child", splits, int) for side in ("left", "right")])
    if names.min() < 0 or names.max() >= features:
        raise ValueError(f"split_feature has features that are not from 0 to {features - 1}")
    if not np.isin(decisions, DECISIONS).all():
        raise ValueError("decision_type has unknown types")
    # Each split and leaf has one parent, and a split's number is above its parent's: so there are no circles.
    if not np.array_equal(np.sort(children, axis=None), [*range(-leaves, 0), *range(1, splits)]):
        raise ValueError("left_child and right_child do not name each split and leaf once")
    if ((children >= 0) & (children <= np.arange(splits)[:, None])).any():
        raise ValueError("a child has a smaller number than its parent")
    counts = np.concatenate([np.zeros(splits), column("leaf_count", leaves, int)[::-1]])  # so that -1 - leaf is its position
    if counts[splits:].min() <= 0:
        raise ValueError("leaf_count has values that are not above 0")
    for split in reversed(range(splits)):
        counts[split] = counts[children[split]].sum()
    return Trees(
        np.array([first_split]),
        names,
        column("threshold", splits),
        decisions,
        np.where(children < 0, children - first_leaf, children + first_split),
        counts[children] / counts[:splits, None],
        column("split_gain", splits),
        values,
    )


def _with_zeros(matrix: Float64s) -> Float64s:
    """Return the features with 0 for what LightGBM reads as 0."""
    return np.where(np.abs(matrix) <= ZERO, 0.0, matrix)


@inner()
def _side(value: float, threshold: float, decision: int) -> int:
    """Return 0 if a value goes to the left at a split, and 1 if it goes to the right."""
    if np.isnan(value) and not decision & 8:  # NAN_IS_MISSING
        value = 0.0
    if np.isnan(value) or (decision & 4 and value == 0):  # ZERO_IS_MISSING
        return 0 if decision & 2 else 1  # LEFT
    return 0 if value <= threshold else 1


@kernel(lambda matrix, roots, *_: 20 * len(matrix) * len(roots))
def _predict(
    matrix: Float64s,
    roots: Int64s,
    features: Int64s,
    thresholds: Float64s,
    decisions: Int64s,
    children: Int64s,
    values: Float64s,
) -> Float64s:
    scores = np.zeros(len(matrix))
    for row in range(len(matrix)):
        for node in roots:
            while node >= 0:
                node = children[node, _side(matrix[row, features[node]], thresholds[node], decisions[node])]
            scores[row] += values[-1 - node]
    return scores


@kernel(lambda matrix, parents, *_: 200 * len(matrix) * len(parents))
def _contributions(
    matrix: Float64s,
    parents: Int64s,
    sides: Int64s,
    features: Int64s,
    thresholds: Float64s,
    decisions: Int64s,
    shares: Float64s,
    values: Float64s,
) -> Float64s:
    """Sum the Shapley values of all leaves.

    With the set S of features, a leaf gives: value · Π_{i ∈ S} reached_i · Π_{i ∉ S} share_i. reached_i is whether the row
    passes all splits by i on the path to the leaf, and share_i the product of their shares.
    """
    size = matrix.shape[1]
    sums = np.zeros((len(matrix), size + 1))
    on_path, reached, share = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
    for row in range(len(matrix)):
        for leaf in range(len(values)):
            count, mean = 0, values[leaf]
            node = len(features) + leaf
            while parents[node] >= 0:
                side, node = sides[node], parents[node]
                feature, i = features[node], 0
                while i < count and on_path[i] != feature:
                    i += 1
                if i == count:
                    on_path[i], reached[i], share[i] = feature, 1.0, 1.0
                    count += 1
                if _side(matrix[row, feature], thresholds[node], decisions[node]) != side:
                    reached[i] = 0.0
                share[i] *= shares[node, side]
                mean *= shares[node, side]
            sums[row, size] += mean
            for i in range(count):
                # sizes[k]: sum of the products over all S with k features, without feature i
                sizes = np.zeros(count)
                sizes[0] = 1.0
                for j in range(count):
                    if j != i:
                        for k in range(count - 1, 0, -1):
                            sizes[k] = sizes[k] * share[j] + sizes[k - 1] * reached[j]
                        sizes[0] *= share[j]
                weight, total = 1.0 / count, 0.0  # k! (count - 1 - k)! / count!
                for k in range(count):
                    total += weight * sizes[k]
                    weight *= (k + 1) / max(count - 1 - k, 1)
                sums[row, on_path[i]] += values[leaf] * (reached[i] - share[i]) * total
    return sums
