"""The notebooks of the documentation run, cell after cell, and show what is stored in them.

    python tests/test_notebooks.py docs/notebooks/compare.ipynb …     writes what the cells show into these notebooks

A cell is run as Jupyter does it: what it prints, and the value of its last expression, by the methods that notebooks call.
"""

import ast
import contextlib
import io
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "docs" / "notebooks").glob("*.ipynb"))
FORMS = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}  # the first that a value has is stored
VARYING = ((re.compile(r"\d+(\.\d+)?(e-\d+)? s\b"), "# s"), (re.compile(r"<style.*?</style>", re.DOTALL), ""))


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return notebook


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell, in Jupyter's form; the cells share their names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [outputs_of("".join(cell["source"]), names) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs_of(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # type: ignore[attr-defined]
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        form = next((name for name in FORMS if hasattr(value, name)), None)
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if form is not None:
            data = {FORMS[form]: getattr(value, form)().splitlines(keepends=True)} | data
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def comparable(outputs: list[dict[str, Any]]) -> str:
    """What cells show, without figures, whose bytes depend on matplotlib, and without times."""
    shown = "\n".join(
        "".join(one.get("text") or one["data"].get("text/html") or one["data"]["text/plain"])
        for one in outputs
        if "image/svg+xml" not in one.get("data", {})
    )
    for pattern, replacement in VARYING:
        shown = pattern.sub(replacement, shown)
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_stores(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = read(path)
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (now, before) in enumerate(zip(run(notebook), stored, strict=True), 1):
        assert comparable(now) == comparable(before), f"{path.name}, code cell {number}"


def test_notebooks_are_small() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert path.stat().st_size < 100_000, path.name


def rewrite(path: Path) -> None:
    notebook = read(path)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        outputs = iter(run(notebook))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = next(outputs)
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        rewrite(Path(argument))
