"""Files of experiments that cannot be used: errors that name file, table and key."""

import shutil
from pathlib import Path

import pytest

import fontes as ft

SPRINGS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "springs"
COLLECTION = '[collection]\ndataset = "springs"\n'
BM25 = '[systems]\nbm25 = "bm25()"\n'


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
        (COLLECTION, 'there is no system; NAME = "bm25()" in the table [systems] is one'),
        (COLLECTION + "[systems]\nbm25 = 3\n", '[systems]: bm25: a system is an expression, "bm25()", or a run, { run = '),
        (COLLECTION + "[systems]\nx = { run = 1 }\n", "[systems]: x: a system is an expression, "),
        (COLLECTION + '[systems.x]\nmodel = "bm25"\n', "[systems]: x: a system is an expression, "),
        ("systems = 3\n" + COLLECTION, "'systems' must be a table, [systems], not 3"),
        (COLLECTION + '[systems]\n"a b" = "ql()"\n', "[systems]: the name 'a b' must be of letters"),
        (COLLECTION + '[systems]\n"../x" = "ql()"\n', "[systems]: the name '../x' must be of letters"),
        (
            COLLECTION + '[systems]\nx = "bm25(k2=1)"\n',
            "[systems]: x: pipeline, column 6: bm25 has no parameter 'k2'; did you mean 'k1'?",
        ),
        (COLLECTION + "[systems]\nx = \"bm25(k1='high')\"\n", "[systems]: x: pipeline, column 9: bm25: k1 must be "),
        (COLLECTION + '[systems]\nx = "bm25(k1=-1)"\n', "[systems]: x: pipeline, column 1: "),
        (COLLECTION + '[systems]\nx = "bm25() % 0"\n', "[systems]: x: pipeline, column 10: "),
        (
            COLLECTION + '[systems]\nx = "bm52()"\n',
            "[systems]: x: pipeline, column 1: there is no stage 'bm52'; did you mean 'bm25'?",
        ),
        (COLLECTION + '[systems]\nx = "bm25("\n', "[systems]: x: pipeline, column 5: not an expression"),
        (COLLECTION + '[systems]\nx = ""\n', "[systems]: x: the pipeline is empty"),
        (
            COLLECTION + BM25 + 'x = "bm25 >> rm4 >> bm25"\n',
            "[systems]: x: pipeline, column 9: there is no stage or system 'rm4'; did you mean 'rm3'?",
        ),
        (COLLECTION + BM25 + 'x = "bm25 >> rm3 >> bm25"\n', "'rm3' is a stage; write rm3()"),
        (COLLECTION + BM25 + 'x = "bm25 >> cut()"\n', "cut takes one of k, recall, precision and complete"),
        (COLLECTION + BM25 + "x = \"sentence_encoder('m')\"\n", "[systems]: x: 'sentence_encoder('m')' is no stage and no run"),
        (
            COLLECTION + '[systems]\nx = "rm3() >> bm25()"\n',
            "[systems]: x: it goes from Run to Run; a system goes from topics to a run",
        ),
        (COLLECTION + '[systems]\nx = "bm25() >> ql()"\n', "does not fit"),
        (COLLECTION + '[systems]\na = "b"\nb = "a"\n', "[systems]: a: the system is part of itself: a > b > a"),
        (
            COLLECTION + BM25 + 'r.run = "r.run"\nx = "fuse(bm25, r)"\n',
            "[systems]: x: pipeline, column 1: fuse cannot join a run to a stage; give only runs, or only stages",
        ),
        (COLLECTION + BM25 + '[report]\nbaseline = "bm52"\n', "[report]: baseline: there is no 'bm52'; did you mean 'bm25'?"),
        (COLLECTION + BM25 + '[report]\ntest = "u"\n', "[report]: test: there is no 'u'; there are t, wilcoxon, fisher, tukey"),
        (COLLECTION + BM25 + "[report]\nalpha = 5\n", "[report]: alpha must lie between 0 and 1"),
        (COLLECTION + BM25 + '[report]\nmeasures = ["nDGC@10"]\n', "[report]: measures: "),
        (COLLECTION + BM25 + '[report]\nforms = ["htm"]\n', "[report]: forms: there is no form 'htm'; did you mean 'html'?"),
        (COLLECTION + 'qrels = "q"\n' + BM25, "[collection]: 'qrels' is part of the dataset"),
        (COLLECTION + 'split = "dev"\n' + BM25, "there is no split 'dev'; there are test"),
        ('[collection]\ndataset = "nowhere"\n' + BM25, "is no folder in BEIR's form: it has no qrels/*.tsv"),
        (COLLECTION.replace('"springs"', "3") + BM25, "[collection]: 'dataset' must be a string, not 3"),
        (COLLECTION + BM25 + "[report]\nmeasures = 3\n", "[report]: 'measures' must be a list of strings, not 3"),
        (COLLECTION + BM25 + "[report]\nseed = 1.5\n", "[report]: 'seed' must be a whole number, not 1.5"),
        (COLLECTION + BM25 + "[report]\nseed = true\n", "[report]: 'seed' must be a whole number, not True"),
        ("[collection]\n" + BM25, "[collection]: there is no key 'qrels' and no key 'dataset'"),
        ('[collection]\nqrels = "q"\n' + BM25, "[collection]: there is no key 'topics', and some systems search"),
        ('[collection]\nqrels = "q"\ntopics = "t"\n' + BM25, "[collection]: there is no key 'corpus'"),
        (COLLECTION + 'encoding = "cp125"\n' + BM25, "[collection]: there is no encoding 'cp125'; there are utf-8, "),
        (COLLECTION + "encoding = 3\n" + BM25, "[collection]: 'encoding' must be a string, not 3"),
        (COLLECTION + 'errors = "ignore"\n' + BM25, "[collection]: errors must be strict or replace, not 'ignore'"),
        (COLLECTION + BM25 + '[index]\npath = "i"\nanalyzer = "czech"\n', "[index]: 'path' is an existing index"),
        (COLLECTION + BM25 + '[index]\npath = "i"\npositions = true\n', "[index]: 'path' is an existing index"),
        (COLLECTION + BM25 + "[index]\nseparate = 1\n", "[index]: 'separate' must be true or false, not 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_file_table_and_key(folder, text, message):
    with pytest.raises(ft.core.InputError) as error:
        ft.Experiment(written(folder, text))
    assert str(error.value).startswith(str(folder / "springs.toml"))
    assert message in str(error.value)


def test_a_run_that_is_not_there_is_an_error_that_names_its_system(folder):
    file = written(folder, COLLECTION + '[systems]\nr.run = "none.run"\n')
    with pytest.raises(ft.core.InputError, match=r"none\.run: there is no such file \(run of r\)"):
        ft.Experiment(file).run()


def test_an_experiment_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ft.core.InputError, match=r"none\.toml: there is no such file"):
        ft.Experiment(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("dense()", "dense needs the parameter 'encoder'"),
        ("bm25() >> cross_encoder('m', bach_size=3)", "did you mean 'batch_size'?"),
        ("dense(sentence_encoder('m', poling='cls'))", "sentence_encoder has no parameter 'poling'"),
    ],
)
def test_parameters_of_neural_stages_are_checked_before_anything_is_loaded(folder, expression, message):
    with pytest.raises(ft.core.InputError) as error:
        ft.Experiment(written(folder, f'{COLLECTION}[systems]\nx = "{expression}"\n'))
    assert message in str(error.value)


def test_a_model_that_is_not_there_is_told_before_anything_is_built(folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    text = f"{COLLECTION}[systems]\nx = \"bm25() >> cross_encoder('/no/such/model')\"\n"
    with pytest.raises(ft.core.InputError, match="/no/such/model"):
        ft.Experiment(written(folder, text)).run()
    assert not (folder / "springs.results").exists()
