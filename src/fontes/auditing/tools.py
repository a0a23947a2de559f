"""The score as other tools print it, by their documented rules, and by other definitions of the measures.

Checked against pytrec_eval-terrier 0.5.11, ranx 0.3.21, BEIR 2.2.0 and ir_measures 0.4.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..core.arrays import Floats
from ..measures import SetP
from ..measures.formulas import NDCG, AveragePrecision, Precision, Recall, ReciprocalRank
from ..measures.measure import Measure
from ..measures.ranks import Ranks, ratio
from ..reorder import NotItself
from .audited import Audited
from .report import Finding, Means

WITH, WITHOUT, EITHER = {True}, {False}, {True, False}  # whether a measure has a cutoff
TREC_EVAL = {"AP": EITHER, "nDCG": EITHER, "P": WITH, "R": WITH, "RR": WITHOUT, "Success": WITH, "Rprec": WITHOUT}
RANX = {"AP": EITHER, "nDCG": EITHER, "P": WITH, "R": EITHER, "RR": EITHER, "Success": EITHER, "Rprec": WITHOUT}
BEIR, BEIR_CUSTOM = {"nDCG": WITH, "AP": WITH, "R": WITH, "P": WITH}, {"RR": WITH, "Success": WITH}
LEAST = 5e-5  # difference that is seen in four digits
RR_CUTOFF = 10


def tools(audited: Audited) -> Finding:
    """Other tools and other definitions: what they would print, where it differs."""
    assert audited.run is not None
    scores: dict[str, Means] = {}
    rules = []
    for name, (rule, names, mean) in TOOLS.items():
        means = {measure: mean(audited, measure) if _has(measure, names) else math.nan for measure in audited.measures}
        is_open = any(math.isnan(value) and _has(measure, names) for measure, value in means.items())
        if is_open or _differs(audited, means):
            scores[name] = means
            rules.append(f"{name}: {rule}")
    ranks = Ranks.of(audited.run, audited.qrels)
    for measure in audited.measures:
        for name, values in _definitions(measure, ranks):
            means = {measure: float(values.mean())}
            if _differs(audited, means):
                scores[name] = {**scores.get(name, {}), **means}
    evaluation = audited.evaluation
    with_results = {topic_id for topic_id in audited.qrels if audited.run.get(topic_id)}
    with_relevant = {topic_id for topic_id, grades in audited.qrels.items() if any(grade > 0 for grade in grades.values())}
    for name, topics in (("topics with results", with_results), ("topics with a relevant document", with_relevant)):
        if len(topics) < len(audited.qrels) and topics:
            scores[f"over {name}"] = audited.means_over(topics)
    counts = [(evaluation.missing, "results"), (evaluation.irrelevant, "a relevant document")]
    rules = [f"{count:,} topic{'' if count == 1 else 's'} without {what} count 0" for count, what in counts if count] + rules
    concerned = tuple(topic_id for topic_id in audited.qrels if topic_id not in with_results & with_relevant)
    same = "other definitions give other values" if scores else f"{', '.join(TOOLS)} print the same"
    return Finding("; ".join(rules or [same]), concerned, scores)


def _differs(audited: Audited, means: Means) -> bool:
    return any(abs(mean - audited.evaluation[measure]) > LEAST for measure, mean in means.items())  # NaN does not


def _has(measure: Measure, names: Mapping[str, Collection[bool]]) -> bool:
    """Whether a tool has a measure, with its usual parameters."""
    usual = not getattr(measure, "judged_only", False) and getattr(measure, "dcg", "log2") == "log2"
    if names == BEIR | BEIR_CUSTOM and getattr(measure, "rel", 1) != 1:
        return False
    return usual and (measure.cutoff is not None) in names.get(measure.name, ())


def _answered_mean(audited: Audited, measure: Measure) -> float:
    """Return the mean over the judged topics that the run has; NaN if it has none."""
    in_run = [audited.run is not None and bool(audited.run.get(topic_id)) for topic_id in audited.qrels]
    return float(audited.evaluation.array(measure)[in_run].mean()) if any(in_run) else math.nan


def _if_untied(audited: Audited, measure: Measure) -> float:
    """Return the mean; NaN if it depends on the order of equal scores."""
    tied = audited.tied
    is_same = np.array_equal(measure.score(tied.best()), measure.score(tied.worst()))
    return audited.evaluation[measure] if is_same else math.nan


def _beir(audited: Audited, measure: Measure) -> float:
    assert audited.run is not None
    if measure.name in BEIR_CUSTOM:
        return _if_untied(audited, measure)
    return _answered_mean(replace(audited, run=NotItself()(audited.run), measures=(measure,)), measure)


def _ir_measures(audited: Audited, measure: Measure) -> float:
    by_ascending_id = isinstance(measure, ReciprocalRank) and measure.cutoff is not None
    return float(measure.score(audited.tied.by_id()).mean()) if by_ascending_id else audited.evaluation[measure]


TOOLS: dict[str, tuple[str, Mapping[str, Collection[bool]], Callable[[Audited, Measure], float]]] = {
    "pytrec_eval": ("mean over the judged topics that the run has", TREC_EVAL, _answered_mean),
    "ranx": (
        "equal scores in the order of the file; judged topics without results need make_comparable=True",
        RANX,
        _if_untied,
    ),
    "BEIR": (
        "as pytrec_eval, without the document that has the topic's id; MRR and accuracy over all judged topics",
        BEIR | BEIR_CUSTOM,
        _beir,
    ),
    "ir_measures": ("RR with a cutoff orders equal scores by ascending id", TREC_EVAL | {"RR": EITHER}, _ir_measures),
}
"""By tool, its rule where that differs, its measures, and the mean that it prints: NaN if the order of the file decides."""


def _definitions(measure: Measure, ranks: Ranks) -> Iterator[tuple[str, Floats]]:
    """Yield other definitions of a measure that are in use, by name, with the value of each topic."""
    if isinstance(measure, Precision):
        yield "P over the results, where fewer than k", (SetP(rel=measure.rel) @ measure.depth).score(ranks)
    if isinstance(measure, (Recall, AveragePrecision)):
        relevant = ranks.count(ranks.relevant(measure.rel))
        if isinstance(measure, AveragePrecision):
            hits = ranks.count(ranks.relevant_retrieved(measure.rel, measure.depth))
            yield "AP over the relevant found", ratio(measure.score(ranks) * relevant, hits)
        else:
            yield "R over min(k, relevant)", ratio(measure.score(ranks) * relevant, np.minimum(relevant, measure.depth))
    if isinstance(measure, NDCG):
        other = ("exp-log2", "exponential") if measure.dcg == "log2" else ("log2", "linear")
        yield f"nDCG, {other[1]} gain", measure(dcg=other[0]).score(ranks)
    if isinstance(measure, ReciprocalRank):
        other_cut = replace(measure, cutoff=RR_CUTOFF if measure.cutoff is None else None)
        yield str(other_cut), other_cut.score(ranks)
