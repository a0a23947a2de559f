"""Learners of ranking models, and the candidates that they learn from."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import islice, pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..core.arrays import Float64s, Floats, Int64s
from ..core.errors import InputError, ParameterError, needs_extra
from ..core.part import Part
from ..core.run import Run
from ..core.values import Qrels, Topics
from ..core.work import Progress, reporter, thread_count
from ..ltr.features import feature_matrix
from ..ltr.model import HEAD_WIDTH, LinearModel, RankModel, SetModel, TreeModel, set_scores, set_shapes
from ..measures import DEFAULT, Measure, parse
from ..measures.evaluation import check_agreement, measure_run
from ..tuning.folds import folds_of
from .runner.settings import Settings
from .splits import leakage, units_without_leakage

if TYPE_CHECKING:
    from lightgbm import Dataset
    from lightgbm.callback import CallbackEnv

L2_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)  # strengths of L2 regularization, per topic
MAX_FOLD_EXCESS = 1.5  # greatest size of a fold, as a multiple of the mean size
MAX_PAIRS = 2_000  # pairs of candidates per topic that a linear model learns from
VALUES_PER_THREAD = 4_000_000  # of a feature matrix; for fewer, LightGBM's threads would wait for one another
ROUNDING = 1e-9  # share of the greatest value; a deviation below it is the rounding of a constant
LINEAR_MODULES = ("sklearn.linear_model", "sklearn.svm")  # modules with scikit-learn's linear models

Rows: TypeAlias = Int64s
RowSplits: TypeAlias = list[tuple[Rows, Rows]]  # rows to learn from, and held-out rows


class RankerSettings(Settings):
    """Settings of `train_ranker`.

    Attributes:
        learner: "lightgbm", LambdaMART; "linear", logistic regression over pairs of candidates, which have the same topic and
            different grades; or "setrank", self-attention over all candidates of a topic (Pang et al. 2020), which needs torch.
        trees: Greatest number of trees. The training ends early if more trees do not help on held-out topics.
        patience: Trees, or passes of "setrank", without gain on held-out topics after which training ends.
        leaves: Leaves of a tree.
        least: Least number of candidates of a leaf.
        lr: Learning rate of the trees.
        epochs: Greatest number of passes over the topics, with "setrank".
        width: Columns of a candidate's vector, a multiple of 8, with "setrank".
        blocks: Blocks of attention, with "setrank".
        measure: Measure on held-out topics by which the number of trees or passes, or a linear model's L2 term, is chosen.
        folds: Folds of the topics; unused with topics to validate on.
        group: Topics that stay in one fold, besides duplicates: "document" or "conversation". With "document" they share a
            relevant document, which trees may recognise by its length or date; with "conversation" their ids are equal before
            the last "_". None: no others.
        near: Least similarity of duplicate topics, which stay in one fold.
        seed: Seed of the folds, of the pairs of a linear model, and of weights and order of "setrank".

    Raises:
        ParameterError: Settings are invalid; the message names all of them.
    """

    learner: Literal["lightgbm", "linear", "setrank"] = "lightgbm"
    trees: int = Field(default=500, gt=0)
    patience: int = Field(default=50, gt=0)
    leaves: int = Field(default=15, gt=1)
    least: int = Field(default=20, gt=0)
    lr: float = Field(default=0.05, gt=0, allow_inf_nan=False)
    epochs: int = Field(default=100, gt=0)
    width: int = Field(default=32, gt=0, multiple_of=HEAD_WIDTH)
    blocks: int = Field(default=2, gt=0)
    measure: str = DEFAULT[0]
    folds: int = Field(default=5, gt=1)
    group: str | None = "document"
    near: float = Field(default=0.8, gt=0, le=1)
    seed: int = Field(default=0, ge=0, lt=2**31)

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        parse(self.measure)  # raises for an unknown one


@dataclass(frozen=True, eq=False)
class RankerCandidates:
    """Candidates of judged topics with features and grades, row by row.

    Args:
        run: The candidates.
        qrels: Judgments of the topics.
        matrix: Features, float64 (rows, features).
        grades: Grades from 0 up, int64 (rows,).
    """

    run: Run
    qrels: Qrels
    matrix: Float64s
    grades: Int64s

    @classmethod
    def of(cls, run: Run, qrels: Qrels, features: Sequence[Part]) -> Self:
        """Compute features and grades; raise InputError if a topic has no text or the judgments belong to other topics."""
        check_agreement(run, qrels)
        judged = [topic for topic in run.topics.values() if topic.id in qrels]
        for topic in judged:
            if len(run[topic.id]) and not topic.text.strip():
                raise InputError(
                    f"topic '{topic.id}' has no text; a run read from a file gets its topics with read_run(path, topics)"
                )
        judged_run = with_topics(run, {topic.id for topic in judged})
        grades = [qrels[ranking.topic.id].get(hit.id, 0) for ranking in judged_run.values() for hit in ranking]
        matrix = feature_matrix(judged_run, features)
        return cls(judged_run, qrels.only(judged_run), matrix, np.maximum(np.array(grades, dtype=np.int64), 0))

    def check(self) -> None:
        """Raise InputError if no topic has two candidates with different grades."""
        if not self.grades.any():
            raise InputError(
                f"none of the {self.run.rows:,} candidates of the {len(self.run.topics):,} judged topics is relevant; take "
                "more candidates of each topic, and judgments of this collection"
            )
        if all(len(set(self.grades[rows].tolist())) < 2 for rows in self.slices):
            raise InputError("no topic has both relevant and other candidates; take more candidates of each topic")

    @cached_property
    def slices(self) -> list[slice]:
        """Rows of each topic that has candidates."""
        return [slice(a, b) for a, b in pairwise(self.run.bounds.tolist()) if a < b]

    def splits(self, settings: RankerSettings) -> RowSplits:
        """Return the rows to learn from and the held-out rows of each fold; raise ParameterError if a fold is too large."""
        # Topics without candidates have no rows to hold out.
        topics = [topic for topic in self.run.topics.values() if len(self.run[topic.id])]
        remedy = "give fewer folds, or group=None (--group None) to divide groups"
        try:
            units = units_without_leakage(Topics(topics), self.qrels, groups=settings.group, near=settings.near)
            fold_of = folds_of(units, settings.folds, settings.seed)
        except ParameterError as error:
            raise ParameterError(str(error).replace("give fewer folds", remedy)) from None
        largest_fold = max(Counter(fold_of.values()).values())
        if largest_fold * settings.folds > MAX_FOLD_EXCESS * len(topics):
            raise ParameterError(
                f"{largest_fold:,} of {len(topics):,} topics share a group or duplicate one another, too many for one of "
                f"{settings.folds} folds; {remedy}"
            )
        of_topics = np.array([fold_of.get(topic_id, 0) for topic_id in self.run.topics], dtype=np.int64)
        of_rows = of_topics[self.run.topic_numbers]
        return [(np.flatnonzero(of_rows != fold), np.flatnonzero(of_rows == fold)) for fold in range(settings.folds)]

    def joined_with(self, held_out: RankerCandidates, settings: RankerSettings) -> RankerCandidates:
        """Return these candidates followed by held-out ones; raise InputError if both share topics or relevant documents."""
        shared = leakage((self.run.topics, self.qrels), (held_out.run.topics, held_out.qrels), settings.near)
        pairs = [*shared.same, *shared.near]
        if pairs:
            raise InputError(
                f"topic '{pairs[0].id}' to validate on has the text of topic '{pairs[0].of}' to learn from, or nearly "
                f"({len({pair.id for pair in pairs}):,} such topics); divide topics with `fontes split`, or leave these out"
            )
        if settings.group == "document" and shared.documents:
            raise InputError(
                f"document '{next(iter(shared.documents))}' is relevant on both sides; divide topics with `fontes split "
                "--group document`, or give group=None (--group None)"
            )
        both = [
            (f"{side} {topic}", doc, score)
            for side, run in enumerate((self.run, held_out.run))
            for topic, doc, score in _rows(run)
        ]
        judged = [
            (f"{side} {t}", g, d, r) for side, qrels in enumerate((self.qrels, held_out.qrels)) for t, g, d, r in qrels.rows()
        ]
        matrix, grades = np.vstack([self.matrix, held_out.matrix]), np.concatenate([self.grades, held_out.grades])
        return RankerCandidates(Run.of(both), Qrels(judged), matrix, grades)

    def only(self, rows: Rows) -> RankerCandidates:
        """Return the candidates of some rows; these must be all rows of their topics."""
        topics = {list(self.run.topics)[n] for n in np.unique(self.run.topic_numbers[rows]).tolist()}
        return RankerCandidates(with_topics(self.run, topics), self.qrels.only(topics), self.matrix[rows], self.grades[rows])

    def ranked(self, scores: Floats) -> Run:
        """Return the candidates ordered by other scores, one for each row."""
        return self.run.with_scores(scores.astype(np.float32), {})

    def value(self, scores: Floats, measure: Measure) -> float:
        """Return the mean of a measure over the judged topics, for the candidates ordered by these scores."""
        return float(measure_run(self.ranked(scores), self.qrels, [measure])[measure])


def _rows(run: Run) -> list[tuple[str, str, float]]:
    return [(topic_id, hit.id, hit.score) for topic_id, ranking in run.items() for hit in ranking]


def with_topics(run: Run, ids: set[str]) -> Run:
    """Return the run of some topics."""
    kept = run.keep(np.array([topic_id in ids for topic_id in run.topics], dtype=np.bool_)[run.topic_numbers])
    sizes = np.diff(kept.bounds)[[topic_id in ids for topic_id in run.topics]]
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
    topics = Topics(topic for topic in run.topics.values() if topic.id in ids)
    return Run(topics, kept.ids, bounds, kept.codes, kept.scores, documents=run.documents, provenance=run.provenance)


class Learner(ABC):
    """A method that learns a model; a parameter of the model is chosen on held-out rows."""

    @abstractmethod
    def choose(self, data: RankerCandidates, splits: RowSplits, settings: RankerSettings) -> tuple[dict[str, float], Float64s]:
        """Choose the parameter on held-out rows.

        Returns:
            The parameter by name, and the scores of the held-out rows with it, float64 (rows,); 0 for rows never held out.
        """

    @abstractmethod
    def model(self, data: RankerCandidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        """Return the model learned from all rows with the chosen parameter."""


def learner_of(settings: RankerSettings, estimator: object) -> Learner:
    """Return the learner of the settings, or of an estimator of scikit-learn.

    Raises:
        ParameterError: The estimator is not a linear model.
        MissingExtraError: LightGBM or torch is missing.
    """
    if estimator is not None:
        return EstimatorLearner(estimator)
    learners: dict[str, type[TreeLearner | Pairwise | SetRank]] = {
        "lightgbm": TreeLearner,
        "linear": Pairwise,
        "setrank": SetRank,
    }
    return learners[settings.learner]()


class TreeLearner(Learner):
    """LambdaMART by LightGBM."""

    def __init__(self) -> None:
        with needs_extra("ltr", "training with --learner lightgbm", "lightgbm"):
            self._library = import_module("lightgbm")

    def choose(self, data: RankerCandidates, splits: RowSplits, settings: RankerSettings) -> tuple[dict[str, float], Float64s]:
        report = reporter()
        measure, start = parse(settings.measure), time.perf_counter()
        held_out = {rows.tobytes(): data.only(rows) for _, rows in splits}

        def evaluate(scores: Float64s, dataset: Dataset) -> tuple[str, float, bool]:
            part = held_out[np.asarray(dataset.used_indices, dtype=np.int64).tobytes()]
            return str(measure), part.value(scores, measure), True

        def report_trees(environment: CallbackEnv) -> None:
            count = environment.iteration + 1
            report(Progress("training", count, settings.trees, time.perf_counter() - start, "trees"))

        stop = self._library.early_stopping(settings.patience, verbose=False)
        result = self._library.cv(
            self._parameters(data, settings),
            self._rows(data),
            settings.trees,
            folds=splits,
            feval=evaluate,
            callbacks=[stop, report_trees],
            return_cvbooster=True,
        )
        boosters, scores = result["cvbooster"], np.zeros(data.run.rows)
        trees = boosters.best_iteration if boosters.best_iteration > 0 else settings.trees
        for booster, (_, rows) in zip(boosters.boosters, splits, strict=True):
            scores[rows] = booster.predict(
                data.matrix[rows], raw_score=True, num_iteration=trees, num_threads=_threads_for(data.matrix)
            )
        return {"trees": trees}, scores

    def model(self, data: RankerCandidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        booster = self._library.train(self._parameters(data, settings), self._rows(data), int(chosen["trees"]))
        # LightGBM's own parameters are left out: they include the number of threads.
        text, _, _ = booster.model_to_string().partition("\nparameters:")
        return TreeModel({"features": [str(n) for n in range(data.matrix.shape[1])]}, text + "\n")

    def _rows(self, data: RankerCandidates) -> object:
        sizes = [rows.stop - rows.start for rows in data.slices]
        return self._library.Dataset(data.matrix, data.grades, group=sizes, params={"verbosity": -1}, free_raw_data=False)

    def _parameters(self, data: RankerCandidates, settings: RankerSettings) -> dict[str, object]:
        return {
            "objective": "lambdarank",
            "metric": "None",
            "label_gain": list(range(int(data.grades.max()) + 1)),
            "num_leaves": settings.leaves,
            "min_data_in_leaf": settings.least,
            "learning_rate": settings.lr,
            "seed": settings.seed,
            "deterministic": True,
            "force_col_wise": True,
            "feature_pre_filter": False,
            "num_threads": _threads_for(data.matrix),
            "verbosity": -1,
        }


def _threads_for(matrix: Float64s) -> int:
    """Return the number of threads for LightGBM."""
    return min(thread_count(), 1 + matrix.size // VALUES_PER_THREAD)


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each feature, ignoring missing values; the deviation of a constant feature is 1."""

    means: Float64s
    deviations: Float64s

    @classmethod
    def of(cls, matrix: Float64s) -> Self:
        """Return the scale of the features of a matrix, (rows, features)."""
        present = ~np.isnan(matrix)
        counts, filled = np.maximum(present.sum(axis=0), 1), np.where(present, matrix, 0.0)
        means = filled.sum(axis=0) / counts
        deviations = np.sqrt((np.where(present, matrix - means, 0.0) ** 2).sum(axis=0) / counts)
        rounding = ROUNDING * np.abs(filled).max(axis=0, initial=0.0)
        return cls(means, np.where(deviations > rounding, deviations, 1.0))

    def apply(self, matrix: Float64s) -> Float64s:
        """Return standardized features, with 0 for missing values."""
        return np.where(np.isnan(matrix), 0.0, (matrix - self.means) / self.deviations)

    def model(self, weights: Float64s, constant: float) -> LinearModel:
        """Return the model over unscaled features, given the weights of standardized features and the constant."""
        scaled = weights / self.deviations
        return LinearModel(
            {"features": [str(n) for n in range(len(scaled))]}, scaled, float(constant - scaled @ self.means), self.means
        )


