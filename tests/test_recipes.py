"""The frame of recipes, by one that is BM25 alone: parameters, steps, the folder, errors, kills, the command line."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from processes import in_a_child

import fontes as ft
from fontes import recipes
from fontes.app import output
from fontes.app.cli import main
from fontes.recipes import base
from fontes.recipes.telling import Teller

DOCS = [
    ft.Doc("sun", "Sunlight on skin makes vitamin D, which prevents rickets."),
    ft.Doc("flu", "A vaccine prevents influenza; washing hands helps.", "Influenza"),
    ft.Doc("bread", "Bread is made of flour, water and salt."),
]
TOPICS = {"q1": "what prevents rickets", "q2": "influenza vaccine", "q3": "bread"}
QRELS = {"q1": {"sun": 1}, "q2": {"flu": 1}, "q3": {"bread": 1, "flu": 0}}
CALLS: list[str] = []


@dataclass(frozen=True)
class Noted(ft.Stage[ft.Topics, ft.Topics]):
    """Leaves topics as they are and notes that it was run; or kills the process."""

    takes = ft.Topics
    gives = ft.Topics
    kills: bool = False

    def apply(self, given: ft.Topics) -> ft.Topics:
        CALLS.append("noted")
        if self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return given


@dataclass(frozen=True)
class Tiny(ft.Recipe):
    """BM25 twice, and their sum.

    k1     of BM25
    """

    name = "tiny"
    source = "Nobody, On Small Things, 1999"
    measures = ("RR", "P@1")
    baseline = "first"
    published: ClassVar[dict[str, dict[str, float]]] = {"first": {"RR": 0.5}, "another team": {"RR": 0.25, "AP": 0.125}}
    published_on = "other things"

    k1: float = 0.9
    k: int = 10
    loud: bool = False
    analyzer: str | None = "english"
    prefix: str = ""
    note: Noted = Noted()

    def systems(self, collection: ft.Collection) -> dict[str, ft.Stage[ft.Topics, ft.Run]]:
        if self.k < 1:
            raise ft.ParameterError("k is too small")
        bm25 = collection.index(self.analyzer or "standard").bm25(k1=self.k1, k=self.k)
        second = self.note >> bm25.with_(b=0.1)
        return {"first": bm25, f"{self.prefix}second": second, "sum": bm25 + second}


def files(folder: Path) -> list[str]:
    """The files of results, without what is kept for the next run."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith(("indexes/", "cache/")))


def test_a_run_writes_runs_a_report_and_what_was_published_beside(tmp_path: Path) -> None:
    served = Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    reports = ["report.html", "report.json", "report.md"]
    runs = ["runs/first.run", "runs/second.run", "runs/sum.run"]
    assert files(tmp_path) == sorted(["recipe.json", "recipe.md", *reports, *runs])
    assert ft.read_run(tmp_path / "runs/first.run") == served.runs["first"]
    assert served.report is not None
    assert served.report.baseline == "first"
    assert served.published() == [
        {"system": "first", "measure": "RR", "here": 1.0, "published": 0.5},
        {"system": "another team", "measure": "RR", "here": None, "published": 0.25},
        {"system": "another team", "measure": "AP", "here": None, "published": 0.125},
    ]
    page = (tmp_path / "recipe.md").read_text()
    assert "| first | 1.0000 | 0.5000 |  |  |\n| another team |  | 0.2500 |  | 0.1250 |\n" in page
    assert "They were measured on other things." in page
    assert "Published on other things:\n\nsystem        RR here  published" in str(served)


