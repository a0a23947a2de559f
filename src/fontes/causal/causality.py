"""Training and evaluation of the head of `CausalEvidence` on sentences labelled as causal or not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import Bools, Float64s, Int64s
from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.work import Progress, ProgressCallback, reporter
from ..formats.records import json_rows
from ..neural.models.hub import library
from ..storage.files import reading
from .evidence import PROBE, CausalHead, cue_features, sentence_vectors

if TYPE_CHECKING:
    from ..neural import Encoder

STRENGTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
PURPOSE = "training a head"
DIGITS = 6  # digits of a weight in a head's file
SAMPLES_AT_ONCE = 500  # bootstrap samples computed at once

Labelled = str | os.PathLike[str] | Iterable[tuple[str, int]]


@dataclass(frozen=True)
class Interval:
    """A value with its 95% confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class CausalityMeasured:
    """Measures of the classification of causal sentences, with 95% confidence intervals.

    Args:
        sentences: Number of sentences.
        causal: Number of causal sentences.
        accuracy: Share of correctly classified sentences.
        precision: Share of causal sentences among those classified as causal; 0 if none is.
        recall: Share of the causal sentences classified as causal.
        f1: Harmonic mean of precision and recall.
        auc: Area under the ROC curve, independent of the threshold.
    """

    sentences: int
    causal: int
    accuracy: Interval
    precision: Interval
    recall: Interval
    f1: Interval
    auc: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = (f"{name:10}{getattr(self, name)}" for name in ("accuracy", "precision", "recall", "f1", "auc"))
        return "\n".join([f"{self.sentences} sentences, {self.causal} causal", *rows])


def train_causality(
    train: Labelled,
    encoder: Encoder,
    *,
    folds: int = 5,
    seed: int = 0,
    strengths: Sequence[float] = STRENGTHS,
    name: str | None = None,
    progress: ProgressCallback | None = None,
) -> CausalHead:
    """Fit a logistic regression over the vectors of sentences and their cues, for `CausalEvidence(encoder, head=…)`.

    The loss is that of scikit-learn with C = 1 / strength: the sum of log losses plus strength / 2 times the squared norm of
    the weights without the bias. Folds are random and stratified by label. The head's `card` holds the counts, the strength,
    and log loss, accuracy and F1 of the cross-validation. The threshold is 0.5.

    Args:
        train: File of JSON lines with `text` and `label` (1: reports a cause; 0: does not), or pairs (text, label).
        encoder: Encoder of the sentences.
        folds: Number of folds, from 2 to the number of sentences with the rarer label.
        seed: Seed of the folds.
        strengths: L2 regularization strengths to try; the one with the least cross-validated log loss is used.
        name: Name of the encoder in the head; None: the last part of its name or path.
        progress: Called after the cross-validation of each strength.

    Raises:
        InputError: A sentence has no text or another label, or a label has fewer than two sentences.
        ParameterError: A parameter is out of range.
        MissingExtraError: scikit-learn is missing.
    """
    texts, labels = labelled(train)
    if not 0 < labels.sum() < len(labels):
        raise InputError(f"training needs sentences that report a cause and others; all {len(labels)} have one label")
    rarer_count = int(min(labels.sum(), len(labels) - labels.sum()))
    if rarer_count < 2:
        raise InputError("training needs at least two sentences that report a cause, and two others")
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= rarer_count:
        raise ParameterError(
            f"folds must be a whole number from 2 to the {rarer_count} sentences of the rarer label, not {folds!r}"
        )
    check_whole("seed", seed, 0)
    if not strengths or min(strengths) <= 0:
        raise ParameterError(f"strengths must be numbers above 0, not {strengths!r}")
    inputs = np.hstack([sentence_vectors(encoder, texts).astype(np.float64), cue_features(texts)])
    report, start = progress or reporter(), time.perf_counter()
    held_out = {}
    for i, strength in enumerate(strengths, 1):
        held_out[strength] = cross_validated(inputs, labels, strength, folds, seed)
        report(Progress("cross-validating", i, len(strengths), time.perf_counter() - start, "strengths"))
    losses = {strength: log_loss(labels, probabilities) for strength, probabilities in held_out.items()}
    best = min(losses, key=lambda strength: losses[strength])
    weights = [_round_digits(weight) for weight in fitted(inputs, labels, best)]
    cross_validation = measure_causality(held_out[best], labels, resamples=1)
    card = {
        "train": Path(os.fspath(train)).name if isinstance(train, (str, os.PathLike)) else "sentences",
        "sentences": len(labels),
        "causal": int(labels.sum()),
        "strength": best,
        "folds": folds,
        "seed": seed,
        "log_loss": round(losses[best], 4),
        "accuracy": round(cross_validation.accuracy.value, 4),
        "f1": round(cross_validation.f1.value, 4),
    }
    probe = [_round_digits(float(x)) for x in sentence_vectors(encoder, [PROBE])[0]]
    encoder_name = Path(str(getattr(encoder, "name_or_path", type(encoder).__name__))).name
    dim = len(probe)
    return CausalHead(name or encoder_name, tuple(weights[:dim]), tuple(weights[dim:-1]), weights[-1], 0.5, tuple(probe), card)


