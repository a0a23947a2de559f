"""`fontes audit`: the command."""

import json

import pytest

from fontes.core import Topics

TEXTS = {
    "a": "limestone dissolves slowly in rain water that carries carbon dioxide from the soil above",
    "b": "limestone dissolves slow in rain water that carries carbon dioxide from the soil above",
    "c": "bread is baked in an oven",
}


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A folder in BEIR's form with two splits, and a run in which two documents are equal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "caves" / "qrels").mkdir(parents=True)
    queries = {"1": "how does limestone dissolve", "2": "who bakes the bread", "9": "How does limestone dissolve?"}
    for name, texts in (("corpus", TEXTS), ("queries", queries)):
        lines = (json.dumps({"_id": i, "text": text}) + "\n" for i, text in texts.items())
        (tmp_path / "caves" / f"{name}.jsonl").write_text("".join(lines))
    header = "query-id\tcorpus-id\tscore\n"
    (tmp_path / "caves" / "qrels" / "test.tsv").write_text(f"{header}1\ta\t1\n2\tc\t1\n")
    (tmp_path / "caves" / "qrels" / "train.tsv").write_text(f"{header}9\ta\t1\n")
    (tmp_path / "it.run").write_text("1 Q0 b 1 2.0 it\n1 Q0 a 2 2.0 it\n2 Q0 c 1 1.0 it\n")
    return tmp_path / "caves"


def test_a_run_is_audited_with_all_of_a_collection(collection, fontes) -> None:
    status, output, _ = fontes("audit", "it.run", "--collection", "caves", "--split", "test", "-m", "RR", "-o", "it.md")
    assert status == 0
    rows = [line.split() for line in output.splitlines()]
    assert ["the", "score", "as", "it", "is", "2", "0.7500"] in rows
    assert ["ties", "relevant", "first", "1", "1.0000"] in rows
    assert ["near", "copies", "one", "of", "each", "1", "1.0000"] in rows
    assert "1 = 9 (1.00)" in output
    assert "missing documents: the collection has all judged documents" in output
    assert "| ties | relevant first |" in (collection.parent / "it.md").read_text()


def test_files_are_audited_and_a_collection_alone(collection, fontes) -> None:
    files = ("--qrels", "caves/qrels/test.tsv", "--topics", "caves/queries.jsonl", "--corpus", "caves/corpus.jsonl")
    status, output, _ = fontes("audit", "it.run", *files, "--train", "caves/qrels/train.tsv", "--json")
    lines = json.loads(output)["lines"]
    assert (status, lines["training data"]["topics"], lines["near copies"]["topics"]) == (0, ["1"], ["1"])
    status, output, _ = fontes("audit", "--collection", "caves", "--split", "test", "--near", "0", "--json")
    lines = json.loads(output)["lines"]
    assert (status, "ties" in lines, lines["near copies"]["topics"]) == (0, False, [])
    corpus = (collection / "corpus.jsonl").read_text()
    output = fontes("audit", "it.run", "--qrels", "caves/qrels/test.tsv", "--corpus", "-", "--json", stdin=corpus)[1]
    assert json.loads(output)["lines"]["near copies"]["topics"] == ["1"]
    (collection / "corpus.jsonl").unlink()
    assert "no collection to look for near copies" in fontes("audit", "--collection", "caves", "--split", "test")[1]


def test_judgments_of_models_are_known_in_a_file_of_judgments(collection, fontes) -> None:
    pytest.importorskip("fastapi")
    from fontes.app.judging.store import JudgmentStore

    with JudgmentStore("judged.sqlite") as store:
        store.add_topics(Topics.of({"1": "how does limestone dissolve", "2": "who bakes the bread"}))
        store.add_pools({"1": ["a", "b"], "2": ["c"]}, "", "run it", 10)
        for judge, topic, document, grade in (("ann", "1", "a", 1), ("llm small", "1", "b", 1), ("llm small", "2", "c", 1)):
            if judge not in store.judges():
                store.add_judge(judge)
            store.judge(judge, topic, document, grade)
    status, output, _ = fontes("audit", "it.run", "--qrels", "judged.sqlite", "-m", "RR", "--json")
    line = json.loads(output)["lines"]["machine"]
    assert (status, line["topics"], line["scores"]) == (0, ["1", "2"], {"people alone": {"RR": 0.5}})


def test_the_judgments_are_named_once(collection, fontes) -> None:
    status, _, problem = fontes("audit", "it.run")
    assert (status, "--qrels" in problem, "--collection" in problem) == (2, True, True)
    status, _, problem = fontes("audit", "caves/qrels/test.tsv", "--qrels", "it.run")
    assert (status, "exchanged" in problem) == (1, True)
