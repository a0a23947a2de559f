"""The lock of a baseline: what it was accepted with, and how far accepted changes have drifted."""

import json

import pytest
from support.gates import write_run

from fontes.core import InputError
from fontes.gate import GateFile, run_gate


def test_the_first_baseline_is_the_candidates_run(gate, fontes, tmp_path):
    path = gate()
    (tmp_path / "baseline.run").unlink()
    code, out, _ = fontes("gate", "run", path)
    assert code == 3
    assert "there is no such run; 'fontes gate accept' makes the candidate's run the first baseline" in out
    assert fontes("gate", "accept", path)[1].startswith(f"{tmp_path / 'baseline.run'}: RR 1.0000; 0 changes accepted")
    lock = json.loads((tmp_path / "baseline.lock").read_text())
    assert [change["answer"] for change in lock["changes"]] == ["the first baseline"]
    assert fontes("gate", "accept", path)[1].endswith("0 changes accepted since the first baseline\n")  # it is that already


def test_nothing_is_accepted_without_a_run_or_after_a_change(gate, fontes, tmp_path):
    path = gate([7])
    assert "there is no result to accept; run 'fontes gate run" in fontes("gate", "accept", path)[2]
    fontes("gate", "run", path)
    for name in ("qrels.txt", "gate.results/candidate.run", "baseline.run", "gate.toml"):
        content = (tmp_path / name).read_text()
        changed = "".join(content.splitlines(keepends=True)[:-1])
        (tmp_path / name).write_text(content.replace("0.01", "0.5") if name == "gate.toml" else changed)
        code, _, err = fontes("gate", "accept", path, "--because", "looked at")
        assert code == 3
        assert "changed since" in err
        (tmp_path / name).write_text(content)


def test_a_change_that_does_not_pass_is_accepted_with_a_reason_alone(gate, fontes, tmp_path):
    path = gate(range(20))
    fontes("gate", "run", path)
    code, _, err = fontes("gate", "accept", path)
    assert (code, "the last answer is 'loses'; --because REASON accepts it" in err) == (3, True)
    assert fontes("gate", "accept", path, "--because", "half the latency")[0] == 0
    lock = json.loads((tmp_path / "baseline.lock").read_text())
    assert lock["changes"][-1]["because"] == "half the latency"
    assert lock["means"]["RR"] == pytest.approx(1 - 20 / 2 / 60)


def test_a_baseline_that_was_deleted_is_not_replaced_without_a_word(gate, fontes, tmp_path):
    path = gate([7])
    accepted(path, fontes, "--because", "the first")
    (tmp_path / "baseline.run").unlink()
    write_run(tmp_path / "candidate.run", range(20))
    out = fontes("gate", "run", path)[1]
    assert f"no such run; restore it, or delete {tmp_path / 'baseline.lock'}, with its history of changes, to begin anew" in out
    assert fontes("gate", "accept", path, "--because", "x")[0] == 3
    (tmp_path / "baseline.lock").unlink()
    fontes("gate", "run", path)
    assert fontes("gate", "accept", path)[0] == 0


@pytest.mark.parametrize("runs_again", [False, True], ids=["accept", "run-accept"])
def test_an_interrupted_accept_is_finished_and_keeps_the_differences(gate, fontes, tmp_path, monkeypatch, runs_again):
    path = gate(range(20))
    fontes("gate", "run", path)

    def interrupted(*_: object) -> None:
        raise InputError("interrupted")

    with monkeypatch.context() as context:
        context.setattr("fontes.gate.accepting.write", interrupted)
        assert fontes("gate", "accept", path, "--because", "x")[0] == 3
    if runs_again:
        assert "the file of the run is not what" in fontes("gate", "run", path)[1]
    assert "1 change accepted" in fontes("gate", "accept", path, "--because", "x")[1]
    assert (tmp_path / "baseline.run").read_bytes() == (tmp_path / "gate.results" / "candidate.run").read_bytes()
    (_, change) = json.loads((tmp_path / "baseline.lock").read_text())["changes"]
    assert sum(change["differences"]["RR"].values()) == pytest.approx(-10)


@pytest.mark.parametrize("content", ["", "[]", "7", "{}", '{"outcome": "passes"}'])
def test_a_damaged_result_is_told(gate, fontes, tmp_path, content):
    path = gate([7])
    fontes("gate", "run", path)
    (tmp_path / "gate.results" / "result.json").write_text(content)
    code, _, err = fontes("gate", "accept", path)
    assert (code, "the result cannot be read" in err, f"run 'fontes gate run {path}' again" in err) == (3, True, True)


