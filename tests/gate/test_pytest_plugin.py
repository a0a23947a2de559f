"""The plugin of pytest: a gate as a fixture."""

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fontes.gate import GateFile
from fontes.pytest_plugin import DID_NOT_RUN, FontesGate

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = """
def search(lower):
    def found(query):
        number = query.split()[-1]
        return [f"x{number}", f"d{number}"] if int(number) in lower else [f"d{number}", f"x{number}"]
    return found

def test_passes(fontes_gate):
    fontes_gate.check(search([]))

def test_loses(fontes_gate):
    fontes_gate.check(search(range(20)))

def test_does_not_run(fontes_gate):
    fontes_gate.check(lambda query: 1 / 0)
"""


def search_of(lower: range | list[int]) -> Callable[[str], list[str]]:
    def search(query: str) -> list[str]:
        number = query.split()[-1]
        return [f"x{number}", f"d{number}"] if int(number) in lower else [f"d{number}", f"x{number}"]

    return search


def output_of(path: Path, *arguments: object) -> str:
    """Run the tests in the folder of a gate, in a process without other plugins; give what is printed."""
    (path.parent / "test_search.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "fontes.pytest_plugin", "-rA", *map(str, arguments)]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200", "PATH": ""}
    return subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False).stdout


def test_tests_pass_fail_with_the_table_or_are_errors(gate):
    out = output_of(gate(head="allow_equal = true"))
    for line in (
        "PASSED test_search.py::test_passes",
        "FAILED test_search.py::test_loses",
        "ERROR test_search.py::test_does_not",
    ):
        assert line in out
    assert "1 failed, 1 passed, 1 error" in out
    assert "RR         1.0000     0.8333     -0.1667" in out
    assert "failed on 5 topics, such as '0': ZeroDivisionError: division by zero" in out
    assert "Traceback" not in out
    assert "pytest_plugin.py" not in out


@pytest.mark.slow
def test_the_file_is_that_of_the_option_or_of_the_ini_file(gate):
    path = gate(head="allow_equal = true")
    other = path.rename(path.with_name("other.toml"))
    assert "gate.toml: there is no such file" in output_of(path)
    assert "1 failed, 1 passed, 1 error" in output_of(path, "--fontes-gate", "other.toml")
    (path.parent / "pytest.ini").write_text(f"[pytest]\nfontes_gate = {other.name}\n")
    assert "1 failed, 1 passed, 1 error" in output_of(path)


ENDS = {"fail": pytest.fail.Exception, "skip": pytest.skip.Exception, "xfail": pytest.xfail.Exception}


@pytest.mark.parametrize("too_few", ENDS)
def test_too_few_topics_fail_skip_or_xfail_as_the_file_says(gate, too_few):
    path = gate(head=f'too_few = "{too_few}"')
    with pytest.raises(ENDS[too_few], match="would tell it in 80"):
        FontesGate(GateFile.read(path), SimpleNamespace(user_properties=[])).check(search_of([7]))


def test_a_gate_without_a_function_checks_the_candidate_of_the_file(gate):
    item = SimpleNamespace(user_properties=[])
    with pytest.raises(pytest.fail.Exception, match="both arms gave the same documents"):
        FontesGate(GateFile.read(gate()), item).check()
    path = gate()
    path.write_text(path.read_text().partition("[candidate]")[0])
    with pytest.raises(pytest.fail.Exception, match=r"there is no table \[candidate\]"):
        FontesGate(GateFile.read(path), item).check()
    assert item.user_properties == [DID_NOT_RUN, DID_NOT_RUN]


def test_what_a_function_found_can_be_accepted(gate, fontes):
    path = gate(head="allow_equal = true")
    FontesGate(GateFile.read(path), SimpleNamespace(user_properties=[])).check(search_of([]))
    assert fontes("gate", "accept", path)[0] == 0


def test_the_plugin_imports_nothing_before_it_is_used():
    code = "import sys, pytest; before = set(sys.modules); import fontes.pytest_plugin; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in loaded if name.startswith("fontes")} == {"fontes", "fontes.pytest_plugin"}
    assert not {"numpy", "numba", "scipy", "pydantic", "typer"} & set(loaded)


def test_the_plugin_is_an_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"fontes": "fontes.pytest_plugin"}
