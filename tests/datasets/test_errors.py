"""What errors of collections say: the name, folder or split at fault, and what there is."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.each import each
from support.errors import check_error

from fontes import Qrels, Topics
from fontes.core import FontesError, InputError, MissingExtraError, ParameterError
from fontes.datasets import corpus_of, dataset, named
from fontes.formats import write_topics


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda folder: dataset(folder).topics("train"), ParameterError, "split 'train'", "dev, test"),
        (lambda folder: dataset(folder).topics(), ParameterError, "split", "dev, test"),
        (lambda folder: dataset(folder.parent).qrels(), InputError, "no judgments", ""),
        (lambda folder: dataset(folder).corpus, InputError, "no corpus.jsonl or corpus.jsonl.gz", ""),
        (lambda _: dataset(""), InputError, "name of a collection … empty", ""),
        (lambda _: named("irds:"), InputError, "name of a collection … empty", ""),
        (lambda _: named("sample:port"), InputError, "'port'", "there are harbour"),
        (lambda _: Topics.read("sample:harbor"), InputError, "'harbor'", "harbour, harbour/causal"),
        (lambda _: named(""), InputError, "name of a file or collection … empty", ""),
        (lambda _: corpus_of(""), InputError, "name of a file or collection … empty", ""),
        (lambda _: Topics.read(""), InputError, "name of a file or collection … empty", ""),
        (lambda _: Qrels.of(""), InputError, "name of a file or collection … empty", ""),
    ],
)
def test_a_collection_names_what_is_at_fault(
    tmp_path: Path, call: Callable[[Path], object], error: type[FontesError], names: str, remedy: str
) -> None:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    for split in ("dev", "test"):
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    for place in (tmp_path, folder):
        write_topics({"q1": "a"}, place / "queries.jsonl")
    check_error(lambda: call(folder), error, names, remedy)


def test_a_name_that_is_no_folder_needs_ir_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)  # type: ignore[arg-type]
    remedy = "pip install 'fontes[datasets]'"
    check_error(lambda: dataset("beir/scifact"), MissingExtraError, "'beir/scifact' is no folder", remedy)
    monkeypatch.setitem(sys.modules, "ir_datasets", SimpleNamespace(load={}.__getitem__, registry={}))
    check_error(lambda: dataset("nothing"), InputError, "nothing", "neither a folder nor a data set")
