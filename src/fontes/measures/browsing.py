"""Measures with a model of how a reader moves down the ranking: ERR, and those of the C/W/L framework.

In C/W/L (Moffat, Bailey, Scholer and Thomas, 2017) a reader continues from rank i to the next with probability c_i. The
weight of rank i is the product of all c before it, divided by the sum of these products; the measure is the sum of weight
times gain over the first 1,000 ranks, as in cwl_eval. The gain of a document is (grade - min_rel) / (max_rel - min_rel),
from 0 to 1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core import InputError, ParameterError
from ..core.arrays import Floats, Ints
from .measure import Measure, check_grade, number, probability
from .ranks import Ranks

RANKS_READ = 1000  # ranks read in C/W/L
MAX_GRADE = 1023  # highest grade g whose 2^g is a float


@dataclass(frozen=True, repr=False)
class ExpectedReciprocalRank(Measure, name="ERR"):
    """Expected reciprocal rank (Chapelle et al., 2009): the sum over i <= k of s_i / i * the product over j < i of 1 - s_j.

    The probability s_i that the reader is satisfied at rank i is (2^grade - 1) / 2^max_rel; negative grades count 0.

    Args:
        max_rel: The highest possible grade; 4 in TREC's Web tracks and in their gdeval.
    """

    max_rel: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_grade("max_rel, the highest grade,", self.max_rel)
        if self.max_rel > MAX_GRADE:
            raise ParameterError(f"2^max_rel of ERR must be a float, so max_rel is {MAX_GRADE} at the most, not {self.max_rel}")

    def values(self, ranks: Ranks) -> Floats:
        check_highest(self, ranks, self.max_rel)
        satisfaction = (np.exp2(np.maximum(ranks.grade, 0)) - 1) / 2.0**self.max_rel
        return np.array([self._ranking_value(ranked[: self.depth]) for ranked in ranks.lists(satisfaction)])

    def _ranking_value(self, satisfaction: Floats) -> float:
        reached = np.cumprod(np.concatenate(([1.0], 1 - satisfaction)))[:-1]
        return float((reached * satisfaction / np.arange(1, len(satisfaction) + 1)).sum())


@dataclass(frozen=True, repr=False)
class Browsing(Measure):
    """Base class of C/W/L measures; a subclass defines the continuation probability.

    Args:
        min_rel: The highest grade that gains 0.
        max_rel: The highest possible grade, which gains 1; required.
    """

    min_rel: int = 0
    max_rel: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_grade("min_rel, the grade that gains nothing,", self.min_rel, 0)
        if self.max_rel is not None:
            check_grade("max_rel, the highest grade,", self.max_rel, self.min_rel + 1)

    def ready(self) -> Self:
        if self.max_rel is None:
            example = self(max_rel=3) if self.cut == "none" else self(max_rel=3) @ self.example
            raise ParameterError(f"{self.name} needs max_rel, the highest grade that a judgment can have, as in {example}")
        return super().ready()

    def values(self, ranks: Ranks) -> Floats:
        highest = self.max_rel or 0
        check_highest(self, ranks, highest)
        gain = np.clip((ranks.grade - self.min_rel) / (highest - self.min_rel), 0, 1)
        return np.array([self._ranking_value(ranked[:RANKS_READ]) for ranked in ranks.lists(gain)])

    def _ranking_value(self, ranked: Floats) -> float:
        gain = np.pad(ranked, (0, RANKS_READ - len(ranked)))
        rank = np.arange(1, RANKS_READ + 1)
        continuation = np.where(rank < self.depth, self.continuation_probability(gain, rank), 0.0)
        weights = np.cumprod(np.concatenate(([1.0], continuation[:-1])))
        return float((weights * gain).sum() / weights.sum())

    @abstractmethod
    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        """Probability that the reader continues from each rank; 0 at the cutoff.

        Args:
            gain: Gain of the document at each rank.
            rank: Ranks, counted from 1.
        """


@dataclass(frozen=True, repr=False)
class TargetGain(Browsing):
    """Base class of measures whose reader has a target gain.

    Args:
        T: The target total gain, above 0.
    """

    T: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "T", number("T", self.T))
        if not 0 < self.T < np.inf:
            raise ParameterError(f"the T of {self.name} must be above 0, not {self.T!r}")


@dataclass(frozen=True, repr=False)
class ScaledDCG(Browsing, name="SDCG"):
    """Scaled DCG: DCG as in `nDCG`, divided by the DCG of k documents of the highest grade; c_i = log2(i + 1) / log2(i + 2)."""

    cut = "required"

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        return np.asarray(np.log2(rank + 1) / np.log2(rank + 2))


@dataclass(frozen=True, repr=False)
class BejeweledPlayer(TargetGain, name="BPM"):
    """The Bejeweled player model (Zhang et al., 2017): c_i is 1 until the gain so far is T or more, or k is reached."""

    cut = "required"

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        return (np.cumsum(gain) < self.T).astype(np.float64)


@dataclass(frozen=True, repr=False)
class INSQMeasure(TargetGain, name="INSQ"):
    """INSQ (Moffat, Scholer and Thomas, 2012): c_i = ((i + 2T - 1) / (i + 2T))²."""

    cut = "none"

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        return np.asarray(((rank + 2 * self.T - 1) / (rank + 2 * self.T)) ** 2)


@dataclass(frozen=True, repr=False)
class INSTMeasure(TargetGain, name="INST"):
    """INST (Bailey, Moffat, Scholer and Thomas, 2015): as INSQ, with T + T - (the gain so far) in place of 2T."""

    cut = "none"

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        remaining = 2 * self.T - np.cumsum(gain)
        return np.asarray(((rank + remaining - 1) / (rank + remaining)) ** 2)


@dataclass(frozen=True, repr=False)
class NearlyERR8(Browsing, name="NERR8"):
    """Nearly ERR (Azzopardi, Mackenzie and Moffat, 2021, equation 8): c_i = 1 - gain."""

    cut = "required"

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        return 1 - gain


@dataclass(frozen=True, repr=False)
class NearlyERR9(Browsing, name="NERR9"):
    """Nearly ERR (the same, equation 9): c_i = i / (i + 1) * (1 - gain)."""

    cut = "required"

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        return np.asarray(rank / (rank + 1) * (1 - gain))


@dataclass(frozen=True, repr=False)
class NearlyERR10(Browsing, name="NERR10"):
    """Nearly ERR (the same, equation 10): c_i = p * (1 - gain).

    Args:
        p: Probability, between 0 and 1, that the reader continues from a document without gain.
    """

    cut = "none"
    p: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", probability("p of NERR10", self.p))

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        return self.p * (1 - gain)


@dataclass(frozen=True, repr=False)
class NearlyERR11(TargetGain, name="NERR11"):
    """Nearly ERR (the same, equation 11): INSQ's c_i * (1 - gain)."""

    cut = "none"

    def continuation_probability(self, gain: Floats, rank: Ints) -> Floats:
        return np.asarray(((rank + 2 * self.T - 1) / (rank + 2 * self.T)) ** 2 * (1 - gain))


