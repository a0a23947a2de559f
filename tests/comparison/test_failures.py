"""Error analysis: which topics lose, what is said of them, the page and the command."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import fontes as ft

DOCS = [
    {"id": "d1", "text": "The harbour was closed by ice in winter."},
    {"id": "d2", "text": "Ships waited outside."},
    {"id": "d3", "text": "The harbour opened in spring, as the ice had melted."},
    {"id": "d4", "text": "The harbour opened in spring, as the ice had melted early."},
    {"id": "d5", "text": " ".join(["A long report on trade."] * 20)},
]
TOPICS = {"q1": "when did the harbour reopen", "q2": "trade by xylophones", "q3": "ships"}
QRELS = {"q1": {"d1": 1, "d2": 2, "d3": 0}, "q2": {"d5": 1}, "q3": {"d2": 1}}
RUN = {"q1": {"d3": 5.0, "d4": 4.0, "d1": 3.0}, "q2": {"d1": 1.0}, "q3": {"d2": 1.0}}
OTHER = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d1": 1.0}, "q3": {"d3": 2.0, "d2": 1.0}}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path_factory.mktemp("failures") / "index", analyzer="english")


def test_topics_stand_by_their_loss_to_the_ideal_order() -> None:
    found = ft.comparison.failures(RUN, QRELS)
    ideal = ft.evaluate({"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d5": 1.0}, "q3": {"d2": 1.0}}, QRELS).per_topic("nDCG@10")
    values = ft.evaluate(RUN, QRELS).per_topic("nDCG@10")
    losses = {topic: ideal[topic] - values[topic] for topic in ideal if ideal[topic] > values[topic]}
    assert [(row.topic.id, row.loss) for row in found] == sorted(losses.items(), key=lambda pair: -pair[1])
    assert found.losing == 2
    assert str(found).startswith("nDCG@10: run loses against the ideal order on 2 of 3 topics\n\nq2  0.0000 against 1.0000")


def test_facts_of_a_topic_are_named(index: ft.Index) -> None:
    (row,) = ft.comparison.failures(RUN, QRELS, beside=OTHER, topics=ft.Topics.of(TOPICS), index=index)
    assert row.topic.text == TOPICS["q1"]
    assert (row.relevant, row.retrieved, row.unjudged) == (2, 1, 1)
    assert [hit.id for hit in row.above] == ["d3", "d4"]
    low, lower = row.low
    assert (low.id, low.grade, low.rank, low.other, low.lacks) == ("d2", 2, None, 2, ("harbour",))
    assert (lower.id, lower.rank, lower.other) == ("d1", 3, 1)
    assert row.repeated == (("d3", "d4"),)
    assert row.unknown == ("when", "did", "reopen")
    (long,) = (one for one in ft.comparison.failures(RUN, QRELS, index=index)[0].low)
    mean = sum(map(len, index.analyzed(index.ids))) / len(DOCS)
    assert long.length == pytest.approx(len(index.analyzed(["d5"])[0]) / mean, abs=1e-4)


def test_without_an_index_only_ranks_and_judgments_are_told() -> None:
    (row,) = ft.comparison.failures(RUN, QRELS, beside=OTHER)
    assert row.reasons("other") == [
        "1 of 2 relevant documents are among the first 10",
        "d2 (grade 2) is not retrieved, at rank 2 in other",
        "d1 (grade 1) is at rank 3, at rank 1 in other",
        "d3 at rank 1, d4 at rank 2 not relevant, above a relevant document",
        "1 of the first 10 are not judged",
    ]


def test_runs_of_stages_know_their_index_and_a_report_has_failures(index: ft.Index) -> None:
    report = ft.compare({"bm25": index.bm25(), "tfidf": index.tfidf()}, TOPICS, QRELS, ["AP"], cache=False)
    found = report.failures("bm25")
    assert found[0].unknown
    assert str(found.measure) == "AP"


def test_the_command_writes_every_form(index: ft.Index, fontes: Any, tmp_path: Path) -> None:
    for name, run in (("mine", RUN), ("theirs", OTHER)):
        ft.write_run(ft.Run.of(run), tmp_path / f"{name}.run")
    ft.write_qrels(ft.Qrels.of(QRELS), tmp_path / "qrels.tsv")
    (tmp_path / "topics.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in TOPICS.items()))
    outputs = [tmp_path / f"out.{form}" for form in ("md", "tex", "csv", "json", "html")]
    options = [part for path in outputs for part in ("-o", path)]
    code, out, errors = fontes(
        "failures",
        tmp_path / "qrels.tsv",
        tmp_path / "mine.run",
        "--beside",
        tmp_path / "theirs.run",
        "--topics",
        tmp_path / "topics.tsv",
        "--index",
        index.path,
        *options,
    )
    assert code == 0, errors
    assert "d2 (grade 2) is not retrieved, at rank 2 in theirs; it lacks 'harbour'" in out
    markdown, latex, table, values, page = (path.read_text("utf-8") for path in outputs)
    assert "* **q1**" in markdown
    assert r"topic & text & mine & theirs & loss \\" in latex
    (row,) = csv.DictReader(io.StringIO(table))
    assert (row["topic"], row["low"], row["lacked"], row["repeated"]) == ("q1", "d2 d1", "harbour", "d3=d4")
    assert json.loads(values)["failures"][0]["above"] == ["d3", "d4"]
    assert "it lacks 'harbour'" in page
    code, _, errors = fontes("failures", tmp_path / "qrels.tsv", tmp_path / "mine.run", "-o", tmp_path / "out.pdf")
    assert code != 0
    assert "ends in one of .md, .tex, .csv, .json, .html" in errors


def test_the_page_opens_at_the_largest_loss_with_its_reasons(browser: Any, index: ft.Index, tmp_path: Path) -> None:
    found = ft.comparison.failures(RUN, QRELS, topics=ft.Topics.of(TOPICS), index=index)
    found.save(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(f"file://{tmp_path / 'page.html'}")
    assert page.locator("#topic h4").inner_text() == "q2"
    assert page.locator("#topic .reasons li").all_inner_texts() == found[0].reasons(found.against)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


@pytest.mark.slow
def test_on_scifact_a_word_that_a_document_lacks_is_in_no_field_of_it(shared: Path, tmp_path: Path) -> None:
    folder = shared / "scifact"
    built = ft.Index.build(folder / "corpus.jsonl", tmp_path / "index")
    run = (built.bm25() % 100)(ft.Topics.read(folder, split="test"))
    found = ft.comparison.failures(run, folder / "qrels" / "test.tsv", n=30)
    assert len(found) == 30
    for row in found:
        for one in row.low[:5]:
            terms = set(built.analyzed([one.id])[0])
            assert all(terms.isdisjoint(built.analyzer(word)) for word in one.lacks)
