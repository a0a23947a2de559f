"""What errors of fusion say: the system, document or parameter at fault, and what there is."""

import math
from collections.abc import Callable
from pathlib import Path

from support.each import each
from support.errors import check_error
from support.toys import Ask, Find, Model, Read, Shelf

from fontes import Index, Run, fuse
from fontes.core import FontesError, InputError, ParameterError, PipelineError
from fontes.core.expression import part, pipeline

A = {"q": {"a": 10.0, "b": 6.0, "c": 2.0}}
B = {"q": {"b": 0.9, "d": 0.5}}
INFINITE, NEGATIVE = {"q": {"a": math.inf, "b": 1.0}}, {"q": {"b": -1.0, "c": -2.0}}
LARGE = {"q": {"a": 3e38, "b": 1.0}}, {"q": {"a": 3e38}}
FIND, READ, ASK = Find(Shelf()), Read(Model("m")), Ask()


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda: fuse(A, B, method="condorcet"), ParameterError, "'condorcet'", "there are rrf"),
        (lambda: fuse(A, B, normalize="softmax"), ParameterError, "'softmax'", "min-max"),
        (lambda: fuse(A, B, norm="min-max"), ParameterError, "fuse … 'norm'", "'normalize'"),
        (lambda: fuse(A, B, k=-1), ParameterError, "k … -1", "constant of rrf"),
        (lambda: fuse(A, B, missing="max"), ParameterError, "missing … 'max'", "None, 'min' or a number"),
        (lambda: fuse(A, B, missing=math.nan), ParameterError, "missing … nan", "None, 'min' or a number"),
        (lambda: fuse(A, B, method="combmax", weights=[1, 2]), ParameterError, "combmax … weights", ""),
        (lambda: fuse(A, B, weights=[1]), ParameterError, "1 weights … 2 systems", ""),
        (lambda: fuse(A, B, weights=[1, -2]), ParameterError, "-2", "from 0 up"),
        (lambda: fuse(A, B, weights=[1, -0.5]), ParameterError, "-0.5", "from 0 up"),
        (lambda: fuse(A, B, weights=3), ParameterError, "weights", "a list of numbers"),
        (lambda: fuse(A), ParameterError, "systems", "at least two"),
        (lambda: fuse(B, INFINITE, method="combsum"), InputError, "system 2, topic 'q', document 'a': … infinite", ""),
        (
            lambda: fuse(A, NEGATIVE, method="combsum", normalize="max"),
            InputError,
            "system 2, topic 'q', document 'b': … max … -1",
            "",
        ),
        (lambda: fuse(*LARGE, method="isr", weights=[1e300, 1]), InputError, "topic 'q', document", "3.40282e+38"),
        (lambda: fuse(*LARGE, missing=1e300), InputError, "topic 'q', document", "3.40282e+38"),
        (lambda: fuse(*LARGE, method="combsum", normalize=None), InputError, "topic 'q', document 'a'", "3.40282e+38"),
        # stages
        (lambda: fuse(READ, READ).explain("x", "d1"), PipelineError, "takes Run", ""),
        (lambda: fuse(FIND, READ), PipelineError, "toy_find() … Topics to Run … toy_read … Run to Run", ""),
        (lambda: fuse(FIND, ASK), PipelineError, "toy_ask() from Topics to Topics", ""),
        (lambda: fuse(FIND, A), PipelineError, "stages or runs", "not both"),
        (lambda: fuse(FIND, FIND, method="rank"), ParameterError, "'rank'", "there are rrf, isr"),
        (lambda: fuse(FIND, FIND).with_(weights=(1, 2, 3)).search("x"), ParameterError, "3 weights … 2 systems", ""),
    ],
)
def test_a_fusion_names_its_input_at_fault(
    call: Callable[[], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(call, error, names, remedy)


@each(
    ("text", "error", "names", "remedy"),
    [
        ('fuse(bm25(), tfidf(), method="rfr")', ParameterError, "'rfr'", "'rrf'"),
        ("fuse(bm25())", ParameterError, "systems", "at least two"),
        ("fuse(rm3(), rm3())", PipelineError, "to Topics", ""),
        ("fuse(one, bm25())", PipelineError, "fuse", "only stages"),
    ],
)
def test_a_fusion_as_text_names_its_input_at_fault(
    tmp_path: Path, text: str, error: type[FontesError], names: str, remedy: str
) -> None:
    index = Index.build([("d1", "water")], tmp_path / "x")
    read = part if "one" in text else pipeline
    check_error(lambda: read(text, index, systems={"one": Run.of(A)}), error, names, remedy)
