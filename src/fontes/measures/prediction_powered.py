"""Prediction-powered inference: means over topics by human and machine labels (Angelopoulos et al., Science 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.arrays import Bools, Floats, Int64s

MIN_TOPICS = 20  # topics with labels of both kinds
DIGITS = 12  # decimals in which values are compared
MIN_ERRORS = 5  # topics on which the machine errs; with fewer, intervals may be too narrow
MAX_SKEW = 0.2  # bound of the skewness, which is poorly estimated from few topics


@dataclass(frozen=True, eq=False)
class PredictionPowered:
    """Means over topics, with the uncertainty of the topics and of the machine's errors; arrays have one value per column.

    mean(h) + w * (mean(m) - mean(m')), where h and m' are the values by human and by machine labels of the n topics that have
    both, m the machine's values of all N topics, and w the slope of h on m', for which the variance is least (PPI++:
    Angelopoulos, Duchi and Zrnic 2023, section 6; in survey sampling, the regression estimator of two-phase sampling). With
    w = 1 it is the mean by machine labels, corrected by the mean of their errors.

    The N topics are a sample of a larger population of topics, and the n topics a random part of them. The variance is that of
    the delete-one jackknife (Rao and Sitter 1995), which includes the uncertainty of w. The t distribution has 2 v^2 / var(v)
    degrees of freedom, at most n - 2, where var(v) is estimated from the fourth powers of the jackknife's differences: few
    large errors of the machine among many small ones give few degrees. Errors in one direction, such as relevant documents that
    the machine misses, make t skewed: Hall's transformation (1992) corrects it, with the skewness estimated from the third
    powers of the same differences and bounded by 1/5.

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
    errors: Int64s
    human: int
    machine: int

    @classmethod
    def of(cls, human: Floats, machine: Floats, rows: Int64s) -> PredictionPowered:
        """Estimate the means of the columns.

        Args:
            human: Values by human labels, (n, columns), n from 3 up.
            machine: Values by machine labels, (N, columns).
            rows: The row of `machine` of each row of `human`.
        """
        (n, _), (total, _) = human.shape, machine.shape
        paired, unpaired = machine[rows], np.delete(machine, rows, axis=0)
        h, m = human - human.mean(axis=0), paired - paired.mean(axis=0)
        products, squares = h * m, m**2
        weight = _slope(products.sum(axis=0), squares.sum(axis=0))
        difference = machine.mean(axis=0) - paired.mean(axis=0)
        mean = human.mean(axis=0) + weight * difference
        # The estimate without each of the n topics: slope, means and machine mean of the remaining topics.
        scale = n / (n - 1)
        slopes = _slope(products.sum(axis=0) - scale * products, squares.sum(axis=0) - scale * squares)
        machine_means = (machine.sum(axis=0) - paired) / (total - 1)
        estimates = human.mean(axis=0) - h / (n - 1) + slopes * (machine_means - paired.mean(axis=0) + m / (n - 1))
        paired_terms = (estimates - mean) * np.sqrt((n - 1) / n)
        unpaired_terms = weight * (unpaired - machine.mean(axis=0)) / np.sqrt(total * (total - 1))
        squared = (paired_terms**2).sum(axis=0)
        variance = squared + (unpaired_terms**2).sum(axis=0)
        spread = np.maximum((paired_terms**4).sum(axis=0) - squared**2 / n, 0)
        cubed = ((paired_terms.mean(axis=0) - paired_terms) ** 3).sum(axis=0) + (unpaired_terms**3).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.fmin(2 * variance**2 / spread, n - 2)
            skew = np.nan_to_num(np.clip(cubed / variance**1.5, -MAX_SKEW, MAX_SKEW))
        unknown = _constant(human) & ~_constant(machine)
        error = np.where(unknown, np.nan, np.sqrt(np.where(_constant(human), 0.0, variance)))
        sampled = weight**2 * machine.var(axis=0, ddof=1) / total
        residuals = np.stack([human - paired, h - weight * m])
        errors = (np.round(residuals, DIGITS) != 0).sum(axis=1).min(axis=0)
        return cls(mean, error, freedom, weight, sampled, skew, errors, n, total)

    @property
    def doubtful(self) -> Bools:
        """Columns whose intervals may be too narrow: the machine errs on fewer than 5 of the topics that people judged.

        False where the error is 0, and if people judged all topics.
        """
        return (self.errors < MIN_ERRORS) & (self.error > 0) & (self.human < self.machine)

    def interval(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the ends of the 1 - alpha intervals."""
        from scipy.special import stdtrit

        t = stdtrit(self.freedom, 1 - alpha / 2)
        return self.mean - self._skewed(t) * self.error, self.mean - self._skewed(-t) * self.error

    def test(self) -> tuple[Floats, Floats]:
        """Return t, corrected for its skewness, and the two-sided p of a mean of 0; p is 1 where all values are 0."""
        from scipy.special import stdtr

        zero = (self.error == 0) & (np.round(self.mean, DIGITS) == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.mean / self.error
        t = np.where(zero, 0.0, t + self.skew * t**2 / 3 + self.skew**2 * t**3 / 27 + self.skew / 6)
        return t, np.where(zero, 1.0, 2 * stdtr(self.freedom, -np.abs(t)))

    def _skewed(self, t: Floats) -> Floats:
        """Inverse of Hall's transformation in `test`."""
        skew = np.where(self.skew == 0, 1.0, self.skew)
        return np.where(self.skew == 0, t, 3 * (np.cbrt(1 + skew * (t - skew / 6)) - 1) / skew)

    def topics_for(self, alpha: float, power: float) -> Floats:
        """Return how many of the N topics people must judge for a test to find that these means differ from 0.

        Each true mean is assumed to equal the estimate, and the variances to stay the same. With k human-judged topics the
        squared error is then (error^2 - sampled) * n / k + sampled, and the test finds the mean with probability `power` where
        |mean| is (t(1 - alpha / 2) + t(power)) times the error, with k / n times the degrees of freedom.

        Args:
            alpha: Greatest significant p.
            power: Probability of finding the mean.

        Returns:
            The least k from n to N for each column; NaN where N topics do not suffice.
        """
        from scipy.special import stdtrit

        k = np.arange(self.human, self.machine + 1)[:, None]
        error = np.sqrt(np.maximum(self.error**2 - self.sampled, 0) * self.human / k + self.sampled)
        freedom = self.freedom * k / self.human
        enough = np.abs(self.mean) >= (stdtrit(freedom, 1 - alpha / 2) + stdtrit(freedom, power)) * error
        return np.where(enough.any(axis=0) & (self.mean != 0), k[enough.argmax(axis=0), 0], np.nan)


def _slope(products: Floats, squares: Floats) -> Floats:
    """Return products / squares, and 0 where the machine's values do not vary."""
    varied = squares > 10.0**-DIGITS
    return np.where(varied, products / np.where(varied, squares, 1), 0.0)


def _constant(values: Floats) -> Bools:
    return np.asarray(np.all(np.round(values - values[:1], DIGITS) == 0, axis=0))
