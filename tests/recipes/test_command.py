"""`fontes recipe`: list, show and run."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.tiny_recipe import DOCS, PAGES, QRELS, TOPICS, Tiny
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli
from fontes.recipes import base


@pytest.fixture
def fontes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `fontes recipe` in a folder with a corpus, topics and qrels; gives output and errors."""
    monkeypatch.setattr(base.registry, "_things", {"tiny": Tiny})
    monkeypatch.chdir(tmp_path)
    ft.write_corpus(DOCS, "corpus.jsonl")
    ft.write_topics(TOPICS, "topics.tsv")
    ft.write_qrels(QRELS, "qrels.txt")

    def run(*arguments: str, stdin: str | None = None) -> tuple[str, str]:
        result = CliRunner().invoke(cli.app, ["recipe", *arguments], input=stdin, catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout, result.stderr

    return run


def test_the_recipes_are_listed_and_shown(fontes: Any) -> None:
    out, err = fontes("list")
    names, *rows = (line.split() for line in out.splitlines())
    assert names == ["recipe", "from", "source", "needs", "published"]
    assert rows == [["tiny", "a", "small", "thing", "Nobody", "1999", "paper", "RR", "0.5000"], ["a", "pencil"]]
    assert "--sample" in err
    out, err = fontes("show", "tiny")
    assert err == ""
    for part in (
        "Nobody, On Small Things, 1999",
        "  k1=0.9\n      Of BM25.\n",
        "  loud=False\n",
        "Published, on other things\n",
        "another team: RR 0.2500, AP 0.1250",
    ):
        assert part in out
    shown = json.loads(fontes("show", "tiny", "--json")[0])
    assert shown["parameters"]["analyzer"] == "english"
    assert (shown["task"], shown["needs"], shown["sample"]) == ("a small thing", ["paper", "a pencil"], "")
    assert json.loads(fontes("list", "--json")[0]) == [{k: v for k, v in shown.items() if k != "parameters"}]


RUN = ["run", "tiny", "--collection", "corpus.jsonl", "--topics", "topics.tsv", "-o", "out"]


def test_steps_go_to_standard_error_and_the_report_to_standard_output(fontes: Any) -> None:
    out, err = fontes(*RUN, "--qrels", "qrels.txt", "-s", "k1=1.2", "-s", "k=2", "-m", "nDCG@10, P(rel=1)@1")
    assert "nDCG@10" in out
    assert err.splitlines()[0].startswith("indexing: 3 documents, ")
    last = f"out: report.md, report.json, report.html, {', '.join(PAGES)}, experiment.lock, runs of 3 systems"
    assert err.splitlines()[-1] == last
    parameters = json.loads(Path("out/experiment.lock").read_text())["settings"]["parameters"]
    assert (parameters["k1"], parameters["k"]) == (1.2, 2)


def test_json_is_the_summary_and_nothing_else(fontes: Any) -> None:
    out, err = fontes(*RUN, "--json")
    assert err == ""
    summary, lock = json.loads(out), json.loads(Path("out/experiment.lock").read_text())
    assert summary["recipe"] == "tiny"
    assert {key: summary[key] for key in lock if key not in ("files", "systems")} == {
        key: value for key, value in lock.items() if key not in ("files", "systems")
    }


def test_all_that_is_missing_is_said_at_once_with_the_models_that_the_recipe_lacks(fontes: Any) -> None:
    with pytest.raises(ft.FontesError) as error:
        fontes("run", "tiny", "-s", "analyzer=spacy:xx_none")
    first, second = str(error.value).splitlines()
    assert first == "recipe tiny needs --collection DOCUMENTS, --topics FILE and -o FOLDER"
    assert "spaCy has no model 'xx_none' here" in second


def test_topics_come_from_standard_input(fontes: Any) -> None:
    arguments = [*RUN[:4], "--topics", "-", "-o", "out"]
    assert fontes(*arguments, stdin=Path("topics.tsv").read_text())[0] == f"3 runs in {Path('out/runs')}\n"
    assert set(ft.read_run("out/runs/first.run")) == set(TOPICS)


def test_a_recipe_runs_on_its_sample(fontes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "sample", "harbour/posts")
    out, _ = fontes("run", "tiny", "--sample", "-o", "out", "--json")
    posts = ft.dataset("harbour/posts")
    expected = ft.evaluate(ft.Index.build(posts.corpus, "posts.index").bm25(k=10)(posts.topics()), posts.qrels(), ["RR"])
    assert json.loads(out)["systems"]["first"]["measures"]["RR"] == expected["RR"]


def test_a_folder_of_beir_is_collection_topics_and_judgments(fontes: Any) -> None:
    folder = Path("beir/qrels")
    folder.mkdir(parents=True)
    ft.write_corpus(DOCS, "beir/corpus.jsonl")
    ft.write_topics(TOPICS, "beir/queries.jsonl")
    for split, topic in (("dev", "q1"), ("test", "q2")):
        (folder / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{topic}\t{next(iter(QRELS[topic]))}\t1\n")
    places = ["--collection", "beir", "--topics", "beir", "--qrels", "beir", "--split", "test"]
    out, _ = fontes("run", "tiny", *places, "-o", "out", "--json")
    assert list(ft.read_run("out/runs/first.run")) == ["q2"]
    assert json.loads(out)
