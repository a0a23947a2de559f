"""Values with rows as DataFrames, hits with their texts, and what a notebook sees."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import fontes as ft
from fontes.comparison import compare_snapshots
from fontes.core import Doc, InputError, Progress, Qrels, Run, Tabular, Topics, show
from fontes.train import LabelledPairs
from fontes.tuning import fit_weights, tune

TOPICS = Topics.of({"1": "rain", "2": "snow in spring"})
QRELS = Qrels([("1", "0", "a", 2), ("1", "s1", "b", 1), ("2", "0", "c", 1)])
RUN = Run.of({"1": {"a": 2.0, "b": 1.0}, "2": {"a": 0.5, "c": 0.25}}, TOPICS)
OTHER = Run.of({"1": {"b": 2.0, "a": 1.0}, "2": {"c": 1.0}}, TOPICS)


class Shelf:
    """Documents by id, without snippets of their own."""

    def docs(self, ids: Any) -> list[Doc]:
        return [Doc(doc_id, f"text of {doc_id}") for doc_id in ids]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    docs = {"a": "Rain fell. Then it rained again.", "b": "Dry rain coats.", "c": "Snow in spring."}
    return ft.Index.build(docs, tmp_path_factory.mktemp("tabular") / "index")


@pytest.fixture(scope="module")
def values(index: ft.Index) -> list[tuple[Tabular, int, list[str]]]:
    """Values, their number of rows, and their first columns."""
    report = ft.compare({"one": RUN, "two": OTHER}, TOPICS, QRELS, ["RR", "AP"], cache=False)
    tuned = tune("bm25(k1=tune([0.5, 1]))", None, TOPICS, QRELS, "RR", 2, index=index)
    snapshots = compare_snapshots({year: ({"one": RUN, "two": OTHER}, QRELS) for year in ("24", "25")}, "one", ["RR"])
    return [
        (RUN, 4, ["query_id", "doc_id", "score", "rank"]),
        (RUN["1"], 2, ["query_id", "doc_id", "score", "rank"]),
        (TOPICS, 2, ["query_id", "text", "description", "narrative"]),
        (QRELS, 3, ["query_id", "group", "doc_id", "relevance"]),
        (ft.evaluate(RUN, QRELS, ["RR", "AP"]), 2, ["query_id", "RR", "AP"]),
        (report, 4, ["measure", "system", "mean"]),
        (report.failures(measure="RR"), 0, ["topic", "text", "value"]),
        (report.failures("one"), 1, ["topic", "text", "value"]),
        (tuned, 2, ["bm25__k1", "score"]),
        (fit_weights([RUN, OTHER], QRELS, "AP", folds=2), 2, ["fold", "weight1", "weight2"]),
        (ft.read_corpus([Doc("a", "x", "t", {"year": 1}), Doc("b", "y")]), 2, ["id", "title", "text", "year"]),
        (snapshots, 4, ["measure", "snapshot", "system"]),
        (LabelledPairs.of([("a", "b", 1)]), 1, ["first", "second", "label"]),
    ]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_all_that_has_rows_goes_to_a_frame(library: str, values: Any) -> None:
    pytest.importorskip(library)
    for value, rows, columns in values:
        frame = getattr(value, f"to_{library}")()
        assert (len(frame), list(frame.columns)[: len(columns)]) == (rows, columns), value


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_runs_topics_judgments_and_documents_come_back_from_a_frame(library: str, tmp_path: Any) -> None:
    made = pytest.importorskip(library)
    frame: Any = lambda value: getattr(value, f"to_{library}")()  # noqa: E731
    assert Run.of(frame(RUN), TOPICS) == RUN
    assert Qrels.of(frame(QRELS)).to_dict() == QRELS.to_dict()
    assert dict(Topics.of(frame(TOPICS))) == dict(TOPICS)
    documents = made.DataFrame({"id": ["a", "b"], "text": ["rain", "sun"]})
    assert [doc.text for doc in ft.read_corpus(documents)] == ["rain", "sun"]


def test_a_hit_knows_its_document_and_the_passage_that_fits(index: ft.Index) -> None:
    ranking = index.bm25()(TOPICS)["2"]
    for hit in (ranking[0], next(iter(ranking)), ranking[:1][0]):
        assert hit == ("c", pytest.approx(hit.score), 1)
        assert (hit.doc.text, hit.snippet) == ("Snow in spring.", "**Snow** in **spring**.")
        assert pickle.loads(pickle.dumps(hit)) == hit
    assert RUN.with_(documents=Shelf())["1"][1].snippet == "text of b"


def test_of_ten_documents_read_together_only_a_missing_one_is_an_error() -> None:
    asked: list[int] = []

    class Counting:
        def docs(self, ids: Any) -> list[Doc]:
            names = list(ids)
            asked.append(len(names))
            if "d11" in names:
                raise InputError("there is no document 'd11'")
            return [Doc(name, f"text of {name}") for name in names]

    ranking = Run.of({"1": {f"d{n:02}": 25.0 - n for n in range(25)}}).with_(documents=Counting())["1"]
    assert [hit.snippet for hit in ranking[:10]] == [f"text of d{n:02}" for n in range(10)]
    assert asked == [10]
    assert [hit.doc.id for hit in ranking[20:]] == ["d20", "d21", "d22", "d23", "d24"]
    assert asked == [10, 5]
    assert (ranking[12].doc.id, ranking[12].snippet) == ("d12", "text of d12")
    with pytest.raises(InputError, match="no document 'd11'"):
        _ = ranking[11].doc


def test_the_head_of_a_run_has_the_best_documents_of_the_first_topics() -> None:
    run = Run.of({str(n): {f"d{m}": float(-m) for m in range(9)} for n in range(8)})
    head = run.head(2, k=4)
    assert head.to_dict() == {t: dict(list(run.to_dict()[t].items())[:4]) for t in ("0", "1")}
    assert len(run.head(99)) == 8
    assert str(head["1"]) in str(head)


def test_a_run_is_printed_by_its_head() -> None:
    assert str(RUN) == (
        "Run(2 topics, 4 documents)\n1  rain\n   1      2.0000  a\n   2      1.0000  b\n"
        "2  snow in spring\n   1      0.5000  a\n   2      0.2500  c"
    )
    long = str(Run.of({str(n): {"d": 1.0} for n in range(20)}))
    assert long.endswith("\n…")
    assert long.count("\n") == 11


def test_a_report_has_failures_of_its_best_system_unless_one_is_named() -> None:
    report = ft.compare({"one": RUN, "two": OTHER}, TOPICS, QRELS, ["nDCG@10", "AP"], cache=False)
    assert report.failures().system == max(report.systems, key=lambda name: report.mean(name, "nDCG@10"))
    assert report.failures(measure="RR").against == "ideal"
    assert (report.failures(against="two").system, report.failures(against="one").system) == ("one", "two")


def test_progress_in_a_notebook_is_a_bar_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda html: shown.append(f"update {html}"))
    display = SimpleNamespace(HTML=str, display=lambda html, display_id: (shown.append(f"new {html}"), handle)[1])
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", shell)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", display)  # type: ignore[arg-type]
    show(Progress("<work>", 1, 4, 1.0))
    show(Progress("<work>", 2, 4, 1.01))  # too soon after the one before
    show(Progress("<work>", 4, 4, 2.0))
    show(Progress("<work>", 1, 4, 1.0))
    show(Progress("<work>", 0, 4, 0.0))  # begun again after an interrupt
    show(Progress("<work>", 4, 4, 1.0))
    assert [line.partition(" ")[0] for line in shown] == ["new", "update", "new", "new", "update"]
    assert shown[0].startswith('new <progress value="0.2500"></progress> <code>&lt;work&gt;: 1 of 4 documents')
    assert shown[1] == "update <code>&lt;work&gt;: 4 documents, 2.00 s</code>"


def test_progress_elsewhere_is_a_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    show(Progress("indexing elsewhere", 3, 3, 2.0))
    assert capsys.readouterr().err == "indexing elsewhere: 3 documents, 2.00 s\n"


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_run_and_a_ranking_have_columns_of_their_documents(library: str) -> None:
    pytest.importorskip(library.replace("arrow", "pyarrow"))
    docs = [Doc("a", "rain", "A", {"year": 2001, "tags": ["x"]}), Doc("b", "more rain", "", {"year": 2002}), Doc("c", "snow")]
    run = ft.Index.build(docs).bm25()({"1": "rain", "2": "snow", "3": "rain and snow", "4": "hail"})
    frame = getattr(run, f"to_{library}")(text=True, columns=["year", "tags"])
    columns = {
        name: list(
            frame[name].tolist()
            if library == "pandas"
            else frame[name].to_pylist()
            if library == "arrow"
            else frame[name].to_list()
        )
        for name in ("doc_id", "title", "text", "year")
    }
    by_id = {doc.id: doc for doc in docs}
    assert columns["title"] == [by_id[doc_id].title for doc_id in columns["doc_id"]]
    assert columns["text"] == [by_id[doc_id].text for doc_id in columns["doc_id"]]
    years = [by_id[doc_id].metadata.get("year") for doc_id in columns["doc_id"]]
    assert [None if year != year else year for year in columns["year"]] == years
    one = run["3"].to_columns(text=True, columns=["tags"])
    assert list(one) == ["query_id", "doc_id", "score", "rank", "title", "text", "tags"]
    assert one["tags"] == [by_id[doc_id].metadata.get("tags") for doc_id in one["doc_id"]]
    assert run["4"].to_columns(columns=["year"])["year"] == []


def test_the_title_of_a_document_is_a_column_of_a_run() -> None:
    run = ft.Index.build([Doc("a", "rain", "A", {"year": 2001})]).bm25()({"1": "rain"})
    assert run.to_columns(columns=["title"])["title"] == ["A"]
