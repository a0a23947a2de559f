"""Models of learning to rank: linear models and networks, stored as arrays, and trees in LightGBM's text format; no pickle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from ..core.arrays import Float64s, Int64s, UInt64s
from ..core.errors import IndexFormatError, InputError
from ..core.values import Topics
from ..storage.arrays import write_array
from ..storage.artifact import Artifact, ArtifactKind, commit, seal, staging
from ..storage.caches import Cached
from .trees import Trees

REMEDY = "restore it from a copy or train it again: fontes train ranker"
KIND = ArtifactKind("fontes-ranker", 1, "a model of learning to rank", REMEDY)
TREES = "trees.txt"
MODELS_IN_MEMORY = 8

Bounds: TypeAlias = Int64s
Array: TypeAlias = Any  # of numpy or of torch

_MODELS: Cached[tuple[Path, str], RankModel] = Cached(MODELS_IN_MEMORY)


class RankModel(ABC):
    """A trained model: a function from the features of a candidate, or of all candidates of a topic, to its score.

    Attributes:
        facts: Names of the features, analyzer of the index, settings and results of the training, as JSON values.
        digest: SHA-256 of facts and files; empty for a model that was not loaded from files.
        topics: uint64, ascending; `hashes` of the training topics.
        learner: Name of the kind of model.
        constant_label: Explanation of the constant in `contributions`.
    """

    learner: ClassVar[str]
    constant_label: ClassVar[str] = "constant"

    def __init__(self, facts: Mapping[str, Any], digest: str = "") -> None:
        self.facts, self.digest = dict(facts), digest
        self.topics: UInt64s = np.zeros(0, dtype=np.uint64)

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the columns."""
        return list(self.facts["features"])

    @abstractmethod
    def predict(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        """Return the score of each row of a feature matrix, float64 (rows,).

        Args:
            matrix: Feature matrix.
            bounds: First row of each topic, then the number of rows; None: all rows are candidates of one topic.
        """

    def contributions(self, matrix: Float64s, row: int | None = None) -> Float64s:
        """Return the contribution of each feature, then of the constant, to each score, float64 (rows, features + 1).

        Args:
            matrix: Feature matrix of the candidates of one topic.
            row: Only this candidate; None: all.
        """
        return self._contributions(matrix, range(len(matrix)) if row is None else range(row, row + 1))

    @abstractmethod
    def _contributions(self, matrix: Float64s, rows: range) -> Float64s: ...

    @abstractmethod
    def account(self, number: int, value: float) -> str:
        """Return the explanation of a feature's contribution.

        Args:
            number: Position of the feature.
            value: Value of the feature; NaN if missing.
        """

    @abstractmethod
    def importance(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        """Return the importance of each feature, float64 (features,), with sum 1.

        Args:
            matrix: Feature matrix of the training.
            bounds: As for `predict`.
        """

    @classmethod
    def load(cls, path: str | Path) -> RankModel:
        """Load a model that `save` wrote.

        Raises:
            InputError: There is no model.
            IndexFormatError: The model is damaged, or has another format version.
        """
        folder = Path(path).expanduser()
        if not folder.is_dir():
            raise InputError(f"there is no model of learning to rank at {folder}; train one: fontes train ranker")
        artifact = Artifact(folder, KIND)
        return _MODELS.get((folder.absolute(), artifact.digest), lambda: _read(artifact))

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, atomically, in place of a model there; equal models give equal bytes.

        Raises:
            InputError: The folder cannot be written.
        """
        target = Path(path).expanduser()
        try:
            with staging(target) as folder:
                self._write(folder)
                write_array(folder, "topics", self.topics)
                seal(folder, KIND, {"learner": self.learner, **self.facts})
                commit(folder, target)
        except OSError as error:
            raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None

    @classmethod
    @abstractmethod
    def _open(cls, artifact: Artifact, facts: Mapping[str, Any]) -> Self:
        """Return the model of a checked artifact; raise IndexFormatError if its files are no model of this kind."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the files of the model."""


def _read(artifact: Artifact) -> RankModel:
    """Read a model of any kind, checked; raise IndexFormatError if it is damaged."""
    artifact.check()
    facts = {key: value for key, value in artifact.meta.items() if key not in ("format", "version", "files", "digest")}
    names = artifact.fact("features", list)
    kinds: dict[object, type[RankModel]] = {kind.learner: kind for kind in (LinearModel, TreeModel, SetModel)}
    if facts.get("learner") not in kinds or not names or not all(isinstance(name, str) for name in names):
        raise artifact.damaged(f"{artifact.folder} has no learner or no features as it should have")
    model = kinds[facts.pop("learner")]._open(artifact, facts)
    model.topics = np.array(artifact.arrays.array("topics", "<u8", None))
    return model


def hashes(topics: Topics) -> UInt64s:
    """Return a hash of each topic's text, uint64 (topics,), which ignores case and the width of spaces."""
    texts = (" ".join(topic.text.casefold().split()).encode("utf-8", "surrogatepass") for topic in topics.values())
    return np.array([int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts], dtype=np.uint64)


class LinearModel(RankModel):
    """Weighted sum of the features: constant + Σ weight · feature. The mean in training stands for a missing value.

    Args:
        facts: See `RankModel`.
        weights: float64, (features,).
        constant: The constant.
        means: float64, (features,); mean of each feature in training.
        digest: See `RankModel`.
    """

    learner = "linear"

    def __init__(
        self, facts: Mapping[str, object], weights: Float64s, constant: float, means: Float64s, digest: str = ""
    ) -> None:
        super().__init__(facts, digest)
        self.weights, self.constant, self.means = weights, constant, means

    def filled(self, matrix: Float64s) -> Float64s:
        """Return the feature matrix with means in place of missing values."""
        return np.where(np.isnan(matrix), self.means, matrix)

    def predict(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        scores = np.full(len(matrix), self.constant)
        for contributions in (self.filled(matrix) * self.weights).T:  # the same order of addition for any number of rows
            scores += contributions
        return scores

    def _contributions(self, matrix: Float64s, rows: range) -> Float64s:
        filled = self.filled(matrix[rows.start : rows.stop])
        return np.column_stack([filled * self.weights, np.full(len(filled), self.constant)])

    def account(self, number: int, value: float) -> str:
        used = f"its mean {self.means[number]:.6g}, as the value is missing" if np.isnan(value) else f"{value:.6g}"
        return f"{self.features[number]}: weight {self.weights[number]:.6g} times {used}"

    def importance(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        return _shares(np.abs(self.weights) * self.filled(matrix).std(axis=0))

    @classmethod
    def _open(cls, artifact: Artifact, facts: Mapping[str, Any]) -> Self:
        size = len(facts["features"])
        weights, means = (np.array(artifact.arrays.array(name, "<f8", size)) for name in ("weights", "means"))
        constant = float(artifact.arrays.array("constant", "<f8", 1)[0])
        if not np.isfinite([*weights, *means, constant]).all():
            raise artifact.damaged(f"{artifact.folder} has weights that are no finite numbers")
        return cls(facts, weights, constant, means, artifact.digest)

    def _write(self, folder: Path) -> None:
        arrays = {"weights": self.weights, "means": self.means, "constant": np.array([self.constant])}
        for name, array in arrays.items():
            write_array(folder, name, array.astype(np.float64))


class TreeModel(RankModel):
    """LambdaMART: the sum of the leaves of LightGBM's trees. Each split has learned a side for missing values.

    Args:
        facts: See `RankModel`.
        text: The model in LightGBM's text format.
        digest: See `RankModel`.
        source: Name of the text in errors.

    Raises:
        IndexFormatError: The text is not a model of numeric splits over these features.
    """

    learner = "lightgbm"
    constant_label = "mean score in training"

    def __init__(self, facts: Mapping[str, object], text: str, digest: str = "", source: str | Path = TREES) -> None:
        super().__init__(facts, digest)
        self.text = text
        try:
            self._trees = Trees.read(text, len(self.features))
        except ValueError as error:
            raise IndexFormatError(f"{source} {error}; {REMEDY}") from None

    def predict(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        return self._trees.predict(matrix)

    def _contributions(self, matrix: Float64s, rows: range) -> Float64s:
        return self._trees.contributions(matrix[rows.start : rows.stop])

    def account(self, number: int, value: float) -> str:
        return f"{self.features[number]}: {'the value is missing' if np.isnan(value) else f'{value:.6g}'}"

    def importance(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        return _shares(self._trees.gain(len(self.features)))

    @classmethod
    def _open(cls, artifact: Artifact, facts: Mapping[str, Any]) -> Self:
        if TREES not in artifact.files:
            raise artifact.damaged(f"{artifact.folder} has no {TREES}")
        file = artifact.folder / TREES
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise artifact.damaged(f"{file} is not UTF-8") from None
        return cls(facts, text, artifact.digest, file)

    def _write(self, folder: Path) -> None:
        with (folder / TREES).open("w", encoding="utf-8", newline="\n") as file:
            file.write(self.text)


class SetModel(RankModel):
    """SetRank: self-attention over all candidates of a topic, whatever their order (Pang et al., SIGIR 2020).

    The paper's variant without ordinal embeddings (MSAB): standardized features, a linear layer, blocks of `set_scores`. A
    missing value counts as the feature's mean.

    Args:
        facts: See `RankModel`.
        means: float64, (features,); mean of each feature in training.
        deviations: float64, (features,); standard deviation of each feature in training.
        weights: Arrays of the network by name, as `set_shapes` says.
        digest: See `RankModel`.
    """

    learner = "setrank"
    constant_label = "score with the mean of each feature"

    def __init__(
        self,
        facts: Mapping[str, object],
        means: Float64s,
        deviations: Float64s,
        weights: Mapping[str, Float64s],
        digest: str = "",
    ) -> None:
        super().__init__(facts, digest)
        self.means, self.deviations, self.weights = means, deviations, dict(weights)

    def inputs(self, matrix: Float64s) -> Float64s:
        """Return standardized features, 0 for missing values."""
        return np.where(np.isnan(matrix), 0.0, (matrix - self.means) / self.deviations)

    def predict(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        inputs, scores = self.inputs(matrix), np.zeros(len(matrix))
        for a, b in pairwise([0, len(matrix)] if bounds is None else bounds.tolist()):
            if a < b:
                scores[a:b] = set_scores(np, self.weights, inputs[None, a:b])[0]
        return scores

    def _contributions(self, matrix: Float64s, rows: range) -> Float64s:
        # The changes of the score if the candidate's features, one after the other, change from their means to their values;
        # the mean of two orders, from the first to the last and back.
        inputs, size = self.inputs(matrix), matrix.shape[1]
        changes = np.zeros((len(rows), size + 1))
        for number, row in enumerate(rows):
            for order in (range(size), range(size - 1, -1, -1)):
                steps = np.repeat(inputs[None], size + 1, axis=0)
                for step, feature in enumerate(order):
                    steps[: step + 1, row, feature] = 0.0
                scores = np.array([set_scores(np, self.weights, step[None])[0, row] for step in steps])
                changes[number, list(order)] += np.diff(scores) / 2
                changes[number, -1] = scores[0]
        return changes

    def account(self, number: int, value: float) -> str:
        return f"{self.features[number]}: {'its mean, as the value is missing' if np.isnan(value) else f'{value:.6g}'}"

    def importance(self, matrix: Float64s, bounds: Bounds | None = None) -> Float64s:
        """Return the share of each feature in the mean absolute changes of scores if all candidates have its mean."""
        scores, changes = self.predict(matrix, bounds), np.zeros(matrix.shape[1])
        for feature in range(matrix.shape[1]):
            without = matrix.copy()
            without[:, feature] = np.nan
            changes[feature] = np.abs(self.predict(without, bounds) - scores).mean()
        return _shares(changes)

    @classmethod
    def _open(cls, artifact: Artifact, facts: Mapping[str, Any]) -> Self:
        size = len(facts["features"])
        means, deviations = (np.array(artifact.arrays.array(name, "<f8", size)) for name in ("means", "deviations"))
        shapes = set_shapes(size, artifact.fact("width", int), artifact.fact("blocks", int))
        weights = {name: np.array(artifact.arrays.array(name, "<f8", *shape)) for name, shape in shapes.items()}
        arrays = [means, deviations, *weights.values()]
        if not all(np.isfinite(array).all() for array in arrays) or (deviations <= 0).any():
            raise artifact.damaged(f"{artifact.folder} has weights that are no finite numbers")
        return cls(facts, means, deviations, weights, artifact.digest)

    def _write(self, folder: Path) -> None:
        for name, array in {"means": self.means, "deviations": self.deviations, **self.weights}.items():
            write_array(folder, name, array.astype(np.float64))


HEAD_WIDTH = 8  # columns of an attention head


def set_shapes(features: int, width: int, blocks: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights that `set_scores` reads, by name.

    Args:
        features: Number of features.
        width: Columns of a candidate's vector, a multiple of HEAD_WIDTH.
        blocks: Number of blocks.
    """
    return {
        "input": (features + 1, width),
        "attention": (blocks, 4, width + 1, width),
        "inner": (blocks, width + 1, 2 * width),
        "outer": (blocks, 2 * width + 1, width),
        "norms": (blocks, 2, 2, width),
        "output": (width,),
    }


def set_scores(library: Any, weights: Mapping[str, Array], inputs: Array, absent: Array = 0.0) -> Array:
    """Return the scores of candidates by SetRank (Pang et al. 2020, section 3), (topics, candidates).

    A block is multi-head attention of the candidates over all candidates, and a feed-forward layer with ReLU for each; after
    each the input is added and the sum normalized.

    Args:
        library: numpy or torch; weights and inputs are its arrays.
        weights: Arrays by name (`set_shapes`). The last row of a matrix is the layer's constant.
        inputs: Standardized features, (topics, candidates, features).
        absent: Added to the logits of attention: 0, or (topics, 1, 1, candidates) with large negative values for padding.
    """

    def linear(values: Array, matrix: Array) -> Array:
        return values @ matrix[:-1] + matrix[-1]

    def heads(values: Array) -> Array:
        return values.reshape(*values.shape[:2], -1, HEAD_WIDTH).swapaxes(1, 2)

    def normalized(values: Array, norm: Array) -> Array:
        centered = values - values.mean(axis=-1, keepdims=True)
        return centered / library.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5) * norm[0] + norm[1]

    hidden = linear(inputs, weights["input"])
    blocks = (weights[name] for name in ("attention", "inner", "outer", "norms"))
    for attention, inner, outer, norms in zip(*blocks, strict=True):
        queries, keys, values = (heads(linear(hidden, matrix)) for matrix in attention[:3])
        logits = queries @ keys.swapaxes(2, 3) / HEAD_WIDTH**0.5 + absent
        shares = library.exp(logits - library.amax(logits, axis=-1, keepdims=True))
        attended = (shares / shares.sum(axis=-1, keepdims=True) @ values).swapaxes(1, 2).reshape(*hidden.shape)
        hidden = normalized(hidden + linear(attended, attention[3]), norms[0])
        raised = linear(hidden, inner)
        hidden = normalized(hidden + linear(raised * (raised > 0), outer), norms[1])
    return hidden @ weights["output"]


def _shares(values: Float64s) -> Float64s:
    """Return the values divided by their sum; zeros for a sum of 0."""
    total = float(values.sum())
    return values / total if total > 0 else np.zeros(len(values))
