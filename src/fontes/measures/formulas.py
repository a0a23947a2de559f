"""The measures, one class each with its formula, and the objects that are used: `AP`, `nDCG`, `P` and so on.

In the formulas, R is the number of relevant documents of the topic (grade >= rel), n the number of documents retrieved, g_i
the grade of the document at rank i, r_i 1 if that document is relevant and else 0, and k the cutoff, where there is one.
Where a formula would divide by 0, the value is 0: a topic without results, or without relevant documents, scores 0. The
values are those of trec_eval for every measure that it has; a negative grade counts there as not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..core import ParameterError
from .measure import Binary, Measure, number
from .ranks import FAR, Floats, Ints, Mask, Ranks, ratio


@dataclass(frozen=True, repr=False)
class _AP(Binary):
    """Average precision: 1/R * the sum over i <= k of r_i * P@i. trec_eval's map and map_cut."""

    name = "AP"

    def values(self, ranks: Ranks) -> Floats:
        found = ranks.found(self.rel, self.depth)
        precision = ranks.running(found) / (ranks.rank + 1)
        return ratio(ranks.total(found, precision), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class _NDCG(Measure):
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002): DCG divided by the DCG of the ideal ranking.

    DCG is the sum over i <= k of gain_i / log2(i + 1). The gain is the grade (`gain="linear"`, as in trec_eval) or 2^grade - 1
    (`gain="exp"`; Burges et al., 2005); negative grades gain 0. The ideal ranking has all judged documents by grade.
    """

    name = "nDCG"
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
class _P(Binary):
    """Precision: the number of relevant documents among the first k, divided by k, also where fewer were retrieved."""

    name = "P"
    cut = "required"

    def values(self, ranks: Ranks) -> Floats:
        return ranks.count(ranks.found(self.rel, self.depth)) / self.depth


@dataclass(frozen=True, repr=False)
class _R(Binary):
    """Recall: the number of relevant documents among the first k (without cutoff: among all retrieved), divided by R."""

    name = "R"

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.found(self.rel, self.depth)), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class _RR(Binary):
    """Reciprocal rank: 1/i for the first relevant document, at rank i; 0 if none is found (within k)."""

    name = "RR"

    def values(self, ranks: Ranks) -> Floats:
        found = ranks.found(self.rel, self.depth)
        return ranks.total(found & (ranks.running(found) == 1), 1 / (ranks.rank + 1))


@dataclass(frozen=True, repr=False)
class _Success(Binary):
    """1 if a relevant document is among the first k, else 0."""

    name = "Success"
    cut = "required"

    def values(self, ranks: Ranks) -> Ints:
        return np.minimum(ranks.count(ranks.found(self.rel, self.depth)), 1)


@dataclass(frozen=True, repr=False)
class _Rprec(Binary):
    """R-precision: the number of relevant documents among the first R, divided by R."""

    name = "Rprec"
    cut = "none"

    def values(self, ranks: Ranks) -> Floats:
        relevant = ranks.relevant(self.rel)
        wanted = ranks.count(relevant)
        return ratio(ranks.count(relevant & (ranks.rank < wanted[ranks.topic])), wanted)


@dataclass(frozen=True, repr=False)
class _Bpref(Binary):
    """Binary preference (Buckley and Voorhees, 2004): how rarely documents judged not relevant stand before relevant ones.

    1/R * the sum over the relevant documents d retrieved of 1 - min(N_d, R) / min(N, R). N is the number of documents judged
    not relevant (0 <= grade < rel), N_d the number of those that are ranked before d.
    """

    name = "Bpref"
    cut = "none"

    def values(self, ranks: Ranks) -> Floats:
        found = ranks.found(self.rel)
        wanted = ranks.count(ranks.relevant(self.rel))
        wrong = (ranks.grade >= 0) & (ranks.grade < self.rel)
        most = np.maximum(np.minimum(ranks.count(wrong), wanted), 1)
        before = np.minimum(ranks.running(wrong & (ranks.rank < FAR)), wanted[ranks.topic])
        return ratio(ranks.total(found, 1 - before / most[ranks.topic]), wanted)


@dataclass(frozen=True, repr=False)
class _RBP(Binary):
    """Rank-biased precision (Moffat and Zobel, 2008): (1 - p) * the sum over i <= k of r_i * p^(i-1).

    `p`, between 0 and 1, is the probability that the reader goes on from one document to the next.
    """

    name = "RBP"
    p: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", number("p", self.p))
        if not 0 < self.p < 1:
            raise ParameterError(f"the p of RBP must lie between 0 and 1, not {self.p!r}")

    def values(self, ranks: Ranks) -> Floats:
        return ranks.total(ranks.found(self.rel, self.depth), (1 - self.p) * self.p**ranks.rank)


@dataclass(frozen=True, repr=False)
class _Judged(Measure):
    """The share of the first k documents retrieved (of all n, where n < k) that the qrels hold, whatever the grade."""

    name = "Judged"
    cut = "required"

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.rank < self.depth), np.minimum(ranks.retrieved, self.depth))


@dataclass(frozen=True, repr=False)
class _IPrec(Binary):
    """Interpolated precision at the recall x (`IPrec @ 0.1`): the highest P@i of all ranks i where recall is x or more.

    Recall is x when floor(x * R + 0.9) relevant documents are found, as in trec_eval up to version 9.
    """

    name = "IPrec"
    cut = "required"
    _example = 0.1

    def _checked(self, cutoff: Any) -> float:
        recall = number("the recall of IPrec", cutoff)
        if not 0 <= recall <= 1:
            raise ParameterError(f"the recall of IPrec must lie between 0 and 1, as in IPrec@0.1, not {cutoff!r}")
        return recall

    def values(self, ranks: Ranks) -> Floats:
        found = ranks.found(self.rel)
        so_far = ranks.running(found)
        needed = np.floor((self.cutoff or 0.0) * ranks.count(ranks.relevant(self.rel)) + 0.9)
        rows = found & (so_far >= needed[ranks.topic])
        highest = np.zeros(len(ranks.starts))
        np.maximum.at(highest, ranks.topic[rows], (so_far / (ranks.rank + 1))[rows])
        return highest


@dataclass(frozen=True, repr=False)
class _NumRet(Measure):
    """n, the number of documents retrieved. Added up over the topics."""

    name = "NumRet"
    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.retrieved


@dataclass(frozen=True, repr=False)
class _NumRel(Binary):
    """R, the number of relevant documents. Added up over the topics."""

    name = "NumRel"
    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.count(ranks.relevant(self.rel))


@dataclass(frozen=True, repr=False)
class _NumRelRet(Binary):
    """The number of relevant documents retrieved. Added up over the topics."""

    name = "NumRelRet"
    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Ints:
        return ranks.count(ranks.found(self.rel))


@dataclass(frozen=True, repr=False)
class _SetP(Binary):
    """Precision of a set: the relevant documents retrieved (among the first k), divided by those retrieved, min(n, k).

    `P@k` divides by k.
    """

    name = "SetP"

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.found(self.rel, self.depth)), np.minimum(ranks.retrieved, self.depth))


@dataclass(frozen=True, repr=False)
class _SetR(_R):
    """Recall of a set: the same as `R`."""

    name = "SetR"


@dataclass(frozen=True, repr=False)
class _SetF(Binary):
    """F of a set (van Rijsbergen, 1979): (1 + beta²) * SetP * SetR / (beta² * SetP + SetR).

    The parameter of trec_eval's set_F is beta².
    """

    name = "SetF"
    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", number("beta", self.beta))
        if not 0 < self.beta < np.inf:
            raise ParameterError(f"the beta of SetF must be above 0, not {self.beta!r}")

    def values(self, ranks: Ranks) -> Floats:
        found = ranks.count(ranks.found(self.rel, self.depth))
        square = self.beta**2
        sizes = square * ranks.count(ranks.relevant(self.rel)) + np.minimum(ranks.retrieved, self.depth)
        return ratio((1 + square) * found, sizes)


@dataclass(frozen=True, repr=False)
class _Complete(Binary):
    """1 if all documents of one evidence set (`Qrels.groups`) are among the first k, else 0.

    So is evidence scored in fact checking (FEVER; Thorne et al., 2018). Without groups it is the same as `Success`.
    """

    name = "Complete"
    cut = "required"

    def values(self, ranks: Ranks) -> Mask:
        return ranks.evidence(self.rel) < self.depth


AP = _AP()
nDCG = _NDCG()  # noqa: N816
P = _P()
R = _R()
RR = _RR()
Success = _Success()
Rprec = _Rprec()
Bpref = _Bpref()
RBP = _RBP()
Judged = _Judged()
IPrec = _IPrec()
NumRet = _NumRet()
NumRel = _NumRel()
NumRelRet = _NumRelRet()
SetP = _SetP()
SetR = _SetR()
SetF = _SetF()
Complete = _Complete()

MEASURES: tuple[Measure, ...] = (
    *(AP, nDCG, P, R, RR, Success, Rprec, Bpref, RBP, Judged, IPrec),
    *(NumRet, NumRel, NumRelRet, SetP, SetR, SetF, Complete),
)
"""All measures, without cutoffs."""
