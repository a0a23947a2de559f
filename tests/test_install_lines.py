"""Every `pip install` line that users meet, in pages, errors and help, names extras that exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src").rglob("*.md"),
    ROOT / "Makefile",
    ROOT / "Dockerfile",
]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
EXTRAS = re.compile(r"(?:fontes|\.)\[([a-z0-9,-]+)\]")


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


def lines() -> list[tuple[str, str]]:
    """(file, line) of each line that installs with pip; other lines may name extras without it."""
    return [
        (path.relative_to(ROOT).as_posix(), line)
        for path in [*PAGES, *SOURCES]
        if path.name != "errors.py"  # which fills the extra in
        for line in path.read_text(encoding="utf-8").splitlines()
        if "pip install" in line or "`fontes[" in line
    ]


def test_every_line_names_extras_that_exist() -> None:
    named = [(place, extra) for place, line in lines() for found in EXTRAS.findall(line) for extra in found.split(",")]
    assert len(named) > 50
    assert [(place, extra) for place, extra in named if extra not in declared()] == []


def test_every_error_about_a_missing_library_names_an_extra_that_brings_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    calls = [
        (path, [one.value if isinstance(one, ast.Constant) else None for one in node.args])
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("MissingExtraError.of")
    ]
    assert len(calls) > 10
    for path, (library, extra, *_) in calls:
        assert extra is None or extra in project, f"{path.name}: {extra}"
        if library and extra and "fontes[" not in "".join(project[extra]):
            names = " ".join(project[extra]).lower().replace("-", "_")
            assert library.lower().replace("-", "_").split(" ")[0] in names, f"{path.name}: {library} is not in [{extra}]"


def test_the_installed_package_has_the_extras_of_the_project() -> None:
    assert set(metadata("fontes").get_all("Provides-Extra") or []) == declared()


@pytest.mark.slow
def test_the_wheel_has_these_extras_and_its_files_and_pip_can_install_it(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    built = subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, ROOT], capture_output=True, text=True, check=False)
    if built.returncode and "hatchling" in built.stderr:
        pytest.skip("hatchling, which builds the wheel, cannot be fetched")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("fontes-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        facts = Parser().parsestr(archive.read(next(name for name in names if name.endswith("METADATA"))).decode())
    assert set(facts.get_all("Provides-Extra") or []) == declared()
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    assert {name for name in source if not name.endswith((".pyc", ".nbc", ".nbi"))} <= set(names)
    for requirement in (f"{wheel}", f"{wheel}[pandas,plots]"):
        done = subprocess.run([*pip, "install", "--dry-run", requirement], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "does not provide the extra" not in done.stderr
