"""Files of experiments that cannot be used: errors that name file, table and key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import fontes as ft

SPRINGS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "springs"
COLLECTION = '[collection]\ndataset = "springs"\n'
BM25 = '[systems.bm25]\nmodel = "bm25"\n'


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(SPRINGS, tmp_path / "springs")
    return tmp_path


def written(folder, text):
    (folder / "springs.toml").write_text(text)
    return folder / "springs.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[collection\n", "not TOML: "),
        (BM25 + "[colection]\n", "there is no table or key 'colection'; did you mean 'collection'?"),
        (COLLECTION + BM25 + "[report]\nmesures = []\n", "[report]: there is no key 'mesures'; did you mean 'measures'?"),
        (COLLECTION, "there is no system; [systems.NAME] is one"),
        (COLLECTION + "[systems]\nbm25 = 3\n", "[systems]: 'bm25' must be a table, [systems.bm25], not 3"),
        (
            COLLECTION + "[systems.x]\nk1 = 1\n",
            "[systems.x]: a system has one of the keys model, stages, fuse, run; it has none",
        ),
        (
            COLLECTION + BM25 + 'run = "a"\n',
            "[systems.bm25]: a system has one of the keys model, stages, fuse, run; it has model",
        ),
        (COLLECTION + '[systems."a b"]\nmodel = "ql"\n', "[systems]: the name 'a b' must be of letters"),
        (COLLECTION + BM25 + "k2 = 1\n", "[systems.bm25]: 'bm25' has no parameter 'k2'; did you mean 'k'?"),
        (COLLECTION + BM25 + 'k1 = "high"\n', "[systems.bm25]: 'bm25': k1 must be float | None, not 'high'"),
        (COLLECTION + BM25 + "k = true\n", "[systems.bm25]: 'bm25': k must be int, not True"),
        (COLLECTION + BM25 + "cut = 0\n", "[systems.bm25]: 'cut' must be a whole number from 1 up, not 0"),
        (COLLECTION + '[systems.x]\nmodel = "bm52"\n', "[systems.x]: 'bm52': there is no stage 'bm52'; did you mean 'bm25'?"),
        (COLLECTION + '[systems.x]\nstages = "bm25"\n', "[systems.x]: 'stages' must be a list of a stage or more, not 'bm25'"),
        (COLLECTION + BM25 + '[systems.x]\nfuse = ["bm25"]\n', "'fuse' must be a list of two systems or more"),
        (
            COLLECTION + BM25 + '[systems.x]\nstages = ["bm25", "rm4"]\n',
            "[systems.x]: stages: there is no stage or system 'rm4'; did you mean 'rm3'?",
        ),
        (
            COLLECTION + '[systems.x]\nstages = ["bm25", { rm3 = { docs = 3 } }]\n',
            "[systems.x]: stages, 'rm3' has no parameter 'docs'; did you mean 'fb_docs'?",
        ),
        (COLLECTION + '[systems.x]\nstages = ["bm25", { cut = {} }]\n', "stages, 'cut' needs the parameter 'k'"),
        (
            COLLECTION + "[systems.x]\nstages = [3]\n",
            "[systems.x]: stages: a step is a name or { name = { parameter = value } }, not 3",
        ),
        (
            COLLECTION + '[systems.a]\nstages = ["b"]\n[systems.b]\nstages = ["a"]\n',
            "[systems.a]: the system is part of itself: a > b > a",
        ),
        (
            COLLECTION + BM25 + '[systems.r]\nrun = "r.run"\n[systems.x]\nfuse = ["bm25", "r"]\n',
            "[systems.x]: fuse: 'r' is a run, which cannot be fused with a stage, only with other runs",
        ),
        (COLLECTION + BM25 + '[report]\nbaseline = "bm52"\n', "[report]: baseline: there is no 'bm52'; did you mean 'bm25'?"),
        (COLLECTION + BM25 + '[report]\ntest = "u"\n', "[report]: test: there is no 'u'; there are t, wilcoxon, fisher, tukey"),
        (COLLECTION + BM25 + "[report]\nalpha = 5\n", "[report]: alpha must lie between 0 and 1"),
        (COLLECTION + BM25 + '[report]\nmeasures = ["nDGC@10"]\n', "[report]: measures: "),
        (COLLECTION + BM25 + '[report]\nforms = ["htm"]\n', "[report]: forms: there is no form 'htm'; did you mean 'html'?"),
        (COLLECTION + 'qrels = "q"\n' + BM25, "[collection]: 'qrels' is part of the dataset"),
        (COLLECTION + 'split = "dev"\n' + BM25, "there is no split 'dev'; there are test"),
        ('[collection]\ndataset = "nowhere"\n' + BM25, "is no folder in BEIR's form: it has no qrels/*.tsv"),
        ("[collection]\n" + BM25, "[collection]: there is no key 'qrels' and no key 'dataset'"),
        ('[collection]\nqrels = "q"\n' + BM25, "[collection]: there is no key 'topics', and some systems search"),
        ('[collection]\nqrels = "q"\ntopics = "t"\n' + BM25, "[collection]: there is no key 'corpus'"),
        (COLLECTION + BM25 + '[index]\npath = "i"\nanalyzer = "czech"\n', "[index]: 'path' is an index that is there already"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_file_table_and_key(folder, text, message):
    with pytest.raises(ft.core.InputError) as error:
        ft.Experiment(written(folder, text))
    assert str(error.value).startswith(str(folder / "springs.toml"))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BM25 + "k1 = -1\n", "[systems.bm25]: k1 must be 0 or more"),
        ('[systems.x]\nstages = ["rm3", "bm25"]\n', "[systems.x]: it goes from Run to Run"),
        ('[systems.x]\nstages = ["bm25", "ql"]\n', "does not fit"),
        ('[systems.r]\nrun = "none.run"\n', "none.run: there is no such file (run of r)"),
    ],
)
def test_a_system_that_cannot_be_made_is_an_error_that_names_it(folder, text, message):
    with pytest.raises(ft.core.InputError) as error:
        ft.Experiment(written(folder, COLLECTION + text)).run()
    assert message in str(error.value)


def test_an_experiment_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ft.core.InputError, match=r"none\.toml: there is no such file"):
        ft.Experiment(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("dense = {}", "stages, 'dense' needs the parameter 'encoder'"),
        ("dense = { encoder = 3 }", "stages, 'dense': encoder must be str | dict[str, Any], not 3"),
        ('cross-encoder = { name_or_path = "m", bach_size = 3 }', "did you mean 'batch_size'?"),
    ],
)
def test_parameters_of_neural_stages_are_checked_before_anything_is_loaded(folder, step, message):
    with pytest.raises(ft.core.InputError) as error:
        ft.Experiment(written(folder, f"{COLLECTION}[systems.x]\nstages = [{{ {step} }}]\n"))
    assert message in str(error.value)


def test_a_parameter_that_an_encoder_has_not_is_an_error_that_names_the_system(folder):
    text = COLLECTION + '[systems.x]\nmodel = "dense"\nencoder = { name_or_path = "m", poling = "cls" }\n'
    with pytest.raises(ft.core.InputError, match=r"\[systems\.x\]: SentenceEncoder has no parameter 'poling'"):
        ft.Experiment(written(folder, text)).run()
