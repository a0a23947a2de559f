"""A plugin of pytest: the fixture `fontes_gate` checks that a search function loses no quality.

It is loaded in each run of pytest, so it imports nothing before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .gate import GateFile

OPTION = "fontes_gate"
DID_NOT_RUN = ("fontes_gate", "did not run")  # a property of a test's report


class FontesGate:
    """The gate of a file, for tests."""

    def __init__(self, gate: GateFile, node: pytest.Item) -> None:
        self._gate = gate
        self._node = node

    def check(self, search: Callable[[str], object] | None = None) -> None:
        """Fail the test if a search loses quality against the baseline.

        Args:
            search: From a query to document ids, the best first, or to pairs of an id and a score; None: the file's candidate.
        """
        from .core import FontesError
        from .gate import FunctionArm, run_gate

        try:
            result = run_gate(self._gate, None if search is None else FunctionArm(function=search))
            result.write()
        except FontesError as error:
            code, text = 3, str(error)
        else:
            code, text = result.exit_code, str(result)
        if code == 2 and self._gate.settings.too_few == "skip":
            pytest.skip(text)
        if code == 2 and self._gate.settings.too_few == "xfail":
            pytest.xfail(text)
        if code == 3:
            self._node.user_properties.append(DID_NOT_RUN)
        if code:
            pytest.fail(text, pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --fontes-gate, and fontes_gate of an ini file."""
    parser.getgroup("fontes").addoption("--fontes-gate", metavar="FILE", help="the file of the fixture fontes_gate")
    parser.addini(OPTION, "the file of the fixture fontes_gate", default="gate.toml")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Report a gate that did not run as an error, not as a failure."""
    is_error = report.when == "call" and report.failed and DID_NOT_RUN in map(tuple, report.user_properties)
    return ("error", "E", "ERROR") if is_error else None


@pytest.fixture
def fontes_gate(request: pytest.FixtureRequest) -> FontesGate:
    """The gate of the file that --fontes-gate or fontes_gate of an ini file names, by default gate.toml."""
    from .core import FontesError
    from .gate import GateFile

    typed = request.config.getoption("--fontes-gate")
    path = request.config.invocation_params.dir / typed if typed else request.config.rootpath / request.config.getini(OPTION)
    try:
        return FontesGate(GateFile.read(path), request.node)
    except FontesError as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)
