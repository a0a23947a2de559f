"""What the command line runs, and says when it is interrupted: the caller's own code, and the truth."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.forged import forged_manifest

from fontes.index import Index

MODULE = "tokens_of_trust"  # its own name, so that no other test's module is meant


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents and a module of the caller's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    (tmp_path / f"{MODULE}.py").write_text("def commas(text):\n    return [part.strip() for part in text.split(',')]\n")
    docs = [{"_id": "d1", "text": "hot spring, geyser"}, {"_id": "d2", "text": "spring, hot"}]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (tmp_path / "t.tsv").write_text("1\thot spring\n")
    (tmp_path / "q.tsv").write_text("1 0 d1 1\n")
    return tmp_path


def test_a_callers_analyzer_is_named_again_wherever_text_is_analysed(fontes, place: Path) -> None:
    own = ("--analyzer", f"{MODULE}:commas")
    assert fontes("index", "c.jsonl", "-o", "x", *own)[0] == 0
    assert Index.open("x").terms.tolist() == ["geyser", "hot", "hot spring", "spring"]
    for command in (("check", "x"), ("info", "x")):
        assert fontes(*command)[0] == 0
    text = (
        ("search", "x", "hot spring"),
        ("explain", "x", "hot spring", "d1"),
        ("why", "x", "hot spring"),
        ("search", "x", "--topics", "t.tsv"),
    )
    for command in text:
        code, _, error = fontes(*command)
        assert (code, "--analyzer MODULE:FUNCTION" in error) == (1, True), command
    assert fontes("search", "x", "hot spring", *own, "--json")[1].count('"id": "d1"') == 1
    assert fontes("explain", "x", "hot spring", "d1", *own)[0] == 0
    assert "d2" not in fontes("search", "x", "--topics", "t.tsv", *own)[1]
    code, _, error = fontes("search", "x", "hot spring", "--analyzer", "str:split")
    assert (code, "cannot be imported" in error) == (1, True)
    code, _, error = fontes("search", "x", "hot spring", "--analyzer", "english")
    assert (code, "was made with another analyzer" in error) == (1, True)
    turn = fontes("chat", "x", "--with", "raw()", "--json", *own, stdin="hot spring\n")
    assert (turn[0], '"d1"' in turn[1]) == (0, True)


def test_no_command_runs_what_a_manifest_names(fontes, place: Path) -> None:
    assert fontes("index", "c.jsonl", "-o", "x")[0] == 0
    forged_manifest(place / "x", lambda manifest: manifest["analyzer"].update(tokenizer={"callable": "subprocess:getoutput"}))
    assert fontes("check", "x")[0] == 0
    code, _, error = fontes("search", "x", "touch ran")
    assert (code, "'subprocess:getoutput', and an index runs no code of its own" in error) == (1, True)
    assert not (place / "ran").exists()


@pytest.mark.parametrize("table", ["[index]", "[systems]"])
def test_an_experiment_file_names_no_function(fontes, place: Path, table: str) -> None:
    (place / "stranger.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    pipeline = "bm25() >> causal_filter(analyzer='stranger:run')" if table == "[systems]" else "bm25()"
    analyzer = 'analyzer = "stranger:run"' if table == "[index]" else ""
    (place / "e.toml").write_text(
        '[collection]\ncorpus = "c.jsonl"\ntopics = "t.tsv"\nqrels = "q.tsv"\n'
        f'[index]\n{analyzer}\n[systems]\na = "{pipeline}"\n[report]\nmeasures = ["AP"]\n'
    )
    code, _, error = fontes("experiment", "e.toml", "-o", "results")
    assert (code, "unknown analyzer 'stranger:run'" in error) == (1, True), error
    assert not (place / "ran").exists()


@pytest.mark.slow
def test_an_interrupt_after_the_commit_says_that_the_index_is_complete(place: Path) -> None:
    code = """
        import os, signal, sys
        from fontes.app import cli
        def hook(event, arguments):
            if event == "os.rename" and str(arguments[0]).endswith("/index"):
                os.kill(os.getpid(), signal.SIGINT)
        sys.addaudithook(hook)
        cli.main()
    """
    command = [sys.executable, "-c", textwrap.dedent(code), "index", "c.jsonl", "-o", "x"]
    ended = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, "fontes: interrupted; x was complete by then")
    assert len(Index.open(place / "x")) == 2
    assert not list(place.glob(".x*"))
