"""Training of calibrations: maps from scores to probabilities of relevance, and held-out topics for promises."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from ..calibration.held_out import PROMISES, HeldOutTopics, least_units
from ..calibration.maps import FEATURES, MAPS, NON_INCREASING, ProbabilityMap, features_of, sigmoid
from ..calibration.model import Calibration
from ..calibration.reliability import Reliability, labels_of, reliability_of
from ..core.arrays import Bools, Float32s, Float64s, Int64s
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.values import Qrels, Topics
from ..core.work import Progress, ProgressCallback, reporter, work
from ..ltr.model import hashes
from ..measures.evaluation import check_agreement
from ..storage.artifact import META
from ..tuning.folds import folds_of
from .learners import Scale, with_topics
from .runner.checkpoint_folder import check_output_folder
from .runner.settings import Settings
from .splits import units_without_leakage

THRESHOLDS = 200  # of a test for precision
MAX_STEPS = 60  # of Newton's method, and halvings of a step
TOLERANCE = 1e-8  # of the gradient of a mean log loss
L2 = 1e-3  # strength of the regularization of standardized features, a row
Labels = Bools


class CalibrationSettings(Settings):
    """Settings of `train_calibration`.

    Attributes:
        map: "isotonic", "beta" or "logistic" over the log odds. None: the one with the least log loss on held-out topics.
        share: Share of the topics from which the map learns. Promises rest on the others, which must be new to the map.
        folds: Folds of the map's topics by which the map is chosen.
        group: Topics that count as one, besides duplicates: "document", "conversation", None or "auto". With "document" they
            share a relevant document; with "conversation" their ids are equal before the last "_"; None: no others.
            "auto" is "conversation" for topics with turns, "document" for judgments with evidence sets, else None.
        near: Least similarity of duplicate topics, which count as one.
        rel: Least relevant grade.
        seed: Seed of the division and of the folds.

    Raises:
        ParameterError: Settings are invalid; the message names all of them.
    """

    map: str | None = None
    share: float = Field(default=0.5, gt=0, lt=1)
    folds: int = Field(default=5, gt=1)
    group: str | None = "auto"
    near: float = Field(default=0.8, gt=0, le=1)
    rel: int = Field(default=1, gt=0)
    seed: int = Field(default=0, ge=0, lt=2**31)

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        if self.map is not None and self.map not in MAPS:
            raise ParameterError(f"map must be {', '.join(MAPS[:-1])} or {MAPS[-1]}, not {self.map!r}")


@dataclass(frozen=True)
class CalibrationTraining:
    """Result of `train_calibration`.

    Args:
        model: The calibration.
        settings: Its settings.
        chosen: Kind of the map.
        losses: Mean log loss of a document of held-out topics by kind of map; empty if the kind was given.
        reliability: Probabilities and shares of relevant documents of the topics from which the map has not learned.
        promises: Greatest level of each promise that the held-out topics allow; None if they allow none.
        topics: Number of judged topics.
        learned: Number of topics from which the map has learned.
        units: Number of held-out topics with relevant documents, or groups of them.
        unjudged: Number of topics of the run that were left out because they have no judgments.
        seconds: Duration.
    """

    model: Calibration
    settings: CalibrationSettings
    chosen: str
    losses: dict[str, float]
    reliability: Reliability
    promises: dict[str, float | None]
    topics: int
    learned: int
    units: int
    unjudged: int
    seconds: float

    @property
    def ece(self) -> float:
        """Expected calibration error on the topics from which the map has not learned."""
        return self.reliability.ece

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        names = ("chosen", "losses", "ece", "promises", "topics", "learned", "units", "unjudged", "seconds")
        return {
            "settings": self.settings.model_dump(),
            **{name: getattr(self, name) for name in names},
            "reliability": self.reliability.to_dict(),
            "digest": self.model.digest,
        }

    def __str__(self) -> str:
        losses = ", ".join(f"{kind} {loss:.4f}" for kind, loss in self.losses.items())
        lines = [
            f"{self.chosen} map from {self.learned:,} of {self.topics:,} topics{f'; log loss: {losses}' if losses else ''}"
        ]
        if self.unjudged:
            lines.append(f"{self.unjudged:,} topics without judgments left out")
        lines.append(f"expected calibration error on the other topics {self.ece:.4f}")
        lines.append(f"promises rest on {self.units:,} held-out topics or groups of topics with relevant documents:")
        lines += [f"  cut({kind}=…)  {f'up to {level:g}' if level else 'none'}" for kind, level in self.promises.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class CalibrationValidation:
    """Result of `validate_calibration`.

    Args:
        run: Held-out run: each topic's probabilities by a calibration that was chosen and learned without its fold.
        reliability: Its probabilities and shares of relevant documents.
        chosen: Kind of the map of each fold.
    """

    run: Run
    reliability: Reliability
    chosen: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {"chosen": list(self.chosen), "reliability": self.reliability.to_dict()}

    def __str__(self) -> str:
        return f"nested cross-validation (maps {', '.join(self.chosen)}): {self.reliability}"


def train_calibration(
    run: Run,
    qrels: object,
    output: str | Path | None = None,
    settings: CalibrationSettings | None = None,
    *,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> CalibrationTraining:
    """Train a calibration of the pipeline that made a run, for `calibrated(FOLDER)`.

    Topics are divided at random into those from which the map learns and those on which promises rest. Unjudged documents
    count as not relevant. The same settings, data and versions of libraries give the same calibration.

    Args:
        run: A run with its topics, as deep as the pipeline that is used.
        qrels: Anything that `Qrels.of` accepts.
        output: Folder of the calibration. None: it is not written.
        settings: Settings; None: the defaults.
        overwrite: Whether to replace a calibration.
        progress: Called with the progress.

    Raises:
        InputError: Topics have no judgments or no text, no document of the run is relevant, scores are infinite or all equal,
            or `output` cannot be written.
        ParameterError: A setting is unsuitable, or there are too few topics.
    """
    start, settings = time.perf_counter(), settings or CalibrationSettings()
    if output is not None:
        check_output_folder(Path(output), overwrite, META, "calibration", "digest")
    judgments = Qrels.of(qrels)
    data, units = _judged(run, judgments, settings)
    order = np.random.default_rng(settings.seed).permutation(len(units)).tolist()
    learned = round(settings.share * len(units))
    if not 2 <= learned < len(units):
        raise ParameterError(
            f"{len(units)} judged topics or groups of topics are too few to learn from {settings.share:g} of them: the map "
            f"needs 2 or more, and cut(recall=0.9) rests on {least_units('recall', 0.9)} others"
        )
    of_map, held_out = [[units[i] for i in part] for part in (order[:learned], order[learned:])]
    rows, labels = _rows_of(data, of_map), labels_of(data, judgments, settings.rel)
    features = features_of(data)
    _check_learnable(features[rows], labels[rows], len(of_map))
    with work(progress=progress):
        losses = {} if settings.map else _losses(data, features, labels, of_map, settings)
    chosen: str = settings.map or min(losses, key=lambda kind: losses[kind])
    probability_map = fit_curve(fit_log_odds(features[rows], labels[rows]), features[rows], labels[rows], chosen)
    facts = {
        "system": run.provenance.get("system"),
        "indexes": sorted(run.provenance.get("indexes", {}).values()),
        "depth": int(np.diff(data.bounds).max()),
        "settings": settings.model_dump(),
        "losses": {kind: round(loss, 6) for kind, loss in losses.items()},
    }
    model = Calibration(facts, probability_map, HeldOutTopics.none(), np.unique(hashes(data.topics)))
    calibrated = data.with_scores(model.probabilities(data))
    model.held_out = HeldOutTopics.of(calibrated, judgments, held_out, _grid(calibrated.scores[rows]), settings.rel)
    reliable = reliability_of(calibrated.scores[~rows].astype(np.float64), labels[~rows])
    model.facts["ece"] = round(reliable.ece, 6)
    if output is not None:
        model.save(output)
        model = Calibration.load(output)
    return CalibrationTraining(
        model=model,
        settings=settings,
        chosen=chosen,
        losses=losses,
        reliability=reliable,
        promises={kind: model.greatest(kind) for kind in PROMISES},
        topics=len(data.topics),
        learned=sum(map(len, of_map)),
        units=model.held_out.units,
        unjudged=len(run.topics) - len(data.topics),
        seconds=round(time.perf_counter() - start, 2),
    )


def validate_calibration(
    run: Run,
    qrels: object,
    settings: CalibrationSettings | None = None,
    *,
    folds: int = 5,
    progress: ProgressCallback | None = None,
) -> CalibrationValidation:
    """Evaluate `train_calibration` by nested cross-validation, with all choices for a fold made on the other folds.

    Args:
        run: As in `train_calibration`.
        qrels: As in `train_calibration`.
        settings: Settings, with the number of inner folds.
        folds: Number of outer folds.
        progress: Called with the progress.

    Raises:
        FontesError: As in `train_calibration`.
    """
    settings, judgments = settings or CalibrationSettings(), Qrels.of(qrels)
    data, units = _judged(run, judgments, settings)
    fold_of = folds_of(units, folds, settings.seed)
    probabilities, chosen = np.zeros(data.rows, dtype=np.float32), []
    for fold in range(folds):
        others = with_topics(data, {topic_id for topic_id in fold_of if fold_of[topic_id] != fold})
        training = train_calibration(others, judgments, None, settings, progress=progress)
        rows = _rows_of(data, [[topic_id for topic_id in fold_of if fold_of[topic_id] == fold]])
        probabilities[rows] = training.model.probabilities(data)[rows]
        chosen.append(training.chosen)
    labels = labels_of(data, judgments, settings.rel)
    reliable = reliability_of(probabilities.astype(np.float64), labels)
    return CalibrationValidation(data.with_scores(probabilities, {}), reliable, tuple(chosen))


def fit_log_odds(features: Float64s, labels: Labels) -> ProbabilityMap:
    """Learn log odds by logistic regression, such that they fall along each ranking."""
    scale = Scale.of(features)
    free, falling = (-np.inf, np.inf), (-np.inf, 0.0)
    limits = [falling if column in NON_INCREASING else free for column in range(len(FEATURES))]
    fitted = _logistic(scale.apply(features), labels, [*limits, free], np.zeros(len(FEATURES) + 1), L2)
    weights = fitted[:-1] / scale.deviations
    return ProbabilityMap("logistic", np.append(weights, fitted[-1] - weights @ scale.means), np.zeros(0))


def fit_curve(linear: ProbabilityMap, features: Float64s, labels: Labels, kind: str) -> ProbabilityMap:
    """Learn the curve over log odds."""
    if kind == "logistic":
        return linear
    log_odds = linear.log_odds(features)
    if kind == "beta":
        inputs = np.column_stack([-np.logaddexp(0, -log_odds), np.logaddexp(0, log_odds)])
        limits = [(0.0, np.inf), (0.0, np.inf), (-np.inf, np.inf)]
        curve = _logistic(inputs, labels, limits, np.array([1.0, 1.0, 0.0]), TOLERANCE)
        return ProbabilityMap("beta", linear.weights, curve)
    order = np.argsort(log_odds, kind="stable")
    levels, first, counts = np.unique(log_odds[order], return_index=True, return_counts=True)
    shares = np.add.reduceat(labels[order].astype(np.float64), first) / counts
    fitted_shares = _isotonic(shares, counts)
    corners = np.flatnonzero(np.diff(fitted_shares, prepend=-1.0, append=2.0)[:-1] + np.diff(fitted_shares, append=2.0))
    return ProbabilityMap("isotonic", linear.weights, np.array([levels[corners], fitted_shares[corners]]))


def _isotonic(shares: Float64s, counts: Int64s) -> Float64s:
    """Return the non-decreasing values nearest to the shares, weighted by counts: pools of adjacent violators."""
    pools: list[tuple[float, int, int]] = []  # mean, rows, values
    for share, count in zip(shares.tolist(), counts.tolist(), strict=True):
        mean, rows, values = share, count, 1
        while pools and pools[-1][0] >= mean:
            earlier_mean, earlier_rows, earlier_values = pools.pop()
            mean = (earlier_mean * earlier_rows + mean * rows) / (earlier_rows + rows)
            rows, values = earlier_rows + rows, earlier_values + values
        pools.append((mean, rows, values))
    means, _, lengths = zip(*pools, strict=True)
    return np.repeat(np.array(means), lengths)


def _logistic(
    inputs: Float64s, labels: Labels, limits: Sequence[tuple[float, float]], start: Float64s, strength: float
) -> Float64s:
    """Return the weights and the constant of a logistic regression with limits, by projected Newton steps (Bertsekas, 1982)."""
    matrix = np.column_stack([inputs, np.ones(len(inputs))])
    penalty, (low, high) = np.append(np.full(inputs.shape[1], strength), 0.0), np.array(limits).T

    def loss_of(weights: Float64s) -> float:
        log_odds = matrix @ weights
        return float(np.mean(np.logaddexp(0, log_odds) - labels * log_odds) + penalty @ weights**2 / 2)

    weights, loss = start, loss_of(start)
    for _ in range(MAX_STEPS):
        probabilities = sigmoid(matrix @ weights)
        gradient = matrix.T @ (probabilities - labels) / len(labels) + penalty * weights
        is_free = ~((weights <= low) & (gradient > 0) | (weights >= high) & (gradient < 0))
        if np.abs(gradient[is_free]).max(initial=0.0) < TOLERANCE:
            break
        curvature = (matrix.T * (probabilities * (1 - probabilities))) @ matrix / len(labels)
        hessian = curvature + np.diag(penalty + TOLERANCE)
        step = np.zeros(len(weights))
        step[is_free] = np.linalg.solve(hessian[np.ix_(is_free, is_free)], gradient[is_free])
        for halvings in range(MAX_STEPS):
            shorter = np.clip(weights - step / 2**halvings, low, high)
            if (shorter_loss := loss_of(shorter)) < loss:
                break
        else:
            break
        weights, loss = shorter, shorter_loss
    return weights


def _losses(
    data: Run, features: Float64s, labels: Labels, units: list[list[str]], settings: CalibrationSettings
) -> dict[str, float]:
    """Return the mean log loss of a held-out document by kind of map."""
    report = reporter()
    start, folds = time.perf_counter(), min(settings.folds, len(units))
    fold_of, totals = folds_of(units, folds, settings.seed), dict.fromkeys(MAPS, 0.0)
    evaluated = 0
    for fold in range(folds):
        learned, held_out = (
            _rows_of(data, [[topic_id for topic_id in fold_of if (fold_of[topic_id] == fold) == is_held_out]])
            for is_held_out in (False, True)
        )
        if len(set(labels[learned].tolist())) < 2:
            continue
        evaluated += int(held_out.sum())
        linear = fit_log_odds(features[learned], labels[learned])
        for kind in MAPS:
            fitted = fit_curve(linear, features[learned], labels[learned], kind)
            probabilities = fitted.probabilities(fitted.log_odds(features[held_out]))
            totals[kind] -= float(np.log(np.where(labels[held_out], probabilities, 1 - probabilities)).sum())
        report(Progress("training", fold + 1, folds, time.perf_counter() - start, "folds"))
    return {kind: total / max(1, evaluated) for kind, total in totals.items()}


def _judged(run: Run, qrels: Qrels, settings: CalibrationSettings) -> tuple[Run, list[list[str]]]:
    """Return the run of judged topics, and the topics in units that must not be divided."""
    check_agreement(run, qrels)
    data = with_topics(run, {topic_id for topic_id in run.topics if topic_id in qrels})
    if not data.rows:
        raise InputError("no topic of the run with documents has judgments; give the judgments of these topics")
    features_of(data)  # raises for topics without text, which would all be duplicates
    topics, group = Topics(data.topics.values()), settings.group
    if group == "auto":
        if any(topic.turns for topic in topics.values()):
            group = "conversation"
        else:
            group = "document" if any(name != "0" for _, name, _, _ in qrels.only(topics).rows()) else None
    return data, units_without_leakage(topics, qrels, groups=group, near=settings.near)


def _rows_of(run: Run, units: list[list[str]]) -> Labels:
    """Return which rows are those of the topics of some units, bool (rows,)."""
    topics = {topic_id for unit in units for topic_id in unit}
    return np.array([topic_id in topics for topic_id in run.topics], dtype=np.bool_)[run.topic_numbers]


def _check_learnable(features: Float64s, labels: Labels, units: int) -> None:
    if not labels.any():
        raise InputError(
            f"none of the {len(labels):,} documents of the {units} topics or groups from which the map learns is relevant; "
            "take more documents of each topic, and judgments of this collection"
        )
    if labels.all():
        raise InputError("all documents from which the map learns are relevant; take more documents of each topic")
    if not np.ptp(features[:, 0]) and not np.ptp(features[:, 1]):
        raise InputError("all scores of the run are equal, so that they tell nothing; take a run with scores")


def _grid(probabilities: Float32s) -> Float32s:
    """Return thresholds, descending, between which the number of documents grows by a constant factor."""
    ordered = np.sort(probabilities)[::-1]
    positions = np.unique(np.geomspace(1, len(ordered), THRESHOLDS).astype(np.int64)) - 1
    return np.unique(ordered[positions])[::-1].astype(np.float32)
