"""Every measure on small random runs against its formula, written out as a plain loop over one ranking."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.each import each

from fontes import evaluate
from fontes.measures import (
    AP,
    BPM,
    ERR,
    INSQ,
    INST,
    NERR8,
    NERR9,
    NERR10,
    NERR11,
    RBP,
    RR,
    SDCG,
    Accuracy,
    Bpref,
    Complete,
    IPrec,
    Judged,
    NumQ,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    Rprec,
    SetAP,
    SetF,
    SetP,
    SetR,
    SetRelP,
    Success,
    infAP,
    nDCG,
    parse,
)
from fontes.measures.evaluation import Evaluation
from fontes.measures.measure import Measure

Grades = list[int | None]  # of the documents of a ranking, best first; None for one that is not judged
Formula = Callable[[Grades, list[int], int], float]


def made(seed: int, topics: int = 6) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """A run with ties and of uneven lengths, one topic of it empty and one not judged, and qrels with grades from -1 to 3."""
    generator = np.random.default_rng(seed)
    docs = [f"d{i:02}" for i in range(30)]
    run, qrels = {}, {}
    for t in range(topics):
        ranked = generator.choice(docs, int(generator.integers(1, 25)), replace=False)
        run[f"q{t}"] = dict(zip(ranked.tolist(), np.round(generator.random(len(ranked)), 1).tolist(), strict=True))
        judged = generator.choice(docs, int(generator.integers(2, 20)), replace=False).tolist()
        qrels[f"q{t}"] = {d: int(generator.choice([-1, 0, 0, 1, 1, 2, 3])) for d in judged}
    del run["q0"]
    run["unjudged"] = {"d01": 1.0}
    qrels["q1"] = dict.fromkeys(qrels["q1"], 0)
    return run, qrels


def ranking(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], topic: str) -> Grades:
    """The grades of a ranking: by descending score, and of equal scores by descending id."""
    scores = run.get(topic, {})
    order = sorted(sorted(scores, reverse=True), key=lambda d: -np.float32(scores[d]))
    return [qrels[topic].get(d) for d in order]


def hit(grade: int | None, rel: int) -> bool:
    return grade is not None and grade >= rel


def hits(grades: Grades, rel: int) -> int:
    return sum(hit(g, rel) for g in grades)


def share(above: float, below: float) -> float:
    return above / below if below else 0.0


def average_precision(grades: Grades, judged: list[int], rel: int) -> float:
    return share(sum(hits(grades[:i], rel) / i for i, g in enumerate(grades, 1) if hit(g, rel)), hits([*judged], rel))


def reciprocal_rank(grades: Grades, judged: list[int], rel: int) -> float:
    return next((1 / i for i, g in enumerate(grades, 1) if hit(g, rel)), 0.0)


def bpref(grades: Grades, judged: list[int], rel: int) -> float:
    relevant, wrong = hits([*judged], rel), sum(0 <= g < rel for g in judged)
    total = 0.0
    for i, g in enumerate(grades):
        if hit(g, rel):
            before = sum(h is not None and 0 <= h < rel for h in grades[:i])
            total += 1 - share(min(before, relevant), min(wrong, relevant))
    return share(total, relevant)


def interpolated(recall: float) -> Formula:
    def formula(grades: Grades, judged: list[int], rel: int) -> float:
        needed = math.floor(recall * hits([*judged], rel) + 0.9)
        precisions = [
            hits(grades[:i], rel) / i for i, g in enumerate(grades, 1) if hit(g, rel) and hits(grades[:i], rel) >= needed
        ]
        return max(precisions, default=0.0)

    return formula


def biased(p: float) -> Formula:
    return lambda grades, judged, rel: sum((1 - p) * p**i for i, g in enumerate(grades) if hit(g, rel))


def set_f(beta: float) -> Formula:
    def formula(grades: Grades, judged: list[int], rel: int) -> float:
        precision, recall = share(hits(grades, rel), len(grades)), share(hits(grades, rel), hits([*judged], rel))
        return share((1 + beta**2) * precision * recall, beta**2 * precision + recall)

    return formula


def dcg(grades: Grades, gain: str) -> float:
    gains = [max(g or 0, 0) for g in grades]
    return sum((2**g - 1 if gain == "exp-log2" else g) / math.log2(i + 1) for i, g in enumerate(gains, 1))


def normalised(gain: str, k: int | None = None) -> Formula:
    def formula(grades: Grades, judged: list[int], rel: int) -> float:
        return share(dcg(grades[:k], gain), dcg(sorted(judged, reverse=True)[:k], gain))

    return formula


def cut(formula: Formula, k: int) -> Formula:
    return lambda grades, judged, rel: formula(grades[:k], judged, rel)


def recall(grades: Grades, judged: list[int], rel: int) -> float:
    return share(hits(grades, rel), hits([*judged], rel))


def r_precision(grades: Grades, judged: list[int], rel: int) -> float:
    return share(hits(grades[: hits([*judged], rel)], rel), hits([*judged], rel))


def judged_share(grades: Grades, judged: list[int], rel: int) -> float:
    return share(sum(g is not None for g in grades), len(grades))


def condensed(formula: Formula) -> Formula:
    """The same of the judged documents alone (Sakai, 2007)."""
    return lambda grades, judged, rel: formula([g for g in grades if g is not None and g >= 0], judged, rel)


def set_average_precision(grades: Grades, judged: list[int], rel: int) -> float:
    return share(hits(grades, rel), len(grades)) * share(hits(grades, rel), hits([*judged], rel))


def relative_precision(grades: Grades, judged: list[int], rel: int) -> float:
    return share(hits(grades, rel), min(len(grades), hits([*judged], rel)))


def accuracy(grades: Grades, judged: list[int], rel: int) -> float:
    marks = [hit(g, rel) for g in grades]
    pairs = [(i, j) for i, a in enumerate(marks) for j, b in enumerate(marks) if a and not b]
    return float(any(marks)) * (share(sum(i < j for i, j in pairs), len(pairs)) if pairs else 1.0)


def inferred(grades: Grades, judged: list[int], rel: int) -> float:
    """Yilmaz and Aslam, 2006, with a negative grade for what was pooled and not judged."""
    total, epsilon = 0.0, 1e-5
    for j, g in enumerate(grades):
        if hit(g, rel):
            pooled = [h for h in grades[:j] if h is not None]
            relevant, wrong = hits([*pooled], rel), sum(0 <= h < rel for h in pooled)
            among = (relevant + epsilon) / (relevant + wrong + 2 * epsilon)
            total += 1 / (j + 1) + (len(pooled) / (j + 1) * among if j else 0)
    return share(total, hits([*judged], rel))


def expected_reciprocal_rank(grades: Grades, judged: list[int], rel: int) -> float:
    total, there = 0.0, 1.0
    for i, g in enumerate(grades, 1):
        satisfied = (2 ** max(g or 0, 0) - 1) / 2**4
        total, there = total + there * satisfied / i, there * (1 - satisfied)
    return total


def browsed(going_on: Callable[[int, float, float], float], k: int | None = None) -> Formula:
    """A measure of C/W/L, from the probability to go on at rank i with the gain there and the gain so far."""

    def formula(grades: Grades, judged: list[int], rel: int) -> float:
        seen, weights, value, so_far = 1.0, 0.0, 0.0, 0.0
        for i in range(1, 1001):
            gain = max(grades[i - 1] or 0, 0) / 3 if i <= len(grades) else 0.0
            so_far += gain
            weights, value = weights + seen, value + seen * gain
            seen *= 0.0 if i == k else going_on(i, gain, so_far)
        return value / weights

    return formula


def insq(i: int, t: float) -> float:
    return ((i + 2 * t - 1) / (i + 2 * t)) ** 2


BINARY: list[tuple[Measure, Formula]] = [
    (AP, average_precision),
    (AP @ 4, cut(average_precision, 4)),
    (RR, reciprocal_rank),
    (RR @ 3, cut(reciprocal_rank, 3)),
    (P @ 5, lambda grades, judged, rel: hits(grades[:5], rel) / 5),
    (P @ 40, lambda grades, judged, rel: hits(grades, rel) / 40),
    (R, recall),
    (R @ 6, cut(recall, 6)),
    (SetR, recall),
    (SetP, lambda grades, judged, rel: share(hits(grades, rel), len(grades))),
    (SetP @ 7, lambda grades, judged, rel: share(hits(grades[:7], rel), len(grades[:7]))),
    (SetF, set_f(1.0)),
    (SetF(beta=2.5), set_f(2.5)),
    (SetF(beta=0.5) @ 8, cut(set_f(0.5), 8)),
    (Success @ 1, lambda grades, judged, rel: float(hits(grades[:1], rel) > 0)),
    (Success @ 5, lambda grades, judged, rel: float(hits(grades[:5], rel) > 0)),
    (Complete @ 5, lambda grades, judged, rel: float(hits(grades[:5], rel) > 0)),  # without groups
    (Rprec, r_precision),
    (Bpref, bpref),
    (RBP, biased(0.8)),
    (RBP(p=0.35) @ 6, cut(biased(0.35), 6)),
    (IPrec @ 0, interpolated(0.0)),
    (IPrec @ 0.3, interpolated(0.3)),
    (IPrec @ 1, interpolated(1.0)),
    (SetAP, set_average_precision),
    (SetAP @ 9, cut(set_average_precision, 9)),
    (SetRelP, relative_precision),
    (SetP(relative=True) @ 4, cut(relative_precision, 4)),
    (Accuracy, accuracy),
    (Accuracy @ 6, cut(accuracy, 6)),
    (infAP, inferred),
    (NumRet(rel=1), lambda grades, judged, rel: hits(grades, rel)),
    (AP(judged_only=True), condensed(average_precision)),
    (P(judged_only=True) @ 5, condensed(lambda grades, judged, rel: hits(grades[:5], rel) / 5)),
    (SetP(judged_only=True) @ 5, condensed(lambda grades, judged, rel: share(hits(grades[:5], rel), len(grades[:5])))),
    (NumRel, lambda grades, judged, rel: hits([*judged], rel)),
    (NumRelRet, lambda grades, judged, rel: hits(grades, rel)),
]
GRADED: list[tuple[Measure, Formula]] = [
    (nDCG, normalised("log2")),
    (nDCG @ 1, normalised("log2", 1)),
    (nDCG @ 5, normalised("log2", 5)),
    (nDCG(dcg="exp-log2"), normalised("exp-log2")),
    (nDCG(dcg="exp-log2") @ 4, normalised("exp-log2", 4)),
    (nDCG(judged_only=True) @ 5, condensed(normalised("log2", 5))),
    (Judged, judged_share),
    (NumQ, lambda grades, judged, rel: 1),
    (ERR @ 4, cut(expected_reciprocal_rank, 4)),
    (ERR, expected_reciprocal_rank),
    (SDCG(max_rel=3) @ 5, browsed(lambda i, gain, so_far: math.log2(i + 1) / math.log2(i + 2), 5)),
    (BPM(max_rel=3, T=1) @ 7, browsed(lambda i, gain, so_far: float(so_far < 1), 7)),
    (INSQ(max_rel=3, T=2), browsed(lambda i, gain, so_far: insq(i, 2))),
    (INST(max_rel=3, T=2), browsed(lambda i, gain, so_far: insq(i, 2 - so_far / 2))),
    (NERR8(max_rel=3) @ 5, browsed(lambda i, gain, so_far: 1 - gain, 5)),
    (NERR9(max_rel=3) @ 5, browsed(lambda i, gain, so_far: i / (i + 1) * (1 - gain), 5)),
    (NERR10(max_rel=3, p=0.7), browsed(lambda i, gain, so_far: 0.7 * (1 - gain))),
    (NERR11(max_rel=3, T=1.5), browsed(lambda i, gain, so_far: insq(i, 1.5) * (1 - gain))),
    (Judged @ 5, cut(judged_share, 5)),
    (Judged @ 100, judged_share),
    (NumRet, lambda grades, judged, rel: len(grades)),
]


@each("seed", range(4))
@each("rel", [1, 2, 3])
def test_each_measure_is_its_formula_for_each_topic_and_its_mean_or_sum_over_all(seed: int, rel: int) -> None:
    run, qrels = made(seed)
    formulas = [(measure(rel=rel), formula) for measure, formula in BINARY] + GRADED
    evaluation = evaluate(run, qrels, [measure for measure, _ in formulas])
    for measure, formula in formulas:
        expected = [formula(ranking(run, qrels, t), list(qrels[t].values()), rel) for t in qrels]
        assert evaluation.array(measure).tolist() == pytest.approx(expected, abs=1e-12), measure
        total = sum(expected) if measure.name.startswith("Num") else sum(expected) / len(expected)
        assert evaluation[measure] == pytest.approx(total, abs=1e-12), measure
    assert (evaluation.missing, evaluation.unjudged) == (1, 1)
    assert evaluation.irrelevant == sum(not hits([*grades.values()], 1) for grades in qrels.values()) >= 1


def test_a_measure_shows_itself_as_the_name_that_makes_it_again() -> None:
    for measure in [*(m for m, _ in BINARY + GRADED), AP(rel=2) @ 7, SetF(beta=0.5, rel=2)]:
        assert repr(measure) == str(measure)
        again = parse(str(measure))
        assert again == measure
        assert hash(again) == hash(measure)
        assert {again: 1}[measure] == 1


def test_measures_differ_by_class_cutoff_and_parameters() -> None:
    different = [AP, AP @ 10, AP @ 11, AP(rel=2), P @ 10, P(rel=2) @ 10, R, SetR, RBP, RBP(p=0.5), nDCG, nDCG(dcg="exp-log2")]
    assert len(set(different)) == len(different)
    assert all((a == b) == (i == j) for i, a in enumerate(different) for j, b in enumerate(different))
    with pytest.raises(AttributeError):
        AP.cutoff = 3  # type: ignore[misc]


def test_an_evaluation_made_of_values_alone_misses_nothing() -> None:
    evaluation = Evaluation(("a", "b"), {AP: np.array([0.5, 0.25])})
    assert (evaluation.missing, evaluation.unjudged, evaluation.irrelevant) == (0, 0, 0)
    assert str(evaluation).splitlines()[-1] == "2 topics"
    assert evaluation[AP] == 0.375