def test_a_gate_that_did_not_run_is_not_accepted(gate, fontes, tmp_path):
    path = gate()
    (tmp_path / "candidate.run").write_text("")
    fontes("gate", "run", path)
    code, _, err = fontes("gate", "accept", path, "--because", "x")
    assert (code, "there is nothing to accept, for the gate did not run" in err) == (3, True)


def accepted(path, fontes, *options) -> None:
    fontes("gate", "run", path)
    assert fontes("gate", "accept", path, *options)[0] == 0


def test_a_slow_drift_over_accepted_changes_is_told_with_its_interval(gate, fontes, tmp_path):
    path = gate(range(1))
    path.write_text(path.read_text().replace("0.01", "0.2"))
    for lost in range(1, 5):
        write_run(tmp_path / "candidate.run", range(lost))
        code, out, _ = fontes("gate", "run", path)
        assert code == 0, out
        accepted(path, fontes)
    write_run(tmp_path / "candidate.run", range(5))
    out = fontes("gate", "run", path)[1]
    (line,) = [line for line in out.splitlines() if "since the first baseline" in line]
    assert "over 4 accepted changes and this one: -0.0417 (-0." in line
    values = json.loads(fontes("gate", "run", path, "--json")[1])
    assert values["drift"]["RR"]["difference"] == pytest.approx(-5 / 2 / 60, abs=1e-5)


CHANGES = {
    "judgments": ("qrels.txt", "0 d3 1", "0 x3 1", "the judgments are not what"),
    "topics": ("queries.tsv", "number 3", "nummer 3", "the topics are not what"),
    "margins": ("gate.toml", "RR = 0.01", "RR = 0.5", "the margins are not what"),
    "the run": ("baseline.run", "3 Q0 d3 1 9", "3 Q0 d3 1 8", "the file of the run is not what"),
}


@pytest.mark.parametrize(("name", "before", "after", "problem"), CHANGES.values(), ids=CHANGES)
def test_what_differs_from_the_lock_is_told_and_accepted_with_a_reason(gate, fontes, tmp_path, name, before, after, problem):
    path = gate([7])
    accepted(path, fontes, "--because", "the first")
    write_run(tmp_path / "candidate.run", [8])
    assert fontes("gate", "run", path)[0] == 2
    content = (tmp_path / name).read_text()
    assert before in content
    (tmp_path / name).write_text(content.replace(before, after, 1))
    code, out, _ = fontes("gate", "run", path)
    assert code == 3
    assert problem in out
    assert "measure  baseline  candidate" in out
    assert run_gate(GateFile.read(path)).to_junit().count("<error") == 1
    accepted(path, fontes, "--because", "meant so")
    write_run(tmp_path / "candidate.run", [9])
    assert fontes("gate", "run", path)[0] in (0, 2)


@pytest.mark.parametrize("ending", [".gz", ".xz", ""])
def test_a_baseline_may_be_compressed_and_its_lines_may_end_as_in_windows(gate, fontes, tmp_path, ending):
    path = gate(range(20))
    (tmp_path / "baseline.run").unlink()
    path.write_text("allow_equal = true\n" + path.read_text().replace('"baseline.run"', f'"base.run{ending}"'))
    accepted(path, fontes)
    if not ending:
        content = (tmp_path / "base.run").read_bytes()
        (tmp_path / "base.run").write_bytes(content.replace(b"\n", b"\r\n"))
    assert fontes("gate", "run", path)[0] == 0
    accepted(path, fontes)


def test_a_damaged_lock_is_told(gate, fontes, tmp_path):
    path = gate([7])
    for content in ("", "{}", '{"layout": 1}', '{"layout": 2}', "[]"):
        (tmp_path / "baseline.lock").write_text(content)
        code, out, err = fontes("gate", "run", path)
        assert code == 3
        assert "baseline.lock: the lock is" in out + err


def test_ids_with_white_space_are_accepted(fontes, tmp_path):
    (tmp_path / "queries.tsv").write_text("".join(f"{topic}\tquery\n" for topic in range(40)))
    rows = "".join(f"{topic}\ta page {topic}.md\t1\n" for topic in range(40))
    (tmp_path / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    found = {str(topic): {f"a page {topic}.md": 2.5, "b": 1.5} for topic in range(40)}
    (tmp_path / "new.run").write_text(json.dumps(found))
    path = tmp_path / "gate.toml"
    path.write_text(
        'topics = "queries.tsv"\nqrels = "qrels.tsv"\nallow_equal = true\n[margins]\nRR = 0.01\n'
        '[baseline]\nrun = "old.run"\n[candidate]\nrun = "new.run"\n'
    )
    fontes("gate", "run", path)
    assert "RR 1.0000" in fontes("gate", "accept", path)[1]
    assert fontes("gate", "run", path)[0] == 0
