"""The systemd unit of the guide: systemd knows all that it says, and the server all options that it gives."""

import re
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from conftest import Fontes

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "serve.md"


@pytest.fixture
def unit() -> str:
    block = re.search(r"```ini\n# /etc/systemd/system/fontes.service\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    return block[1]


def test_systemd_finds_nothing_wrong_in_the_unit(unit: str, tmp_path: Path) -> None:
    analyze, program = shutil.which("systemd-analyze"), shutil.which("true")
    if not analyze or not program:
        pytest.skip("systemd-analyze is not here")
    (tmp_path / "fontes.service").write_text(unit.replace("/opt/fontes/bin/fontes", program), encoding="utf-8")
    command = [analyze, "verify", "--man=no", tmp_path / "fontes.service"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in ended.stderr.splitlines() if str(tmp_path) in line]  # of other units on the machine not
    assert (ended.returncode, lines) == (0, [])


def test_the_server_has_the_options_of_the_unit_and_can_write_its_index(unit: str, fontes: Fontes) -> None:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read_string(unit)
    service = parser["Service"]
    program, command, index, *options = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("fontes", "serve")
    assert fontes(command, index, *options, "--help")[0] == 0
    assert fontes(command, index, *options, "--no-such-option", "--help")[0] == 2
    assert service["DynamicUser"] == "yes"  # which makes all folders read-only but these
    assert index.startswith(f"%S/{service['StateDirectory']}/")
    assert service["Environment"] == f"FONTES_CACHE=%C/{service['CacheDirectory']}"
