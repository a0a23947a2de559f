"""The frame of recipes, by one that is BM25 alone: parameters, steps, errors and progress."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from support.each import each
from support.tiny_recipe import CALLS, DOCS, PAGES, QRELS, TOPICS, Tiny, files

import fontes as ft
from fontes.core.work import Progress, lines, reporter


def test_a_run_writes_runs_a_report_and_what_was_published_beside(tmp_path: Path) -> None:
    result = Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    reports = ["report.html", "report.json", "report.md"]
    runs = ["runs/first.run", "runs/second.run", "runs/sum.run"]
    assert files(tmp_path) == sorted(["experiment.lock", *PAGES, *reports, *runs])
    assert ft.read_run(tmp_path / "runs/first.run") == result.runs["first"]
    assert result.report is not None
    assert result.report.baseline == "first"
    assert result.published() == [
        {"system": "first", "measure": "RR", "here": 1.0, "published": 0.5},
        {"system": "another team", "measure": "RR", "here": None, "published": 0.25},
        {"system": "another team", "measure": "AP", "here": None, "published": 0.125},
    ]
    page = (tmp_path / "recipe.md").read_text()
    assert "| first | 1.0000 | 0.5000 |  |  |\n| another team |  | 0.2500 |  | 0.1250 |\n" in page
    assert "They were measured on other things." in page
    assert "Published on other things:\n\nsystem        RR here  published" in str(result)


def test_the_lock_has_parameters_data_and_versions(tmp_path: Path) -> None:
    result = Tiny(k1=1.5).run(DOCS, TOPICS, QRELS, tmp_path)
    lock = json.loads((tmp_path / "experiment.lock").read_text())
    assert lock.pop("files") == [
        *(f"runs/{n}.run" for n in result.runs),
        *(f"report.{f}" for f in ("md", "json", "html")),
        *PAGES,
    ]
    assert lock == json.loads(json.dumps(result.lock))
    assert lock["settings"] == {
        "recipe": "tiny",
        "parameters": {
            "k1": 1.5,
            "k": 10,
            "loud": False,
            "analyzer": "english",
            "prefix": "",
            "note": "Noted()",
            "after": None,
        },
    }
    assert lock["systems"]["first"]["measures"] == {"RR": 1.0, "P@1": 1.0}
    assert set(lock["data"]) == {"documents", "topics", "qrels"}
    assert "numpy" in lock["versions"]
    summary = result.to_dict()
    assert {**summary, "systems": None} == {**summary, **lock, "systems": None}
    assert summary["systems"]["first"]["stages"] == "bm25(k1=1.5, b=0.4) % 10"
    page = (tmp_path / "recipe.md").read_text()
    assert "| parameter | here | default | default from |\n" in page
    assert "| k1 | **1.5** | 0.9 | published |\n| k | 10 | 10 | authors' code |\n| loud | False | False | ours |\n" in page
    again = Tiny().run(DOCS[:2], TOPICS, None, tmp_path / "other")
    assert again.lock["data"]["documents"] != result.lock["data"]["documents"]
    assert again.lock["data"]["topics"] == result.lock["data"]["topics"]


def test_defaults_that_a_paper_prints_are_marked_as_published_and_no_others() -> None:
    printed = {
        "cair2021": {"k1", "b", "depth"},
        "air2025": {"best", "epochs", "batch"},
        "evidence": {"k1", "b", "k3", "passages"},
    }
    for name, parameters in printed.items():
        origins = {f.name: f.metadata.get("origin") for f in fields(ft.recipes.registry[name])}
        assert {origins[parameter] for parameter in parameters} == {"published"}, name
    assert {f.name: f.metadata for f in fields(ft.recipes.Cair2021)}["keyphrases"] == {}


def test_topics_that_were_not_given_are_not_measured(tmp_path: Path) -> None:
    given = {"q1": TOPICS["q1"], "q3": TOPICS["q3"], "q4": "not judged"}
    other = {"q1": {"sun": 1.0}, "q3": {"bread": 1.0}}
    result = Tiny().run(DOCS, given, QRELS, tmp_path, runs={"theirs": other})
    assert result.report is not None
    assert list(result.report.topics) == ["q1", "q3"]
    assert result.report.mean("first", "RR") == 1.0
    assert result.lock["topics"] == 2
    assert "1 topic with judgments not given, and not measured" in str(result)
    assert "others/theirs" in result.report.systems  # it has every measured topic


@dataclass(frozen=True)
class Nothing(ft.Stage[ft.Run, ft.Run]):
    """Drops all documents."""

    def apply(self, run: ft.Run, /) -> ft.Run:
        return run.top(0)


def test_a_system_that_found_nothing_is_not_compared_unless_it_is_allowed(tmp_path: Path) -> None:
    recipe = Tiny(after=Nothing())
    with pytest.raises(ft.core.InputError, match="the run 'second' has no rows"):
        recipe.run(DOCS, TOPICS, QRELS, tmp_path)
    result = recipe.run(DOCS, TOPICS, QRELS, tmp_path, allow_empty=True)
    assert result.report is not None
    assert result.report.mean("second", "RR") == 0


def test_systems_of_a_recipe_may_find_the_same(tmp_path: Path) -> None:
    result = Tiny(k1=0.0).run(DOCS, TOPICS, QRELS, tmp_path)  # without k1, b has no effect
    assert "first and second: the same rows" in str(result)


def test_the_page_shows_the_plot_of_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    Tiny(k1=1.5).run(DOCS, TOPICS, None, tmp_path)
    assert "## Systems" in (page := (tmp_path / "recipe.md").read_text())
    assert "\n\n![The system first](recipe.svg)\n\n| system | run |" in page
    assert "k1=1.5" in re.sub(r"<!--|-->", "", (tmp_path / "recipe.svg").read_text())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    Tiny(k1=1.5).run(DOCS, TOPICS, None, tmp_path)
    assert "![" not in (tmp_path / "recipe.md").read_text()
    assert not (tmp_path / "recipe.svg").exists()


def test_a_step_that_systems_share_is_run_once_and_counts_for_each(tmp_path: Path) -> None:
    CALLS.clear()
    result = Tiny().run(DOCS, TOPICS, None, tmp_path)
    assert CALLS == ["noted"]  # in "second" and in the sum
    seconds = {name: value or 0.0 for name, value in result.seconds.items()}
    assert seconds["sum"] > seconds["first"] + seconds["second"] > 0
    assert result.report is None
    assert str(result) == f"3 runs in {tmp_path / 'runs'}"


def test_systems_can_be_built_and_searched_without_a_run(tmp_path: Path) -> None:
    said: list[str] = []
    systems = Tiny().build(DOCS, tmp_path, lines(said.append))
    assert systems["sum"].search("rickets", k=1).ids == ["sun"]
    assert said[-1].startswith("indexing: 3 documents, ")
    said.clear()
    Tiny().build(DOCS, tmp_path, lines(said.append))
    assert said == ["indexing: 3 documents, an existing index is used"]


@each("kind", ["path", "index", "dataset", "generator"])
def test_documents_come_from_a_file_an_index_a_dataset_or_any_iterable(tmp_path: Path, kind: str) -> None:
    ft.write_corpus(DOCS, tmp_path / "corpus.jsonl")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "rickets"}\n')
    given: object = tmp_path / "corpus.jsonl"
    if kind == "index":
        given = ft.Index.build(DOCS, tmp_path / "given.index", analyzer="standard")
    elif kind == "dataset":
        given = ft.dataset(tmp_path)
    elif kind == "generator":
        given = (doc for doc in DOCS)
    result = Tiny().run(given, TOPICS, None, tmp_path / "out")
    assert result.runs["first"] == Tiny().run(DOCS, TOPICS, None, tmp_path / "other").runs["first"]


def test_settings_are_read_as_the_type_of_their_parameter() -> None:
    for setting, expected in [
        ("k1=1.2", 1.2),
        ("k1 = 2", 2.0),
        ("k=5", 5),
        ("loud=True", True),
        ("analyzer=None", None),
        ("analyzer=standard", "standard"),
        ('analyzer="english+words:1-2"', "english+words:1-2"),
        ("prefix=none", "none"),
        ("prefix=a=b", "a=b"),
        ("prefix=", ""),
        ("after=cut(1)", "cut(1)"),
        ("after=None", None),
    ]:
        value = Tiny().set(["k=3", setting]).params()[setting.partition("=")[0].strip()]
        assert value == expected
        assert type(value) is type(expected)


def test_a_stage_is_set_by_its_expression(tmp_path: Path) -> None:
    result = Tiny().set(["after=cut(1)"]).run(DOCS, TOPICS, None, tmp_path)
    assert {len(ranking) for ranking in result.runs["second"].values()} == {1}


def test_a_recipe_that_is_not_there_names_those_that_are() -> None:
    assert ft.recipe("cair2021", depth=7) == ft.recipes.Cair2021(depth=7)


def test_models_run_in_float32_unless_the_recipe_says_otherwise(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Model(ft.Stage[ft.Run, ft.Run]):
        precision: str = "auto"

        def apply(self, run: ft.Run, /) -> ft.Run:
            return run

    @dataclass(frozen=True)
    class Two(Tiny):
        def systems(self, collection: ft.experiments.Collection) -> dict[str, ft.Stage[ft.Topics, ft.Run]]:
            bm25 = collection.index().bm25()
            return {"open": bm25 >> Model(), "half": bm25 >> Model("bfloat16")}

    assert [stage.parts()[-1] for stage in Two().build(DOCS, tmp_path).values()] == [Model("float32"), Model("bfloat16")]


def test_a_reranker_in_a_recipe_says_how_far_it_is(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Reranker(ft.Stage[ft.Run, ft.Run]):
        def apply(self, run: ft.Run, /) -> ft.Run:
            reporter()(Progress("reranking", 3, run.rows, 1.0, "pairs"))
            return run

    @dataclass(frozen=True)
    class Reranked(Tiny):
        def systems(self, collection: ft.experiments.Collection) -> dict[str, ft.Stage[ft.Topics, ft.Run]]:
            return {"first": collection.index().bm25() >> Reranker()}

    said: list[str] = []
    Reranked().run(DOCS, TOPICS, None, tmp_path, progress=lambda progress: said.append(str(progress)))
    assert "running Reranker: 0 of 3 topics" in said
    assert "reranking: 3 of 4 pairs, 3 a second, 0 s left" in said
