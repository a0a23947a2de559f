"""`fontes new`: the project that it writes runs, and nothing of the user's is overwritten."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from test_notebooks import read, run

FILES = ["README.md", "experiment.toml", "notebook.ipynb", ".gitignore"]
FILES += ["data/corpus.jsonl", "data/queries.jsonl", "data/qrels/test.tsv"]


@pytest.fixture
def project(fontes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / 'my "first" project'
    code, out, _ = fontes("new", folder, "--json")
    assert code == 0
    assert json.loads(out) == {"directory": str(folder), "files": FILES}
    monkeypatch.chdir(folder)
    return folder


def test_the_commands_of_its_readme_run(fontes: Any, project: Path) -> None:
    text = (project / "README.md").read_text()
    assert text.startswith('# my "first" project\n')
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 7
    for command in commands:
        name, *words = shlex.split(command)
        code, out, errors = fontes(*words)
        assert (name, code) == ("fontes", 0), f"{command}: {errors}"
        if "eval" in words:
            assert "50 topics" in out


def test_its_notebook_runs_on_whatever_lies_in_its_data(project: Path) -> None:
    notebook = read(project / "notebook.ipynb")
    assert notebook["cells"][0]["source"][0] == '# my "first" project\n'
    assert " of 50 topics" in "".join(run(notebook)[-1][0]["text"])
    data = project / "data"
    (data / "corpus.jsonl").write_text("".join(f'{{"_id": "d{n}", "text": "rain {n}"}}\n' for n in range(3)))
    (data / "queries.jsonl").write_text('{"_id": "1", "text": "rain 2"}\n{"_id": "2", "text": "rain 1"}\n')
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td2\t1\n2\td1\t1\n")
    assert "on 0 of 2 topics" in "".join(run(notebook)[-1][0]["text"])


def test_a_folder_that_is_not_empty_is_refused(fontes: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    code, _, errors = fontes("new", tmp_path)
    assert (code, errors) == (1, f"fontes: {tmp_path} is not empty; name a new folder\n")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    code, _, errors = fontes("new", tmp_path / "notes.txt")
    assert (code, errors) == (1, f"fontes: {tmp_path / 'notes.txt'} is a file; name a new folder\n")
    code, _, errors = fontes("new", tmp_path / "notes.txt" / "sub")
    assert code == 1
    assert "the folder cannot be made" in errors


def test_an_empty_folder_is_filled(fontes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = fontes("new", ".")
    assert code == 0
    assert "Next: cd .; fontes experiment experiment.toml" in out
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == sorted(FILES)
