"""The tasks of the demonstration: what is printed is what the commands that stand there do."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes.app.demo_tasks import TASKS, run_tasks
from fontes.datasets.samples import TASKS as OF_THE_HARBOUR

Results = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return run_tasks(folder, kept=True, json=True)


def test_the_tasks_are_those_of_the_harbour() -> None:
    assert sorted(task.name for task in TASKS) == sorted(OF_THE_HARBOUR)


def test_what_is_measured_is_the_run_of_the_command(results: Results, tmp_path: Path, fontes: Any) -> None:
    for task in results["tasks"]:
        words = shlex.split(task["command"])
        assert words[0] == "fontes"
        run = tmp_path / words[-1]
        assert fontes(*words[1:-1], run)[0] == 0
        best = task["systems"][-1]
        measured = ft.evaluate(ft.read_run(run), getattr(ft.datasets.samples.harbour, task["task"]).qrels(), list(best)[2:])
        assert {str(m): measured[m] for m in measured} == pytest.approx({m: best[m] for m in list(best)[2:]})
        assert [hit["id"] for hit in task["topic"]["hits"]] == list(ft.read_run(run)[task["topic"]["id"]].ids[:3])


def test_the_last_system_of_a_task_is_no_worse_than_the_first_and_its_example_is_found(results: Results) -> None:
    for task in results["tasks"]:
        first, *_, last = task["systems"]
        assert all(last[measure] >= first[measure] for measure in list(last)[2:]), task["task"]
        assert task["topic"]["hits"][0]["grade"] == 2


def test_a_closer_look_names_relevant_stories_with_what_they_say(results: Results, fontes: Any) -> None:
    looks = [task for task in results["tasks"] if "closer" in task]
    assert [task["task"] for task in looks] == ["causal", "claims"]
    for task in looks:
        closer, grades = task["closer"], getattr(ft.datasets.samples.harbour, task["task"]).qrels()[task["topic"]["id"]]
        _, out, _ = fontes(*shlex.split(closer["command"])[1:])
        plain = " ".join(out.replace("**", "").split())
        assert any(grades.get(doc["id"], 0) == 2 for doc in closer["documents"])
        assert all(doc["text"].removeprefix("because ") in plain for doc in closer["documents"])


def test_extras_and_recipes_are_there(results: Results) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    for task in results["tasks"]:
        assert set(task["extras"]) <= set(project["optional-dependencies"])
        assert all(ft.recipe(name) for name in task["recipes"])
    assert {"cair2021", "cast2021"} <= {name for task in results["tasks"] for name in task["recipes"]}


def test_each_task_is_printed_with_its_command_its_hits_and_its_measures(
    results: Results, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_tasks(folder, kept=True, json=False)
    out = capsys.readouterr().out
    for task in results["tasks"]:
        assert f"{task['command']}\n> {task['topic']['text']}" in out
        assert f"  1  {task['topic']['hits'][0]['id']}  " in out
        assert all(f"With fontes[{extra}]: " in out for extra in task["extras"])
        assert all(f"{row[measure]:.4f}" in out for row in task["systems"] for measure in list(row)[2:])
    assert str(folder / "harbour.index") in out


def test_without_a_folder_of_ones_own_commands_name_an_index_to_build(folder: Path) -> None:
    results = run_tasks(folder, kept=False, json=True)
    assert results["command"] == "fontes index sample:harbour -o harbour.index"
    assert all(task["command"].startswith("fontes search harbour.index ") for task in results["tasks"])