def measure_causality(
    probabilities: object, labels: object, threshold: float = 0.5, *, resamples: int = 10_000, seed: int = 0
) -> CausalityMeasured:
    """Return accuracy, precision, recall and F1 of label 1, and the area under the ROC curve, with 95% intervals.

    The intervals come from the percentile bootstrap over the sentences (Efron and Tibshirani 1993).

    Args:
        probabilities: Probability of each sentence, (sentences,).
        labels: 1 or 0 for each sentence.
        threshold: Least probability classified as causal.
        resamples: Bootstrap samples.
        seed: Seed of the bootstrap.
    """
    scores, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(labels) == 1
    if scores.shape != truth.shape or not len(scores):
        raise InputError(f"{len(scores)} probabilities do not fit {len(truth)} labels")
    order = np.argsort(scores, kind="stable")
    scores, truth = scores[order], truth[order]
    point_values = _bootstrap_measures(truth, scores, threshold, np.ones((1, len(scores))))[0]
    generator = np.random.default_rng(seed)
    samples = []
    for start in range(0, resamples, SAMPLES_AT_ONCE):
        shape = (min(SAMPLES_AT_ONCE, resamples - start), len(scores))
        draws = generator.integers(0, len(scores), shape) + np.arange(shape[0])[:, None] * len(scores)
        counts = np.bincount(draws.ravel(), minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        samples.append(_bootstrap_measures(truth, scores, threshold, counts))
    low, high = np.quantile(np.vstack(samples), (0.025, 0.975), axis=0)
    rows = [Interval(*map(float, row)) for row in zip(point_values, low, high, strict=True)]
    return CausalityMeasured(len(truth), int(truth.sum()), *rows)


def labelled(sentences: Labelled) -> tuple[list[str], Int64s]:
    """Return the texts and labels of a file of JSON lines or of pairs; raise InputError for other texts or labels."""
    if isinstance(sentences, (str, os.PathLike)):
        with reading(os.fspath(sentences)) as source:
            rows = [(f"{source.name}, line {n}", row.get("text"), row.get("label")) for n, row in json_rows(source)]
    else:
        rows = [(f"sentence {n}", text, label) for n, (text, label) in enumerate(sentences, 1)]
    for origin, text, label in rows:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{origin} has no text")
        if label not in (0, 1):
            raise InputError(f"{origin}: the label must be 1 (reports a cause) or 0, not {label!r}")
    if not rows:
        raise InputError("there are no labelled sentences")
    return [str(text) for _, text, _ in rows], np.array([int(label or 0) for *_, label in rows], dtype=np.int64)


def fitted(inputs: Float64s, labels: Int64s, strength: float) -> Float64s:
    """Return the weights of the logistic regression, the bias last, float64 (features + 1,)."""
    model = _regression(strength).fit(inputs, labels)
    return np.append(model.coef_[0], model.intercept_)


def cross_validated(inputs: Float64s, labels: Int64s, strength: float, folds: int, seed: int) -> Float64s:
    """Return out-of-fold probabilities of label 1, float64 (sentences,)."""
    selection = library("sklearn.model_selection", PURPOSE, "train")
    splitter = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    probabilities = selection.cross_val_predict(_regression(strength), inputs, labels, cv=splitter, method="predict_proba")
    causal: Float64s = probabilities[:, 1]
    return causal


def log_loss(labels: Int64s, probabilities: Float64s) -> float:
    """Return the mean negative log probability of the true labels."""
    return float(library("sklearn.metrics", PURPOSE, "train").log_loss(labels, probabilities))


def _regression(strength: float) -> Any:
    return library("sklearn.linear_model", PURPOSE, "train").LogisticRegression(C=1 / strength, tol=1e-8, max_iter=10_000)


def _bootstrap_measures(truth: Bools, scores: Float64s, threshold: float, counts: Float64s) -> Float64s:
    """Return accuracy, precision, recall, F1 and AUC of bootstrap samples, float64 (samples, 5).

    Args:
        truth: Whether each sentence is causal, (sentences,).
        scores: Ascending probabilities, (sentences,).
        threshold: Least probability classified as causal.
        counts: Number of draws of each sentence in each sample, (samples, sentences).
    """
    positive = scores >= threshold
    true_positives, false_positives, false_negatives = (
        counts @ (mask.astype(float)) for mask in (truth & positive, ~truth & positive, truth & ~positive)
    )
    starts = np.flatnonzero(np.diff(scores, prepend=-np.inf))  # equal probabilities form one group
    causal = np.add.reduceat(counts * truth, starts, axis=1)
    non_causal = np.add.reduceat(counts * ~truth, starts, axis=1)
    correct_pairs = (causal * (non_causal.cumsum(axis=1) - non_causal / 2)).sum(axis=1)
    pairs = causal.sum(axis=1) * non_causal.sum(axis=1)
    columns: tuple[Float64s, ...] = (
        1 - (false_positives + false_negatives) / counts.sum(axis=1),
        _ratio(true_positives, true_positives + false_positives),
        _ratio(true_positives, true_positives + false_negatives),
        _ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives),
        np.where(pairs > 0, correct_pairs / np.maximum(pairs, 1), 0.5),
    )
    values: Float64s = np.stack(columns, axis=1)
    return values


def _ratio(numerator: Float64s, denominator: Float64s) -> Float64s:
    """Return numerator / denominator, and 0 where the denominator is 0; both are counts."""
    shares: Float64s = np.where(denominator > 0, numerator / np.maximum(denominator, 1), 0.0)
    return shares


def _round_digits(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
