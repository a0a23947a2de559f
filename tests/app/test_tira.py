"""The command for TIRA in the guide, on a folder as TIRA hands it over."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fontes as ft

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "experiment-files.md"


@pytest.mark.slow
def test_the_command_of_the_guide_makes_the_run_that_tira_evaluates(tmp_path):
    [command] = re.findall(r"^fontes index \$inputDataset.*$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    given, result = tmp_path / "input", tmp_path / "output"
    given.mkdir()
    result.mkdir()
    docs = [{"docno": "a", "text": "rain and snow", "original_document": {"x": 1}}, {"docno": "b", "text": "sun"}]
    lines = "".join(json.dumps(doc) + "\n" for doc in docs)
    (given / "documents.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (given / "queries.jsonl").write_text('{"qid": "1", "query": "rain?", "original_query": {"query_id": "1"}}\n')
    own = {"inputDataset": str(given), "outputDir": str(result), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = command.replace("/tmp/index", str(tmp_path / "index"))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env={**os.environ, **own})
    assert done.returncode == 0, done.stderr
    assert ft.read_run(result / "run.txt")["1"].ids == ["a"]
    assert (result / "run.txt").read_text().split()[1::4] == ["Q0", "bm25"]
