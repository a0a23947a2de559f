"""`not_itself`: topics that are documents, as in BEIR's ArguAna and Quora."""

import json

import pytest

import fontes as ft
from fontes.core import Run
from fontes.core.expression import part
from fontes.reorder import NotItself
from fontes.reorder.own_documents import own_documents_first
from fontes.tasks import check_data, new_project, run_task

ARGUMENTS = {
    f"arg{i}": f"argument {word} about food" for i, word in enumerate(("meat", "milk", "rice", "salt", "corn", "eggs"))
}
COUNTERS = {f"{name}x": f"{text} is wrong" for name, text in ARGUMENTS.items()}


def test_the_document_with_the_topics_own_id_is_left_out_of_its_ranking_alone():
    run = Run.of({"a": {"a": 3.0, "b": 2.0}, "b": {"a": 3.0}, "c": {"c": 1.0}, "d": {}})
    assert NotItself()(run).to_dict() == {"a": {"b": 2.0}, "b": {"a": 3.0}, "c": {}, "d": {}}
    assert own_documents_first(run, ft.Qrels.of({"a": {"b": 1}, "b": {"a": 1}, "c": {"c": 1}, "d": {"x": 1}})) == ["a"]


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A folder in BEIR's form whose topics are documents."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arguments" / "qrels").mkdir(parents=True)
    docs = ARGUMENTS | COUNTERS
    lines = {
        name: "".join(f"{json.dumps({'_id': i, 'text': t})}\n" for i, t in texts.items())
        for name, texts in (("corpus", docs), ("queries", ARGUMENTS))
    }
    for name, text in lines.items():
        (tmp_path / "arguments" / f"{name}.jsonl").write_text(text)
    judged = "".join(f"{name}\t{name}x\t1\n" for name in ARGUMENTS)
    (tmp_path / "arguments" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return tmp_path / "arguments"


def test_commands_leave_it_out_and_say_when_it_matters(collection, fontes):
    assert fontes("index", "arguments", "-o", "x.index")[0] == 0
    assert fontes("search", "x.index", "--topics", "arguments", "-o", "with.run")[0] == 0
    assert fontes("search", "x.index", "--topics", "arguments", "--not-itself", "-k", "1", "-o", "without.run")[0] == 0
    assert [len(ranking) for ranking in ft.formats.read_run("without.run").values()] == [1] * len(ARGUMENTS)
    _, output, note = fontes("eval", "arguments", "with.run", "RR")
    assert (output.split()[1], "in 6 of 6 topics the document with the topic's own id is first" in note) == ("0.5000", True)
    for arguments in (("with.run", "RR", "--not-itself"), ("without.run", "RR")):
        _, output, note = fontes("eval", "arguments", *arguments)
        assert (output.split()[1], note) == ("1.0000", "")
    status, _, problem = fontes("search", "x.index", "food", "--not-itself")
    assert (status, "--not-itself goes with --topics" in problem) == (2, True)


def test_a_pipeline_explains_what_is_kept(collection):
    stage = part("bm25() >> not_itself()", ft.Index.build(collection, "x.index"))
    topic = ft.Topic("arg0", ARGUMENTS["arg0"])
    assert stage.search(topic).ids[0] == "arg0x"
    assert stage.explain(topic, "arg0x").value == pytest.approx(stage.search(topic)[0].score)
    assert stage.explain(topic, "arg0").value == 0.0


def test_a_task_says_that_its_topics_are_documents_and_follows_its_baseline(collection, tmp_path):
    project = new_project("beir:arguments", tmp_path / "p")
    assert any("6 topics are documents with the same id, such as 'arg0'" in remark for remark in check_data(project).remarks)
    file = tmp_path / "p" / "experiment.toml"
    file.write_text(file.read_text().replace('"bm25()"', '"bm25() >> not_itself()"'))
    result = run_task(project)
    assert all(system.run["arg0"].ids[0] == "arg0x" for report in result.reports.values() for system in report.systems.values())