def test_the_summary_says_parameters_data_and_versions_and_is_what_the_object_gives(tmp_path: Path) -> None:
    served = Tiny(k1=1.5).run(DOCS, TOPICS, QRELS, tmp_path)
    summary = json.loads((tmp_path / "recipe.json").read_text())
    assert summary.pop("files") == [
        *(f"runs/{n}.run" for n in served.runs),
        *(f"report.{f}" for f in ("md", "json", "html")),
        "recipe.md",
    ]
    assert summary == json.loads(json.dumps(served.to_dict()))
    assert summary["parameters"] == {
        "k1": 1.5,
        "k": 10,
        "loud": False,
        "analyzer": "english",
        "prefix": "",
        "note": "Noted(kills=False)",
    }
    assert summary["systems"]["first"]["measures"] == {"RR": 1.0, "P@1": 1.0}
    assert "numpy" in summary["versions"]
    assert "| k1 | **1.5** | 0.9 |\n| k | 10 | 10 |\n" in (tmp_path / "recipe.md").read_text()
    again = Tiny().run(DOCS[:2], TOPICS, None, tmp_path / "other")
    assert again.data["documents"] != served.data["documents"]
    assert again.data["topics"] == served.data["topics"]


def test_a_step_that_systems_share_is_run_once_and_counts_for_each(tmp_path: Path) -> None:
    CALLS.clear()
    served = Tiny().run(DOCS, TOPICS, None, tmp_path)
    assert CALLS == ["noted"]  # in "second" and in the sum
    seconds = {name: value or 0.0 for name, value in served.seconds.items()}
    assert seconds["sum"] > seconds["first"] + seconds["second"] > 0
    assert served.report is None
    assert str(served) == f"3 runs in {tmp_path / 'runs'}"


def test_systems_can_be_built_and_searched_without_a_run(tmp_path: Path) -> None:
    lines: list[str] = []
    systems = Tiny().build(DOCS, tmp_path, lines.append)
    assert systems["sum"].search("rickets", k=1).ids == ["sun"]
    assert lines == ["index: 3 documents"]
    Tiny().build(DOCS, tmp_path, lines.append)
    assert lines[1:] == ["index: as it was built before"]


@pytest.mark.parametrize("kind", ["path", "index", "dataset", "generator"])
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
    served = Tiny().run(given, TOPICS, None, tmp_path / "out")
    assert served.runs["first"] == Tiny().run(DOCS, TOPICS, None, tmp_path / "other").runs["first"]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("k1=1.2", 1.2),
        ("k1 = 2", 2.0),
        ("k=5", 5),
        ("loud=True", True),
        ("analyzer=none", None),
        ("analyzer=standard", "standard"),
        ("prefix=none", "none"),
        ("prefix=a=b", "a=b"),
        ("prefix=", ""),
    ],
)
def test_settings_are_read_as_the_type_of_their_parameter(setting: str, expected: object) -> None:
    found = Tiny().set(["k=3", setting]).params()[setting.partition("=")[0].strip()]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("k", "'k' does not set a parameter; write NAME=VALUE, such as depth=100"),
        ("K=3", "recipe tiny has no parameter 'K'; it has k1, k, loud, analyzer, prefix, note"),
        ("k=3.5", "recipe tiny: k must be a whole number, not '3.5'"),
        ("k=none", "recipe tiny: k must be a whole number, not 'none'"),
        ("k1=", "recipe tiny: k1 must be a number, not ''"),
        ("loud=1", "recipe tiny: loud must be true or false, not '1'"),
        ("note=x", r"recipe tiny: note is a stage \(Noted\); it can be given in Python alone"),
    ],
)
def test_a_setting_that_cannot_be_says_what_could(setting: str, message: str) -> None:
    with pytest.raises(ft.ParameterError, match=f"^{message}$"):
        Tiny().set([setting])


def test_a_recipe_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ft.ParameterError, match="there is no recipe 'x'; there are cair2021, cast2021"):
        ft.recipe("x")
    assert ft.recipe("cair2021", depth=7) == ft.Cair2021(depth=7)


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"topics": {}}, "there are no topics to run the recipe on"),
    ({"topics": {"x": "rickets"}}, "no topic has judgments: the first topic is 'x', the first of the qrels 'q1'"),
    ({"qrels": {}}, "the qrels hold no judgments"),
    ({"measures": ["nDGC@10"]}, "there is no measure 'nDGC'"),
    ({"documents": "missing.jsonl"}, "missing.jsonl"),
    ({"documents": "-"}, "not from standard input; write them to a file"),
    ({"documents": 3}, "documents cannot be read from int"),
    ({"documents": []}, "there are no documents to run the recipe on"),
    ({"topics": "missing.tsv"}, "missing.tsv"),
    ({"qrels": "missing.tsv"}, "missing.tsv"),
    ({"k": 0}, "k is too small"),
    ({"k1": -1.0}, "k1 must be 0 or more"),
    ({"prefix": "../"}, r"recipe tiny: '\.\./second' cannot be the name of a system"),
    ({"prefix": "/"}, "'/second' cannot be the name of a system"),
]


