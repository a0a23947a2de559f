"""The measures, one class each with its formula, and the objects that are used: `AP`, `nDCG`, `P` and so on.

In the formulas, R is the number of relevant documents of the topic (grade >= rel), n the number of documents retrieved, g_i
the grade of the document at rank i, r_i 1 if that document is relevant and else 0, and k the cutoff, where there is one.
Where a formula would divide by 0, the value is 0: a topic without results, or without relevant documents, scores 0. The
values are those of trec_eval for every measure that it has; a negative grade counts there as not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ..core import ParameterError
from .measure import Binary, Measure, number
from .ranks import FAR, Floats, Ints, Mask, Ranks, ratio


@dataclass(frozen=True, repr=False)
class AveragePrecision(Binary, name="AP", aliases=("map", "map_cut_K")):
    """Average precision: 1/R * the sum over i <= k of r_i * P@i."""

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel, self.depth)
        precision = ranks.running(rel_ret) / (ranks.rank + 1)
        return ratio(ranks.total(rel_ret, precision), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class NDCG(Measure, name="nDCG", aliases=("ndcg_cut_K",)):
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002): DCG divided by the DCG of the ideal ranking.

    DCG is the sum over i <= k of gain_i / log2(i + 1). The gain is the grade (`gain="linear"`, as in trec_eval) or 2^grade - 1
    (`gain="exp"`; Burges et al., 2005); negative grades gain 0. The ideal ranking has all judged documents by grade.

    Args:
        gain: What a grade is worth, "linear" or "exp".
    """

    gain: Literal["linear", "exp"] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gain not in ("linear", "exp"):
            raise ParameterError(f"the gain of nDCG is 'linear' or 'exp', not {self.gain!r}")

    def values(self, ranks: Ranks) -> Floats:
        grade = np.maximum(ranks.grade, 0).astype(np.float64)
        gain = np.exp2(grade) - 1 if self.gain == "exp" else grade
        best_first = np.lexsort((-gain, ranks.topic))
        ideal_rank = np.arange(len(gain)) - ranks.starts[ranks.topic]
        ideal = ranks.total(ideal_rank < self.depth, gain[best_first] / np.log2(ideal_rank + 2))
        return ratio(ranks.total(ranks.rank < self.depth, gain / np.log2(ranks.rank + 2)), ideal)


@dataclass(frozen=True, repr=False)
class Precision(Binary, name="P", aliases=("precision", "P_K")):
    """Precision: the number of relevant documents among the first k, divided by k, also where fewer were retrieved."""

    cut = "required"

    def values(self, ranks: Ranks) -> Floats:
        return ranks.count(ranks.relevant_retrieved(self.rel, self.depth)) / self.depth


@dataclass(frozen=True, repr=False)
class Recall(Binary, name="R", aliases=("recall", "recall_K")):
    """Recall: the number of relevant documents among the first k (without cutoff: among all retrieved), divided by R."""

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.relevant_retrieved(self.rel, self.depth)), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class ReciprocalRank(Binary, name="RR", aliases=("mrr", "recip_rank")):
    """Reciprocal rank: 1/i for the first relevant document, at rank i; 0 if there is none (within k)."""

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel, self.depth)
        return ranks.total(rel_ret & (ranks.running(rel_ret) == 1), 1 / (ranks.rank + 1))


@dataclass(frozen=True, repr=False)
class SuccessAtK(Binary, name="Success", aliases=("success_K",)):
    """1 if a relevant document is among the first k, else 0."""

    cut = "required"

    def values(self, ranks: Ranks) -> Ints:
        return np.minimum(ranks.count(ranks.relevant_retrieved(self.rel, self.depth)), 1)


@dataclass(frozen=True, repr=False)
class RPrecision(Binary, name="Rprec"):
    """R-precision: the number of relevant documents among the first R, divided by R."""

    cut = "none"

    def values(self, ranks: Ranks) -> Floats:
        relevant = ranks.relevant(self.rel)
        num_rel = ranks.count(relevant)
        return ratio(ranks.count(relevant & (ranks.rank < num_rel[ranks.topic])), num_rel)


@dataclass(frozen=True, repr=False)
class BinaryPreference(Binary, name="Bpref"):
    """Binary preference (Buckley and Voorhees, 2004): how rarely documents judged not relevant stand before relevant ones.

    1/R * the sum over the relevant documents d retrieved of 1 - min(N_d, R) / min(N, R). N is the number of documents judged
    not relevant (0 <= grade < rel), N_d the number of those that are ranked before d.
    """

    cut = "none"

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel)
        num_rel = ranks.count(ranks.relevant(self.rel))
        wrong = (ranks.grade >= 0) & (ranks.grade < self.rel)
        most = np.maximum(np.minimum(ranks.count(wrong), num_rel), 1)
        before = np.minimum(ranks.running(wrong & (ranks.rank < FAR)), num_rel[ranks.topic])
        return ratio(ranks.total(rel_ret, 1 - before / most[ranks.topic]), num_rel)


@dataclass(frozen=True, repr=False)
class RankBiasedPrecision(Binary, name="RBP"):
    """Rank-biased precision (Moffat and Zobel, 2008): (1 - p) * the sum over i <= k of r_i * p^(i-1).

    Args:
        p: The probability, between 0 and 1, that the reader goes on from one document to the next.
    """

    p: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", number("p", self.p))
        if not 0 < self.p < 1:
            raise ParameterError(f"the p of RBP must lie between 0 and 1, not {self.p!r}")

    def values(self, ranks: Ranks) -> Floats:
        return ranks.total(ranks.relevant_retrieved(self.rel, self.depth), (1 - self.p) * self.p**ranks.rank)


