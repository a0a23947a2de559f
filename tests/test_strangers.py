"""A package of somebody else: installed beside Fontes, its stage, measure and corpus format are known by name."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

STAGE = '''
"""A stage."""
from dataclasses import dataclass

from fontes import Run, Stage


@dataclass(frozen=True)
class Backwards(Stage[Run, Run], name="backwards"):
    """Turns each ranking round.

    Args:
        factor: What the scores are multiplied by.
    """

    factor: float = 1.0

    def apply(self, run, /):
        return run.with_scores(-run.scores * self.factor)
'''
MEASURE = '''
"""A measure."""
from dataclasses import dataclass

import numpy as np

from fontes.measures import Measure


@dataclass(frozen=True, repr=False)
class Seven(Measure, name="Seven"):
    """7 for each topic."""

    def values(self, ranks):
        return np.full(len(ranks.qrels), 7.0)
'''
FORMAT = '''
"""A corpus format: id=text, one a line."""
from fontes import Doc
from fontes.formats import Format


class Equals(Format, name="equals"):
    """One document a line, its id and its text with = between them."""

    endings = (".equals",)

    def read_corpus(self, source, fields):
        for _, line in source.texts():
            doc_id, _, text = line.partition("=")
            yield Doc(doc_id, text)
'''
COMMAND = '''
import typer

commands = typer.Typer()


@commands.command(rich_help_panel="Strange")
def wave(word: str) -> None:
    """Wave a word."""
    typer.echo(f"~{word}~")
'''
BROKEN = "import a_module_that_nobody_has\n"
POINTS = """
[fontes.stages]
backwards = stranger.stages.backwards:Backwards

[fontes.measures]
Seven = stranger.measures:Seven

[fontes.formats]
equals = stranger.formats:Equals

[fontes.commands]
wave = stranger.commands:commands
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the stranger's package."""
    folder = tmp_path_factory.mktemp("stranger")
    wheel = folder / "stranger-1.0-py3-none-any.whl"
    files = {
        "stranger/__init__.py": "",
        "stranger/stages/__init__.py": "",
        "stranger/stages/backwards.py": STAGE,
        "stranger/measures.py": MEASURE,
        "stranger/commands.py": COMMAND,
        "stranger/formats.py": FORMAT,
        "stranger-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n",
        "stranger-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "stranger-1.0.dist-info/entry_points.txt": POINTS,
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        record = []
        for name, text in files.items():
            archive.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(text.encode())}")
        archive.writestr("stranger-1.0.dist-info/RECORD", "\n".join([*record, "stranger-1.0.dist-info/RECORD,,\n"]))
    target = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return target


COMMANDS = """
import contextlib, json, sys
from unittest import mock
from fontes.app import cli
for arguments in json.loads(sys.argv[1]):
    with mock.patch.object(sys, "argv", ["fontes", *arguments]), contextlib.suppress(SystemExit):
        cli.main()
    print(end="\\0")
"""


def fontes(site: Path, *commands: list[object]) -> list[str]:
    """Output of each of these commands, in one process that finds the stranger's package."""
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps([list(map(str, command)) for command in commands])],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "fontes: " not in done.stderr, done.stderr
    return done.stdout.split("\0")[:-1]


@pytest.fixture(scope="module")
def index(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collection")
    (folder / "corpus.equals").write_text("a=rain and snow\nb=rain rain rain\nc=sun\n")
    fontes(site, ["index", folder / "corpus.equals", "-o", folder / "weather.index"])
    return folder / "weather.index"


@pytest.mark.slow
def test_its_format_is_recognised_and_known_by_name(site: Path, index: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("x=fog\n")
    convert = ["convert", "corpus", tmp_path / "corpus", tmp_path / "corpus.jsonl", "--format", "equals"]
    _, info = fontes(site, convert, ["info", index])
    assert json.loads((tmp_path / "corpus.jsonl").read_text())["text"] == "fog"
    assert "3" in info


@pytest.mark.slow
def test_its_stage_is_part_of_pipelines(site: Path, index: Path) -> None:
    search = ["search", index, "rain", "--json", "--pipeline"]
    *found, described, listed = fontes(
        site, [*search, "bm25()"], [*search, "bm25() >> backwards(factor=2)"], ["stages", "backwards"], ["stages"]
    )
    plain, turned = map(json.loads, found)
    assert [hit["id"] for hit in plain["hits"]] == ["b", "a"]
    assert [hit["id"] for hit in turned["hits"]] == ["a", "b"]
    assert turned["hits"][0]["score"] == pytest.approx(-2 * plain["hits"][1]["score"])
    assert "What the scores are multiplied by." in described
    assert "backwards" in listed


@pytest.mark.slow
def test_its_measure_is_known_to_eval(site: Path, tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n2 0 b 1\n")
    (tmp_path / "some.run").write_text("1 Q0 a 1 2.0 x\n")
    (table,) = fontes(site, ["eval", tmp_path / "qrels.txt", tmp_path / "some.run", "Seven"])
    assert "Seven  7.0000" in table


def test_its_command_is_one_of_fontes(site: Path) -> None:
    waved, described = fontes(site, ["wave", "hello"], ["--help"])
    assert waved == "~hello~\n"
    assert "Wave a word." in described


@pytest.mark.slow
def test_a_package_that_cannot_be_imported_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "broken_stranger.py").write_text(BROKEN)
    facts = tmp_path / "broken_stranger-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-stranger\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[fontes.stages]\nbroken_stage = broken_stranger:X\n")
    code = "from fontes.core import stages; print(len(stages.items()) > 30, 'broken_stage' in stages)"
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True"]
    problem = "broken_stranger of the package broken-stranger has it and cannot be imported: No module named"
    assert f"the stage 'broken_stage' is left out: {problem} 'a_module_that_nobody_has'" in done.stderr
