"""Prediction-powered inference: means over topics by human and machine labels (Angelopoulos et al., Science 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

TOPICS = 20  # least number of topics with labels of both kinds
DIGITS = 12  # decimals in which values are compared
ERRORS = 5  # with fewer topics on which the machine errs, intervals may be too narrow
SKEW = 0.2  # bound of the skewness, which few topics tell badly


@dataclass(frozen=True, eq=False)
class PredictionPowered:
    """Means over topics, with the uncertainty of the topics and of the machine's errors; arrays have a number per column.

    mean(h) + w * (mean(m) - mean(m')), where h and m' are the values by human and by machine labels of the n topics that have
    both, m the machine's values of all N topics, and w the slope of h on m', for which the variance is least (PPI++:
    Angelopoulos, Duchi and Zrnic 2023, section 6; in survey sampling, the regression estimator of two-phase sampling). With
    w = 1 it is the mean by machine labels, corrected by the mean of their errors.

    The topics are a sample of a larger population of topics, and the n a random part of them. The variance is the delete-one
    jackknife's (Rao and Sitter 1995), which has the uncertainty of w. The t distribution has 2 v^2 / var(v) degrees of freedom,
    where var(v) is estimated from the fourth powers of the jackknife's differences, but n - 2 at most: few large errors of the
    machine among many small ones give few. Errors in one direction, such as relevant documents that the machine misses, make t
    skewed: Hall's transformation (1992) corrects it, with the skewness from the third powers of the same differences, bounded
    by 1/5.

    Args:
        mean: The estimates.
        error: Their standard errors; NaN where the human values do not vary but the machine's do.
        freedom: Degrees of freedom.
        weight: The slopes w.
        sampled: The part of the squared error that more human-judged topics cannot reduce, w^2 var(m) / N.
        skew: Skewness of the estimates.
        errors: Number of the n topics on which h and m' differ, or that lie off the line of h on m' where these are fewer.
        human: n.
        machine: N.
    """

    mean: Floats
    error: Floats
    freedom: Floats
    weight: Floats
    sampled: Floats
    skew: Floats
    errors: NDArray[np.int64]
    human: int
    machine: int

    @classmethod
    def of(cls, human: Floats, machine: Floats, rows: NDArray[np.int64]) -> PredictionPowered:
        """Estimate the means of the columns.

        Args:
            human: Values by human labels, (n, columns), n from 3 up.
            machine: Values by machine labels, (N, columns).
            rows: The row of `machine` of each row of `human`.
        """
        (n, _), (total, _) = human.shape, machine.shape
        both, rest = machine[rows], np.delete(machine, rows, axis=0)
        h, m = human - human.mean(axis=0), both - both.mean(axis=0)
        products, squares = h * m, m**2
        weight = _slope(products.sum(axis=0), squares.sum(axis=0))
        gap = machine.mean(axis=0) - both.mean(axis=0)
        mean = human.mean(axis=0) + weight * gap
        # The estimate without one of the n topics: its means, its slope and the mean of the others.
        scale = n / (n - 1)
        slopes = _slope(products.sum(axis=0) - scale * products, squares.sum(axis=0) - scale * squares)
        others = (machine.sum(axis=0) - both) / (total - 1)
        without = human.mean(axis=0) - h / (n - 1) + slopes * (others - both.mean(axis=0) + m / (n - 1))
        left = (without - mean) * np.sqrt((n - 1) / n)
        right = weight * (rest - machine.mean(axis=0)) / np.sqrt(total * (total - 1))
        squared = (left**2).sum(axis=0)
        variance = squared + (right**2).sum(axis=0)
        spread = np.maximum((left**4).sum(axis=0) - squared**2 / n, 0)
        cubed = ((left.mean(axis=0) - left) ** 3).sum(axis=0) + (right**3).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.fmin(2 * variance**2 / spread, n - 2)
            skew = np.nan_to_num(np.clip(cubed / variance**1.5, -SKEW, SKEW))
        unknown = _constant(human) & ~_constant(machine)
        error = np.where(unknown, np.nan, np.sqrt(np.where(_constant(human), 0.0, variance)))
        sampled = weight**2 * machine.var(axis=0, ddof=1) / total
        off = np.stack([human - both, h - weight * m])
        errors = (np.round(off, DIGITS) != 0).sum(axis=1).min(axis=0)
        return cls(mean, error, freedom, weight, sampled, skew, errors, n, total)

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        """Columns whose intervals may be too narrow: the machine errs on fewer than 5 of the topics, but not on none of all."""
        return (self.errors < ERRORS) & (self.error > 0) & (self.human < self.machine)

    def interval(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the ends of the 1 - alpha intervals."""
        from scipy.special import stdtrit

        t = stdtrit(self.freedom, 1 - alpha / 2)
        return self.mean - self._skewed(t) * self.error, self.mean - self._skewed(-t) * self.error

    def test(self) -> tuple[Floats, Floats]:
        """Return t without its skewness, and the two-sided p of a mean of 0; p is 1 where all values are 0."""
        from scipy.special import stdtr

        zero = (self.error == 0) & (np.round(self.mean, DIGITS) == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.mean / self.error
        t = np.where(zero, 0.0, t + self.skew * t**2 / 3 + self.skew**2 * t**3 / 27 + self.skew / 6)
        return t, np.where(zero, 1.0, 2 * stdtr(self.freedom, -np.abs(t)))

    def _skewed(self, t: Floats) -> Floats:
        """The inverse of Hall's transformation in `test`."""
        skew = np.where(self.skew == 0, 1.0, self.skew)
        return np.where(self.skew == 0, t, 3 * (np.cbrt(1 + skew * (t - skew / 6)) - 1) / skew)

    def topics_for(self, alpha: float, power: float) -> Floats:
        """Return how many of the N topics people must judge for a test to find these means other than 0.

        Each true mean is taken to be the estimate, and the variances to stay as they are. With k human-judged topics the
        squared error is then (error^2 - sampled) * n / k + sampled, and the test finds the mean with the chance `power` where
        |mean| is (t(1 - alpha / 2) + t(power)) times the error, with the degrees of freedom times k / n.

        Args:
            alpha: Greatest significant p.
            power: Chance to find the mean.

        Returns:
            The least k from n to N for each column; NaN where N do not suffice.
        """
        from scipy.special import stdtrit

        k = np.arange(self.human, self.machine + 1)[:, None]
        error = np.sqrt(np.maximum(self.error**2 - self.sampled, 0) * self.human / k + self.sampled)
        freedom = self.freedom * k / self.human
        enough = np.abs(self.mean) >= (stdtrit(freedom, 1 - alpha / 2) + stdtrit(freedom, power)) * error
        return np.where(enough.any(axis=0) & (self.mean != 0), k[enough.argmax(axis=0), 0], np.nan)


def _slope(products: Floats, squares: Floats) -> Floats:
    """products / squares, and 0 where the machine's values do not vary."""
    varied = squares > 10.0**-DIGITS
    return np.where(varied, products / np.where(varied, squares, 1), 0.0)


def _constant(values: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.all(np.round(values - values[:1], DIGITS) == 0, axis=0))
