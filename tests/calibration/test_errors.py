"""What errors of calibrated rankings say: the promise, topic, stage or folder at fault, and what to do."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.each import each
from support.errors import check_error
from support.simulated import held_out

import fontes as ft
from fontes.calibration import Calibrated, Calibration, PromisedCut, least_units, reliability
from fontes.calibration.maps import features_of
from fontes.core import FontesError, IndexFormatError, InputError, ParameterError, PipelineError, Qrels, Run, Topics
from fontes.core.expression import pipeline
from fontes.index import Index

NINE = {f"t{n}": [(n / 10, True)] for n in range(1, 10)}
TEXTS = Topics.of({"a": "one two three", "b": "one"})
JUDGED = Qrels([("a", "0", "x", 1)])
MISSED = {f"t{n}": 1 for n in range(9)}


@each(
    ("call", "error", "names", "remedy"),
    [
        *(
            (lambda v=level: held_out(NINE).promise("recall", v), ParameterError, "recall", "a number between 0 and 1")
            for level in (0, 1, -0.1, True, "0.9", float("nan"), 1 - 1e-14, 1e-14)
        ),
        (
            lambda: held_out({f"t{n}": [(0.5, True)] for n in range(19)}, missed={"t0": 1, "t1": 1}).promise("recall", 0.945),
            ParameterError,
            "recall=0.945 … the 19 held-out topics hold 0.947",
            "recall=0.9 at most; retrieve more documents before calibrated(…), or train with",
        ),
        (
            lambda: held_out({f"t{n}": [(0.5, False)] for n in range(9)}, missed=MISSED).promise("recall", 0.9),
            ParameterError,
            "no promise",
            "retrieve more documents before calibrated(…)",
        ),
        (
            lambda: held_out({f"t{n}": [(0.95, False), (0.2, True)] for n in range(40)}).promise("precision", 0.9),
            ParameterError,
            "precision=0.9 … 40 held-out topics",
            "",
        ),
        (lambda: features_of(Run.of({"b": {"y": math.inf}}, TEXTS)), InputError, "topic 'b', document 'y': … infinite", ""),
        (
            lambda: features_of(Run.of({"b": {"y": 1.0}}, Topics.of({"b": " "}))),
            InputError,
            "topic 'b' has no text",
            "read_run",
        ),
        (lambda: reliability(Run.of({"a": {"x": 1.5}}), JUDGED), InputError, "the scores of the run", "calibrate it"),
        (lambda: reliability(Run.of({"b": {"x": 0.5}}), JUDGED), InputError, "no topic of the run", "judgments"),
        (lambda: reliability(Run.of({"a": {"x": 0.5}}), JUDGED, bins=0), ParameterError, "bins … 0", "1 or more"),
        (lambda: pipeline("cut()"), ParameterError, "cut", "one of k, recall, precision and complete"),
        (lambda: pipeline("cut(3, recall=0.9)"), ParameterError, "cut", "one of k, recall, precision and complete"),
        (lambda: pipeline("cut(recall=9)"), ParameterError, "cut: recall … not 9", "between 0 and 1"),
        (lambda: Calibrated(3).check(), ParameterError, "calibrated: model … not 3", "the folder of a calibration"),
        (lambda: ft.fuse({"1": {"a": 1.5}}, {"1": {"a": 0.5}}, method="logodds"), InputError, "logodds", "probabilities"),
    ],
)
def test_promises_scores_and_parameters(call: Callable[[], object], error: type[FontesError], names: str, remedy: str) -> None:
    check_error(call, error, names, remedy)


@each(("kind", "level", "least"), [("recall", 0.9, 9), ("recall", 0.95, 19), ("answerable", 0.9, 9), ("precision", 0.9, 22)])
def test_the_smallest_number_of_topics_is_named(kind: str, level: float, least: int) -> None:
    assert least_units(kind, level) == least
    few = held_out({f"t{n}": [(0.9 + n / 1000, True)] for n in range(least - 1)})
    name = "false_alarm=0.1" if kind == "answerable" else f"{kind}={level:g}"
    check_error(lambda: few.promise(kind, level), ParameterError, f"{least - 1} held-out … {name}", f"{least} can")


FOR = "trained for bm25(k1=0.9, b=0.4) % 40, not for"


@each(
    ("text", "error", "names", "remedy"),
    [
        ("bm25() >> cut(recall=0.7)", PipelineError, "cut(recall=0.7)", "put calibrated(FOLDER) right before it"),
        ('bm25() % 40 >> calibrated("F") >> boost("price") >> cut(recall=0.7)', PipelineError, "cut(recall=0.7)", "calibrated"),
        ('bm25() % 40 >> calibrated("F") % 5 >> cut(recall=0.7)', PipelineError, "cut(recall=0.7)", "put calibrated"),
        (
            'bm25() % 40 >> calibrated("F") >> cut(recall=0.7) >> cut(precision=0.7)',
            PipelineError,
            "cut(precision=0.7) comes after a decision",
            "",
        ),
        (
            'bm25() % 40 >> calibrated("F") >> cut(recall=0.7) >> abstain()',
            PipelineError,
            "abstain() comes after a decision",
            "one abstain, then one promised cut",
        ),
        ('bm25() % 40 >> calibrated("F") >> abstain(0.2) >> abstain()', PipelineError, "abstain() comes after a decision", ""),
        ('bm25() % 40 >> calibrated("F") >> cut(recall=0.99)', ParameterError, "recall=0.99", "99 can"),
        ('bm25() >> calibrated("none")', InputError, "no calibration at none", "train one: fontes train calibration"),
    ],
)
def test_pipelines_are_refused_before_any_search(
    index: Index, folder: Path, text: str, error: type[FontesError], names: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(index.bm25()), "apply", lambda *_: pytest.fail("it searched"))
    check_error(lambda: pipeline(text.replace('"F"', f'"{folder}"'), index)(["spring"]), error, names, remedy)


@each(
    ("text", "names"),
    [
        ('bm25(k1=2.0) % 40 >> calibrated("F")', FOR),
        ('bm25() % 20 >> calibrated("F")', FOR),
        ('ql() % 40 >> calibrated("F")', FOR),
        ('bm25() % 40 >> sort("price") >> calibrated("F")', f"{FOR} bm25(k1=0.9, b=0.4) % 40 >> sort("),
    ],
)
def test_other_pipelines_than_that_of_the_training(index: Index, folder: Path, text: str, names: str) -> None:
    check_error(lambda: pipeline(text.replace('"F"', f'"{folder}"'), index)(["spring"]), ParameterError, names)


def test_runs_and_damaged_folders_are_named(index: Index, folder: Path, tmp_path: Path) -> None:
    run = (index.bm25() % 40)(["spring"])
    check_error(lambda: PromisedCut(recall=0.7)(run), PipelineError, "cut(recall=0.7)", "probabilities")
    beyond = pipeline(f'bm25() % 1 >> calibrated("{folder}")', index)
    check_error(lambda: beyond.explain("spring", run["1"][0].id), ParameterError, FOR)
    damaged = Path(shutil.copytree(folder, tmp_path / "damaged"))
    (damaged / "weights.npy").write_bytes((folder / "weights.npy").read_bytes()[:-1] + b"\x7f")
    call = lambda: Calibration.load(damaged)  # noqa: E731
    check_error(call, IndexFormatError, "weights.npy has changed", "restore … : fontes train calibration")
