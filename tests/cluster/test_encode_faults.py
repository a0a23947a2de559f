"""An encoding on a cluster that loses a node, or whose driver is killed: the vectors of one machine."""

import signal
import time
from pathlib import Path

import pytest
from support.counting_encoder import BLOCK, COUNT, Counting, built, copied, vector_files
from support.lost_nodes import started
from support.small import blocks_of

from fontes.index import Index

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index encoded on one machine, beside one that is not encoded."""
    blocks_of(monkeypatch, BLOCK)
    plain = built(tmp_path / "plain")
    (tmp_path / "a").mkdir()
    index = copied(plain, tmp_path / "a")
    Index.open(index).encode(Counting())
    return index


def test_a_node_that_is_lost_changes_nothing(here: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = started("node", tmp_path / "plain", log)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "a node is lost" in output
    assert (vector_files(tmp_path / "plain") == vector_files(here)) is True
    assert not list((tmp_path / "plain").rglob("*part-*"))


@pytest.mark.parametrize("where", [None, True])
def test_a_driver_that_is_killed_leaves_what_is_finished_to_the_next(
    here: Path, tmp_path: Path, where: bool | None, request: pytest.FixtureRequest
) -> None:
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
    address = request.getfixturevalue("ray") if where else None
    Index.open(plain).encode(Counting(str(again)), ray=address)
    assert len(again.read_text().split()) <= COUNT - BLOCK
    assert len(again.read_text().split()) + done >= COUNT
    assert (vector_files(plain) == vector_files(here)) is True
    assert not list(plain.rglob("*part-*"))
