"""Nodes are lost while a run is reranked and while settings are tried: the results of one machine."""

import json
from pathlib import Path

import pytest
from support.counting_encoder import built
from support.lost_nodes import results, started

pytest.importorskip("ray")
pytestmark = pytest.mark.slow


def test_lost_nodes_change_neither_reranked_runs_nor_tuning(tmp_path: Path) -> None:
    index, log = built(tmp_path / "x"), tmp_path / "log"
    process = started("stages", index, log)
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 0
    assert output.count("a node is lost") == 2
    here = {name: work(tmp_path / name) for name, work in results(index).items()}
    assert json.loads(log.read_text()) == json.loads(json.dumps(here))
