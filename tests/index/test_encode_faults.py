"""An encoding on a cluster that loses a node, or whose driver is killed: the vectors of one machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.counting_encoder import BLOCK, COUNT, Counting, built, copied, vector_files

from fontes.index import Index
from fontes.index.attached import journal

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index encoded on one machine, beside one that is not encoded."""
    monkeypatch.setattr(journal, "BLOCK", BLOCK)
    plain = built(tmp_path / "plain")
    (tmp_path / "a").mkdir()
    index = copied(plain, tmp_path / "a")
    Index.open(index).encode(Counting())
    return index


def started(*arguments: object) -> subprocess.Popen[str]:
    tests = Path(__file__).resolve().parent.parent
    paths = [str(tests.parent / "src"), str(tests), os.environ.get("PYTHONPATH", "")]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-m", "support.lost_nodes", *map(str, arguments)]
    return subprocess.Popen(command, env=variables, cwd=tests, stdout=subprocess.PIPE, text=True)


def test_a_node_that_is_lost_changes_nothing(here: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = started("node", tmp_path / "plain", log)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "a node is lost" in output
    assert (vector_files(tmp_path / "plain") == vector_files(here)) is True
    assert not list((tmp_path / "plain").rglob("*part-*"))


def test_a_driver_that_is_killed_leaves_what_is_finished_to_the_next(here: Path, tmp_path: Path) -> None:
    plain, log = tmp_path / "plain", tmp_path / "log"
    process = started("driver", plain, log)
    deadline = time.monotonic() + 200
    while not (log.exists() and len(log.read_text().split()) >= 4 * BLOCK):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert Index.open(plain).info()["vectors"] == []
    time.sleep(3)  # until its actors know
    done = len(log.read_text().split())
    again = tmp_path / "again"
    Index.open(plain).encode(Counting(str(again)))
    assert len(again.read_text().split()) <= COUNT - BLOCK
    assert len(again.read_text().split()) + done >= COUNT
    assert (vector_files(plain) == vector_files(here)) is True
    assert not list(plain.rglob("*part-*"))
