"""`fontes gate run`: what it answers, its exit codes, and its files."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.gates import write_run

import fontes as ft
from fontes.app import cli
from fontes.gate import GateFile, run_gate


@pytest.mark.parametrize(
    ("lower", "answer", "code"),
    [([], "passes", 0), (range(20), "loses", 1), ([7], "not enough topics", 2)],
    ids=["passes", "loses", "not-enough"],
)
def test_a_gate_passes_loses_or_has_too_few_topics(gate, fontes, lower, answer, code):
    path = gate(lower, head="allow_equal = true")
    assert fontes("gate", "run", path)[:2] == (code, fontes("gate", "run", path)[1])
    assert fontes("gate", "run", path)[1].startswith(f"{path}: {answer}\n")


def test_too_few_topics_are_told_with_the_number_that_is_needed(gate, fontes):
    out = fontes("gate", "run", gate([7]))[1]
    assert "RR: 60 topics tell a loss of 0.01 in" in out
    assert "would tell it in 80" in out


def test_the_topics_that_lost_most_are_told_with_the_documents_that_moved(gate, fontes, tmp_path):
    path = gate(candidate='run = "other.run"')
    (tmp_path / "other.run").write_text((tmp_path / "candidate.run").read_text().replace("3 Q0 d3 1", "3 Q0 z 1"))
    out = fontes("gate", "run", path)[1]
    assert "3  1.0000 to 0.0000  query number 3\n    went: d3 (rank 1, grade 1)\n    came: z (rank 1, not judged)\n" in out
    assert "    fell: d5 (rank 1 to 2, grade 1)" in fontes("gate", "run", gate([5]))[1]


NOT_RUN = {
    "empty": ("", {}, "the candidate has no documents: it is empty"),
    "missing": (None, {"without": [3, 4]}, "no documents for 2 topics that the baseline has, such as '3', '4'"),
    "equal scores": (None, {"score": "1"}, "the candidate gives equal scores to all documents of each topic"),
    "equal runs": (None, {}, "both arms gave the same documents in the same order"),
    "other ids": ("q Q0 d 1 1 t\n", {}, "no topic of its run, such as 'q', is one of the judged, such as '0'"),
}


@pytest.mark.parametrize(("content", "options", "problem"), NOT_RUN.values(), ids=NOT_RUN)
def test_an_arm_that_cannot_be_trusted_is_no_answer(gate, fontes, tmp_path, content, options, problem):
    path = gate()
    write_run(tmp_path / "candidate.run", **options)
    if content is not None:
        (tmp_path / "candidate.run").write_text(content)
    code, out, _ = fontes("gate", "run", path)
    assert code == 3
    assert out.startswith(f"{path}: did not run\n")
    assert problem in out


def test_a_run_that_is_not_there_is_told_of_each_arm(gate, fontes, tmp_path):
    path = gate()
    (tmp_path / "candidate.run").unlink()
    assert (
        f"the candidate did not answer: {tmp_path / 'candidate.run'}: there is no such file\n" in fontes("gate", "run", path)[1]
    )
    (tmp_path / "baseline.run").unlink()
    assert "'fontes gate accept' makes the candidate's run the first baseline" in fontes("gate", "run", path)[1]


def test_advised_keys_allow_what_was_refused(gate, fontes, tmp_path):
    path = gate(head="allow_missing = 1")
    write_run(tmp_path / "candidate.run", range(20), without=[3])
    assert fontes("gate", "run", path)[0] == 1
    assert fontes("gate", "run", gate(head="allow_equal = true"))[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [["run", "nowhere.toml"], ["run", "--bogus"], ["walk"], [], ["run", "{gate}", "-o", "x.tex"], ["accept", "{gate}"]],
    ids=" ".join,
)
def test_errors_and_wrong_usage_are_never_an_answer(gate, fontes, arguments):
    path = gate(range(20))
    assert fontes("gate", *(argument.replace("{gate}", str(path)) for argument in arguments))[0] == 3


def test_a_fault_of_the_program_is_never_an_answer(gate, monkeypatch, fontes):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("fontes.gate.run_gate", fail)
    code, _, err = fontes("gate", "run", gate())
    assert code == 3
    assert "ZeroDivisionError: a fault" in err
    monkeypatch.setattr(sys, "argv", ["fontes", "--debug", "gate", "run", "nowhere.toml"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 3


def test_the_result_is_written_in_four_forms(gate, fontes, tmp_path):
    path = gate(range(20))
    files = [tmp_path / f"result.{suffix}" for suffix in ("md", "xml", "json", "html")]
    assert fontes("gate", "run", path, *(word for file in files for word in ("-o", file)))[0] == 1
    markdown, junit, values, page = (file.read_text() for file in files)
    assert markdown.startswith("### Search quality: loses\n\n| measure | baseline |")
    assert "[Both runs, topic by topic](result.html)" in markdown
    suite = ElementTree.fromstring(junit)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite.find("testcase/failure").get("message").startswith("RR loses: 1.0000 to 0.8333, -0.1667 (90% interval")
    assert json.loads(values)["measures"][0]["answer"] == "loses"
    assert "candidate" in page
    assert json.loads(fontes("gate", "run", path, "--json")[1])["outcome"] == "loses"


def test_a_wrong_name_of_a_result_is_told_before_the_arms_run(gate, fontes, tmp_path):
    assert ".md, .xml, .json, .html" in fontes("gate", "run", gate(), "-o", "x.tex")[2]
    assert not (tmp_path / "gate.results").exists()


def test_a_gate_in_a_folder_that_cannot_be_written_answers(gate, fontes, tmp_path):
    path = gate(range(20))
    (tmp_path / "gate.results").write_text("no folder")
    code, out, err = fontes("gate", "run", path)
    assert (code, out.splitlines()[0]) == (1, f"{path}: loses")
    assert "the result cannot be written (File exists), so 'fontes gate accept' does not have it" in err


def test_a_long_topic_is_cut(gate, tmp_path):
    path = gate(range(20))
    (tmp_path / "queries.tsv").write_text("".join(f"{topic}\t{'query ' * 99}\n" for topic in range(60)))
    assert max(map(len, str(run_gate(GateFile.read(path))).splitlines())) < 160


@pytest.mark.parametrize(("too_few", "tag"), [("fail", "failure"), ("skip", "skipped"), ("xfail", "skipped")])
def test_junit_calls_too_few_topics_what_the_file_says(gate, too_few, tag):
    result = run_gate(GateFile.read(gate([7], head=f'too_few = "{too_few}"')))
    assert ElementTree.fromstring(result.to_junit()).find(f"testcase/{tag}").get("type") == "not enough topics"


def test_junit_reports_gates_that_did_not_run_in_valid_xml(gate, tmp_path):
    path = gate(range(20))
    (tmp_path / "queries.tsv").write_text("".join(f"{topic}\tquery \x01 {topic}\n" for topic in range(60)))
    assert "query" in ElementTree.fromstring(run_gate(GateFile.read(path)).to_junit()).find("testcase/failure").text
    (tmp_path / "candidate.run").write_text("")
    assert ElementTree.fromstring(run_gate(GateFile.read(path)).to_junit()).find("testcase/error") is not None


@pytest.fixture(scope="module")
def weather(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("weather") / "weather.index"
    docs = [(f"d{i}", f"rain {'wind ' * (i % 3)} number{i}") for i in range(60)] + [(f"x{i}", "rain") for i in range(60)]
    ft.Index.build(docs, path, threads=1)
    return path


def numbered(tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("".join(f"{topic}\train number{topic}\n" for topic in range(60)))


def pipelines(weather: Path, candidate: str, limits: str) -> str:
    return f'index = "{weather}"\npipeline = "{candidate}"\n[limits]\n{limits}'


def test_time_is_measured_in_turns_and_loses_the_gate_beyond_its_limit(gate, fontes, tmp_path, weather):
    for limit, code in ((1e6, 0), (1e-6, 1)):
        path = gate(candidate=pipelines(weather, "bm25(k1=0.8)", f"time = {limit}"), head="allow_equal = true")
        path.write_text(path.read_text().replace('run = "baseline.run"', f'index = "{weather}"'))
        numbered(tmp_path)
        got, out, _ = fontes("gate", "run", path)
        assert got == code, out
        assert "p95 of time" in out


def test_bytes_of_an_index_are_limited_beside_those_that_the_lock_has(gate, fontes, tmp_path, weather):
    path = gate(candidate=pipelines(weather, "bm25()", "bytes = 1.1"), head="allow_equal = true")
    (tmp_path / "baseline.run").unlink()
    numbered(tmp_path)
    assert fontes("gate", "run", path)[0] == 3
    assert fontes("gate", "accept", path)[0] == 0
    assert fontes("gate", "run", path)[0] == 0
    lock = tmp_path / "baseline.lock"
    values = json.loads(lock.read_text())
    values["facts"]["bytes"] //= 2
    lock.write_text(json.dumps(values))
    code, out, _ = fontes("gate", "run", path)
    assert code == 1
    assert "bytes" in out


def test_a_limit_of_a_cost_that_an_arm_does_not_know_is_refused(gate, fontes):
    code, _, err = fontes("gate", "run", gate(tail="[limits]\ntime = 2.0"))
    assert code == 3
    assert "[limits]: time needs arms that answer topic by topic, and 'run' does not" in err


def test_plan_names_the_topics_from_differences_or_from_the_baseline_alone(gate, fontes, tmp_path):
    out = fontes("gate", "plan", gate([7]))[1]
    assert out.startswith("RR: 60 topics tell a loss of 0.01 in")
    assert "by the differences of 60 topics" in out
    write_run(tmp_path / "baseline.run", range(0, 60, 2))
    path = tmp_path / "gate.toml"
    path.write_text(path.read_text().partition("[candidate]")[0])
    assert "by the baseline and a correlation of 0.8" in fontes("gate", "plan", path)[1]
    assert json.loads(fontes("gate", "plan", path, "--json")[1])["topics"] > 60
    (tmp_path / "baseline.run").unlink()
    code, _, err = fontes("gate", "plan", path)
    assert (code, err.count("there is no such run")) == (3, 1)


def test_plan_takes_machine_labels(gate, fontes, tmp_path):
    path = gate([3, 7, 12])
    (tmp_path / "labels.txt").write_text((tmp_path / "qrels.txt").read_text())
    (tmp_path / "qrels.txt").write_text("".join(f"{topic} 0 d{topic} 1\n" for topic in range(20)))
    out = fontes("gate", "plan", path, "--machine", tmp_path / "labels.txt")[1]
    assert "RR: with machine labels of 60 topics, people must judge " in out
    code, _, err = fontes("gate", "plan", gate(), "--machine", tmp_path / "labels.txt")
    assert (code, "write a [candidate] that differs from the baseline, or plan without them" in err) == (3, True)


def test_topics_in_groups_count_as_groups(gate, fontes, tmp_path):
    path = gate(range(0, 20, 4), head='groups = "conversation"')
    for name in ("queries.tsv", "qrels.txt", "baseline.run", "candidate.run"):
        lines = (tmp_path / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(f"c{int(line.split()[0]) % 9}_{line}" for line in lines))
    assert "60 topics in 9 groups" in fontes("gate", "run", path)[1]
