"""`fontes fuse`: runs in, one run out, and what was learned in words or as JSON."""

import json
from functools import partial
from pathlib import Path

import pytest
from conftest import Fontes
from support.each import each

from fontes import fuse, read_run, write_run
from fontes.tuning import fit_weights

A = {f"q{i}": {"a": 3.0, "b": 2.0, "c": 1.0} for i in range(4)}
B = {f"q{i}": {"c": 0.9, "b": 0.5, "d": 0.1} for i in range(4)}
QRELS = "".join(f"q{i} 0 b 1\n" for i in range(4))


@pytest.fixture
def fontes(fontes: Fontes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fontes:
    """Runs `fontes fuse` in a folder with two runs and judgments."""
    monkeypatch.chdir(tmp_path)
    write_run(A, "a.run")
    write_run(B, "b.run")
    Path("qrels.txt").write_text(QRELS, encoding="utf-8")
    return partial(fontes, "fuse")


def test_it_writes_the_run_that_fuse_gives(fontes: Fontes) -> None:
    code, out, _ = fontes("a.run", "b.run", "-k", "2", "--tag", "both")
    assert code == 0
    assert out.splitlines()[0].split()[:4] == ["q0", "Q0", "c", "1"]
    assert len(out.splitlines()) == 8
    assert out.endswith(" both\n")
    assert fontes("a.run", "b.run", "--rrf-k", "1", "-o", "f.run") == (0, "", "")
    assert read_run("f.run") == fuse(A, B, k=1)


def test_it_takes_the_parameters_of_fuse(fontes: Fontes) -> None:
    options = ["--method", "wsum", "--normalize", "none", "--weights", "0.3,2", "--missing", "min"]
    assert fontes("a.run", "b.run", *options, "-o", "f.run")[0] == 0
    assert read_run("f.run") == fuse(A, B, method="wsum", normalize=None, weights=[0.3, 2], missing="min")
    assert fontes("a.run", "b.run", "--method", "combsum", "--missing", "-1.5", "-o", "f.run")[0] == 0
    assert read_run("f.run") == fuse(A, B, method="combsum", missing=-1.5)


def test_learning_prints_each_folds_weights_and_writes_the_held_out_run(fontes: Fontes) -> None:
    learned = fit_weights([A, B], "qrels.txt", "RR@5", folds=2, seed=3, step=0.25, method="rrf")
    options = ["--learn", "qrels.txt", "--measure", "RR@5", "--folds", "2", "--seed", "3", "--step", "0.25", "--method", "rrf"]
    assert fontes("a.run", "b.run", *options, "-o", "f.run") == (0, f"{learned}\n", "")
    assert read_run("f.run") == learned.run
    code, out, err = fontes("a.run", "b.run", *options)
    assert (code, err) == (0, f"{learned}\n")
    assert len(out.splitlines()) == 16
    code, out, _ = fontes("a.run", "b.run", *options, "-o", "f.run", "--json")
    assert json.loads(out) == json.loads(json.dumps(learned.to_dict()))


@each(
    ("arguments", "code", "message"),
    [
        (["a.run"], 1, "at least two systems"),
        (["a.run", "b.run", "--weights", "1,x"], 1, "--weights: 'x' is not a number"),
        (["a.run", "b.run", "--weights", "1,2,3"], 1, "3 weights for 2 systems"),
        (["a.run", "b.run", "--method", "best"], 1, "no fusion method 'best'"),
        (["a.run", "b.run", "--weights", "1,2", "--learn", "qrels.txt"], 2, "either --weights or --learn"),
        (["a.run", "b.run", "--json"], 2, "needs --learn"),
        (["a.run", "b.run", "--learn", "qrels.txt", "--folds", "9"], 1, "9 folds cannot be made of 4 topics"),
        (["a.run", "none.run"], 1, "none.run"),
        (["-", "-"], 2, "only once"),
    ],
)
def test_wrong_usage_is_said_in_one_line(fontes: Fontes, arguments: list[str], code: int, message: str) -> None:
    got, out, err = fontes(*arguments)
    assert (got, out) == (code, "")
    assert message in " ".join(err.split())
