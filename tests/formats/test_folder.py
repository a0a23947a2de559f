"""A folder in BEIR's form wherever a collection, topics or judgments go, in Python and on the command line."""

import json
from pathlib import Path

import pytest

import fontes as ft
from fontes.core import InputError
from fontes.datasets import judged_topics
from fontes.formats import read_corpus, read_qrels, read_topics, write_corpus, write_run, write_topics

DOCS = {"d1": "red spring", "d2": "blue well", "d3": "green spring"}
TOPICS = {"q1": "spring", "q2": "well", "q3": "green"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    write_corpus(DOCS, folder / "corpus.jsonl.gz")
    write_topics(TOPICS, folder / "queries.jsonl")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq3\td3\t1\n")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    return folder


@pytest.fixture
def index(folder: Path, fontes) -> Path:
    assert fontes("index", folder, "-o", folder.parent / "i")[0] == 0
    return folder.parent / "i"


def test_a_folder_gives_documents_topics_and_judgments(folder: Path) -> None:
    assert {doc.id: doc.text for doc in read_corpus(folder)} == DOCS
    assert list(read_topics(folder)) == list(ft.Topics.read(folder)) == list(TOPICS)
    assert list(read_topics(folder, split="test")) == list(ft.Topics.read(str(folder), split="test")) == ["q1", "q3"]
    assert read_qrels(folder, split="dev").to_dict() == ft.Qrels.of(folder, split="dev").to_dict() == {"q2": {"d2": 1}}


def test_the_split_is_the_only_one_or_must_be_named(folder: Path) -> None:
    (folder / "qrels" / "dev.tsv").unlink()
    assert read_qrels(folder).to_dict() == ft.dataset(folder).qrels().to_dict() == {"q1": {"d1": 1}, "q3": {"d3": 1}}
    (folder / "qrels" / "test.tsv").unlink()
    with pytest.raises(InputError, match="beir: the collection has no judgments; a folder in BEIR's form has corpus"):
        read_qrels(folder)


def test_a_split_is_that_of_the_folder_and_a_file_beside_it_is_taken_as_it_is(folder: Path) -> None:
    queries, test = str(folder / "queries.jsonl"), str(folder / "qrels" / "test.tsv")
    both = [judged_topics(topics, qrels, "dev") for topics, qrels in ((str(folder), str(folder)), (queries, str(folder)))]
    assert [(list(topics), list(qrels)) for topics, qrels in both] == [(["q2"], ["q2"]), (list(TOPICS), ["q2"])]
    assert [list(part) for part in judged_topics(str(folder), test, "test")] == [["q1", "q3"], ["q1", "q3"]]
    assert judged_topics(None, None, None) == (None, None)


def test_search_and_eval_take_a_folder(folder: Path, index: Path, fontes) -> None:
    code, run, _ = fontes("search", index, "--topics", folder, "--split", "test")
    assert (code, {line.split()[0] for line in run.splitlines()}) == (0, {"q1", "q3"})
    code, everything, _ = fontes("search", index, "--topics", folder)
    assert {line.split()[0] for line in everything.splitlines()} == set(TOPICS)
    assert fontes("eval", folder, "-", "RR", "--split", "dev", stdin=everything)[1].startswith("RR  1.0000\n1 topic;")
    code, _, error = fontes("eval", folder, "-", "RR", stdin=everything)
    assert (code, "choose a split" in error) == (1, True)
    assert fontes("search", index, "spring", "--split", "test")[0] == 2


def test_rerank_rewrite_and_convert_take_a_folder(folder: Path, index: Path, fontes) -> None:
    run = fontes("search", index, "--topics", folder)[1]
    arguments = ("--index", index, "--topics", folder, "--split", "dev", "--with", "cut(k=1)")
    assert fontes("rerank", "-", *arguments, stdin=run)[1].split()[:3] == ["q2", "Q0", "d2"]
    code, out, _ = fontes("rewrite", folder, "--split", "dev", "--with", "last_turns(k=1)")
    assert (code, [json.loads(line)["_id"] for line in out.splitlines()]) == (0, ["q2"])
    assert fontes("convert", "qrels", folder, "-", "--split", "dev")[1] == "q2 0 d2 1\n"
    assert fontes("convert", "corpus", folder, "-", "--split", "dev")[0] == 2


def test_compare_fuse_and_tune_take_a_folder(folder: Path, index: Path, fontes) -> None:
    runs = [folder.parent / name for name in ("a.run", "b.run")]
    write_run({"q1": {"d1": 2.0, "d3": 1.0}, "q3": {"d3": 1.0}}, runs[0])
    write_run({"q1": {"d3": 2.0, "d1": 1.0}, "q3": {"d3": 1.0}}, runs[1])
    both = ("--split", "test")
    code, out, _ = fontes("compare", folder, *runs, "-m", "RR", *both, "--topics", folder, "--json")
    systems = json.loads(out)["systems"]
    assert (code, {name: system["means"]["RR"] for name, system in systems.items()}) == (0, {"a": 1.0, "b": 0.75})
    code, out, error = fontes("fuse", *runs, "--learn", folder, "--folds", 2, "--measure", "RR", *both)
    assert (code, out.count("\n")) == (0, 3), error
    assert fontes("fuse", *runs, *both)[0] == 2
    code, out, error = fontes(
        *("tune", index, "--topics", folder, "--qrels", folder, *both, "--folds", 2),
        *("--pipeline", "bm25(k1=tune([0.5, 1]))", "-m", "RR", "--json"),
    )
    assert (code, json.loads(out)["measure"]) == (0, "RR"), error


def test_split_takes_a_folder(folder: Path, fontes) -> None:
    code, out, error = fontes("split", folder, folder, "--split", "test", "--test", 1, "--json")
    assert (code, sorted(json.loads(out)["train"] + json.loads(out)["test"])) == (0, ["q1", "q3"]), error


EXPERIMENT = """
[systems]
bm25 = "bm25()"
[report]
measures = ["RR"]
forms = ["json"]
[collection]
"""


@pytest.mark.parametrize(
    "collection",
    [
        'corpus = "beir"\ntopics = "beir"\nqrels = "beir"\nsplit = "dev"',
        'dataset = "beir"\nsplit = "dev"',
        'corpus = "beir/corpus.jsonl.gz"\ntopics = "beir/queries.jsonl"\nqrels = "beir"\nsplit = "dev"',
    ],
)
def test_an_experiment_takes_a_folder(folder: Path, collection: str) -> None:
    file = folder.parent / "x.toml"
    file.write_text(EXPERIMENT + collection)
    report = ft.Experiment(file).run()
    assert list(report.systems["bm25"].run) == ["q2"]
    lock = json.loads((folder.parent / "x.results" / "experiment.lock").read_text())
    assert Path(lock["data"]["qrels"]["file"]) == Path("beir", "qrels", "dev.tsv")


@pytest.mark.parametrize(
    ("collection", "problem"),
    [
        ('corpus = "beir"\ntopics = "beir"\nqrels = "beir"', "x.toml, [collection]: "),
        ('dataset = "beir"', "choose a split (--split NAME, or split=); there are dev, test"),
        ('qrels = "beir/qrels/dev.tsv"\ntopics = "beir/queries.jsonl"\nsplit = "dev"', "'split' belongs to a folder"),
    ],
)
def test_an_experiment_whose_split_is_not_clear_is_an_error(folder: Path, collection: str, problem: str) -> None:
    file = folder.parent / "x.toml"
    file.write_text(EXPERIMENT + collection)
    with pytest.raises(InputError) as caught:
        ft.Experiment(file)
    assert problem in str(caught.value)
