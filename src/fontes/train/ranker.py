"""Training for learning to rank: LambdaMART by LightGBM, linear models, and SetRank, over features of candidates."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import InputError
from ..core.part import state_of
from ..core.run import Run
from ..core.values import Qrels
from ..core.work import ProgressCallback, work
from ..ltr.features import check_features, feature_names, features_of
from ..ltr.model import RankModel, hashes
from ..ltr.stage import analyzer_facts, fingerprints
from ..measures import Measure, parse
from ..storage.artifact import META
from .learners import RankerCandidates, RankerSettings, learner_of
from .runner.checkpoint_folder import check_output_folder

if TYPE_CHECKING:
    from ..index import Index


UNITS = {"trees": "trees", "epochs": "passes"}  # of chosen parameters


@dataclass(frozen=True)
class RankerTraining:
    """Result of `train_ranker`.

    Args:
        model: The model.
        settings: Its settings.
        chosen: Parameter chosen on held-out topics, "trees", "strength" or "epochs", by name; empty for an estimator.
        importance: Share of each feature in the gain of all splits; for a linear model in the sum of |weight| · standard
            deviation; for SetRank in the mean absolute changes of scores if all candidates have the feature's mean.
        measure: The measure on held-out topics.
        score: Mean of the measure over held-out topics. It is slightly optimistic, since the parameter was chosen on the same
            topics; the score of `validate_ranker` is not.
        before: The same mean for the candidates in their own order.
        topics: Number of training topics.
        unjudged: Number of topics of the run that were left out because they have no judgments.
        candidates: Number of training candidates.
        relevant: Number of relevant candidates among them.
        run: Held-out run: candidates of each topic, scored by a model that has not learned from the topic.
        seconds: Duration.
    """

    model: RankModel
    settings: RankerSettings
    chosen: dict[str, float]
    importance: dict[str, float]
    measure: Measure
    score: float
    before: float
    topics: int
    unjudged: int
    candidates: int
    relevant: int
    run: Run
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        names = ("chosen", "importance", "score", "before", "topics", "unjudged", "candidates", "relevant", "seconds")
        return {
            "learner": self.model.learner,
            "settings": self.settings.model_dump(),
            "measure": str(self.measure),
            **{name: getattr(self, name) for name in names},
            "digest": self.model.digest,
        }

    def __str__(self) -> str:
        kind = {"linear": "a linear model", "setrank": "SetRank", "lightgbm": "LambdaMART"}[self.model.learner]
        kind += "".join(f" of {self.chosen[unit]:,} {name}" for unit, name in UNITS.items() if unit in self.chosen)
        lines = [f"{kind} from {self.candidates:,} candidates of {self.topics:,} topics, {self.relevant:,} of them relevant"]
        if self.unjudged:
            lines.append(f"{self.unjudged:,} topics without judgments left out")
        lines.append(f"held-out topics: {self.measure} {self.score:.4f}; candidates in their own order {self.before:.4f}")
        width = max(map(len, self.importance))
        ordered = sorted(self.importance.items(), key=lambda item: -item[1])
        return "\n".join([*lines, "importance:", *(f"  {name:<{width}}  {share:6.1%}" for name, share in ordered)])


@dataclass(frozen=True)
class RankerFold:
    """A held-out fold.

    Args:
        chosen: Parameter chosen on the topics of the other folds, as in `RankerTraining`.
        score: Mean of the measure on this fold.
        topics: The fold's topics.
    """

    chosen: dict[str, float]
    score: float
    topics: tuple[str, ...]


@dataclass(frozen=True)
class RankerValidation:
    """Result of `validate_ranker`.

    Args:
        measure: The measure.
        score: Mean of the measure over all topics, each ranked by a model that was learned and chosen without its fold.
        before: The same mean for the candidates in their own order.
        folds: The folds.
        run: Held-out run.
    """

    measure: Measure
    score: float
    before: float
    folds: tuple[RankerFold, ...]
    run: Run

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        folds = [{"chosen": fold.chosen, "score": fold.score, "topics": list(fold.topics)} for fold in self.folds]
        return {"measure": str(self.measure), "score": self.score, "before": self.before, "folds": folds}

    def __str__(self) -> str:
        line = f"nested cross-validation: {self.measure} {self.score:.4f}; candidates in their own order {self.before:.4f}"
        of_folds = (
            f"fold {n}: {', '.join(f'{key} {value:g}' for key, value in fold.chosen.items()) or 'no choice'}  "
            f"{fold.score:.4f} on {len(fold.topics)} topics"
            for n, fold in enumerate(self.folds, 1)
        )
        return "\n".join([line, *of_folds])


def train_ranker(
    index: Index,
    candidates: Run,
    qrels: object,
    features: object,
    output: str | Path | None = None,
    settings: RankerSettings | None = None,
    *,
    validation: tuple[Run, object] | None = None,
    estimator: object = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> RankerTraining:
    """Train a model that reorders candidates by their features, for `ltr(FOLDER)`.

    The number of trees or passes (early stopping) or the strength of the regularization is chosen on held-out topics; then the
    model learns from all topics of `candidates`. Unjudged candidates count as not relevant, and negative grades as 0. The gain
    of a grade is the grade itself, as in `nDCG`. The same settings, data and versions of libraries give the same model.

    Args:
        index: The index of the features.
        candidates: Candidates with their topics, such as `(index.bm25() % 100)(topics)`.
        qrels: Anything that `Qrels.of` accepts.
        features: A list of stages, `Feature`s or their texts; or one text, separated by commas: 'bm25(), column("date")'.
        output: Folder of the model. None: the model is not written.
        settings: Settings; None: the defaults.
        validation: Candidates and judgments of other topics to hold out, in place of folds.
        estimator: An unfitted linear model of scikit-learn, such as `Ridge()` or `LogisticRegression()`, used instead of the
            learner. It is fitted to the standardized features of single candidates, with their grades as targets, or for a
            classifier whether the grades are above 0.
        overwrite: Whether to replace a model.
        progress: Called with the progress.

    Returns:
        The model, its figures, and the held-out run.

    Raises:
        InputError: No candidate is relevant, a topic has no text, `output` cannot be written, or validation topics duplicate
            training topics.
        ParameterError: A setting, a feature or the estimator is unsuitable.
        MissingExtraError: LightGBM, scikit-learn or torch is missing.
    """
    start, settings = time.perf_counter(), settings or RankerSettings()
    if output is not None:
        check_output_folder(Path(output), overwrite, META, "model of learning to rank", "digest")
    learner = learner_of(settings, estimator)
    state, measure = state_of(index), parse(settings.measure)
    chosen_features = features_of(features, state)
    check_features(chosen_features, state)
    with work(progress=progress):
        data = RankerCandidates.of(candidates, Qrels.of(qrels), chosen_features)
        data.check()
        if validation is None:
            held_out = data
            chosen, scores = learner.choose(data, data.splits(settings), settings)
        else:
            held_out = RankerCandidates.of(validation[0], Qrels.of(validation[1]), chosen_features)
            joined, rows = data.joined_with(held_out, settings), np.arange(data.run.rows + held_out.run.rows)
            chosen, scores = learner.choose(joined, [(rows[: data.run.rows], rows[data.run.rows :])], settings)
            scores = scores[data.run.rows :]
    model = learner.model(data, settings, chosen)
    importance = model.importance(data.matrix, data.run.bounds)
    if not importance.any():
        raise InputError(
            "the model has learned nothing: no feature tells relevant candidates from others, or there are too few of them"
        )
    names = feature_names(chosen_features)
    importance_shares = {name: round(float(share), 6) for name, share in zip(names, importance, strict=True)}
    score, unranked_score = held_out.value(scores, measure), held_out.value(held_out.run.scores, measure)
    model.facts.update(
        features=names,
        analyzer=analyzer_facts(state),
        models={
            name: feature_fingerprints
            for name, feature in zip(names, chosen_features, strict=True)
            if (feature_fingerprints := fingerprints(feature))
        },
        settings=settings.model_dump() | ({} if estimator is None else {"estimator": repr(estimator)}),
        chosen=chosen,
        importance=importance_shares,
        measure=str(measure),
        score=round(score, 6),
        topics=len(data.run.topics),
        candidates=data.run.rows,
    )
    model.topics = np.unique(hashes(data.run.topics))
    if output is not None:
        model.save(output)
        model = RankModel.load(output)
    return RankerTraining(
        model=model,
        settings=settings,
        chosen=chosen,
        importance=importance_shares,
        measure=measure,
        score=score,
        before=unranked_score,
        topics=len(data.run.topics),
        unjudged=len(candidates.topics) - len(data.run.topics),
        candidates=data.run.rows,
        relevant=int(np.count_nonzero(data.grades)),
        run=held_out.ranked(scores),
        seconds=round(time.perf_counter() - start, 2),
    )


def validate_ranker(
    index: Index,
    candidates: Run,
    qrels: object,
    features: object,
    settings: RankerSettings | None = None,
    *,
    folds: int = 5,
    estimator: object = None,
    progress: ProgressCallback | None = None,
) -> RankerValidation:
    """Evaluate `train_ranker` by nested cross-validation, with all choices for a fold made on the other folds.

    Args:
        index: As in `train_ranker`.
        candidates: As in `train_ranker`.
        qrels: As in `train_ranker`.
        features: As in `train_ranker`.
        settings: Settings, with the number of inner folds.
        folds: Number of outer folds.
        estimator: As in `train_ranker`.
        progress: Called with the progress.

    Raises:
        FontesError: As in `train_ranker`.
    """
    settings = settings or RankerSettings()
    learner, state, measure = learner_of(settings, estimator), state_of(index), parse(settings.measure)
    chosen_features = features_of(features, state)
    check_features(chosen_features, state)
    with work(progress=progress):
        data = RankerCandidates.of(candidates, Qrels.of(qrels), chosen_features)
        data.check()
        scores, ranker_folds = np.zeros(data.run.rows), []
        for learned_rows, held_out_rows in data.splits(settings.model_copy(update={"folds": folds})):
            inner = data.only(learned_rows)
            inner.check()
            chosen, _ = learner.choose(inner, inner.splits(settings), settings)
            outer = data.only(held_out_rows)
            scores[held_out_rows] = learner.model(inner, settings, chosen).predict(outer.matrix, outer.run.bounds)
            ranker_folds.append(RankerFold(chosen, outer.value(scores[held_out_rows], measure), tuple(outer.qrels)))
    score, unranked_score = data.value(scores, measure), data.value(data.run.scores, measure)
    return RankerValidation(measure, score, unranked_score, tuple(ranker_folds), data.ranked(scores))
