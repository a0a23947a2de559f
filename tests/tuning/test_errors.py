"""What errors of tuning say: the parameter, value or function at fault, and what can be given."""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.errors import check_error

import fontes as ft
from fontes.core import FontesError, InputError, MissingExtraError, ParameterError, PipelineError
from fontes.core.stage import Cut
from fontes.tuning import fit, fit_weights
from fontes.tuning.folds import folds_of, units_of
from fontes.tuning.result import interval
from fontes.tuning.space import Maker, Range, axes_of, default_space, grid_of, maker_of

Collection = tuple[ft.Index, ft.Topics, ft.Qrels]
TOPICS, QRELS = ft.Topics.of(dict.fromkeys("ab", "x")), ft.Qrels.of({"a": {"1": 1}})
UNITS, BK1K3 = [["a"], ["b"], ["c"]], {"b": [0.1, 0.2], "k1": [1, 2], "k3": [2, 3]}
RUNS = [{f"q{n}": {"d": 1.0, "e": 0.5} for n in range(40)}, {f"q{n}": {"e": 1.0} for n in range(40)}]
JUDGED = {f"q{n}": {"d": 1} for n in range(40)}


def space(values: Any) -> object:
    """The axis of a parameter with these values."""
    return axes_of({"x": values}, Maker(lambda x: x, None, {}, {}))


