"""What errors of gates say: the margin, topic, setting or command at fault, and what to do."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.errors import check_error

from fontes.core import FontesError, InputError, ParameterError, Topic, Topics
from fontes.gate import CommandArm, HttpArm, McpArm
from fontes.gate.decision import decide
from fontes.gate.planning import drift, plan_baseline, plan_differences
from fontes.measures.evaluation import Evaluation
from fontes.measures.names import parse

NDCG = parse("nDCG@10")
NAN = float("nan")
MARGIN: dict[Any, float] = {"nDCG@10": 0.01}
TOPICS = Topics([Topic("1", "rain"), Topic("2", "sun")])


def evaluation(*values: float) -> Evaluation:
    return Evaluation(tuple(str(n) for n in range(len(values))), {NDCG: np.array(values, float)})


def arms(*differences: float) -> tuple[Evaluation, Evaluation]:
    """A baseline with 0.5 for each topic, and a candidate with these differences."""
    return evaluation(*[0.5] * len(differences)), evaluation(*(0.5 + d for d in differences))


SOME = arms(0.1, -0.1, 0.0)
SHARE = "between 0 and 1"


@each(
    ("call", "error", "names", "remedy"),
    [
        *(
            (lambda m=margins: decide(*SOME, m), ParameterError, names, remedy)
            for margins, names, remedy in (
                ({}, "a measure with its margin", "as in"),
                ({"nDCG@10": 0}, "margin of nDCG@10 … not 0", f"{SHARE}, as in 0.01"),
                ({"nDCG@10": -0.01}, "margin of nDCG@10 … not -0.01", SHARE),
                ({"nDCG@10": NAN}, "margin of nDCG@10 … not nan", SHARE),
                ({"nDCG@10": float("inf")}, "margin of nDCG@10 … not inf", SHARE),
                ({"nDCG@10": True}, "margin of nDCG@10 … not True", SHARE),
                ({"nDCG@10": "0.01"}, "margin of nDCG@10 … not '0.01'", SHARE),
                ({"NumRet": 1}, "NumRet", "a count over all topics"),
                ({"nDCG@10": 0.01, "ndcg_cut_10": 0.02}, "nDCG@10 has two margins", "name it once"),
                ({"AP": 0.01}, "not evaluated by AP", "evaluate it by this measure too"),
            )
        ),
        *(
            (lambda a=alpha: decide(*SOME, MARGIN, alpha=a), ParameterError, f"alpha … {alpha!r}", "")
            for alpha in (0, 1, -0.1, NAN, True, "0.05")
        ),
        *(
            (lambda b=both, c=clusters: decide(*b, MARGIN, clusters=c), InputError, names, remedy)
            for both, clusters, names, remedy in (
                (arms(0.1), None, "there is 1", "two judged topics or more … judge more"),
                (arms(), None, "there is none", "two judged topics or more"),
                (SOME, {"0": "a", "1": "a", "2": "a"}, "there is 1", "two judged clusters of topics or more"),
                (SOME, {"0": "a", "1": "b"}, "topic '2' has no cluster", "name the cluster of each judged topic"),
                (arms(0.1, NAN), None, "topic '1' … not a number", ""),
                ((SOME[0], arms(0.1)[1]), None, "different topics", "evaluate both on the same"),
            )
        ),
        # plans
        *(
            (lambda o=options: plan_differences(*SOME, MARGIN, **o), ParameterError, " … ".join(map(str, *options.items())), "")
            for options in ({"power": 1.0}, {"power": 0}, {"alpha": 0}, {"power": True})
        ),
        (lambda: plan_baseline(SOME[0], MARGIN, correlation=1.0), ParameterError, "the correlation … 1.0", SHARE),
        (lambda: plan_baseline(evaluation(0.5), MARGIN), InputError, "there is 1", "two judged topics or more"),
        (lambda: plan_baseline(evaluation(0.5, NAN), MARGIN), InputError, "topic '1' … not a number", ""),
        (lambda: drift([]), InputError, "no accepted change", ""),
        (lambda: drift([{"1": 0.0, "2": 0.1}, {"1": 0.0}]), InputError, "accepted change 2", "two topics or more"),
        (lambda: drift([{"1": 0.0, "2": NAN}]), InputError, "accepted change 1", ""),
    ],
)
def test_decisions_and_plans(call: Callable[[], object], error: type[FontesError], names: str, remedy: str) -> None:
    check_error(call, error, names, remedy)


def command(folder: Path, program: str, **changes: Any) -> object:
    (folder / "search.py").write_text(program)
    arm = CommandArm(command=f"{shlex.quote(sys.executable)} search.py {{k}}", **changes)
    return arm.at(folder).run(TOPICS, 10)


@each(
    ("call", "names", "remedy"),
    [
        (lambda p: CommandArm(command=" ").at(p).run(TOPICS, 10), "the command is empty", ""),
        (lambda p: CommandArm(command="python 'x").at(p).run(TOPICS, 10), "a quotation mark that is not closed", ""),
        (lambda p: command(p, "import sys; sys.exit('no index')"), "search.py … exit code 1: no index", ""),
        (lambda p: command(p, "print('1 Q0 d1 1 x tag')"), "the output of … search.py … line 1", ""),
        (lambda p: command(p, "import time; time.sleep(60)", timeout=0.2), "search.py … 0.2 seconds", "raise 'timeout'"),
        (
            lambda p: HttpArm(url="http://127.0.0.1:9", headers={"x": "${NO_KEY}"}).run(TOPICS, 5),
            "environment variable NO_KEY",
            "is not set",
        ),
    ],
)
def test_arms_that_do_not_answer(tmp_path: Path, call: Callable[[Path], object], names: str, remedy: str) -> None:
    check_error(lambda: call(tmp_path), InputError, names, remedy)


@each(
    ("words", "names"),
    [
        (" ", "the command is empty"),
        ("python 'x", "a quotation mark that is not closed"),
        ("no-such-command", "no-such-command"),
        ("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp"),
    ],
)
def test_mcp_servers_that_do_not_answer(tmp_path: Path, words: str, names: str) -> None:
    pytest.importorskip("mcp")
    check_error(lambda: McpArm(mcp=words, timeout=10.0).at(tmp_path).run(TOPICS, 10), InputError, names)
