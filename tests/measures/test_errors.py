"""What errors of measures say: the name, cutoff, run or judgment at fault, and what is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from support.each import each
from support.errors import check_error
from support.machine_labels import labelled

import fontes as ft
from fontes.core import Doc, FontesError, InputError, ParameterError, Qrels, Run, Topics
from fontes.measures import AP, ERR, INST, MEASURES, RBP, SDCG, IPrec, Judged, P, SetF, evaluate, nDCG, parse

RUN, QRELS = {"1": {"a": 0.5}}, {"1": {"a": 1}}
DATA = labelled()
GOOD = DATA.runs["good"]
FEW = dict(list(DATA.people.items())[:19])
NONE = {topic: dict.fromkeys(grades, 0) for topic, grades in DATA.machine.items()}
HIGH = {topic: {doc: 5 * grade for doc, grade in grades.items()} for topic, grades in DATA.machine.items()}
TWO = {"1": {"d": 1}, "2": {"e": 1}}
CLASSES = [cls() for _, cls in dict(MEASURES.items()).items()]
READY = [m for m in CLASSES if not hasattr(m, "max_rel") or m.max_rel]
Call = Callable[[], object]


class Collection:
    """A collection of two documents that are not judged."""

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        if set(ids) - {"x", "y"}:
            raise InputError("there is no such document")
        return [Doc(doc_id, "") for doc_id in ids]


@each(
    ("name", "names", "remedy"),
    [
        ("nDGC@10", "'nDGC'", "nDCG"),
        ("Sucess@5", "'Sucess'", "Success"),
        ("ndcg_cut", "'ndcg_cut'", "ndcg_cut_10"),
        ("P5", "'P5'", ""),
        ("xyzzyx", "'xyzzyx'", "Accuracy, AP, BPM, Bpref … nDCG, "),
        ("iprec_at_recal", "'iprec_at_recal'", "iprec_at_recall_0.1"),
        ("nDCG@10 AP", "10 AP", "cutoff"),
        ("", "''", "name of a measure"),
        ("nDCG)10", "'nDCG)10'", "name of a measure"),
        ("P(2)@5", "'2'", ""),
        ("P@0", "cutoff … 0", ""),
        ("P@-3", "cutoff … -3", ""),
        ("P@2.5", "cutoff … 2.5", ""),
        ("P@five", "cutoff … five", ""),
        ("P@", "cutoff", ""),
        ("P_0", "cutoff … 0", ""),
        ("ERR_IA@20", "ERR_IA … aspect", "nearest … ERR"),
        ("alpha_nDCG@20", "alpha_nDCG … aspect", "nearest … nDCG"),
        ("α_DCG@20", "α_DCG … aspect", "nearest … nDCG"),
        ("NRBP", "NRBP … aspect", "nearest … is RBP"),
        ("StRecall@5", "StRecall … aspect", "nearest … is R"),
        ("nDCG(judged_only=1)", "judged_only", ""),
        ("Compat(normalize=1e999)", "normalize", ""),
        ("SetP(relative='x')", "relative … 'x'", ""),
        ("ERR(max_rel=0)", "max_rel … 0", ""),
        ("SDCG(max_rel=2, min_rel=2)@5", "max_rel", ""),
        ("INST(max_rel=1, T=0)", "T of INST", ""),
        *((name, f"'{name}'", "did you mean") for name in ("rpre", "recip", "prec", "recal", "numre", "precison_")),
        *((m.name, f"{m.name} needs a cutoff", f"{m.name}@") for m in CLASSES if m in READY and m.cut == "required"),
    ],
)
def test_a_name_of_a_measure_is_answered_with_what_is_meant(name: str, names: str, remedy: str) -> None:
    message = check_error(lambda: parse(name), ParameterError, names, remedy)
    assert "did you mean" not in message or message.partition("did you mean ")[2].count(" ") <= 3  # three names at most


@each(
    ("call", "names", "remedy"),
    [
        *((lambda k=k: P @ k, f"cutoff of P … {k!r}", "whole number from 1") for k in (0, -1, 2.5, "5", True)),
        *((lambda r=r: IPrec @ r, "recall of IPrec", "") for r in (-0.1, 1.1, 10, float("nan"), "0.1")),
        *((lambda m=m: m @ 5, f"{m.name} takes no cutoff", "") for m in CLASSES if m.cut == "none"),
        *((lambda m=m: parse(m), m.name, "needs a cutoff") for m in CLASSES if m in READY and m.cut == "required"),
        (lambda: P(rel=0), "rel … 0", ""),
        (lambda: P(rel=1.5), "rel … 1.5", ""),
        (lambda: RBP(p=1), "p of RBP … 1", ""),
        (lambda: RBP(p="high"), "p of RBP … 'high'", "number"),
        (lambda: SetF(beta=0), "beta … 0", ""),
        (lambda: nDCG(dcg="log"), "dcg … 'log'", ""),
        (lambda: nDCG(rel=2), "nDCG … 'rel'", "judged_only, dcg"),
        (lambda: P(cutoff=5), "P … 'cutoff'", "rel"),
        (lambda: Judged(rel=2), "Judged … 'rel'", "none"),
    ],
)
def test_a_parameter_of_a_measure_is_named(call: Call, names: str, remedy: str) -> None:
    check_error(call, ParameterError, names, remedy)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda: evaluate(RUN, {}, AP), InputError, "no judgments", ""),
        (lambda: evaluate(RUN, QRELS, []), ParameterError, "no measure", ""),
        (lambda: evaluate(RUN, QRELS, ["AP", "ndgc@10"]), ParameterError, "'ndgc'", "did you mean"),
        (lambda: evaluate(RUN, QRELS, P), ParameterError, "P needs a cutoff", "P@"),
        (
            lambda: evaluate(RUN, {"1": {"a": 4, "b": 5}}, ERR @ 10),
            InputError,
            "topic '1', document 'b' … 5",
            "ERR(max_rel=5)@10",
        ),
        (lambda: evaluate(RUN, QRELS, SDCG @ 5), ParameterError, "SDCG", "max_rel … SDCG(max_rel=3)@10"),
        (lambda: evaluate(RUN, QRELS, INST), ParameterError, "INST", "max_rel … INST(max_rel=3)"),
        # a run and judgments that do not belong together
        (lambda: evaluate({"a1": {"d": 1.0}, "a2": {}}, TWO, AP), InputError, "no topic in common … 'a1' … '1'", ""),
        (lambda: evaluate({"0": {"y7": 1.0}, "1": {"x7": 1.0}}, TWO, AP), InputError, "not one document … 'x7' … 'd'", ""),
        (
            lambda: evaluate(Run.of({"1": {"x": 1.0}}).with_(documents=Collection()), TWO, AP),
            InputError,
            "collection … 'x'",
            "",
        ),
        (lambda: evaluate(Qrels.of(QRELS), Run.of(RUN), AP), InputError, "exchanged", ""),
        (lambda: ft.compare({"a": RUN, "bad": {"a1": {"d": 1.0}}}, None, QRELS, AP), InputError, "run 'bad' … 'a1' … '1'", ""),
        (lambda: ft.compare({"a": RUN, "bad": {"1": {"x7": 1.0}}}, None, QRELS, AP), InputError, "run 'bad'", ""),
        (lambda: ft.tuning.fit_weights([TWO, {"1": {"x7": 1.0}}], TWO, AP, folds=2), InputError, "run 2", ""),
        (lambda: ft.compare({"a": RUN}, None, Run.of(RUN), AP), InputError, "Run … judgments", "the order is"),
        (lambda: ft.compare({"a": RUN}, QRELS, Topics.of({"1": "x"}), AP), InputError, "Topics … judgments", ""),
        (lambda: ft.compare({"a": RUN}, QRELS, QRELS, AP), InputError, "topic '1'", "text"),
        # judgments of people beside labels of a machine
        (lambda: evaluate(GOOD, FEW, "AP", machine=DATA.machine), InputError, "19 topics … 80 … 19", "20"),
        (lambda: evaluate(GOOD, DATA.people, "AP", machine=NONE), InputError, "machine's labels … no relevant", ""),
        (
            lambda: evaluate(GOOD, {t: NONE[t] for t in DATA.people}, "AP", machine=DATA.machine),
            InputError,
            "people … no relevant",
            "",
        ),
        (lambda: evaluate(GOOD, DATA.people, "NumRel", machine=DATA.machine), ParameterError, "NumRel", ""),
        (lambda: evaluate(GOOD, DATA.people, "Judged@10", machine=DATA.machine), ParameterError, "Judged@10", ""),
        (
            lambda: evaluate({t: GOOD[t] for t in DATA.people}, DATA.people, "AP", machine=DATA.machine),
            InputError,
            "run … 'q30'",
            "",
        ),
        (lambda: evaluate(GOOD, DATA.people, "AP").interval("AP"), ParameterError, "machine labels", "machine=labels"),
        (lambda: evaluate(GOOD, DATA.people, "AP", machine=ft.Run.of(GOOD)), InputError, "Run … judgments", ""),
        (lambda: evaluate(GOOD, DATA.people, "ERR", machine=HIGH), InputError, "grade 5 … ERR", ""),
    ],
)
def test_a_run_or_judgment_that_cannot_be_measured_is_named(
    call: Call, error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(call, error, names, remedy)


def test_a_pipeline_and_judgments_of_another_collection_are_named(tmp_path: Any) -> None:
    index = ft.Index.build([{"id": "x", "text": "red"}, {"id": "y", "text": "blue"}], tmp_path / "i")
    tuned = {"1": "red", "2": "blue"}
    call = lambda: ft.tune(index.bm25(), {"k1": [0.9, 1.2]}, tuned, TWO, AP, folds=2)  # noqa: E731
    check_error(call, InputError, "collection … 'd'")
