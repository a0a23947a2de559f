"""The programs of bench/: the commands that the pages name are what the programs take."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
COMMAND = re.compile(r"(?:FONTES_DATA=(\S+) )?python bench/(\w+)\.py(.*)", re.DOTALL)
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Each command of a page: the page, and the command in one line."""
    named = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text("utf-8").replace("\\\n", " ")
        blocks = [
            line.strip() for line in text.splitlines() if re.match(r"(?: {4}|\$ )?(?:FONTES_DATA=\S+ )?python bench/", line)
        ]
        inline = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCED.sub("", text))]
        named += [(page.relative_to(ROOT).as_posix(), each) for each in blocks + inline if COMMAND.match(each)]
    return sorted(set(named))


class ParsedError(Exception):
    """Ends a program after its arguments have been read."""


def test_the_pages_name_commands_of_most_programs() -> None:
    assert len({COMMAND.match(command)[2] for _, command in commands()}) >= 20  # type: ignore[index]


def test_the_commands_of_the_pages_are_what_their_programs_take(capsys: pytest.CaptureFixture[str]) -> None:
    problems = {}
    for page, command in commands():
        with pytest.MonkeyPatch.context() as patch:
            problem = problem_of(command, patch)
        if problem:
            problems[page, command] = f"{problem} {capsys.readouterr().err.splitlines()[-1:]}"
    assert problems == {}


def problem_of(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is wrong with a command."""
    data, name, arguments = COMMAND.match(command).groups()  # type: ignore[union-attr]
    program = ROOT / "bench" / f"{name}.py"
    if "parse_args" not in (text := program.read_text("utf-8")):
        usage = re.search(rf"{name}\.py ([^(\n]*)", text)[1].split()  # type: ignore[index]
        needed = sum(not each.startswith("[") for each in usage)
        return "" if needed <= len(arguments.split()) <= len(usage) else "has too few or too many arguments"
    parse = argparse.ArgumentParser.parse_args

    def parsed(parser: argparse.ArgumentParser, args: list[str] | None = None) -> None:
        parse(parser, args)
        raise ParsedError

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    monkeypatch.syspath_prepend(str(program.parent))
    monkeypatch.delenv("FONTES_DATA", raising=False)
    if data:
        monkeypatch.setenv("FONTES_DATA", data)
    monkeypatch.setattr("sys.argv", [str(program), *shlex.split(arguments, comments=True)])
    try:
        runpy.run_path(str(program), run_name="__main__")
    except ParsedError:
        return ""
    except SystemExit:
        return "is refused"
    except Exception as error:
        return f"fails before it reads its arguments: {error}"
    return "ends without reading its arguments"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The functions of bench/quick.py."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return runpy.run_path(str(ROOT / "bench" / "quick.py"))


def test_the_page_has_a_ratio_for_each_search_of_the_quick_benchmark(quick: dict[str, Any]) -> None:
    kept = quick["kept"]((ROOT / "docs/benchmarks.md").read_text("utf-8"))
    searches = {f"{kind}, {way}, µs" for kind in quick["KINDS"].values() for way in quick["WAYS"].values()}
    assert searches < kept.keys()
    assert all(ratios["tantivy"] > 0 for ratios in kept.values())


def test_the_quick_benchmark_reads_the_ratios_that_it_has_written(quick: dict[str, Any]) -> None:
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    rows = {
        "one word, µs": {"fontes": 5.0, "tantivy": 10.0, "bm25s": 200.0},
        "requests a second": {"fontes": 1500, "tantivy": 500},
    }
    written = quick["written"](rows, page, "a machine")
    assert quick["kept"](written) == {"one word, µs": {"tantivy": 0.5, "bm25s": 0.025}, "requests a second": {"tantivy": 3.0}}
    assert "\n\nOn a machine.\n" in written
    assert written.count("\n#") == page.count("\n#")


def test_the_quick_benchmark_names_ratios_that_are_off_by_more_than_a_fifth(quick: dict[str, Any]) -> None:
    kept = {"one word, µs": {"tantivy": 0.5}, "requests a second": {"tantivy": 3.0}}

    def said(name: str, ours: float, theirs: float) -> list[str]:
        sentences: list[str] = quick["off"](name, {"fontes": ours, "tantivy": theirs}, kept)
        return sentences

    assert said("one word, µs", 5.9, 10) == said("requests a second", 2600, 1000) == []
    assert said("one word, µs", 6.1, 10) == ["one word, µs: 0.61 of tantivy's, 0.5 on the page: worse"]
    assert said("one word, µs", 4, 10) == ["one word, µs: 0.4 of tantivy's, 0.5 on the page: better"]
    assert said("requests a second", 100, 1000) == ["requests a second: 0.1 of tantivy's, 3 on the page: worse"]
    assert said("a new row", 1, 1) == ["a new row: the page has no ratio to tantivy"]


def test_the_quick_benchmark_names_the_collection_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: Any
) -> None:
    monkeypatch.setattr("sys.argv", ["quick.py", "--data", str(tmp_path)])
    with pytest.raises(SystemExit, match=f"there is no wikipedia_passages in {tmp_path}; FONTES_SHARED names"):
        quick["main"]()


def test_the_page_of_installation_says_which_extras_all_has() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs/start/install.md").read_text("utf-8")
    users = extras.keys() - {"all", "test", "docs"}
    within = set(re.fullmatch(r"fontes\[(.*)\]", extras["all"][0])[1].split(","))  # type: ignore[index]
    assert set(re.findall(r"`fontes\[([\w-]+)\]`", page)) - {"all"} == users
    row = next(line for line in page.splitlines() if "`fontes[all]`" in line)
    assert set(re.findall(r"`([\w-]+)`", row)) == users - within
