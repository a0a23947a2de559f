"""A plain search is read without Typer, and gives what Typer's way gives."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.each import each

import fontes as ft
from fontes.app import output, searching
from fontes.app.command_line import command_line
from fontes.app.flags import flags
from fontes.app.quick import quick_search

LINES = [
    ["x.index", "hot springs"],
    ["hot springs", "-k", "7", "x.index", "--json"],
    ["x.index", "q", "--k1=1.25", "--b", "0.4", "--model", "bm25"],
    ["x.index", "q", "--where", "year >= 2020", "--sort", "year", "--descending", "--facets=kind,year"],
    ["x.index", "q", "--pipeline", "bm25() % 5", "--offset", "3", "--count", "--query", "--tolerance", "auto"],
    ["x.index", "q", "--model", "ql", "--lambda", "1", "--smoothing", "jm", "--verify", "--partial"],
]
OTHERS = [
    ["x.index", "q", "-k", "0"],
    ["x.index", "q", "-k5"],
    ["x.index", "q", "--k1", "1e-1"],
    ["x.index", "q", "--k1", "-1"],
    ["x.index", "q", "--json", "--json"],
    ["x.index", "q", "--no-such"],
    ["x.index", "q", "--jso"],
    ["x.index", "q", "--fields", "title=2"],
    ["x.index", "--", "-q"],
    ["x.index", "q", "--variant", "None"],
    ["x.index", "--topics", "file"],
    ["x.index", "two", "words"],
    ["x.index"],
    ["x.index", ""],
    ["--help"],
    [],
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """The options of the searches, which are not made."""
    searches: list[SimpleNamespace] = []
    monkeypatch.setattr(searching, "search", searches.append)
    monkeypatch.setattr(flags, "quiet", False)
    return searches


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_plain_line_is_read_as_typer_reads_it(line: list[str], asked: list[SimpleNamespace]) -> None:
    assert quick_search(line)
    command_line("search")(args=["search", *line], standalone_mode=False)
    first, second = asked
    assert first == second
    assert [(name, type(value)) for name, value in sorted(vars(first).items())] == [
        (name, type(value)) for name, value in sorted(vars(second).items())
    ]


@pytest.mark.parametrize("line", OTHERS, ids=" ".join)
def test_another_line_is_left_to_typer(line: list[str], asked: list[SimpleNamespace]) -> None:
    assert not quick_search(line)
    assert not asked


def test_options_that_do_not_go_together_are_left_to_typer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not quick_search([str(tmp_path), "q", "--descending"])
    assert capsys.readouterr() == ("", "")


def test_quiet_is_read(asked: list[SimpleNamespace]) -> None:
    assert quick_search(["x.index", "q", "--quiet"])
    assert flags.quiet
    assert "quiet" not in vars(asked[0])


@each(
    "text",
    [
        "plain",
        "  spaces  ",
        "žluťoučký 日本語 😀",
        "a\nb\n",
        "",
        "tab\there",
        "bell\a",
        "[bold]no markup[/] :smile:",
        "x" * 2500,
    ],
)
def test_a_line_that_is_not_for_a_terminal_is_the_one_that_rich_prints(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.console.cache_clear()
    output.say_parts(("  1  ", ""), (text, "bold cyan"))
    plain = capsys.readouterr().out
    from rich.text import Text

    output.console().print(Text.assemble("  1  ", (text, "bold cyan")))
    assert plain == capsys.readouterr().out
    output.console.cache_clear()


def test_a_plain_search_prints_what_a_search_by_typer_prints(
    tmp_path: Path, fontes: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "springs.index")
    ft.Index.build([("a", "hot springs in a valley"), ("b", "a cold spring"), ("c", "a hot day")], path, threads=1)
    for line in ([path, "hot spring"], [path, "hot spring", "--json"], [path, "nothing"], [path, "hot", "-k", "1", "--count"]):
        assert quick_search(line)
        printed = capsys.readouterr().out
        command_line("search")(args=["search", *line], standalone_mode=False)
        assert printed == capsys.readouterr().out
        assert printed
    assert "typer" in sys.modules
