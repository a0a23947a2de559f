"""`fontes recipe`: list, show and run."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.tiny_recipe import DOCS, QRELS, TOPICS, Tiny
from typer.testing import CliRunner

import fontes as ft
from fontes import recipes
from fontes.app import cli, output


@pytest.fixture
def fontes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `fontes recipe` in a folder with a corpus, topics and qrels; gives output and errors."""
    monkeypatch.setattr(recipes, "RECIPES", {"tiny": Tiny})
    monkeypatch.chdir(tmp_path)
    ft.write_corpus(DOCS, "corpus.jsonl")
    ft.write_topics(TOPICS, "topics.tsv")
    ft.write_qrels(QRELS, "qrels.txt")

    def run(*arguments: str, stdin: str | None = None) -> tuple[str, str]:
        result = CliRunner().invoke(cli.app, ["recipe", *arguments], input=stdin, catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout, result.stderr

    return run


def test_the_recipes_are_listed_and_shown(fontes: Any) -> None:
    assert fontes("list") == ("tiny  BM25 twice, and their sum.\n", "")
    out, err = fontes("show", "tiny")
    assert err == ""
    for part in (
        "Nobody, On Small Things, 1999",
        "k1     of BM25",
        "  k1=0.9\n",
        "  loud=false\n",
        "Published, on other things\n",
        "another team: RR 0.2500, AP 0.1250",
    ):
        assert part in out
    shown = json.loads(fontes("show", "tiny", "--json")[0])
    assert shown["parameters"]["analyzer"] == "english"
    assert json.loads(fontes("list", "--json")[0]) == [{k: v for k, v in shown.items() if k != "parameters"}]
    with pytest.raises(ft.core.ParameterError, match="there is no recipe 'none'; there are tiny"):
        fontes("show", "none")


RUN = ["run", "tiny", "--collection", "corpus.jsonl", "--topics", "topics.tsv", "-o", "out"]


def test_steps_go_to_standard_error_and_the_report_to_standard_output(fontes: Any) -> None:
    out, err = fontes(*RUN, "--qrels", "qrels.txt", "-s", "k1=1.2", "-s", "k=2", "-m", "nDCG@10, P(rel=1)@1")
    assert "nDCG@10" in out
    assert err.splitlines()[0] == "index: 3 documents"
    assert err.splitlines()[-1].startswith(
        "out: report.md, report.json, report.html, recipe.md, recipe.json, runs of 3 systems;"
    )
    summary = json.loads(Path("out/recipe.json").read_text())
    assert (summary["parameters"]["k1"], summary["parameters"]["k"]) == (1.2, 2)


def test_a_terminal_shows_in_one_line_how_far_a_long_step_is(fontes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Terminal:
        is_terminal = True

        def __init__(self, **options: object) -> None: ...

        def print(self, line: str, markup: bool) -> None:
            shown.append(line)

        @contextlib.contextmanager
        def status(self, text: str) -> Iterator[Any]:
            yield self
            shown.append("(gone)")

        def update(self, text: object) -> None:
            shown.append(f"({text})")

    monkeypatch.setattr(output, "Console", Terminal)
    assert fontes(*RUN)[1] == ""
    assert re.fullmatch(r"\(indexing: 3 documents, [\d,]+ a second.*\)", shown[0])
    assert shown[1:3] == ["( )", "index: 3 documents"]  # the line is emptied before another one is printed
    assert shown[-1] == "(gone)"


def test_json_is_the_summary_and_nothing_else(fontes: Any) -> None:
    out, err = fontes(*RUN, "--json")
    assert err == ""
    summary = json.loads(Path("out/recipe.json").read_text())
    assert json.loads(out) == {key: value for key, value in summary.items() if key != "files"}


def test_topics_come_from_standard_input(fontes: Any) -> None:
    arguments = [*RUN[:4], "--topics", "-", "-o", "out"]
    assert fontes(*arguments, stdin=Path("topics.tsv").read_text())[0] == f"3 runs in {Path('out/runs')}\n"
    assert set(ft.read_run("out/runs/first.run")) == set(TOPICS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "k1"], "'k1' does not set a parameter"),
        (["-s", "k1=x"], "k1 must be a number"),
        (["--qrels", "corpus.jsonl"], "corpus.jsonl"),
        (["-m", "ndgc", "--qrels", "qrels.txt"], "ndgc"),
        (["--collection", "-"], "not from standard input"),
        (["--collection", "nowhere"], "nowhere"),
        (["-o", "corpus.jsonl"], "corpus.jsonl: cannot be made a folder"),
    ],
)
def test_what_cannot_be_used_is_told_and_leaves_no_folder(fontes: Any, arguments: list[str], message: str) -> None:
    with pytest.raises(ft.FontesError, match=message) as error:
        fontes(*RUN, *arguments)
    assert "\n" not in str(error.value)
    assert not Path("out").exists()
