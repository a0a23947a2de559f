"""Statistics of paired differences: tests, corrections for multiple tests, intervals and effect sizes.

`differences` is float64, (topics, pairs), with a column for each pair of systems and measure. Results have one number per
column; NaN means undefined, as in the t-test of a single topic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..core import ParameterError
from ..core.arrays import AnyArray, Bools, Floats, Int64s

DIGITS = 12  # decimals in which differences are compared
EXACT_WILCOXON = 50  # greatest number of nonzero differences for the exact distribution
EXACT_FISHER = 16  # greatest number of topics for which all signs are tried
BLOCK_SIZE = 1 << 21  # numbers in a block of resamples: 16 MiB
DRAW_SIZE = 1 << 17  # numbers drawn at a time, to fit the processor's cache


def t_test(differences: Floats) -> tuple[Floats, Floats]:
    """Paired t-test (Student 1908), two-sided: t = mean / (sd / sqrt(n)), with n - 1 degrees of freedom.

    Args:
        differences: The differences, (topics, pairs).

    Returns:
        t and p of each column. p is 1 where all differences are 0, and NaN with a single topic.
    """
    from scipy.special import stdtr

    n = len(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = differences.mean(axis=0) / (deviation(differences) / math.sqrt(n))
    t = np.where(_all_zero(differences) & (n > 1), 0.0, t)
    return t, 2 * stdtr(n - 1, -np.abs(t))


def wilcoxon(differences: Floats) -> tuple[Floats, Floats]:
    """Wilcoxon's signed rank test (Wilcoxon 1945), two-sided.

    Differences of 0 are dropped, and ties share their mean rank. Up to 50 differences, p is exact; beyond, it is the normal
    approximation, with the variance corrected for ties.

    Args:
        differences: The differences, (topics, pairs).

    Returns:
        The smaller sum of ranks, and p, of each column. p is 1 where all differences are 0.
    """
    results = [_wilcoxon(column[column != 0]) for column in np.round(differences, DIGITS).T]
    return np.array([w for w, _ in results]), np.array([p for _, p in results])


def fisher(differences: Floats, permutations: int = 100_000, seed: int = 0) -> tuple[Floats, Floats]:
    """Fisher's randomisation test (Fisher 1935; Smucker, Allan and Carterette 2007), two-sided.

    Under the null hypothesis the sign of each topic's difference is random. Up to 16 topics, all assignments of signs are
    tried, and p is exact. Beyond, `permutations` random assignments are tried, the same for all columns, and
    p = (b + 1) / (permutations + 1), where b of them reach the observed mean (Phipson and Smyth 2010).

    Args:
        differences: The differences, (topics, pairs).
        permutations: The number of random assignments of signs for more than 16 topics.
        seed: The seed of the random signs.

    Returns:
        The mean difference and p of each column.
    """
    n = len(differences)
    total = 1 << n if n <= EXACT_FISHER else permutations
    sums = differences.sum(axis=0)
    threshold = np.abs(sums) - 1e-10 * np.abs(differences).sum(axis=0)  # tolerance for rounding
    reached = np.zeros(differences.shape[1], dtype=np.int64)
    for signs in _signs(n, total, seed, max(1, BLOCK_SIZE // max(differences.shape))):
        reached += (np.abs(2 * (signs @ differences) - sums) >= threshold).sum(axis=0)
    p = reached / total if n <= EXACT_FISHER else (reached + 1) / (total + 1)
    return differences.mean(axis=0), p


def tukey(values: Floats, pairs: Sequence[tuple[int, int]], blocks: bool = True) -> tuple[Floats, Floats]:
    """Tukey's honestly significant differences: the studentized range of pairs of systems.

    q = |mean_i - mean_j| / sqrt(V / n). With `blocks`, V is the residual variance after system and topic means, with
    (m - 1)(n - 1) degrees of freedom, for systems on the same topics (Carterette 2012; Sakai 2018). Without, V is the variance
    within systems, with m(n - 1) degrees of freedom, and the test has less power.

    Args:
        values: The values, (topics, systems), of all m systems.
        pairs: The pairs of systems, by their columns.
        blocks: Whether all systems have the same topics.

    Returns:
        q and p of each pair. p is corrected for all pairs of the m systems.
    """
    from scipy.stats import studentized_range

    n, m = values.shape
    means = values.mean(axis=0)
    residuals = values - means
    if blocks:
        residuals = residuals - residuals.mean(axis=1, keepdims=True)
    freedom = (m - 1) * (n - 1) if blocks else m * (n - 1)
    if not freedom or not pairs:
        return np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
    first, second = np.array(pairs).T
    gaps = np.abs(means[first] - means[second])
    with np.errstate(divide="ignore", invalid="ignore"):
        q = gaps / math.sqrt(float((residuals**2).sum()) / freedom / n)
    q = np.where(np.round(gaps, DIGITS) == 0, 0.0, q)
    p = np.where(q == 0, 1.0, np.where(np.isinf(q), 0.0, studentized_range.sf(np.where(np.isinf(q), 1.0, q), m, freedom)))
    return q, p


def corrected(p: Floats, method: str) -> Floats:
    """Correct the p-values of one family of tests for multiple testing.

    "bonferroni" and the more powerful "holm" (Holm 1979) control the familywise error rate; "bh" (Benjamini and Hochberg
    1995) controls the false discovery rate.

    Args:
        p: The p-values, (tests,). NaN stays, and is not counted.
        method: "holm", "bonferroni", "bh" or "none".

    Raises:
        ParameterError: The correction is unknown.
    """
    result = np.array(p, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(result))
    order = defined[np.argsort(result[defined], kind="stable")]
    number = len(order)
    ascending = result[order]
    if method == "bonferroni":
        ascending = ascending * number
    elif method == "holm":
        ascending = np.maximum.accumulate(ascending * np.arange(number, 0, -1))
    elif method == "bh":
        ascending = np.minimum.accumulate((ascending * number / np.arange(1, number + 1))[::-1])[::-1]
    elif method != "none":
        raise ParameterError(f"unknown correction '{method}'; there are holm, bonferroni, bh and none")
    result[order] = np.minimum(ascending, 1.0)
    return result


def bootstrap(values: Floats, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0) -> tuple[Floats, Floats]:
    """Return the ends of each column's bootstrap interval of the mean: `interval` of `resampled`."""
    return interval(values, resampled(values, resamples, seed), confidence)