@each(
    ("call", "error", "names", "remedy"),
    [
        # values
        *((lambda v=v: space(v), ParameterError, "x", "a list of values") for v in ("abc", b"abc", 5)),
        (lambda: space([]), ParameterError, "x: … no value", ""),
        *((lambda v=v: space(v), ParameterError, "x: a tuple", "range") for v in ((1,), (1, 2, 3, 4), (0, True), (0, "1"))),
        (lambda: space((2, 1)), ParameterError, "x: low", "not be above high"),
        (lambda: space((1, 2, 0)), ParameterError, "x: … step", "above 0"),
        (lambda: space((1, 2, -1)), ParameterError, "x: … step", "above 0"),
        (lambda: space((0.0, math.inf)), ParameterError, "x: low", "not be above high"),
        (lambda: list(grid_of({"x": Range(0.1, 0.5, False)})), ParameterError, "grid … step", "x=(0.1, 0.5, step)"),
        *(
            (
                lambda v=v: axes_of(v, Maker(lambda: None, None, {}, {})),
                ParameterError,
                "space",
                "names of parameters to values",
            )
            for v in ({}, None, [("x", [1])], "x")
        ),
        # groups, folds and intervals
        (lambda: units_of(TOPICS, ft.Qrels(), "document"), ParameterError, "groups='document'", "judgments"),
        (lambda: units_of(TOPICS, QRELS, {"a": "1"}), InputError, "topic 'b'", ""),
        *(
            (lambda g=g: units_of(TOPICS, QRELS, g), ParameterError, "groups", "'document', 'conversation', a mapping")
            for g in ("author", "a", "zebra", 7)
        ),
        (lambda: folds_of(UNITS, 4, 0), ParameterError, "4 folds … 3 topics", ""),
        *(
            (lambda f=f: folds_of(UNITS, f, 0), ParameterError, "folds", "from 2 up")
            for f in (1, 0, -2, True, 2.0, 2.5, 3.0, "2", None)
        ),
        (lambda: interval(np.ones(0), np.array([], dtype=np.int64)), ParameterError, "interval", "two topics"),
        (lambda: interval(np.ones(3), np.array([3, 3, 3])), ParameterError, "interval", "two topics"),
        # functions
        (lambda: maker_of(dict, {"k1": [2]}, None)[0]({"k1": 2}), ParameterError, "a dict", "a stage"),
        (lambda: maker_of(lambda k1, b: None, {"k1": [2]}, None), ParameterError, "'b'", "no values"),
        (lambda: maker_of(lambda: None, {"k1": [2]}, None), ParameterError, "'k1'", "it has none"),
        # weights of a fusion
        (lambda: fit_weights(RUNS[:1], JUDGED), ParameterError, "not 1", "two runs or more"),
        (lambda: fit_weights(RUNS, ft.Qrels()), InputError, "no judgments", ""),
        (lambda: fit_weights(RUNS, JUDGED, folds=41), ParameterError, "41 folds … 40 topics", ""),
        *(
            (lambda f=f: fit_weights(RUNS, JUDGED, folds=f), ParameterError, "folds", "from 2 up")
            for f in (1, True, 2.0, "5", 0)
        ),
        *(
            (lambda s=s: fit_weights(RUNS, JUDGED, step=s), ParameterError, "step", "divide 1")
            for s in (0.3, 0, -0.5, 2, 1.5, "0.1", None, 0.1000001)
        ),
        (lambda: fit_weights(RUNS, JUDGED, method="combmax"), ParameterError, "'combmax'", ""),
        (lambda: fit_weights(RUNS, JUDGED, weights=[1, 2, 3]), ParameterError, "'weights'", ""),
        (lambda: fit_weights(RUNS, JUDGED, normalize="softmax"), ParameterError, "'softmax'", ""),
        (lambda: fit_weights(RUNS, JUDGED, measure="nDGC@10"), ParameterError, "'nDGC'", "nDCG"),
    ],
)
def test_a_value_or_function_at_fault_is_named(
    call: Callable[[], object], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(call, error, names, remedy)


@each(
    ("space", "how", "names", "remedy"),
    [
        ({"k9": [1]}, {}, "'k9'", "there are"),
        ({"k": [1, 2]}, {}, "'k' … bm25 and cut", "'bm25__k' or 'cut__k'"),
        ({"epsilon": (0, 1)}, {}, "grid", "epsilon=(0, 1, step)"),
        ({"b": (1, 0, 0.1)}, {}, "b: low", "not be above high"),
        ({"b": (0, "x")}, {}, "b: a tuple", "range"),
        ({"b": "0.5"}, {}, "b", "a list of values"),
        ({"b": []}, {}, "b: … no value", ""),
        ({}, {}, "space", "names of parameters"),
        ({"b": [2.0]}, {}, "b … 2.0", "between 0 and 1"),
        ({"b": [0.5]}, {"method": "best"}, "'best'", "grid"),
        ({"b": [0.5]}, {"trials": 5}, "grid", "every combination"),
        ({"b": [0.5]}, {"method": "tpe", "trials": 0}, "trials … 0", ""),
        ({"b": [0.5]}, {"folds": 1}, "folds … 1", "from 2 up"),
        ({"b": [0.5]}, {"folds": 21}, "21 folds … 20", ""),
        ({"b": [0.5]}, {"groups": "author"}, "groups", "'document'"),
        ({"b": [0.5]}, {"measure": "NumRel"}, "NumRel", "count"),
    ],
)
def test_a_space_or_setting_at_fault_is_named(
    collection: Collection, space: Any, how: dict[str, Any], names: str, remedy: str
) -> None:
    index, topics, qrels = collection
    stage = index.bm25() + index.bm25() >> Cut(50)
    how = {"measure": "nDCG@5"} | how
    check_error(lambda: ft.tune(stage, space, topics, qrels, **how), ParameterError, names, remedy)


@each(
    ("tuned", "error", "names", "remedy"),
    [
        (lambda index, tune: tune(lambda k1, b: index.bm25(k1=k1, b=b), {"b": [0.1]}), ParameterError, "'k1'", ""),
        (lambda index, tune: tune(lambda b: index.bm25(b=b), {"k1": [0.1], "b": [0.1]}), ParameterError, "'k1'", "b"),
        (lambda index, tune: tune(lambda b: "bm25", {"b": [0.1]}), ParameterError, "a str", "a stage"),
        (lambda index, tune: tune(index.tfidf(), None), ParameterError, "tfidf()", "give one"),
        (lambda index, tune: tune(7, {"b": [0.1]}), ParameterError, "a int", "a stage, a function … a text"),
        (lambda index, tune: tune(lambda b: index.bm25(b=b), None), ParameterError, "a function", ""),
        (lambda index, tune: tune(index.bm25(), None, index=index), ParameterError, "an index", "a text"),
        (lambda index, tune: tune(index.bm25() >> index.rm3(), {"b": [0.1]}), PipelineError, "tune", "Topics to Run"),
        (lambda index, tune: tune("rm3(fb_docs=tune())", None, index=index), PipelineError, "tune", "Topics to Run"),
        (lambda index, tune: tune("bm25()", None, index=index), ParameterError, "no parameter", ""),
        (lambda index, tune: tune("bm25(b=tune())", {"k1": [1]}, index=index), ParameterError, "'k1'", ""),
        (lambda index, tune: tune(index.bm25(), {"b": [0.1]}, qrels={"y": {"d01": 1}}), InputError, "topics … judgments", ""),
        (
            lambda index, tune: tune(index.bm25(), {"b": [0.1]}, qrels={f"c{i // 4}_{i % 4}": {"other": 1} for i in range(20)}),
            InputError,
            "not one document … collection … 'other'",
            "",
        ),
        (lambda index, tune: default_space(index.tfidf()), ParameterError, "tfidf()", "give one"),
        (
            lambda index, tune: maker_of(index.bm25() + index.ql(), {"k": [5]}, None),
            ParameterError,
            "'k' … bm25",
            "'bm25__k' or 'ql__k'",
        ),
        *(
            (lambda index, tune, n=n: maker_of(index.bm25() + index.ql(), {n: [1]}, None), ParameterError, f"'{n}'", "bm25__k1")
            for n in ("nothing", "bm25__mu", "ql__k1", "pl2__k")
        ),
        (lambda index, tune: tune(index.bm25(), {"b": [0.1, 0.2]}).plot("mu"), ParameterError, "'mu'", "there are b"),
        (lambda index, tune: tune(index.bm25(), {"b": [0.1, 0.2]}).plot(("b", "b")), ParameterError, "plot", "one or two"),
        (lambda index, tune: tune(index.bm25(), BK1K3).plot(tuple(BK1K3)), ParameterError, "plot", "one or two"),
        (lambda index, _: fit(index, *ARGUMENTS, "20"), ParameterError, "budget … '20'", "20ms or 1s"),
        (lambda index, _: fit(index, *ARGUMENTS, 0), ParameterError, "budget … 0", "above 0"),
        (lambda index, _: fit(index, *ARGUMENTS, "1s", measure="NumRet"), ParameterError, "NumRet", "count"),
        (lambda index, _: fit(index, *ARGUMENTS, "1s", candidates=["cut(3)"]), ParameterError, "'cut(3)'", "topics to a run"),
        (lambda index, _: fit(index, *ARGUMENTS, "1s", rerankers=["bm25()"]), ParameterError, "'bm25()'", "reranker"),
        (
            lambda index, _: fit(index, *ARGUMENTS, "1s", rerankers=["crossencoder('x')"]),
            ParameterError,
            "crossencoder",
            "'cross_encoder'",
        ),
    ],
)
def test_a_stage_or_text_that_cannot_be_tuned_is_named(
    collection: Collection, tuned: Any, error: type[FontesError], names: str, remedy: str
) -> None:
    index, topics, judged = collection

    def tune(stage: Any, space: Any, qrels: Any = judged, **options: Any) -> Any:
        return ft.tune(stage, space, topics, qrels, **options)

    ARGUMENTS[:] = [topics, judged]
    check_error(lambda: tuned(index, tune), error, names, remedy)


ARGUMENTS: list[Any] = []


def test_a_mapping_as_a_whole_is_not_tuned(tmp_path: Any) -> None:
    index = ft.Index.build([("1", "spring")], tmp_path / "x", separate=True)
    call = lambda: maker_of("bm25(fields=tune())", None, index)  # noqa: E731
    check_error(call, ParameterError, "fields is a mapping", "fields={'title': tune()}")


def test_without_optuna_tpe_names_the_extra(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    index, topics, qrels = collection
    monkeypatch.setitem(sys.modules, "optuna", None)  # type: ignore[arg-type]
    how: dict[str, Any] = {"method": "tpe", "trials": 2}
    check_error(lambda: ft.tune(index.bm25(), {"b": (0, 1)}, topics, qrels, **how), MissingExtraError, "tpe", "fontes[tune]")
