"""Suites in files: an experiment for each collection, one report over all, and the command `fontes bench`."""

import json
import shutil
from pathlib import Path

import pytest

import fontes as ft
from fontes.core import InputError

SPRINGS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "springs"
FILE = """
folder = "collections"

[collections]
posts = "sample:harbour/posts"

[systems]
bm25 = "bm25()"
ql = "ql(mu=500)"

[report]
measures = ["nDCG@10"]
baseline = "bm25"
"""


@pytest.fixture
def file(tmp_path):
    shutil.copytree(SPRINGS, tmp_path / "collections" / "springs")
    (tmp_path / "collections" / "notes").mkdir()  # no collection
    return written(tmp_path)


def written(folder, text=FILE):
    (folder / "suite.toml").write_text(text)
    return folder / "suite.toml"


def test_a_suite_runs_an_experiment_for_each_collection(file):
    report = ft.experiments.Suite(file).run()
    assert list(report.reports) == ["springs", "posts"]
    output = file.with_name("suite.results")
    own = file.with_name("springs.toml")
    own.write_text('[collection]\ndataset = "collections/springs"\n' + FILE.partition('posts"\n')[2])
    alone = ft.Experiment(own).run()
    assert report.reports["springs"].mean("ql", "nDCG@10") == alone.mean("ql", "nDCG@10")
    assert json.loads((output / "posts" / "experiment.lock").read_text())["topics"] == len(report.reports["posts"].topics)
    page = (output / "suite.html").read_text()
    for name in report.reports:
        assert f'href="{name}/report.html" target="collection"' in page
        assert (output / name / "report.html").is_file()


def test_a_suite_goes_on_where_it_stopped_and_is_checked(file, fontes):
    code, out, _ = fontes("bench", file)
    assert code == 0
    assert out.splitlines()[0].split() == ["nDCG@10", "springs", "posts", "mean", "95%", "interval", "rank"]
    file.write_text(FILE.replace("[report]", 'tfidf = "tfidf()"\n\n[report]'))
    report = ft.experiments.Suite(file).run()
    assert all(one.systems["bm25"].cached and not one.systems["tfidf"].cached for one in report.reports.values())
    code, out, _ = fontes("bench", file, "--check")
    assert code == 0
    assert out.count("is reproduced") == 2
    file.write_text(FILE.replace("[report]", 'tfidf = "tfidf(sublinear_tf=True)"\n\n[report]'))
    code, out, _ = fontes("bench", file, "--check", "--json")
    assert code == 1
    assert not json.loads(out)["posts"]["reproduced"]


def test_a_collection_has_settings_of_its_own(file, tmp_path):
    written(
        tmp_path,
        FILE.replace('"sample:harbour/posts"', '{ dataset = "sample:harbour/posts", index = { analyzer = "standard" } }'),
    )
    ft.experiments.Suite(file).run()
    indexes = {p.parent.parent.name: ft.Index.open(p) for p in (tmp_path / "suite.results").glob("*/indexes/*.index")}
    assert (indexes["posts"].analyzer, indexes["springs"].analyzer) == (ft.Analyzer.of("standard"), ft.Analyzer.of("english"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('folder = "collections"', 'folder = "nowhere"', "folder: there is no folder"),
        ('folder = "collections"', 'folder = "collections/notes"', "has no folders in BEIR's form"),
        ('folder = "collections"', 'folder = "collections"\nskip = ["spring"]', "collection 'spring'; did you mean 'springs'"),
        ("bm25()", "bm52()", r"\[systems\]: bm25: .*there is no 'bm52'|\[systems\]: bm25: .*bm52"),
        ('"sample:harbour/posts"', '"lost"', r"\[collections.posts\]: .*lost is no folder in BEIR's form"),
        ("posts = ", '"a/b" = ', r"\[collections\]: the name 'a/b' must be of letters"),
        ("[report]", "[reports]", "there is no table or key 'reports'; did you mean 'report'"),
        (
            "[report]",
            '[published.x]\nmeasure = "AP"\nvalues = { spring = 0.5 }\n[report]',
            r"\[published.x\]: values: .*'springs'",
        ),
        ("[report]", '[published.x]\nmeasure = "XP"\nvalues = { springs = 0.5 }\n[report]', r"\[published.x\]: measure: "),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(file, tmp_path, old, new, message):
    assert old in FILE
    with pytest.raises(InputError, match=message) as error:
        ft.experiments.Suite(written(tmp_path, FILE.replace(old, new, 1)))
    assert "\n" not in str(error.value)


def test_nothing_is_run_while_a_collection_is_broken(file, tmp_path):
    shutil.copytree(SPRINGS, tmp_path / "collections" / "zoo")
    (tmp_path / "collections" / "zoo" / "queries.jsonl").write_text("{")
    with pytest.raises(InputError, match=r"^zoo: .*queries\.jsonl, line 1"):
        ft.experiments.Suite(file).run()
    assert not (tmp_path / "suite.results" / "springs").exists()