def resampled(values: Floats, resamples: int = 10_000, seed: int = 0) -> Floats:
    """Return the means of each column in bootstrap samples of the topics.

    All columns share the samples, so the means of differences are the differences of these means.

    Args:
        values: The values, (topics, columns).
        resamples: The number of samples.
        seed: The seed of the samples.

    Returns:
        The means, float64, (resamples, columns).
    """
    n, columns = values.shape
    generator = np.random.default_rng(seed)
    rows = max(1, BLOCK_SIZE // n)
    means = np.empty((resamples, columns))
    step = max(1, DRAW_SIZE // n)
    counts = np.empty((min(rows, resamples), n))  # how often each topic was drawn
    for start in range(0, resamples, rows):
        block = counts[: min(rows, resamples - start)]
        for row in range(0, len(block), step):
            samples = min(step, len(block) - row)
            drawn = generator.integers(0, n, (samples, n)) + (np.arange(samples) * n)[:, None]
            block[row : row + samples] = np.bincount(drawn.ravel(), minlength=samples * n).reshape(samples, n)
        np.divide(block @ values, n, out=means[start : start + len(block)])
    return means


def interval(values: Floats, means: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """BCa (bias-corrected and accelerated) intervals of column means (Efron 1987).

    Args:
        values: The values, (topics, columns).
        means: The means of the columns in samples, from `resampled`.
        confidence: The coverage of the interval.

    Returns:
        The lower and the upper end for each column. A constant column has its mean as interval; NaN with a single topic.
    """
    from scipy.special import ndtr, ndtri

    if len(values) < 2:
        return np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    mean = values.mean(axis=0)
    centred = values - mean
    constant = _all_zero(centred)
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = (centred**3).sum(axis=0) / (6 * (centred**2).sum(axis=0) ** 1.5)
    margin = 1e-12 * np.maximum(np.abs(mean), 1)  # means equal up to rounding count half
    bias = ndtri(((means < mean - margin).sum(axis=0) + (means <= mean + margin).sum(axis=0)) / (2 * len(means)))
    shares = []
    for z in ndtri([(1 - confidence) / 2, (1 + confidence) / 2]):
        with np.errstate(invalid="ignore"):
            share = ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
        shares.append(np.where(np.isnan(share), ndtr(z), share))
    ends = np.array([np.quantile(column, levels) for column, levels in zip(means.T, np.transpose(shares), strict=True)])
    return np.where(constant, mean, ends[:, 0]), np.where(constant, mean, ends[:, 1])


def d_z(differences: Floats) -> Floats:
    """Cohen's d_z of paired values: the mean difference divided by the standard deviation of the differences (Cohen 1988).

    Args:
        differences: The differences, (topics, pairs).

    Returns:
        One number per column: 0 if all differences are 0; NaN if they are all equal, or for a single topic.
    """
    return _effect(differences, deviation(differences))


def hedges_g(system: Floats, against: Floats) -> Floats:
    """Hedges' g: the mean difference in standard deviations of the values, J * mean(a - b) / sqrt((sd_a² + sd_b²) / 2).

    J = 1 - 3 / (4 (n - 1) - 1) corrects the bias of small samples (Hedges 1981; for paired values Borenstein et al. 2009,
    equation 4.22, and Cumming 2012). Unlike d_z it does not grow with the correlation of the two systems.

    Args:
        system: The values a of one system in each pair, (topics, pairs).
        against: The values b of the other.

    Returns:
        One number per column: 0 if all differences are 0; NaN if nothing varies, or for a single topic.
    """
    n = len(system)
    spread = np.sqrt((deviation(system) ** 2 + deviation(against) ** 2) / 2)
    return _effect(system - against, spread) * (1 - 3 / (4 * (n - 1) - 1))


def deviation(values: Floats) -> Floats:
    """Standard deviation of each column, with n - 1; NaN with a single row."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    result: Floats = values.std(axis=0, ddof=1)
    return np.where(_all_zero(values - values[:1]), 0.0, result)


def _all_zero(differences: Floats) -> Bools:
    """Whether all differences of a column are 0 up to rounding."""
    return np.asarray(np.all(np.round(differences, DIGITS) == 0, axis=0))


def _effect(differences: Floats, spread: Floats) -> Floats:
    """Return mean differences divided by a spread: 0 where all differences are 0, otherwise NaN where the spread is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = differences.mean(axis=0) / spread
    return np.where(np.isfinite(effect), effect, np.where(_all_zero(differences) & (len(differences) > 1), 0.0, np.nan))


def _wilcoxon(differences: Floats) -> tuple[float, float]:
    n = len(differences)
    if not n:
        return 0.0, 1.0
    _, group, ties = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[group]  # twice the mean rank, a whole number
    positive = int(doubled[differences > 0].sum())
    w = min(positive, int(doubled.sum()) - positive)
    if n <= EXACT_WILCOXON:
        ways = np.zeros(int(doubled.sum()) + 1)  # to reach each sum of ranks
        ways[0] = 1
        for rank in doubled.tolist():
            ways[rank:] = ways[rank:] + ways[:-rank]
        return w / 2, min(1.0, 2 * float(ways[: w + 1].sum()) / 2**n)
    from scipy.special import ndtr

    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties.astype(np.float64) ** 3 - ties).sum()) / 48
    return w / 2, min(1.0, 2 * float(ndtr((w / 2 - n * (n + 1) / 4) / math.sqrt(variance))))


def _signs(n: int, total: int, seed: int, rows: int) -> Iterator[Floats]:
    """Yield blocks of 0 and 1, (rows, n), `total` rows in all: the signs of the topics, which are all 2^n for few topics."""
    generator = np.random.default_rng(seed)
    for start in range(0, total, rows):
        count = min(rows, total - start)
        if n <= EXACT_FISHER:
            bits: AnyArray = (np.arange(start, start + count)[:, None] >> np.arange(n)) & 1
        else:
            width = -(-n // 8)
            packed = np.frombuffer(generator.bytes(count * width), dtype=np.uint8).reshape(count, width)
            bits = np.unpackbits(packed, axis=1, count=n)
        yield bits.astype(np.float64)


POWERS = {"": 0, "linear": 1, "quadratic": 2}  # of the distance of two grades, by the weights of kappa


def kappa(table: Sequence[Sequence[int]] | Int64s, weights: str = "") -> float:
    """Cohen's kappa: 1 - sum(w * observed) / sum(w * expected by chance) (Cohen 1960; weighted, Cohen 1968, equation 4).

    Args:
        table: Numbers of documents by grade of the first judge (rows) and of the second (columns).
        weights: Of disagreements: "" for equal ones; "linear" or "quadratic" by the distance of the grades.

    Returns:
        1 for perfect agreement, 0 for chance; NaN without documents, or if both judges give every document the same grade.

    Raises:
        ParameterError: The weights are unknown.
    """
    if weights not in POWERS:
        raise ParameterError(f"there are no weights '{weights}' of kappa; there are linear and quadratic, and '' for none")
    observed = np.asarray(table, dtype=np.float64)
    grades = np.arange(len(observed))
    distance = np.abs(grades[:, None] - grades)
    weight = distance.astype(np.float64) ** POWERS[weights] if POWERS[weights] else (distance > 0).astype(np.float64)
    total = observed.sum()
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / total if total else observed
    chance = float((weight * expected).sum())
    return float(1 - (weight * observed).sum() / chance) if chance else float("nan")
