"""CIFF on the command line: an index of a file, and a file of an index."""

import gzip
import json
from collections import Counter

import pytest
from support.ciff import ciff, parsed


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.ciff.gz"
    path.write_bytes(gzip.compress(ciff([Counter(spring=2, water=1), Counter(water=1)], names=["one", "two"])))
    return path


def test_an_index_is_made_of_a_file_searched_and_written_again(fontes, file, tmp_path):
    index = tmp_path / "x.index"
    code, out, err = fontes("index", file, "-o", index, "--analyzer", "whitespace")
    assert (code, err) == (0, "")
    assert "2 documents, 2 terms, 4 tokens" in out
    code, out, _ = fontes("search", index, "spring")
    assert (code, [line.split()[-1] for line in out.splitlines()]) == (0, ["one"])
    _, out, _ = fontes("search", index, "water", "--json")
    assert [hit["id"] for hit in json.loads(out)["hits"]] == ["two", "one"]
    _, out, _ = fontes("info", index)
    assert "total_terms_in_collection=4" in out
    assert "description=a test" in out
    code, out, err = fontes("convert", "index", index, tmp_path / "y.ciff")
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "y.ciff").read_bytes() == gzip.decompress(file.read_bytes())
    assert fontes("delete", index, "one")[0] == 0
    assert fontes("merge", index)[0] == 0
    assert fontes("check", index, "--deep")[0] == 0
    fontes("convert", "index", index, tmp_path / "z.ciff", "--to", "ciff")
    assert parsed((tmp_path / "z.ciff").read_bytes())[1:] == ({"water": {0: 1}}, [("two", 1)])


def test_what_cannot_be_done_without_texts_is_one_sentence(fontes, file, tmp_path):
    index = tmp_path / "x.index"
    fontes("index", file, "-o", index)
    for command, problem in (
        (("add", index, file), "no documents can be added"),
        (("search", index, "water", "--pipeline", "bm25() >> rm3() >> bm25()"), "holds no text"),
        (("convert", "corpus", file, "-"), "holds an inverted index in CIFF and no documents"),
        (("convert", "index", index, "-", "--split", "test"), "--split applies to files, not to an index"),
        (("convert", "index", index, "-", "--to", "trec"), "an index is written as ciff, not as 'trec'"),
        (("index", file, "-o", tmp_path / "other", "--columns", "year=integer"), "holds no metadata"),
        (("index", file, "-o", tmp_path / "other", "--id", "name"), "have no named fields"),
    ):
        code, out, err = fontes(*command)
        assert (code > 0, out) == (True, ""), command
        assert problem in " ".join(err.replace("│", "").split()), command
