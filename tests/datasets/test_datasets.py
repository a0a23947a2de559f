from __future__ import annotations

import sys
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fontes import Topics
from fontes.core import Doc, InputError, Topic
from fontes.datasets import dataset, named
from fontes.formats import write_corpus, write_topics


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_corpus([Doc("d1", "one"), Doc("d2", "two")], tmp_path / "corpus.jsonl.gz")
    write_topics({"q1": "a", "q2": "b", "q3": "c"}, tmp_path / "queries.jsonl")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td1\t1\nq1\td2\t1\n")
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td1\t1\n")
    return tmp_path


def test_a_beir_folder_is_a_dataset_whose_topics_are_those_with_judgments(folder: Path) -> None:
    given = dataset(folder)
    assert [d.id for d in given.corpus] == [d.id for d in given.corpus] == ["d1", "d2"]
    assert given.splits == ["dev", "test"]
    assert list(given.topics("test")) == ["q1", "q3"]
    assert given.qrels("dev").to_dict() == {"q2": {"d1": 1}}


def test_the_only_split_of_a_folder_needs_no_name(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").unlink()
    assert list(dataset(folder).topics()) == ["q2"]
    (folder / "qrels" / "dev.tsv").unlink()
    with pytest.raises(InputError, match="no judgments"):
        dataset(folder).qrels()


TitleDoc = namedtuple("TitleDoc", "doc_id text title url")
TrecQuery = namedtuple("TrecQuery", "query_id title description narrative")
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")


class PartsDoc(namedtuple("PartsDoc", "doc_id body marks")):
    def default_text(self) -> str:
        return f"{self.body}!"


class Stand:
    """A data set with the methods of ir-datasets that are used."""

    def __init__(self, docs: list[Any], queries: list[Any] | None = None, qrels: list[Any] | None = None) -> None:
        self.docs_iter, self.queries_iter, self.qrels_iter = (
            (lambda: iter(docs)),
            (lambda: iter(queries)),
            (lambda: iter(qrels)),
        )
        self.has_docs, self.has_qrels = (lambda: True), (lambda: qrels is not None)


def test_a_data_set_of_ir_datasets_is_mapped_by_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [TitleDoc("d1", "text", "title", "u"), PartsDoc("d2", "body", ("x",))]
    queries = [TrecQuery("1", "t", "d", "n "), TrecQuery("2", "unjudged", "", "")]
    sets = {
        "demo": Stand(documents),
        "demo/test": Stand(documents, queries, [Qrel("1", "d1", 2, "0")]),
        "demo/raw": Stand(documents, queries),
    }
    monkeypatch.setitem(sys.modules, "ir_datasets", SimpleNamespace(load=sets.__getitem__, registry=sets))
    given = dataset("demo")
    expected = [Doc("d1", "text", "title", {"url": "u"}), Doc("d2", "body!", "", {"body": "body"})]
    assert list(given.corpus) == list(given.corpus) == expected
    assert given.splits == ["test"]
    assert list(given.topics("test").values()) == [Topic("1", "t", "n", "d")]
    assert dataset("demo/test").splits == ["test"]
    assert dataset("demo/test").qrels().to_dict() == {"1": {"d1": 2}}


def test_the_real_ir_datasets_gives_what_is_registered_with_it() -> None:
    ir_datasets = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericDoc, GenericQuery, TrecQrel

    class Docs(BaseDocs):  # type: ignore[misc]
        def docs_iter(self) -> Any:
            return iter([GenericDoc("d1", "one")])

    class Queries(BaseQueries):  # type: ignore[misc]
        def queries_iter(self) -> Any:
            return iter([GenericQuery("q1", "ask"), GenericQuery("q2", "unjudged")])

    class Qrels(BaseQrels):  # type: ignore[misc]
        def qrels_iter(self) -> Any:
            return iter([TrecQrel("q1", "d1", 1, "0")])

    if "fontes-demo" not in list(ir_datasets.registry):
        ir_datasets.registry.register("fontes-demo", ir_datasets.Dataset(Docs()))
        ir_datasets.registry.register("fontes-demo/dev", ir_datasets.Dataset(Docs(), Queries(), Qrels()))
    given = dataset("fontes-demo")
    assert (list(given.corpus), given.splits) == ([Doc("d1", "one")], ["dev"])
    assert {t.id: t.text for t in given.topics().values()} == {"q1": "ask"}
    assert given.qrels("dev").to_dict() == {"q1": {"d1": 1}}
    assert dataset("beir/scifact").splits == ["test", "train"]
    with pytest.raises(InputError, match="neither a folder nor a data set"):
        dataset("no/such/set")


def test_a_collection_is_named_by_a_prefix_and_all_else_is_a_path(tmp_path: Path) -> None:
    assert named("sample:harbour/causal") is dataset("harbour/causal")
    assert named("harbour/causal") is None
    write_topics({"1": "one"}, tmp_path / "topics.tsv")
    assert Topics.read(str(tmp_path / "topics.tsv"))["1"].text == "one"
