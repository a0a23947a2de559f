"""Measure classes with their formulas, and the objects to use: `AP`, `nDCG`, `P` and so on.

In the formulas, R is the number of relevant documents of the topic (grade >= rel), n the number of documents retrieved, g_i
the grade of the document at rank i, r_i 1 if that document is relevant and else 0, and k the cutoff, if any. A division by 0
gives 0: a topic without results, or without relevant documents, scores 0. Values equal trec_eval's for every measure that it
has; there a negative grade counts as not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core import InputError, ParameterError
from ..core.arrays import Floats, Int64s
from .measure import Binary, Condensable, Measure, check_flag, check_grade, number, probability
from .ranks import NOT_RETRIEVED, Mask, Ranks, ratio


@dataclass(frozen=True, repr=False)
class TopicCount(Measure, name="NumQ", aliases=("num_q",)):
    """1 for each judged topic. Summed over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Int64s:
        return np.ones(len(ranks.starts), dtype=np.int64)


@dataclass(frozen=True, repr=False)
class RetrievedCount(Measure, name="NumRet", aliases=("num_ret",)):
    """n, the number of documents retrieved; with `rel`, only relevant ones. Summed over the topics.

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

    def values(self, ranks: Ranks) -> Int64s:
        return ranks.retrieved if self.rel is None else ranks.count(ranks.relevant_retrieved(self.rel))


@dataclass(frozen=True, repr=False)
class RelevantCount(Binary, name="NumRel", aliases=("num_rel",)):
    """R, the number of relevant documents. Summed over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Int64s:
        return ranks.count(ranks.relevant(self.rel))


@dataclass(frozen=True, repr=False)
class RelevantRetrievedCount(Binary, name="NumRelRet", aliases=("num_rel_ret",)):
    """The number of relevant documents retrieved. Summed over the topics."""

    cut = "none"
    summed = True

    def values(self, ranks: Ranks) -> Int64s:
        return ranks.count(ranks.relevant_retrieved(self.rel))


@dataclass(frozen=True, repr=False)
class SetPrecision(Condensable, Binary, name="SetP", aliases=("set_P",)):
    """Precision of a set: the relevant documents retrieved (among the first k), divided by those retrieved, min(n, k).

    `P@k` divides by k.

    Args:
        relative: Whether to divide by the largest possible number of relevant ones instead, min(n, k, R).
    """

    relative: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(f"the relative of {self.name}", self.relative)

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
    grouped = True

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


