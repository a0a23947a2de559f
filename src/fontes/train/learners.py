"""Learners of models of learning to rank, and the candidates that they learn from."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..core.errors import InputError, ParameterError, needs_extra
from ..core.part import Part
from ..core.progress import Progress, ProgressCallback
from ..core.qrels import Qrels
from ..core.run import Run
from ..core.values import Topics
from ..ltr.features import Floats, feature_matrix
from ..ltr.model import LinearModel, RankModel, TreeModel, lightgbm, threads_for
from ..measures import DEFAULT, Measure, parse
from ..measures.evaluation import check_agreement, measured
from .runner.settings import Settings
from .splits import folds_without_leakage, leakage

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)  # of L2 regularization, per topic
LOPSIDED = 1.5  # times the share of a fold, beyond which the largest is refused
PAIRS = 2_000  # of two candidates that a linear model learns from, at most, for each topic
MODULES = ("sklearn.linear_model", "sklearn.svm")  # of scikit-learn's linear models

Rows: TypeAlias = NDArray[np.int64]
RowSplits: TypeAlias = list[tuple[Rows, Rows]]  # rows to learn from, and held-out rows


class RankerSettings(Settings):
    """Settings of `train_ranker`.

    Attributes:
        learner: "lightgbm", LambdaMART; or "linear", logistic regression over pairs of candidates. The pairs are a topic's
            candidates with different grades.
        trees: Greatest number of trees. The training ends early where more do not help on held-out topics.
        patience: Trees without gain on held-out topics after which training ends.
        leaves: Leaves of a tree.
        least: Least number of candidates of a leaf.
        lr: Learning rate of the trees.
        measure: Measure on held-out topics by which the number of trees, or a linear model's L2 term, is chosen.
        folds: Folds of the topics; unused with topics to validate on.
        group: Topics that stay in one fold, besides duplicates: "document" or "conversation". Of a "document": those that
            share a relevant one, which trees may recognise by its length or date; of a "conversation": those with equal ids
            before the last "_". None: no others.
        near: Least similarity of duplicate topics, which stay in one fold.
        seed: Seed of the folds, and of the pairs of a linear model.

    Raises:
        ParameterError: Invalid settings, all named.
    """

    learner: Literal["lightgbm", "linear"] = "lightgbm"
    trees: int = Field(default=500, gt=0)
    patience: int = Field(default=50, gt=0)
    leaves: int = Field(default=15, gt=1)
    least: int = Field(default=20, gt=0)
    lr: float = Field(default=0.05, gt=0, allow_inf_nan=False)
    measure: str = DEFAULT[0]
    folds: int = Field(default=5, gt=1)
    group: str | None = "document"
    near: float = Field(default=0.8, gt=0, le=1)
    seed: int = Field(default=0, ge=0, lt=2**31)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        parse(self.measure)  # raises for an unknown one


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of judged topics with features and grades, row by row.

    Args:
        run: The candidates.
        qrels: Judgments of the topics.
        matrix: float64, (rows, features).
        grades: int64, (rows,), from 0 up.
    """

    run: Run
    qrels: Qrels
    matrix: Floats
    grades: NDArray[np.int64]

    @classmethod
    def of(cls, run: Run, qrels: Qrels, features: Sequence[Part], progress: ProgressCallback) -> Self:
        """Compute features and grades. Raises InputError if a topic has no text or the judgments are of others."""
        check_agreement(run, qrels)
        judged = [topic for topic in run.topics.values() if topic.id in qrels]
        for topic in judged:
            if len(run[topic.id]) and not topic.text.strip():
                raise InputError(
                    f"topic '{topic.id}' has no text; a run read from a file gets its topics with read_run(path, topics)"
                )
        judged_run = _with_topics(run, {topic.id for topic in judged})
        grades = [qrels[ranking.topic.id].get(hit.id, 0) for ranking in judged_run.values() for hit in ranking]
        return cls(
            judged_run, qrels, feature_matrix(judged_run, features, progress), np.maximum(np.array(grades, dtype=np.int64), 0)
        )

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
        """Rows of each topic that has any."""
        return [slice(a, b) for a, b in pairwise(self.run.bounds.tolist()) if a < b]

    def splits(self, settings: RankerSettings) -> RowSplits:
        """Rows to learn from and held-out rows of each fold."""
        # Only topics with candidates: others have nothing to be held out.
        topics = [topic for topic in self.run.topics.values() if len(self.run[topic.id])]
        whole, remedy = Topics(topics), "give fewer folds, or group=None (--group None) to divide groups"
        try:
            fold_of = folds_without_leakage(
                whole, self.qrels, settings.folds, groups=settings.group, near=settings.near, seed=settings.seed
            )
        except ParameterError as error:
            raise ParameterError(str(error).replace("give fewer folds", remedy)) from None
        most = max(Counter(fold_of.values()).values())
        if most * settings.folds > LOPSIDED * len(topics):
            raise ParameterError(
                f"{most:,} of {len(topics):,} topics share a group or duplicate one another, too many for one of "
                f"{settings.folds} folds; {remedy}"
            )
        of_topics = np.array([fold_of.get(topic_id, 0) for topic_id in self.run.topics], dtype=np.int64)
        of_rows = of_topics[self.run.topic_numbers]
        return [(np.flatnonzero(of_rows != fold), np.flatnonzero(of_rows == fold)) for fold in range(settings.folds)]

    def beside(self, held_out: Candidates, settings: RankerSettings) -> Candidates:
        """Return these candidates followed by held-out ones. Raises InputError if these share topics."""
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
        return Candidates(Run.of(both), Qrels(judged), matrix, grades)

    def only(self, rows: Rows) -> Candidates:
        """Return the candidates of some rows, which are all of their topics."""
        topics = {list(self.run.topics)[n] for n in np.unique(self.run.topic_numbers[rows]).tolist()}
        known = Qrels(row for row in self.qrels.rows() if row[0] in topics)
        return Candidates(_with_topics(self.run, topics), known, self.matrix[rows], self.grades[rows])

    def ranked(self, scores: NDArray[Any]) -> Run:
        """Return the candidates in the order of other scores, one for each row."""
        return self.run.with_scores(scores.astype(np.float32), {})

    def value(self, scores: NDArray[Any], measure: Measure) -> float:
        """Return the mean of a measure over the judged topics, for the candidates in the order of these scores."""
        return float(measured(self.ranked(scores), self.qrels, [measure])[measure])


