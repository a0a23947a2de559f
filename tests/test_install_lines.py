"""Every `pip install` line that users meet, in pages, errors and help, names extras that exist."""

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

from fontes.app.commands.doctor import _required
from fontes.core.errors import PACKAGES
from fontes.storage.remote import DRIVERS

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


ADVICE = re.compile(r"\b(MissingExtraError\.of|of|needs_extra|_?library)\(")


def advised(call: ast.Call) -> tuple[str | None, str | None] | None:
    """The package and the extra that an error of this call names, None for what is no literal; None for other calls."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    first, second, third = [*call.args, None, None, None][:3]
    match ast.unparse(call.func).rpartition(".")[2], ast.unparse(call.func):
        case "of", "MissingExtraError.of":
            pair = first, second
        case "needs_extra", _:
            pair = third, first
        case "library", _:
            pair = first, named.get("extra", third) or ast.Constant("neural")
        case "_library", _:
            pair = first, second
        case _:
            return None
    package, extra = [one.value if isinstance(one, ast.Constant) else None for one in pair]
    return package, extra


def test_every_error_about_a_missing_library_names_an_extra_that_brings_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    calls = [
        (path.name, pair)
        for path in SOURCES
        if ADVICE.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and (pair := advised(node)) is not None
    ]
    assert len(calls) > 90
    for place, (library, extra) in [*calls, *(("remote.py", pair) for pair in DRIVERS.values())]:
        assert extra is None or extra in project, f"{place}: {extra}"
        if library and extra:
            brought = {name.lower().replace("_", "-") for name in _required(extra)}
            module = library.lower().partition(".")[0]
            assert PACKAGES.get(module, module).lower().replace("_", "-") in brought, f"{place}: {library} is not in [{extra}]"


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