@dataclass(frozen=True, repr=False)
class AveragePrecision(Condensable, Binary, name="AP", aliases=("map", "map_cut_K")):
    """Average precision: 1/R * the sum over i <= k of r_i * P@i."""

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel, self.depth)
        precision = ranks.running(rel_ret) / (ranks.rank + 1)
        return ratio(ranks.total(rel_ret, precision), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class NDCG(Condensable, name="nDCG", aliases=("ndcg_cut_K",)):
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002): DCG divided by the DCG of the ideal ranking.

    DCG is the sum over i <= k of gain_i / log2(i + 1). The gain is the grade (`dcg="log2"`, as in trec_eval) or 2^grade - 1
    (`dcg="exp-log2"`, as in gdeval; Burges et al., 2005); negative grades gain 0. The ideal ranking has all judged documents by
    grade.

    Args:
        dcg: Gain of a grade, "log2" or "exp-log2".
    """

    dcg: Literal["log2", "exp-log2"] = "log2"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dcg not in ("log2", "exp-log2"):
            raise ParameterError(f"the dcg of nDCG is 'log2' or 'exp-log2', not {self.dcg!r}")

    def values(self, ranks: Ranks) -> Floats:
        grade = np.maximum(ranks.grade, 0).astype(np.float64)
        with np.errstate(over="ignore"):
            gain = np.exp2(grade) - 1 if self.dcg == "exp-log2" else grade
        best_first = np.lexsort((-gain, ranks.topic))
        ideal_rank = np.arange(len(gain)) - ranks.starts[ranks.topic]
        ideal = ranks.total(ideal_rank < self.depth, gain[best_first] / np.log2(ideal_rank + 2))
        if not np.isfinite(ideal).all():
            topic_id = list(ranks.qrels)[int(np.argmax(~np.isfinite(ideal)))]
            raise InputError(f"topic '{topic_id}': 2 to the power of its grades is too great for {self}; use lower grades")
        return ratio(ranks.total(ranks.rank < self.depth, gain / np.log2(ranks.rank + 2)), ideal)


@dataclass(frozen=True, repr=False)
class Precision(Condensable, Binary, name="P", aliases=("precision", "P_K")):
    """Precision: the number of relevant documents among the first k, divided by k, also where fewer were retrieved."""

    cut = "required"

    def values(self, ranks: Ranks) -> Floats:
        return ranks.count(ranks.relevant_retrieved(self.rel, self.depth)) / self.depth


@dataclass(frozen=True, repr=False)
class Recall(Condensable, Binary, name="R", aliases=("recall", "recall_K")):
    """Recall: the number of relevant documents among the first k (without cutoff: among all retrieved), divided by R."""

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.relevant_retrieved(self.rel, self.depth)), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class ReciprocalRank(Condensable, Binary, name="RR", aliases=("mrr", "recip_rank")):
    """Reciprocal rank: 1/i for the first relevant document, at rank i; 0 if there is none (within k)."""

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel, self.depth)
        return ranks.total(rel_ret & (ranks.running(rel_ret) == 1), 1 / (ranks.rank + 1))


@dataclass(frozen=True, repr=False)
class SuccessAtK(Condensable, Binary, name="Success", aliases=("success_K",)):
    """1 if a relevant document is among the first k, else 0."""

    cut = "required"

    def values(self, ranks: Ranks) -> Int64s:
        return np.minimum(ranks.count(ranks.relevant_retrieved(self.rel, self.depth)), 1)


@dataclass(frozen=True, repr=False)
class RPrecision(Condensable, Binary, name="Rprec"):
    """R-precision: the number of relevant documents among the first R, divided by R."""

    cut = "none"

    def values(self, ranks: Ranks) -> Floats:
        relevant = ranks.relevant(self.rel)
        num_rel = ranks.count(relevant)
        return ratio(ranks.count(relevant & (ranks.rank < num_rel[ranks.topic])), num_rel)


@dataclass(frozen=True, repr=False)
class BinaryPreference(Binary, name="Bpref"):
    """Binary preference (Buckley and Voorhees, 2004): how rarely documents judged not relevant are ranked before relevant ones.

    1/R * the sum over the relevant documents d retrieved of 1 - min(N_d, R) / min(N, R). N is the number of documents judged
    not relevant (0 <= grade < rel), N_d the number of those ranked before d.
    """

    cut = "none"

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel)
        num_rel = ranks.count(ranks.relevant(self.rel))
        wrong = (ranks.grade >= 0) & (ranks.grade < self.rel)
        bound = np.maximum(np.minimum(ranks.count(wrong), num_rel), 1)
        wrong_before = np.minimum(ranks.running(wrong & (ranks.rank < NOT_RETRIEVED)), num_rel[ranks.topic])
        return ratio(ranks.total(rel_ret, 1 - wrong_before / bound[ranks.topic]), num_rel)


@dataclass(frozen=True, repr=False)
class RankBiasedPrecision(Binary, name="RBP"):
    """Rank-biased precision (Moffat and Zobel, 2008): (1 - p) * the sum over i <= k of r_i * p^(i-1).

    Args:
        p: Probability, between 0 and 1, that the reader continues from one document to the next.
    """

    p: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", probability("p of RBP", self.p))

    def values(self, ranks: Ranks) -> Floats:
        return ranks.total(ranks.relevant_retrieved(self.rel, self.depth), (1 - self.p) * self.p**ranks.rank)


@dataclass(frozen=True, repr=False)
class JudgedShare(Measure, name="Judged"):
    """The share of the first k documents retrieved (of all n, if n < k) that are in the qrels, whatever the grade."""

    def values(self, ranks: Ranks) -> Floats:
        return ratio(ranks.count(ranks.rank < self.depth), np.minimum(ranks.retrieved, self.depth))


@dataclass(frozen=True, repr=False)
class InterpolatedPrecision(Condensable, Binary, name="IPrec", aliases=("iprec_at_recall_K",)):
    """Interpolated precision at the recall x (`IPrec @ 0.1`): the highest P@i of all ranks i where recall is x or more.

    Recall is x when floor(x * R + 0.9) relevant documents are retrieved, as in trec_eval up to version 9.
    """

    cut = "required"
    example: ClassVar[float] = 0.1

    def _checked(self, cutoff: object) -> float:
        """Return the recall as a float; ParameterError unless between 0 and 1."""
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
class InferredAP(Binary, name="infAP", aliases=("infAP",)):
    """Inferred average precision (Yilmaz and Aslam, 2006): expected AP if only part of the pool was judged.

    A negative grade marks a document that was pooled but not judged; one missing from the qrels was not pooled. If a relevant
    document has j documents before it, of which p were pooled, r judged relevant and n not relevant, the precision
    expected there is 1/(j + 1) + p/(j + 1) * (r + e) / (r + n + 2e) with e = 0.00001. The sum of these is divided by R.
    """

    cut = "none"

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel)
        retrieved = ranks.rank < NOT_RETRIEVED
        judged = ranks.running(retrieved & (ranks.grade >= 0)) - 1
        relevant, epsilon = ranks.running(rel_ret) - 1, 1e-5
        share = (relevant + epsilon) / np.maximum(judged + 2 * epsilon, epsilon)
        expected = (1 + (ranks.running(retrieved) - 1) * share) / (ranks.rank + 1)
        return ratio(ranks.total(rel_ret, expected), ranks.count(ranks.relevant(self.rel)))


@dataclass(frozen=True, repr=False)
class PairwiseAccuracy(Binary, name="Accuracy"):
    """The share of pairs of a relevant and another document, both among the first k, with the relevant document first.

    1 if only relevant documents are retrieved, and 0 if none is.
    """

    def values(self, ranks: Ranks) -> Floats:
        rel_ret = ranks.relevant_retrieved(self.rel, self.depth)
        rel_count = ranks.count(rel_ret)
        non_relevant = np.minimum(ranks.retrieved, self.depth) - rel_count
        wrong = ranks.total(rel_ret, (ranks.rank - ranks.running(rel_ret) + 1).astype(np.float64))
        return np.where(rel_count > 0, 1 - ratio(wrong, rel_count * non_relevant), 0.0)


@dataclass(frozen=True, repr=False)
class Compatibility(Measure, name="Compat"):
    """Compatibility (Clarke, Smucker and Vtyurina, 2020): rank-biased overlap with the nearest ideal ranking.

    The ideal ranking has the documents of grade 1 or more by grade, ties in the run's order. RBO is the mean over the depths i
    of the overlap of the first i of both divided by i, with weights p^(i-1), to the end of the longer ranking.

    Args:
        p: Probability, between 0 and 1, that the reader continues from one document to the next.
        normalize: Whether to divide by the RBO of the ideal ranking with itself, which is below 1 for a short one.
    """

    cut = "none"
    p: float = 0.95
    normalize: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", probability("p of Compat", self.p))
        check_flag("the normalize of Compat", self.normalize)

    def values(self, ranks: Ranks) -> Floats:
        ideal = ranks.relevant(1)
        by_grade = np.lexsort((ranks.rank, -ranks.grade, ranks.topic))
        ideal_rank = np.empty_like(ranks.rank)
        ideal_rank[by_grade] = np.arange(len(ideal_rank)) - ranks.starts[ranks.topic]
        size = np.maximum(ranks.retrieved, ranks.count(ideal))
        weights = self.p ** np.arange(int(size.max(initial=0)))
        cumulative = np.concatenate(([0.0], np.cumsum(weights / np.arange(1, len(weights) + 1))))
        end = cumulative[size][ranks.topic]  # a document counts from the depth at which both rankings have it
        later = np.minimum(np.maximum(ranks.rank, ideal_rank), len(weights))
        overlap = ranks.total(ideal & (ranks.rank < NOT_RETRIEVED), end - cumulative[later])
        if self.normalize:
            return ratio(overlap, ranks.total(ideal, end - cumulative[np.minimum(ideal_rank, len(weights))]))
        return ratio(overlap, np.concatenate(([0.0], np.cumsum(weights)))[size])


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
"""The share of judged documents."""
IPrec = InterpolatedPrecision()
"""Interpolated precision; its cutoff is a recall, as in `IPrec @ 0.1`."""
infAP = InferredAP()  # noqa: N816
"""Inferred average precision."""
Accuracy = PairwiseAccuracy()
"""The share of pairs in the right order."""
Compat = Compatibility()
"""Compatibility with the nearest ideal ranking."""
