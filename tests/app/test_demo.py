"""The demonstration: it runs what README shows, and measures what its commands find."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes.app import demo
from fontes.datasets.samples import TASKS as OF_THE_HARBOUR

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
Tasks = list[dict[str, Any]]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Tasks:
    return demo.measured_tasks(ft.Index.build(ft.datasets.samples.harbour.corpus, tmp_path_factory.mktemp("demo") / "index"))


def test_the_steps_are_the_commands_and_the_python_of_readme() -> None:
    section = README.partition("## What do you have?\n")[2].partition("\n## ")[0]
    codes = [code for _, code in demo.COMMANDS]
    assert codes == [one.strip() for one in re.findall(r"(?:^|`)(fontes [^`#\n]+)", section, re.MULTILINE)]
    assert f"```python\n{demo.PYTHON}```" in README
    assert set(re.findall(r"[\w-]+\.index", README)) >= set(demo.INDEXES)


def test_the_steps_run_and_are_printed_before_what_they_print(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = demo.COMMANDS[:-1]
    monkeypatch.setattr(demo, "PYTHON", "print(6 * 7)")
    for some in (commands[:1], commands):  # an index that is there is made anew
        monkeypatch.setattr(demo, "COMMANDS", some)
        demo.run_demo(tmp_path / "kept", json=False)
    out = capsys.readouterr().out
    for title, code in demo.COMMANDS:
        assert f"{title}\n{code}\n" in out
    assert "\nprint(6 * 7)\n42\n" in out
    assert "h150" in out
    assert "> What had weakened it?\n" in out
    assert {"harbour.index", "bm25.run", "rm3.run", "claims.html"} <= {path.name for path in (tmp_path / "kept").iterdir()}


def test_the_tasks_are_those_of_the_harbour() -> None:
    assert sorted(demo.TASKS) == sorted(OF_THE_HARBOUR)


def test_what_is_measured_is_the_run_of_the_command(
    tasks: Tasks, tmp_path: Path, fontes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fontes("index", "sample:harbour", "-o", demo.INDEX)[0] == 0
    for task in tasks:
        words = shlex.split(task["command"])
        assert words[0] == "fontes"
        assert fontes(*words[1:])[0] == 0
        measures = list(task["systems"][-1])[1:]
        qrels = getattr(ft.datasets.samples.harbour, task["task"]).qrels()
        measured = ft.evaluate(ft.read_run(words[-1]), qrels, measures)
        assert {m: measured[m] for m in measures} == pytest.approx({m: task["systems"][-1][m] for m in measures})


def test_the_last_system_of_a_task_is_no_worse_than_the_first(tasks: Tasks) -> None:
    for task in tasks:
        first, *_, last = task["systems"]
        assert all(last[measure] >= first[measure] for measure in list(last)[1:]), task["task"]


def test_extras_and_recipes_are_there(tasks: Tasks) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for task in tasks:
        assert set(task["extras"]) <= set(project["optional-dependencies"])
        assert all(ft.recipe(name) for name in task["recipes"])
    assert {"cair2021", "cast2021"} <= {name for task in tasks for name in task["recipes"]}