@dataclass(frozen=True, repr=False)
class JudgedShare(Measure, name="Judged"):
    """The share of the first k documents retrieved (of all n, where n < k) that the qrels hold, whatever the grade."""

    cut = "required"

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.rank < self.depth), np.minimum(ranks.retrieved, self.depth))


@dataclass(frozen=True, repr=False)
class InterpolatedPrecision(Binary, name="IPrec", aliases=("iprec_at_recall_K",)):
    """Interpolated precision at the recall x (`IPrec @ 0.1`): the highest P@i of all ranks i where recall is x or more.

    Recall is x when floor(x * R + 0.9) relevant documents are retrieved, as in trec_eval up to version 9.
    """

    cut = "required"
    example: ClassVar[float] = 0.1

    def _checked(self, cutoff: Any) -> float:
        """The recall as a float. Raises ParameterError unless it lies between 0 and 1."""
        recall = number("the recall of IPrec", cutoff)
        if not 0 <= recall <= 1:
            raise ParameterError(f"the recall of IPrec must lie between 0 and 1, as in IPrec@0.1, not {cutoff!r}")
        return recall

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel)
        so_far = ranks.running(rel_ret)
        needed = np.floor((self.cutoff or 0.0) * ranks.count(ranks.relevant(self.rel)) + 0.9)
        rows = rel_ret & (so_far >= needed[ranks.topic])
        highest = np.zeros(len(ranks.starts))
        np.maximum.at(highest, ranks.topic[rows], (so_far / (ranks.rank + 1))[rows])
        return highest


@dataclass(frozen=True, repr=False)
class RetrievedCount(Measure, name="NumRet", aliases=("num_ret",)):
    """n, the number of documents retrieved. Added up over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.retrieved


@dataclass(frozen=True, repr=False)
class RelevantCount(Binary, name="NumRel", aliases=("num_rel",)):
    """R, the number of relevant documents. Added up over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.count(ranks.relevant(self.rel))


@dataclass(frozen=True, repr=False)
class RelevantRetrievedCount(Binary, name="NumRelRet", aliases=("num_rel_ret",)):
    """The number of relevant documents retrieved. Added up over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.count(ranks.relevant_retrieved(self.rel))


@dataclass(frozen=True, repr=False)
class SetPrecision(Binary, name="SetP", aliases=("set_P",)):
    """Precision of a set: the relevant documents retrieved (among the first k), divided by those retrieved, min(n, k).

    `P@k` divides by k.
    """

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.relevant_retrieved(self.rel, self.depth)), np.minimum(ranks.retrieved, self.depth))


@dataclass(frozen=True, repr=False)
class SetRecall(Recall, name="SetR", aliases=("set_recall",)):
    """Recall of a set: the same as `R`."""


@dataclass(frozen=True, repr=False)
class SetFMeasure(Binary, name="SetF", aliases=("set_F",)):
    """F of a set (van Rijsbergen, 1979): (1 + beta²) * SetP * SetR / (beta² * SetP + SetR).

    Args:
        beta: How many times as much recall counts as precision, above 0. The parameter of trec_eval's set_F is beta².
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", number("beta", self.beta))
        if not 0 < self.beta < 1e150:  # its square is a float too
            raise ParameterError(f"the beta of SetF must be above 0 and below 1e150, not {self.beta!r}")

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.count(ranks.relevant_retrieved(self.rel, self.depth))
        square = self.beta**2
        sizes = square * ranks.count(ranks.relevant(self.rel)) + np.minimum(ranks.retrieved, self.depth)
        return ratio((1 + square) * rel_ret, sizes)


@dataclass(frozen=True, repr=False)
class CompleteEvidence(Binary, name="Complete"):
    """1 if all documents of one evidence set (`Qrels.groups`) are among the first k, else 0.

    So is evidence scored in fact checking (FEVER; Thorne et al., 2018). Without groups it is the same as `Success`.
    """

    cut = "required"

    def values(self, ranks: Ranks) -> Mask:
        return ranks.evidence(self.rel) < self.depth


AP = AveragePrecision()
"""Average precision."""
nDCG = NDCG()  # noqa: N816
"""Normalised discounted cumulative gain."""
P = Precision()
"""Precision; needs a cutoff."""
R = Recall()
"""Recall."""
RR = ReciprocalRank()
"""Reciprocal rank."""
Success = SuccessAtK()
"""Whether a relevant document is among the first; needs a cutoff."""
Rprec = RPrecision()
"""R-precision."""
Bpref = BinaryPreference()
"""Binary preference."""
RBP = RankBiasedPrecision()
"""Rank-biased precision."""
Judged = JudgedShare()
"""The share of judged documents; needs a cutoff."""
IPrec = InterpolatedPrecision()
"""Interpolated precision; its cutoff is a recall, as in `IPrec @ 0.1`."""
NumRet = RetrievedCount()
"""The number of documents retrieved."""
NumRel = RelevantCount()
"""The number of relevant documents."""
NumRelRet = RelevantRetrievedCount()
"""The number of relevant documents retrieved."""
SetP = SetPrecision()
"""Precision of a set."""
SetR = SetRecall()
"""Recall of a set."""
SetF = SetFMeasure()
"""F of a set."""
Complete = CompleteEvidence()
"""Whether one evidence set is complete; needs a cutoff."""