def check_highest(measure: Measure, ranks: Ranks, highest: int) -> None:
    """Raise InputError if a judgment's grade exceeds the highest that `measure` allows."""
    if ranks.grade.max(initial=0) <= highest:
        return
    for topic_id, grades in ranks.qrels.items():
        for doc_id, grade in grades.items():
            if grade > highest:
                raise InputError(
                    f"topic '{topic_id}', document '{doc_id}' has the grade {grade}, above the highest of {measure}; "
                    f"say what it is, as in {measure(max_rel=min(grade, MAX_GRADE))}"
                )


ERR = ExpectedReciprocalRank()
"""Expected reciprocal rank."""
SDCG = ScaledDCG()
"""Scaled DCG; needs max_rel and a cutoff."""
BPM = BejeweledPlayer()
"""The Bejeweled player model; needs max_rel and a cutoff."""
INSQ = INSQMeasure()
"""INSQ; needs max_rel."""
INST = INSTMeasure()
"""INST; needs max_rel."""
NERR8 = NearlyERR8()
"""Nearly ERR, equation 8; needs max_rel and a cutoff."""
NERR9 = NearlyERR9()
"""Nearly ERR, equation 9; needs max_rel and a cutoff."""
NERR10 = NearlyERR10()
"""Nearly ERR, equation 10; needs max_rel."""
NERR11 = NearlyERR11()
"""Nearly ERR, equation 11; needs max_rel."""