def _rows(run: Run) -> list[tuple[str, str, float]]:
    return [(topic_id, hit.id, hit.score) for topic_id, ranking in run.items() for hit in ranking]


def _with_topics(run: Run, ids: set[str]) -> Run:
    """The run without other topics."""
    kept = run.keep(np.array([topic_id in ids for topic_id in run.topics], dtype=np.bool_)[run.topic_numbers])
    sizes = np.diff(kept.bounds)[[topic_id in ids for topic_id in run.topics]]
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
    topics = Topics(topic for topic in run.topics.values() if topic.id in ids)
    return Run(topics, kept.ids, bounds, kept.codes, kept.scores, documents=run.documents, provenance=run.provenance)


class Learner(ABC):
    """A way to learn a model, whose free choice is made on held-out rows."""

    @abstractmethod
    def chosen(
        self, data: Candidates, splits: RowSplits, settings: RankerSettings, progress: ProgressCallback
    ) -> tuple[dict[str, float], Floats]:
        """Return the choice, and the scores of held-out rows by it, float64 (rows,); 0 for rows that no side holds out."""

    @abstractmethod
    def model(self, data: Candidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        """Return the model that learns from all rows."""


def learner_of(settings: RankerSettings, estimator: Any) -> Learner:
    """Return the learner of settings, or of an estimator of scikit-learn.

    Raises:
        ParameterError: The estimator is no linear model.
        MissingExtraError: LightGBM is missing.
    """
    if estimator is not None:
        return Estimated(estimator)
    return Trees() if settings.learner == "lightgbm" else Pairwise()


class Trees(Learner):
    """LambdaMART by LightGBM."""

    def __init__(self) -> None:
        self._library = lightgbm("training with --learner lightgbm")

    def chosen(
        self, data: Candidates, splits: RowSplits, settings: RankerSettings, progress: ProgressCallback
    ) -> tuple[dict[str, float], Floats]:
        measure, start, held_out = parse(settings.measure), time.perf_counter(), [data.only(rows) for _, rows in splits]
        by_rows = {rows.tobytes(): part for (_, rows), part in zip(splits, held_out, strict=True)}

        def evaluated(scores: Floats, of: Any) -> tuple[str, float, bool]:
            part = by_rows[np.asarray(of.used_indices, dtype=np.int64).tobytes()]
            return str(measure), part.value(scores, measure), True

        def report(environment: Any) -> None:
            done = environment.iteration + 1
            progress(Progress("training", done, settings.trees, time.perf_counter() - start, "trees"))

        stop = self._library.early_stopping(settings.patience, verbose=False)
        result = self._library.cv(
            self._parameters(data, settings),
            self._rows(data),
            settings.trees,
            folds=splits,
            feval=evaluated,
            callbacks=[stop, report],
            return_cvbooster=True,
        )
        boosters, scores = result["cvbooster"], np.zeros(data.run.rows)
        trees = boosters.best_iteration if boosters.best_iteration > 0 else settings.trees
        for booster, (_, rows) in zip(boosters.boosters, splits, strict=True):
            scores[rows] = booster.predict(
                data.matrix[rows], raw_score=True, num_iteration=trees, num_threads=threads_for(data.matrix)
            )
        return {"trees": trees}, scores

    def model(self, data: Candidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        booster = self._library.train(self._parameters(data, settings), self._rows(data), int(chosen["trees"]))
        # Without LightGBM's own parameters, which name the number of threads.
        text, _, _ = booster.model_to_string().partition("\nparameters:")
        return TreeModel({"features": [str(n) for n in range(data.matrix.shape[1])]}, text + "\n")

    def _rows(self, data: Candidates) -> Any:
        sizes = [rows.stop - rows.start for rows in data.slices]
        return self._library.Dataset(data.matrix, data.grades, group=sizes, params={"verbosity": -1}, free_raw_data=False)

    def _parameters(self, data: Candidates, settings: RankerSettings) -> dict[str, Any]:
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
            "num_threads": threads_for(data.matrix),
            "verbosity": -1,
        }


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each feature, missing values left out; a feature of one value has the deviation 1."""

    means: Floats
    deviations: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Self:
        """Scale of the rows of a matrix."""
        present = ~np.isnan(matrix)
        counts, filled = np.maximum(present.sum(axis=0), 1), np.where(present, matrix, 0.0)
        means = filled.sum(axis=0) / counts
        deviations = np.sqrt((np.where(present, matrix - means, 0.0) ** 2).sum(axis=0) / counts)
        return cls(means, np.where(deviations > 0, deviations, 1.0))

    def apply(self, matrix: Floats) -> Floats:
        """Standardized features, with 0 for missing values."""
        return np.where(np.isnan(matrix), 0.0, (matrix - self.means) / self.deviations)

    def model(self, weights: Floats, constant: float) -> LinearModel:
        """Return the model over the features themselves, of weights of standardized ones."""
        scaled = weights / self.deviations
        return LinearModel(
            {"features": [str(n) for n in range(len(scaled))]}, scaled, float(constant - scaled @ self.means), self.means
        )


class Pairwise(Learner):
    """Logistic regression over the differences of pairs of a topic's candidates with different grades; topics weigh alike."""

    def chosen(
        self, data: Candidates, splits: RowSplits, settings: RankerSettings, progress: ProgressCallback
    ) -> tuple[dict[str, float], Floats]:
        measure, start, best = parse(settings.measure), time.perf_counter(), (-np.inf, 0.0, np.zeros(0))
        learned, held_out = [data.only(rows) for rows, _ in splits], np.sort(np.concatenate([rows for _, rows in splits]))
        measured_on = data.only(held_out)
        for number, strength in enumerate(STRENGTHS, 1):
            scores = np.zeros(data.run.rows)
            for part, (_, rows) in zip(learned, splits, strict=True):
                scores[rows] = self.model(part, settings, {"strength": strength}).predict(data.matrix[rows])
            value = measured_on.value(scores[held_out], measure)
            best = max(best, (value, strength, scores), key=lambda one: one[0])
            progress(Progress("training", number, len(STRENGTHS), time.perf_counter() - start, "strengths"))
        return {"strength": best[1]}, best[2]

    def model(self, data: Candidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        scale = Scale.of(data.matrix)
        inputs, generator = scale.apply(data.matrix), np.random.default_rng(settings.seed)
        differences, weights = [], []
        for rows in data.slices:
            grades, topic_inputs = data.grades[rows], inputs[rows]
            better, worse = np.nonzero(grades[:, None] > grades)
            if len(better) > PAIRS:
                sample = np.sort(generator.choice(len(better), PAIRS, replace=False))
                better, worse = better[sample], worse[sample]
            if len(better):
                differences.append(topic_inputs[better] - topic_inputs[worse])
                weights.append(np.full(len(better), 1 / len(better)))
        pairs, signs = np.concatenate(differences), np.resize([1, -1], sum(map(len, differences)))
        # Each second pair is turned round: the loss is the same, and scikit-learn wants two classes.
        model = _sklearn("linear_model").LogisticRegression(
            C=1 / (chosen["strength"] * len(weights)), fit_intercept=False, solver="newton-cholesky", tol=1e-8, max_iter=1_000
        )
        if len(signs) == 1:
            pairs, signs, weights = np.vstack([pairs, -pairs]), np.array([1, -1]), [np.array([0.5, 0.5])]
        model.fit(pairs * signs[:, None], signs, np.concatenate(weights))
        return scale.model(model.coef_[0], 0.0)


class Estimated(Learner):
    """A linear model of scikit-learn over standardized features of single candidates.

    Args:
        estimator: The unfitted model.

    Raises:
        ParameterError: It is none.
    """

    def __init__(self, estimator: Any) -> None:
        if isinstance(estimator, type) or not type(estimator).__module__.startswith(MODULES):
            raise ParameterError(_refused(estimator))
        self._estimator = estimator

    def chosen(
        self, data: Candidates, splits: RowSplits, settings: RankerSettings, progress: ProgressCallback
    ) -> tuple[dict[str, float], Floats]:
        scores = np.zeros(data.run.rows)
        for learned, held_out in splits:
            scores[held_out] = self.model(data.only(learned), settings, {}).predict(data.matrix[held_out])
        return {}, scores

    def model(self, data: Candidates, settings: RankerSettings, chosen: dict[str, float]) -> RankModel:
        base, scale = _sklearn("base"), Scale.of(data.matrix)
        targets: Any = data.grades > 0 if base.is_classifier(self._estimator) else data.grades
        fitted = base.clone(self._estimator).fit(scale.apply(data.matrix), targets)
        weights = np.asarray(getattr(fitted, "coef_", np.zeros(0)), dtype=np.float64)
        if weights.size != data.matrix.shape[1] or not hasattr(fitted, "intercept_"):
            raise ParameterError(_refused(self._estimator))
        return scale.model(weights.ravel(), float(np.ravel(fitted.intercept_)[0]))


def _refused(estimator: Any) -> str:
    name = getattr(estimator, "__name__", type(estimator).__name__)
    return (
        f"{name} is no unfitted linear model of scikit-learn, whose weights can be kept as an array; take one such as Ridge() "
        "or LogisticRegression(), or learner='lightgbm' for trees"
    )


def _sklearn(module: str) -> Any:
    with needs_extra("ltr", "training a linear model", "scikit-learn"):
        return import_module(f"sklearn.{module}")
