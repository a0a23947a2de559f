"""The programs of bench/: the commands that the pages name are what the programs take."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import tomllib
from pathlib import Path

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


@pytest.mark.parametrize(("page", "command"), commands())
def test_a_command_of_a_page_is_what_its_program_takes(
    page: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, name, arguments = COMMAND.match(command).groups()  # type: ignore[union-attr]
    program = ROOT / "bench" / f"{name}.py"
    if "parse_args" not in (text := program.read_text("utf-8")):
        usage = re.search(rf"{name}\.py ([^(\n]*)", text)[1].split()  # type: ignore[index]
        needed = sum(not each.startswith("[") for each in usage)
        assert needed <= len(arguments.split()) <= len(usage), f"{page}: {command}"
        return
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
        return
    except SystemExit:
        pytest.fail(f"{page}: {command}: {capsys.readouterr().err.splitlines()[-1:]}")
    pytest.fail(f"{page}: {command} ended without reading its arguments")


def test_the_page_of_installation_says_which_extras_all_has() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    page = (ROOT / "docs/start/install.md").read_text("utf-8")
    users = extras.keys() - {"all", "test", "docs"}
    within = set(re.fullmatch(r"fontes\[(.*)\]", extras["all"][0])[1].split(","))  # type: ignore[index]
    assert set(re.findall(r"`fontes\[([\w-]+)\]`", page)) - {"all"} == users
    row = next(line for line in page.splitlines() if "`fontes[all]`" in line)
    assert set(re.findall(r"`([\w-]+)`", row)) == users - within
