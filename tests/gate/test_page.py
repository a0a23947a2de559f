"""The page about gates: its files are read, and its workflow is one."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from fontes.app import cli
from fontes.gate.file import KINDS, GateTable

yaml = pytest.importorskip("yaml")
PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "guides" / "gate.md").read_text(encoding="utf-8")


def blocks(mark: str) -> list[str]:
    return re.findall(rf"^```{mark}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_file_of_the_page_is_valid() -> None:
    whole, *parts = map(tomllib.loads, blocks("toml"))
    GateTable.model_validate({name: value for name, value in whole.items() if name not in ("baseline", "candidate")})
    assert set(whole) - {"baseline", "candidate"} == set(GateTable.model_fields)
    for tables in (whole, *parts):
        for name in {"baseline", "candidate"} & set(tables):
            (kind,) = set(tables[name]) & set(KINDS)
            KINDS[kind].model_validate(tables[name])
    assert {kind for tables in parts for table in tables.values() for kind in table if kind in KINDS} == set(KINDS)


def test_every_exit_code_of_the_page_is_that_of_the_answer() -> None:
    from fontes.gate.result import EXIT_CODES

    rows = re.findall(r"^\| ([a-z ]+) \| (\d) \|", PAGE, re.MULTILINE)
    assert {answer: int(code) for answer, code in rows} == EXIT_CODES


def test_the_workflow_has_steps_whose_commands_and_options_exist() -> None:
    (text,) = blocks("yaml")
    workflow = yaml.safe_load(text)
    assert set(workflow) == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads the key `on` as true
    (job,) = workflow["jobs"].values()
    steps = job["steps"]
    assert all(len({"uses", "run"} & set(step)) == 1 for step in steps)
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    group = typer.main.get_command(cli.app)
    for words in (shlex.split(step["run"]) for step in steps if step.get("run", "").startswith("fontes ")):
        command = group
        while hasattr(command, "commands") and len(words) > 1:
            command = command.commands[words.pop(1)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known
    written = {word for step in steps for word in re.findall(r"gate\.(?:md|xml|html)", str(step))}
    assert written == {"gate.md", "gate.xml", "gate.html"}
