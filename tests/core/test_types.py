"""mypy accepts what the documentation shows, and refuses what cannot be meant."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ACCEPTED = """
import fontes as ft

run, qrels = {"1": {"a": 1.0}}, {"1": {"a": 1}}
index = ft.Index.open("some.index")
systems = {"bm25": index.bm25(), "deep": index.bm25() % 100}
ft.evaluate(run, qrels)
ft.evaluate("some.run", "qrels.tsv", "AP")
ft.evaluate(ft.read_run("some.run"), ft.read_qrels("qrels.tsv"), [ft.nDCG @ 10, "AP"])
ft.compare(systems, {"1": "flu"}, qrels)
ft.compare(["a.run", "b.run"], None, "qrels.tsv", [ft.AP], baseline="a.run")
ft.compare({"a": run, "bm25": index.bm25()}, ft.read_topics("topics.tsv"), ft.Qrels.of(qrels), ["AP"])
index.search("flu").ids
index.bm25().search(ft.Topic("1", "flu"), 5)
"""
REFUSED = """
import fontes as ft

run, qrels = {"1": {"a": 1.0}}, {"1": {"a": 1}}
ft.compare(3, 4, 5)  # three
ft.compare({"a": run}, None, 5)
ft.compare({"a": run}, None, None)
ft.compare({"a": run}, 4, qrels)
ft.evaluate(3, qrels)
ft.evaluate(run, {"1": 1})
ft.evaluate(run, ft.Run.of(run))
ft.evaluate(ft.Qrels.of(qrels), 7)
ft.Index.open("some.index").search(["flu", "cold"])
ft.Index.open("some.index").bm25(k9=1.2)
ft.Index.open("some.index").bm25(k1="1.2")
ft.Index.open("some.index").reverse()
"""


@pytest.mark.slow
def test_mypy_accepts_what_is_documented_and_refuses_each_wrong_call(tmp_path):
    pytest.importorskip("mypy")
    files = tmp_path / "accepted.py", tmp_path / "refused.py"
    for file, text in zip(files, (ACCEPTED, REFUSED), strict=True):
        file.write_text(text)
    root = Path(__file__).resolve().parent.parent.parent
    # With the project's settings, so that what the check of `src` before the tests has kept is used.
    done = subprocess.run([sys.executable, "-m", "mypy", *files], cwd=root, capture_output=True, text=True, check=False)
    # Unchanged files keep the folder of the run before in mypy's messages.
    lines = [re.sub(r"^.*?(\w+\.py:)", r"\1", line) for line in done.stdout.splitlines() if ": error:" in line]
    refused = {int(line.split(":")[1]) for line in lines if line.startswith("refused.py")}
    assert [line for line in lines if not line.startswith("refused.py")] == [], done.stdout + done.stderr
    calls = {number for number, line in enumerate(REFUSED.splitlines(), 1) if line.startswith("ft.")}
    assert refused == calls
    assert sum(line.startswith("refused.py:5:") for line in lines) == 3
