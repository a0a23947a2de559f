"""Measures of the retrieved documents as a set, including counts; symbols are those of `formulas`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import ParameterError
from .measure import Binary, Condensable, Measure, check_grade, number
from .ranks import Floats, Ints, Mask, Ranks, ratio


@dataclass(frozen=True, repr=False)
class TopicCount(Measure, name="NumQ", aliases=("num_q",)):
    """1 for each judged topic. Summed over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return np.ones(len(ranks.starts), dtype=np.int64)


@dataclass(frozen=True, repr=False)
class RetrievedCount(Measure, name="NumRet", aliases=("num_ret",)):
    """n, the number of documents retrieved; with `rel`, of those that are relevant. Summed over the topics.

    Args:
        rel: Least grade of a document that counts, from 1 up; None counts all.
    """

    cut = "none"
    summed = True
    rel: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rel is not None:
            check_grade("rel, the least grade that is counted,", self.rel)

    def values(self, ranks: Ranks) -> Ints:
        return ranks.retrieved if self.rel is None else ranks.count(ranks.relevant_retrieved(self.rel))


@dataclass(frozen=True, repr=False)
class RelevantCount(Binary, name="NumRel", aliases=("num_rel",)):
    """R, the number of relevant documents. Summed over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.count(ranks.relevant(self.rel))


@dataclass(frozen=True, repr=False)
class RelevantRetrievedCount(Binary, name="NumRelRet", aliases=("num_rel_ret",)):
    """The number of relevant documents retrieved. Summed over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.count(ranks.relevant_retrieved(self.rel))


@dataclass(frozen=True, repr=False)
class SetPrecision(Condensable, Binary, name="SetP", aliases=("set_P",)):
    """Precision of a set: the relevant documents retrieved (among the first k), divided by those retrieved, min(n, k).

    `P@k` divides by k.

    Args:
        relative: Whether to divide by the largest possible number of relevant ones instead, min(n, k, R).
    """

    relative: bool = False

    def values(self, ranks: Ranks) -> Floats:
        size = np.minimum(ranks.retrieved, self.depth)
        if self.relative:
            size = np.minimum(size, ranks.count(ranks.relevant(self.rel)))
        return ratio(ranks.count(ranks.relevant_retrieved(self.rel, self.depth)), size)


@dataclass(frozen=True, repr=False)
class SetRelativePrecision(SetPrecision, name="SetRelP", aliases=("set_relative_P",)):
    """Relative precision of a set: the same as `SetP(relative=True)`."""

    relative: bool = True


@dataclass(frozen=True, repr=False)
class SetRecall(Binary, name="SetR", aliases=("set_recall",)):
    """Recall of a set: the same as `R`."""

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.relevant_retrieved(self.rel, self.depth)), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class SetFMeasure(Condensable, Binary, name="SetF", aliases=("set_F",)):
    """F of a set (van Rijsbergen, 1979): (1 + beta²) * SetP * SetR / (beta² * SetP + SetR).

    Args:
        beta: Weight of recall relative to precision, above 0. The parameter of trec_eval's set_F is beta².
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", number("beta", self.beta))
        if not 0 < self.beta < 1e150:  # so that its square is finite
            raise ParameterError(f"the beta of SetF must be above 0 and below 1e150, not {self.beta!r}")

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.count(ranks.relevant_retrieved(self.rel, self.depth))
        square = self.beta**2
        sizes = square * ranks.count(ranks.relevant(self.rel)) + np.minimum(ranks.retrieved, self.depth)
        return ratio((1 + square) * rel_ret, sizes)


@dataclass(frozen=True, repr=False)
class SetAveragePrecision(Condensable, Binary, name="SetAP", aliases=("set_map",)):
    """Average precision of a set: SetP * SetR."""

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.count(ranks.relevant_retrieved(self.rel, self.depth))
        return ratio(rel_ret**2, np.minimum(ranks.retrieved, self.depth) * ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class CompleteEvidence(Binary, name="Complete"):
    """1 if all documents of one evidence set (`Qrels.groups`) are among the first k, else 0.

    Used to score evidence in fact checking (FEVER; Thorne et al., 2018). Without groups it equals `Success`.
    """

    cut = "required"

    def values(self, ranks: Ranks) -> Mask:
        return ranks.evidence(self.rel) < self.depth


NumQ = TopicCount()
"""The number of judged topics."""
NumRet = RetrievedCount()
"""The number of documents retrieved."""
NumRel = RelevantCount()
"""The number of relevant documents."""
NumRelRet = RelevantRetrievedCount()
"""The number of relevant documents retrieved."""
SetP = SetPrecision()
"""Precision of a set."""
SetRelP = SetRelativePrecision()
"""Relative precision of a set."""
SetR = SetRecall()
"""Recall of a set."""
SetF = SetFMeasure()
"""F of a set."""
SetAP = SetAveragePrecision()
"""Average precision of a set."""
Complete = CompleteEvidence()
"""Whether one evidence set is complete; needs a cutoff."""