class Pairwise(Learner):
    """Logistic regression over the differences of pairs of a topic's candidates with different grades.

    All topics have the same weight.
    """

    def choose(self, data: RankerCandidates, splits: RowSplits, settings: RankerSettings) -> tuple[dict[str, float], Float64s]:
        report = reporter()
        measure, start = parse(settings.measure), time.perf_counter()
        learned = [data.only(rows) for rows, _ in splits]
        held_out_rows = np.sort(np.concatenate([rows for _, rows in splits]))
        held_out = data.only(held_out_rows)
        best_value, best_strength, best_scores = -np.inf, 0.0, np.zeros(0)
        for number, strength in enumerate(L2_STRENGTHS, 1):
            scores = np.zeros(data.run.rows)
            for part, (_, rows) in zip(learned, splits, strict=True):
                scores[rows] = self.model(part, settings, {"strength": strength}).predict(data.matrix[rows])
            value = held_out.value(scores[held_out_rows], measure)
            if value > best_value:
                best_value, best_strength, best_scores = value, strength, scores
            report(Progress("training", number, len(L2_STRENGTHS), time.perf_counter() - start, "strengths"))
        return {"strength": best_strength}, best_scores

    def model(self, data: RankerCandidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        scale = Scale.of(data.matrix)
        inputs, generator = scale.apply(data.matrix), np.random.default_rng(settings.seed)
        differences, weights = [], []
        for rows in data.slices:
            grades, topic_inputs = data.grades[rows], inputs[rows]
            better, worse = np.nonzero(grades[:, None] > grades)
            if len(better) > MAX_PAIRS:
                sample = np.sort(generator.choice(len(better), MAX_PAIRS, replace=False))
                better, worse = better[sample], worse[sample]
            if len(better):
                differences.append(topic_inputs[better] - topic_inputs[worse])
                weights.append(np.full(len(better), 1 / len(better)))
        pairs, signs = np.concatenate(differences), np.resize([1, -1], sum(map(len, differences)))
        # Every second pair is reversed: the loss is the same, and scikit-learn needs two classes.
        model = _sklearn("linear_model").LogisticRegression(
            C=1 / (chosen["strength"] * len(weights)), fit_intercept=False, solver="newton-cholesky", tol=1e-8, max_iter=1_000
        )
        if len(signs) == 1:
            pairs, signs, weights = np.vstack([pairs, -pairs]), np.array([1, -1]), [np.array([0.5, 0.5])]
        model.fit(pairs * signs[:, None], signs, np.concatenate(weights))
        return scale.model(model.coef_[0], 0.0)


class SetRank(Learner):
    """Attention over all candidates of a topic (Pang et al., SIGIR 2020), trained by the attention rank loss (Ai et al. 2018).

    The loss is the cross-entropy of the softmax of a topic's scores from the softmax of the grades of its relevant candidates.
    """

    def __init__(self) -> None:
        with needs_extra("neural", "training with --learner setrank", "torch"):
            self._torch = import_module("torch")

    def choose(self, data: RankerCandidates, splits: RowSplits, settings: RankerSettings) -> tuple[dict[str, float], Float64s]:
        report = reporter()
        measure, start = parse(settings.measure), time.perf_counter()
        held_out_rows = np.sort(np.concatenate([rows for _, rows in splits]))
        held_out = data.only(held_out_rows)
        trainings = [self._epochs(data.only(learned), settings) for learned, _ in splits]
        parts = [data.only(rows) for _, rows in splits]
        best_value, best_epoch, best_scores = -np.inf, 1, np.zeros(data.run.rows)
        for epoch in range(1, settings.epochs + 1):
            scores = np.zeros(data.run.rows)
            for training, part, (_, rows) in zip(trainings, parts, splits, strict=True):
                scores[rows] = next(training).predict(part.matrix, part.run.bounds)
            value = held_out.value(scores[held_out_rows], measure)
            if value > best_value:
                best_value, best_epoch, best_scores = value, epoch, scores
            report(Progress("training", epoch, settings.epochs, time.perf_counter() - start, "rounds"))
            if epoch - best_epoch >= settings.patience:
                break
        return {"epochs": best_epoch}, best_scores

    def model(self, data: RankerCandidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        return next(islice(self._epochs(data, settings), int(chosen["epochs"]) - 1, None))

    def _epochs(self, data: RankerCandidates, settings: RankerSettings) -> Iterator[SetModel]:
        """Yield the model after each pass over the topics."""
        torch, generator, scale = self._torch, np.random.default_rng(settings.seed), Scale.of(data.matrix)
        shapes = set_shapes(data.matrix.shape[1], settings.width, settings.blocks)
        weights = {
            name: torch.tensor(_initial(name, shape, generator), dtype=torch.float32, requires_grad=True)
            for name, shape in shapes.items()
        }
        optimizer = torch.optim.Adam(weights.values(), lr=SET_LR)
        inputs = torch.tensor(scale.apply(data.matrix), dtype=torch.float32)
        grades = torch.tensor(data.grades, dtype=torch.float32)
        topics = [rows for rows in data.slices if 0 < np.count_nonzero(data.grades[rows]) < rows.stop - rows.start]
        facts = {"features": [str(n) for n in range(data.matrix.shape[1])], "width": settings.width, "blocks": settings.blocks}
        while True:
            order = generator.permutation(len(topics)).tolist()
            for first in range(0, len(order), SET_BATCH):
                batch = [topics[number] for number in order[first : first + SET_BATCH]]
                padded, targets = (
                    torch.nn.utils.rnn.pad_sequence([values[rows] for rows in batch], batch_first=True, padding_value=padding)
                    for values, padding in ((inputs, 0.0), (grades, math.nan))
                )
                absent = torch.where(targets.isnan(), ABSENT, 0.0)
                scores = set_scores(torch, weights, padded, absent[:, None, None]) + absent
                shares = targets.masked_fill(~(targets > 0), -math.inf).softmax(dim=1)
                loss = -(shares * scores.log_softmax(dim=1)).sum(dim=1).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            learned = {name: weight.detach().numpy().astype(np.float64) for name, weight in weights.items()}
            yield SetModel(facts, scale.means, scale.deviations, learned)


SET_LR, SET_BATCH = 1e-3, 16  # learning rate of Adam, and topics per step
ABSENT = -1e9  # logit of padding


def _initial(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> Float64s:
    """Return the first weights: Glorot's uniform for matrices, 0 for constants, and norms that change nothing."""
    if name == "norms":
        return np.broadcast_to(np.array([1.0, 0.0])[:, None], shape).copy()
    rows, columns = (shape[0], 1) if name == "output" else (shape[-2] - 1, shape[-1])
    limit = math.sqrt(6 / (rows + columns))
    weights = generator.uniform(-limit, limit, shape)
    if name != "output":
        weights[..., -1, :] = 0.0
    return weights


class EstimatorLearner(Learner):
    """A linear model of scikit-learn over standardized features of single candidates.

    Args:
        estimator: The unfitted model.

    Raises:
        ParameterError: The estimator is not an unfitted linear model of scikit-learn.
    """

    def __init__(self, estimator: object) -> None:
        if isinstance(estimator, type) or not type(estimator).__module__.startswith(LINEAR_MODULES):
            raise ParameterError(_refusal(estimator))
        self._estimator = estimator

    def choose(self, data: RankerCandidates, splits: RowSplits, settings: RankerSettings) -> tuple[dict[str, float], Float64s]:
        scores = np.zeros(data.run.rows)
        for learned, held_out in splits:
            scores[held_out] = self.model(data.only(learned), settings, {}).predict(data.matrix[held_out])
        return {}, scores

    def model(self, data: RankerCandidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        base, scale = _sklearn("base"), Scale.of(data.matrix)
        targets: NDArray[np.generic] = data.grades > 0 if base.is_classifier(self._estimator) else data.grades
        fitted = base.clone(self._estimator).fit(scale.apply(data.matrix), targets)
        weights = np.asarray(getattr(fitted, "coef_", np.zeros(0)), dtype=np.float64)
        if weights.size != data.matrix.shape[1] or not hasattr(fitted, "intercept_"):
            raise ParameterError(_refusal(self._estimator))
        return scale.model(weights.ravel(), float(np.ravel(fitted.intercept_)[0]))


def _refusal(estimator: object) -> str:
    name = getattr(estimator, "__name__", type(estimator).__name__)
    return (
        f"{name} is no unfitted linear model of scikit-learn, whose weights can be kept as an array; take one such as Ridge() "
        "or LogisticRegression(), or learner='lightgbm' for trees"
    )


def _sklearn(module: str) -> ModuleType:
    with needs_extra("ltr", "training a linear model", "scikit-learn"):
        return import_module(f"sklearn.{module}")
