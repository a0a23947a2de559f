"""A build on a cluster: parts, their segments, the tree of merges; it makes the bytes of one machine."""

import gzip
import hashlib
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.one_by_one import one_by_one

from fontes.core import InputError, ParameterError
from fontes.core.work import Progress
from fontes.index import Index
from fontes.index.columns import joined_schema
from fontes.index.columns.schema import MAX_COLUMNS, widest


def digests(path: Path) -> dict[str, str]:
    """Of each file of an index its SHA-256."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    return {file.relative_to(path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def lines(docs: list[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(doc, ensure_ascii=False).encode() + b"\n" for doc in docs)


def collection(count: int = 400) -> list[dict[str, Any]]:
    """Documents whose metadata have other types in the first half than in the second."""
    draw = random.Random(3)
    docs: list[dict[str, Any]] = []
    for n in range(count):
        text = " ".join(f"w{int(draw.paretovariate(0.6)) % 900}é" for _ in range(draw.randrange(40)))
        early = n < count // 2
        more: dict[str, Any] = {
            "year": n if early else n / 4,
            "day": f"20{n % 30:02}-01-02" if early else "some day",
            "tags": "one" if early else ["two", f"t{n % 7}"],
            "odd": n if early else "text",
            "long": "x" if early else "y" * 300,
            "seen": True,
        }
        docs.append({"_id": f"d{n * 7919 % count}", "title": "T" * (n % 3), "text": text, **more})
    return docs


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(lines(collection()))
    return path


@pytest.mark.parametrize(
    ("parts", "fan"),
    [pytest.param(1, 16, marks=pytest.mark.slow), (2, 16), pytest.param(7, 16, marks=pytest.mark.slow), (23, 3)],
)
def test_any_number_of_parts_gives_the_bytes_of_one_machine_and_columns_may_differ(tmp_path, monkeypatch, corpus, parts, fan):
    one = Index.build(corpus, tmp_path / "one")
    assert one.columns == {"day": "keyword", "seen": "boolean", "tags": "keywords", "year": "float"}
    one_by_one(monkeypatch, -(-corpus.stat().st_size // parts), fan)
    many = Index.build(corpus, tmp_path / "many", ray=True)
    many.check(deep=True)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", "many", "one"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"columns": {"year": "float", "day": "keyword"}}, marks=pytest.mark.slow),
        pytest.param({"columns": {}}, marks=pytest.mark.slow),
        {"fields": ["title", "text", "day"], "analyzer": "standard+words:1-2"},
        {"shards": 3},
    ],
    ids=str,
)
def test_what_is_indexed_and_how_gives_the_bytes_of_one_machine(tmp_path, monkeypatch, corpus, options):
    Index.build(corpus, tmp_path / "one", **options)
    one_by_one(monkeypatch, 9_000, 4)
    Index.build(corpus, tmp_path / "many", ray=True, **options)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")


def test_more_shards_than_documents_give_the_bytes_of_one_machine(tmp_path, monkeypatch):
    path = tmp_path / "few.jsonl"
    path.write_bytes(lines(collection(4)))
    Index.build(path, tmp_path / "one", shards=7)
    one_by_one(monkeypatch, path.stat().st_size // 2)
    Index.build(path, tmp_path / "many", shards=7, ray=True)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")


def test_term_weights_of_documents_give_the_bytes_of_one_machine(tmp_path, monkeypatch):
    path = tmp_path / "weights.jsonl"
    path.write_bytes(lines([{"id": f"d{n}", "contents": "t", "vector": {f"w{n % 7}": 1 + n / 8}} for n in range(60)]))
    Index.build(path, tmp_path / "one", vectors="vector")
    one_by_one(monkeypatch, 500)
    Index.build(path, tmp_path / "many", vectors="vector", ray=True)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")


@pytest.mark.slow
def test_files_of_several_formats_and_folders_give_the_bytes_of_one_machine(tmp_path, monkeypatch):
    docs = collection(90)
    (tmp_path / "a.jsonl").write_bytes(lines(docs[:30]))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(docs[30:60])))
    (tmp_path / "c.tsv").write_text("".join(f"t{n}\tsome words {n}\n" for n in range(50)))
    folder = tmp_path / "notes"
    folder.mkdir()
    for n in range(5):
        (folder / f"{n}.txt").write_text(f"a note of number {n}")
    parts = [tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz", tmp_path / "c.tsv", folder]
    one = Index.build(parts, tmp_path / "one")
    assert len(one) == 60 + 50 + 5
    one_by_one(monkeypatch, 300)
    Index.build(parts, tmp_path / "many", ray=True)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")


@pytest.mark.slow
def test_names_of_metadata_beyond_those_that_become_columns_are_the_same(tmp_path, monkeypatch):
    def doc(n: int) -> dict[str, Any]:
        return {"_id": str(n), "text": "t", **{f"c{(n * 40 + i * 7) % 300}": i for i in range(40)}, "none": None}

    path = tmp_path / "wide.jsonl"
    path.write_bytes(lines([doc(n) for n in range(30)]))
    one = Index.build(path, tmp_path / "one")
    assert len(one.columns) == MAX_COLUMNS - 1  # a name without a value counts
    one_by_one(monkeypatch, path.stat().st_size // 6)
    Index.build(path, tmp_path / "many", ray=True)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")


def test_the_type_of_a_column_does_not_depend_on_the_order_of_its_values():
    chains = [["integer", "float"], ["date", "keyword", "keywords", "text"]]
    for chain in chains:
        assert widest(chain) == widest(chain[::-1]) == chain[-1]
    assert widest(["text", "integer"]) == widest(["boolean", "integer"]) == "mixed"
    one, other = [("a", "date"), ("b", "")], [("b", "integer"), ("a", "keyword")]
    assert joined_schema([one, other]).types == joined_schema([other, one]).types == {"a": "keyword", "b": "integer"}


def test_a_long_text_before_a_number_is_mixed_as_after_it(tmp_path):
    docs = [{"_id": "1", "text": "", "x": "long " * 100}, *({"_id": f"n{n}", "text": "t" * 5000, "x": n} for n in range(300))]
    one = Index.build(docs, tmp_path / "1", memory="1M", threads=2)
    other = Index.build(docs[::-1], tmp_path / "2")
    assert one.state.schema.types == other.state.schema.types == {"x": "mixed"}


@pytest.mark.parametrize("places", [(3, 5), (3, 350)], ids=["in one part", "in two"])
@pytest.mark.parametrize("shards", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_an_id_that_occurs_twice_is_named_with_both_places(tmp_path, monkeypatch, places, shards):
    docs = collection()
    docs[places[1]]["_id"] = docs[places[0]]["_id"]
    path = tmp_path / "c.jsonl"
    path.write_bytes(lines(docs))
    one_by_one(monkeypatch, path.stat().st_size // 5)
    doc_id = docs[3]["_id"]
    with pytest.raises(
        InputError, match=rf"document id '{doc_id}' occurs twice, as document 4 of \S*c.jsonl and as document "
    ) as caught:
        Index.build(path, tmp_path / "x", ray=True, shards=shards)
    assert ("c.jsonl from byte" in str(caught.value)) == (places[1] == 350)
    assert [file.name for file in tmp_path.iterdir()] == ["c.jsonl"]


def test_what_other_machines_cannot_read_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="reads files, folders or addresses that all its machines reach"):
        Index.build([("1", "a text")], tmp_path / "x", ray=True)
    with pytest.raises(ParameterError, match="write the documents to a file first"):
        Index.build("-", tmp_path / "x", ray=True)
    ciff = tmp_path / "x.ciff"
    ciff.write_bytes(b"\x10\x08\x01\x10\x00")
    with pytest.raises(ParameterError, match=r"x\.ciff is an inverted index, which one machine reads"):
        Index.build(ciff, tmp_path / "x", ray=True)


def test_a_broken_line_is_named_by_the_piece_that_it_is_in_and_nothing_is_left(tmp_path, monkeypatch):
    path = tmp_path / "c.jsonl"
    path.write_bytes(lines(collection(50)) + b"{broken\n")
    one_by_one(monkeypatch, path.stat().st_size // 4)
    with pytest.raises(InputError, match=r"c\.jsonl from byte [\d,]+, line \d+: "):
        Index.build(path, tmp_path / "x", ray=True)
    path.write_bytes(b"\n" * 100)
    with pytest.raises(InputError, match=r"c\.jsonl: holds no documents"):
        Index.build(path, tmp_path / "x", ray=True, columns={})
    assert [file.name for file in tmp_path.iterdir()] == ["c.jsonl"]


def test_a_field_that_no_part_has_is_an_error_and_one_that_a_late_part_has_is_none(tmp_path, monkeypatch):
    path = tmp_path / "c.jsonl"
    docs = [{"_id": f"d{n}", "text": "a geyser", **({"place": "Iceland"} if n > 40 else {"year": 2020})} for n in range(50)]
    path.write_bytes(lines(docs))
    one_by_one(monkeypatch, path.stat().st_size // 4)
    with pytest.raises(InputError, match="no document has a field 'abstract'; the documents have text, year, place"):
        Index.build(path, tmp_path / "x", ray=True, fields=["text", "abstract"])
    assert [file.name for file in tmp_path.iterdir()] == ["c.jsonl"]
    assert Index.build(path, tmp_path / "x", ray=True, fields=["place"]).terms.tolist() == ["iceland"]


def test_progress_tells_rate_and_time_left_of_segments_and_then_of_merges(tmp_path, monkeypatch, corpus):
    told: list[Progress] = []
    one_by_one(monkeypatch, -(-corpus.stat().st_size // 4), 2)
    Index.build(corpus, tmp_path / "x", ray=True, progress=told.append)
    tasks = [one.task for one in told]
    assert tasks == ["indexing"] * 4 + ["merging"] * 3
    assert told[3].done == told[-1].done == 400
    assert told[0].seconds_left is not None
    assert 0.2 < (told[0].fraction or 0) < 0.3


@pytest.mark.slow
def test_real_documents_give_the_bytes_of_one_machine(tmp_path, monkeypatch, shared):
    source = next((shared / "scifact").glob("corpus.jsonl*"))
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes())
    Index.build(path, tmp_path / "one")
    one_by_one(monkeypatch, 1 << 20, 5)
    Index.build(path, tmp_path / "many", ray=True)
    assert digests(tmp_path / "many") == digests(tmp_path / "one")
