"""Headers of ir_metadata in runs: written, skipped by readers of runs, and read as YAML reads them."""

import gzip

import pytest

import fontes as ft
from fontes.experiments import metadata_of
from fontes.formats import read_metadata
from fontes.formats.ir_metadata import END, START, header_of

pytest.importorskip("yaml")
RUN = ft.Run.of({"1": {"a": 1.5, "b": 0.5}, "2": {"c": 1.0}})
METADATA = {
    "actor": {"name": "Žofie: 'q' \"d\" # no comment", "fields": ["a", "b: c", ""], "on": True, "empty": {}, "none": None},
    "method": {"retrieval": [{"name": "bm25", "k1": 0.9, "b": 4}, {"name": "x", "reranks": ["bm25", [1, 2]]}]},
    "research goal": "two\nlines\u2028three \x85 \t",
    "007": -1,
    "yes": "no",
    "": [],
}


def test_a_header_comes_back_and_the_run_is_the_same(tmp_path):
    for name in ("x.run", "x.run.gz"):
        path = tmp_path / name
        ft.write_run(RUN, path, metadata=METADATA)
        assert read_metadata(path) == METADATA
        assert ft.read_run(path) == ft.Run.of(path) == RUN
        assert ft.read_run(path, format="trec") == RUN
    ft.write_run(RUN, tmp_path / "y.run")
    whole = gzip.decompress((tmp_path / "x.run.gz").read_bytes())
    assert whole == header_of(METADATA) + (tmp_path / "y.run").read_bytes()
    assert read_metadata(tmp_path / "y.run") == {}


def test_a_header_of_another_tool_is_read(tmp_path):
    text = f"{START}\n# actor:\n#   name: A\n#   fields: [ir, 'nlp']\n# data:\n#   test_collection: {{name: x}}\n{END}\r\n"
    rows = "1 Q0 a 1 1.5 t\n1 Q0 b 2 0.5 t\n2 Q0 c 1 1.0 t\n"
    path = tmp_path / "x.run"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode() + rows.encode())
    assert read_metadata(path) == {"actor": {"name": "A", "fields": ["ir", "nlp"]}, "data": {"test_collection": {"name": "x"}}}
    assert ft.read_run(path) == RUN
    path.write_text(text + rows.replace("0.5", "half"))


def test_a_header_that_never_ends_takes_little_memory(tmp_path):
    path = tmp_path / "x.run"
    path.write_text(f"{START}\n" + "# a\n" * 300_000)
    with pytest.raises(ft.FontesError, match="the header has no end"):
        read_metadata(path)
    assert len(ft.read_run(path)) == 0


def test_reading_without_pyyaml_names_the_extra_and_the_run_is_read(tmp_path, monkeypatch):
    path = tmp_path / "x.run"
    ft.write_run(RUN, path, metadata=METADATA)
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    assert ft.read_run(path) == RUN
    with pytest.raises(ft.core.MissingExtraError, match=r"fontes\[metadata\]"):
        read_metadata(path)


def test_the_command_writes_what_is_known_of_a_run(tmp_path, fontes):
    index = ft.Index.build([("a", "rain"), ("b", "snow")], tmp_path / "x.index")
    (tmp_path / "topics.tsv").write_text("1\train\n2\tsnow\n")
    common = ["search", index.path, "--topics", tmp_path / "topics.tsv", "-o"]
    assert fontes(*common, tmp_path / "x.run", "--ir-metadata")[0] == 0
    assert fontes(*common, tmp_path / "y.run")[0] == 0
    assert ft.read_run(tmp_path / "x.run") == ft.read_run(tmp_path / "y.run")
    metadata = read_metadata(tmp_path / "x.run")
    assert metadata["method"]["retrieval"][0]["method"] == repr(index.bm25())
    assert metadata["data"]["index fingerprints"] == {"x": index.fingerprint}
    assert metadata["implementation"]["executable"]["cmd"].startswith("fontes search ")
    assert metadata["platform"]["hardware"]["cpu"]["number of cores"] >= 1
    code, _, error = fontes("search", index.path, "rain", "--ir-metadata")
    assert (code, "--ir-metadata goes with --topics" in " ".join(error.split())) == (2, True)


def test_what_the_author_knows_goes_before_what_is_known():
    run = RUN.with_(provenance={"system": "bm25()"})
    metadata = metadata_of(run, {"actor": {"name": "A"}, "method": {"automatic": True}, "implementation": {"source": None}})
    assert metadata["method"] == {"retrieval": [{"name": "fontes", "method": "bm25()"}], "automatic": True}
    assert metadata["implementation"]["source"] is None
    assert "cmd" in metadata["implementation"]["executable"]