@pytest.mark.parametrize(("given", "message"), ERRORS, ids=[str(given) for given, _ in ERRORS])
def test_what_cannot_be_used_is_said_and_leaves_earlier_results_as_they_were(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    wrong = Tiny(**{name: value for name, value in given.items() if name in Tiny().params()})
    with pytest.raises(ft.FontesError, match=message):
        wrong.run(
            given.get("documents", DOCS),
            given.get("topics", TOPICS),
            given.get("qrels", QRELS),
            tmp_path,
            measures=given.get("measures"),
        )
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_a_system_must_go_from_topics_to_a_run(tmp_path: Path) -> None:
    class Wrong(Tiny):
        def systems(self, collection: ft.Collection) -> Any:
            return {"odd": Noted()}

    with pytest.raises(ft.PipelineError, match="system 'odd' of recipe tiny needs a stage from Topics to Run"):
        Wrong().run(DOCS, TOPICS, None, tmp_path)


def test_results_of_another_run_go_with_all_their_files(tmp_path: Path) -> None:
    Tiny(prefix="deep/").run(DOCS, TOPICS, QRELS, tmp_path)
    assert "runs/deep/second.run" in files(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    Tiny().run(DOCS[:2], TOPICS, None, tmp_path)
    runs = ["runs/first.run", "runs/second.run", "runs/sum.run"]
    assert files(tmp_path) == ["notes.txt", "recipe.json", "recipe.md", *runs]
    assert not (tmp_path / "runs" / "deep").exists()


def test_a_folder_with_results_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("mine")
    with pytest.raises(ft.InputError, match=r"holds results that are not a recipe's \(report.md\); give another folder"):
        Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    assert files(tmp_path) == ["report.md"]


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    for place in (tmp_path / "out", tmp_path / "out" / "deeper"):
        with pytest.raises(ft.InputError, match="cannot be made a folder"):
            Tiny().run(DOCS, TOPICS, None, place)


def test_one_process_at_a_time_uses_a_folder(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ft.InputError, match="another process runs a recipe into this folder"):
        Tiny().run(DOCS, TOPICS, None, tmp_path)
    os.close(handle)
    Tiny().run(DOCS, TOPICS, None, tmp_path)


def test_a_full_disk_is_an_error_and_the_next_run_goes_on(tmp_path: Path) -> None:
    Tiny().build(DOCS, tmp_path / "indexes")

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        Tiny().run(DOCS, TOPICS, QRELS, tmp_path)

    assert in_a_child(fill) == 3
    assert "recipe.json" not in files(tmp_path)
    served = Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    assert served.runs["first"] == ft.read_run(tmp_path / "runs/first.run")


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    assert in_a_child(lambda: Tiny(note=Noted(kills=True)).run(DOCS, TOPICS, QRELS, tmp_path)) == -signal.SIGKILL
    assert files(tmp_path) == []
    lines: list[str] = []
    served = Tiny().run(DOCS, TOPICS, QRELS, tmp_path, tell=lines.append)
    assert lines[0] == "index: as it was built before"
    assert "first: 4 documents for 3 topics, found before" in lines
    assert served.runs == Tiny().run(DOCS, TOPICS, QRELS, tmp_path / "other").runs


@pytest.mark.parametrize("written", ["write_run", "write"])
def test_a_kill_while_results_are_written_leaves_no_summary_and_no_stale_file_after_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    Tiny(prefix="old-").run(DOCS, TOPICS, QRELS, tmp_path)

    def killed() -> None:
        kept: Callable[..., None] = getattr(base, written)

        def write_and_die(*given: Any, **named: Any) -> None:
            kept(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(base, written, write_and_die)
        Tiny(prefix="a-").run(DOCS, TOPICS, QRELS, tmp_path)

    assert in_a_child(killed) == -signal.SIGKILL
    assert "recipe.json" not in files(tmp_path)
    Tiny(prefix="b-").run(DOCS, TOPICS, None, tmp_path)
    assert files(tmp_path) == ["recipe.json", "recipe.md", "runs/b-second.run", "runs/first.run", "runs/sum.run"]


def test_what_was_damaged_is_made_again(tmp_path: Path) -> None:
    Tiny().run(DOCS, TOPICS, QRELS, tmp_path)
    for path in (*tmp_path.glob("indexes/*/*/*.npy"), *tmp_path.glob("cache/*/*"), tmp_path / "recipe.json"):
        path.write_bytes(b"{")
    lines: list[str] = []
    again = Tiny().run(DOCS, TOPICS, None, tmp_path, tell=lines.append).runs
    assert again == Tiny().run(DOCS, TOPICS, None, tmp_path / "other").runs
    assert lines[:2] == ["index: damaged, so it is built again", "index: 3 documents"]
    assert not any("found before" in line for line in lines)
    assert not (tmp_path / "report.md").exists()


def test_a_list_of_files_that_leads_out_of_the_folder_deletes_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    folder = tmp_path / "out"
    Tiny().run(DOCS, TOPICS, None, folder)
    (folder / "recipe.json").write_text(json.dumps({"files": ["../mine.txt", str(tmp_path / "mine.txt"), 3]}))
    Tiny().run(DOCS, TOPICS, None, folder)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_long_steps_are_told_every_ten_seconds_or_each_time_to_whoever_shows_them_moving() -> None:
    lines: list[str] = []
    progress = Teller(lines.append).progress("encoding")
    for seconds in (1.0, 9.0, 10.5, 15.0, 21.0, 1.0):
        progress(ft.Progress(int(100 * seconds), seconds, seconds / 200))
    assert lines == [
        "encoding: 1,050 documents, 100 a second, 3 min left",
        "encoding: 2,100 documents, 100 a second, 3 min left",
        "encoding: 100 documents, 100 a second, 3 min left",
    ]
    moving: list[str] = []
    Teller(lines.append, moving.append).progress("reranking", "pairs")(ft.Progress(5, 1.0, None))
    assert moving == ["reranking: 5 pairs, 5 a second"]
    assert len(lines) == 3
    Teller()("nobody listens")


def test_a_reranker_in_a_recipe_says_how_far_it_is(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Reranker(ft.Stage[ft.Run, ft.Run]):
        takes = ft.Run
        gives = ft.Run

        def apply(self, given: ft.Run) -> ft.Run:
            raise AssertionError("it can tell how far it is")

        def rerank(self, run: ft.Run, progress: Callable[[ft.Progress], None]) -> ft.Run:
            progress(ft.Progress(run.rows, 1.0, 1.0))
            return run

    class Reranked(Tiny):
        def systems(self, collection: ft.Collection) -> dict[str, ft.Stage[ft.Topics, ft.Run]]:
            return {"first": collection.index().bm25() >> Reranker()}

    moving: list[str] = []
    Reranked().run(DOCS, TOPICS, None, tmp_path, moving=moving.append)
    assert moving == ["indexing: 3 documents, 3 a second"] or moving[-1] == "reranking: 4 pairs, 4 a second, 0 s left"


# The command line


@pytest.fixture
def fontes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Runs `fontes recipe` in a folder with a corpus, topics and qrels; gives its exit code, output and errors."""
    monkeypatch.setattr(recipes, "RECIPES", {"tiny": Tiny})
    monkeypatch.chdir(tmp_path)
    ft.write_corpus(DOCS, "corpus.jsonl")
    ft.write_topics(TOPICS, "topics.tsv")
    ft.write_qrels(QRELS, "qrels.txt")

    def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fontes", "recipe", *arguments])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        handler = signal.getsignal(signal.SIGINT)
        try:
            with pytest.raises(SystemExit) as stop:
                main()
        finally:
            signal.signal(signal.SIGINT, handler)
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return run


def test_the_recipes_are_listed_and_shown(fontes: Any) -> None:
    assert fontes("list") == (0, "tiny  BM25 twice, and their sum.\n", "")
    code, out, err = fontes("show", "tiny")
    assert (code, err) == (0, "")
    for part in (
        "Nobody, On Small Things, 1999",
        "k1     of BM25",
        "  k1=0.9\n",
        "  loud=false\n",
        "Published, on other things\n",
        "another team: RR 0.2500, AP 0.1250",
    ):
        assert part in out
    shown = json.loads(fontes("show", "tiny", "--json")[1])
    assert shown["parameters"]["analyzer"] == "english"
    assert json.loads(fontes("list", "--json")[1]) == [{k: v for k, v in shown.items() if k != "parameters"}]
    assert fontes("show", "none") == (1, "", "fontes: there is no recipe 'none'; there are tiny\n")


RUN = ["run", "tiny", "--collection", "corpus.jsonl", "--topics", "topics.tsv", "-o", "out"]


def test_steps_go_to_standard_error_and_the_report_to_standard_output(fontes: Any) -> None:
    code, out, err = fontes(*RUN, "--qrels", "qrels.txt", "-s", "k1=1.2", "-s", "k=2", "-m", "nDCG@10, P(rel=1)@1")
    assert code == 0
    assert "nDCG@10" in out
    assert err.splitlines()[0] == "index: 3 documents"
    assert err.splitlines()[-1].startswith(
        "out: report.md, report.json, report.html, recipe.md, recipe.json, runs of 3 systems;"
    )
    summary = json.loads(Path("out/recipe.json").read_text())
    assert (summary["parameters"]["k1"], summary["parameters"]["k"]) == (1.2, 2)


def test_a_terminal_shows_in_one_line_how_far_a_long_step_is(fontes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Terminal:
        is_terminal = True

        def __init__(self, **options: object) -> None: ...

        def print(self, line: str, markup: bool) -> None:
            shown.append(line)

        @contextlib.contextmanager
        def status(self, text: str) -> Iterator[Any]:
            yield self
            shown.append("(gone)")

        def update(self, text: object) -> None:
            shown.append(f"({text})")

    monkeypatch.setattr(output, "Console", Terminal)
    assert fontes(*RUN)[::2] == (0, "")
    assert re.fullmatch(r"\(indexing: 3 documents, [\d,]+ a second.*\)", shown[0])
    assert shown[1:3] == ["( )", "index: 3 documents"]  # the line is emptied before another one is printed
    assert shown[-1] == "(gone)"


def test_json_is_the_summary_and_nothing_else(fontes: Any) -> None:
    code, out, err = fontes(*RUN, "--json")
    assert (code, err) == (0, "")
    summary = json.loads(Path("out/recipe.json").read_text())
    assert json.loads(out) == {key: value for key, value in summary.items() if key != "files"}


def test_topics_come_from_standard_input(fontes: Any) -> None:
    arguments = [*RUN[:4], "--topics", "-", "-o", "out"]
    code, out, _ = fontes(*arguments, stdin=Path("topics.tsv").read_text())
    assert (code, out) == (0, f"3 runs in {Path('out/runs')}\n")
    assert set(ft.read_run("out/runs/first.run")) == set(TOPICS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "k1"], "'k1' does not set a parameter"),
        (["-s", "k1=x"], "k1 must be a number"),
        (["--qrels", "corpus.jsonl"], "corpus.jsonl"),
        (["-m", "ndgc", "--qrels", "qrels.txt"], "ndgc"),
        (["--collection", "-"], "not from standard input"),
        (["--collection", "nowhere"], "nowhere"),
        (["-o", "corpus.jsonl"], "corpus.jsonl: cannot be made a folder"),
    ],
)
def test_errors_are_one_line_and_leave_no_folder(fontes: Any, arguments: list[str], message: str) -> None:
    code, out, err = fontes(*RUN, *arguments)
    assert (code, out) == (1, "")
    assert message in err
    assert err.startswith("fontes: ")
    assert err.count("\n") == 1
    assert not Path("out").exists()
