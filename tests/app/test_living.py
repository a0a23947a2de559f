"""`fontes add`, `fontes delete`, `fontes merge`: an index is changed from the command line."""

import json
from pathlib import Path

import pytest

from fontes.index import Index

DOCS = {f"d{n}": f"fox number {n}" for n in range(5)}


def lines(docs: dict[str, str]) -> str:
    return "".join(json.dumps({"_id": doc_id, "text": text}) + "\n" for doc_id, text in docs.items())


@pytest.fixture
def index(tmp_path: Path) -> Path:
    Index.build(DOCS, tmp_path / "x.index", threads=1)
    return tmp_path / "x.index"


@pytest.fixture
def news(tmp_path: Path) -> Path:
    (tmp_path / "news.jsonl").write_text(lines({"e1": "a dog", "e2": "a cat"}))
    return tmp_path / "news.jsonl"


def texts(index: Path) -> dict[str, str]:
    opened = Index.open(index)
    return {doc.id: doc.text for doc in opened.docs(opened.ids.tolist())}


def facts(out: str) -> dict[str, object]:
    """What a command printed as JSON, without its time."""
    found = json.loads(out)
    assert isinstance(found.pop("seconds"), float)
    return dict(found)


def test_add_says_what_came_and_what_there_is(index, news, fontes):
    code, out, errors = fontes("add", index, news)
    assert (code, errors) == (0, "")
    assert out.startswith(f"{index}: 2 documents added in ")
    assert out.endswith(" s; 7 documents in 2 segments\n")
    assert texts(index) == DOCS | {"e1": "a dog", "e2": "a cat"}


def test_add_reads_standard_input_and_columns_that_are_named(index, fontes):
    table = "paper;Summary\ne1;a dog\n"
    code, out, _ = fontes("add", index, "-", "--format", "csv", "--id", "paper", "--text", "Summary", "--json", stdin=table)
    assert code == 0
    assert facts(out) == {
        "path": str(index), "added": 1, "replaced": 0, "skipped": 0, "deleted": 0, "documents": 6, "segments": 2
    }  # fmt: skip
    assert texts(index)["e1"] == "a dog"


def test_what_is_there_is_an_error_or_skipped_or_replaced(index, fontes):
    again = lines({"e1": "a dog", "d3": "another text"})
    code, out, errors = fontes("add", index, "-", stdin=again)
    assert (code, out) == (1, "")
    assert "document 'd3' is in the index" in errors
    assert "--duplicates" in errors
    assert len(errors.splitlines()) == 1
    assert texts(index) == DOCS
    assert ": 1 document added, 1 skipped in " in fontes("add", index, "-", "--duplicates", "skip", stdin=again)[1]
    assert texts(index) == DOCS | {"e1": "a dog"}
    out = fontes("add", index, "-", "--duplicates", "replace", stdin=again)[1]
    assert ": 2 documents added, 2 in place of older ones in " in out
    assert texts(index) == DOCS | {"e1": "a dog", "d3": "another text"}


def test_delete_takes_ids_from_the_line_or_from_standard_input(index, fontes):
    code, out, errors = fontes("delete", index, "d1", "d4")
    assert (code, errors) == (0, "")
    assert ": 2 documents deleted in " in out
    assert out.endswith(" s; 3 documents in 1 segment\n")
    code, out, _ = fontes("delete", index, "-", "--json", stdin="d0\r\n\nd2\n")
    assert code == 0
    assert facts(out)["deleted"] == 2
    assert texts(index) == {"d3": DOCS["d3"]}


def test_deleting_what_is_not_there_is_an_error_or_skipped(index, fontes):
    code, out, errors = fontes("delete", index, "d1", "nobody", "noone")
    assert (code, out) == (1, "")
    assert "'nobody'" in errors
    assert "--missing skip" in errors
    assert len(errors.splitlines()) == 1
    assert texts(index) == DOCS
    out = fontes("delete", index, "d1", "nobody", "noone", "--missing", "skip")[1]
    assert ": 1 document deleted, 2 skipped in " in out
    assert "d1" not in texts(index)


def test_merge_gives_the_files_of_one_build(index, news, tmp_path, fontes):
    fontes("add", index, news)
    fontes("delete", index, "d0", "e1")
    code, out, errors = fontes("merge", index)
    assert (code, errors) == (0, "")
    assert ": merged in " in out
    assert out.endswith(" s; 5 documents in 1 segment\n")
    left = texts(index)
    fresh = Index.build(left, tmp_path / "fresh", threads=1)
    assert Index.open(index).fingerprint == fresh.fingerprint
    assert facts(fontes("merge", index, "--json")[1])["segments"] == 1


def test_a_change_while_another_process_changes_the_index_is_one_sentence(index, fontes):
    said = []

    def docs():
        said.extend(fontes(*arguments) for arguments in (("delete", index, "d1"), ("merge", index)))
        yield {"_id": "e1", "text": "a dog"}

    Index.open(index).add(docs())
    for code, out, errors in said:
        assert (code, out) == (1, "")
        assert errors.startswith(f"fontes: {index} is being changed by process ")
        assert len(errors.splitlines()) == 1
    assert len(texts(index)) == 6


@pytest.mark.parametrize(
    "arguments", [("add", "--duplicates", "perhaps", "news.jsonl"), ("delete", "--missing", "perhaps", "d1"), ("merge",)]
)
def test_wrong_values_and_places_are_one_sentence(arguments, index, news, tmp_path, monkeypatch, fontes):
    monkeypatch.chdir(tmp_path)
    place = index if len(arguments) > 1 else tmp_path / "nowhere"
    code, out, errors = fontes(arguments[0], place, *arguments[1:])
    assert (code, out) == (1, "")
    assert errors.startswith("fontes: ")
    assert len(errors.splitlines()) == 1


def test_an_index_of_a_function_is_added_to_with_the_function(tmp_path, news, monkeypatch, fontes):
    (tmp_path / "ownwords.py").write_text("def cut(text):\n    return text.split('o')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert fontes("index", "-", "-o", "own.index", "--analyzer", "ownwords:cut", stdin=lines(DOCS))[0] == 0
    code, _, errors = fontes("add", "own.index", news)
    assert code == 1
    assert len(errors.splitlines()) == 1
    assert fontes("delete", "own.index", "d1")[0] == 0
    assert fontes("merge", "own.index")[0] == 0
    assert fontes("add", "own.index", news, "--analyzer", "ownwords:cut")[0] == 0
    assert Index.open("own.index").terms.tolist() == sorted(
        {t for text in texts(Path("own.index")).values() for t in text.split("o")}
    )
