"""The page of a report: what stands in it, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes.comparison import report_page
from fontes.passages import Rationale

HOSTILE = "</script><script>alert(1)</script> \"quoted\" 'too' & <b>Ječmen</b> 東京 \u2028"
QRELS = {"q1": {"d1": 1, "d2": 2, "d7": 1}, "q2": {"d3": 1, "d9": 0}, "q3": {"d1": 0}, HOSTILE: {"d4": 1, HOSTILE: -1}}
GOOD = {"q1": {"d2": 3.0, "d1": 2.0, "d9": 1.0}, "q2": {"d3": 1.0}, HOSTILE: {"d4": 1.0, HOSTILE: 0.5}}
BAD = {"q1": {"d9": 3.0, "d1": 2.0}, "q2": {"d8": 1.0, "d9": 0.7, "d3": 0.5}, "q3": {"d1": 1.0}}
TEXTS = {"q1": "where the water comes from", "q2": "how to dig a well", "q3": "", HOSTILE: HOSTILE}
VOID = {"meta", "link", "input", "br"}


class Elements(HTMLParser):
    """Reads a page, and refuses one whose elements do not close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.rows: dict[str, list[list[str]]] = {}
        self.table = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.table = dict(attrs).get("id") or ""
        if tag == "tr":
            self.rows.setdefault(self.table, []).append([])
        if tag in ("td", "th"):
            self.rows[self.table][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open) and not {"sup", "small"} & set(self.open):
            self.rows[self.table][-1][-1] += data


class Library:
    """Documents that know some of the ids, and refuse the others as an index does."""

    def docs(self, ids: Iterable[str]) -> list[ft.Doc]:
        docs = []
        for doc_id in ids:
            if doc_id == "d8":
                raise ft.core.InputError(f"there is no document '{doc_id}'")
            docs.append(ft.Doc(doc_id, "the text of it " * 100, f"{HOSTILE} of {doc_id}"))
        return docs


def compare_runs(
    systems: dict[str, Any] | None = None, measures: Any = ("AP", "R@2", "NumRelRet"), **options: Any
) -> ft.comparison.Report:
    systems = systems or {"good": GOOD, f"bad {HOSTILE}": BAD, "none": {}}
    return ft.compare(systems, TEXTS, QRELS, measures, allow_empty=True, cache=False, **options)


def data_of(page: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_the_page_is_well_formed_and_its_ids_are_unique() -> None:
    elements = Elements(compare_runs().to_html())
    ids = [attributes["id"] for _, attributes in elements.attributes if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [tag for tag, _ in elements.attributes].count("script") == 2


def test_nothing_comes_from_elsewhere() -> None:
    page = compare_runs().to_html()
    assert set(re.findall(r"http[\w-]*", page)) == {"http-equiv"}
    for tag, attributes in Elements(page).attributes:
        assert not attributes.get("src"), tag
        assert (attributes.get("href") or "#").startswith(("#", "data:")), tag
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|eval\(", page)


def test_the_policy_of_the_page_allows_its_own_script_alone() -> None:
    import base64
    import hashlib

    page = compare_runs().to_html()
    (policy,) = [a["content"] or "" for _, a in Elements(page).attributes if a.get("http-equiv") == "Content-Security-Policy"]
    script = page.rsplit("<script>", 1)[1].split("</script>")[0]
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy


def test_hostile_topics_names_and_texts_stay_text() -> None:
    run = ft.Run.of(GOOD).with_(documents=Library())
    page = compare_runs({"good": run, HOSTILE: BAD}).to_html()
    assert "<script>alert" not in page
    assert [tag for tag, _ in Elements(page).attributes].count("b") <= 4
    data = data_of(page)
    assert [HOSTILE, " ".join(HOSTILE.split())] in data["topics"]
    assert ["b", HOSTILE] in data["systems"]
    assert HOSTILE in data["docs"]


def test_half_a_character_does_not_stop_the_page(tmp_path: Path) -> None:
    report = ft.compare({"a \ud800": GOOD}, {"q1": "\udfff"}, QRELS, "AP", cache=False)
    report.save(tmp_path / "r.html")
    assert "a \ufffd" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_same_report_makes_the_same_page() -> None:
    assert compare_runs().to_html() == compare_runs().to_html()


def test_the_tables_hold_the_figures_of_the_report() -> None:
    report = compare_runs(baseline="none")
    rows = Elements(report.to_html()).rows
    head, *means = rows["means-table"]
    assert head == ["#", "system", "AP", "Judged@3", "R@2", "Judged@2", "NumRelRet"]
    for row, name in zip(means, report.systems, strict=True):
        shown = (f"{report.mean(name, 'AP'):.4f}", f"{report.mean(name, 'R@2'):.4f}", f"{report.mean(name, 'NumRelRet'):.0f}")
        assert (row[1], row[2], row[4], row[6]) == (f"{name} (baseline)" if name == "none" else name, *shown)
    _, *tests = rows["tests-table"]
    assert len(tests) == len(report.comparisons)
    for row, c in zip(tests, report.comparisons, strict=True):
        assert row[:4] == [str(c.measure), c.system, c.against, f"{c.difference:+.4f}".replace("-", "−")]
        assert row[-1] == f"{c.wins}/{c.ties}/{c.losses}"
        assert float(row[5]) == pytest.approx(c.p, abs=1e-4)
        assert float(row[6]) == pytest.approx(c.corrected, abs=1e-4)


def test_best_values_are_bold_and_superscripts_have_a_legend(shared: Path) -> None:
    folder = shared / "checkthat25_4b"
    runs = sorted((folder / "runs").glob("dev.*"))
    page = ft.compare(runs, None, folder / "qrels" / "dev.tsv", [ft.RR @ 5], cache=False).to_html()
    assert "<b>0.7084</b><sup>a c d</sup>" in page
    assert "superscripts: significantly better than the systems with these letters (paired t-test, Holm" in page
    assert "<small>0.6862–0.7302</small>" in page


def test_the_values_by_topic_are_those_of_the_report() -> None:
    report = compare_runs()
    data = data_of(report.to_html())
    for i, measure in enumerate(report.measures):
        for s, name in enumerate(report.systems):
            expected = list(report.systems[name].evaluation.per_topic(measure).values())
            assert data["values"][i][s] == pytest.approx(expected, abs=1e-6)


def test_the_curves_are_interpolated_precision_and_measures_against_k() -> None:
    report = compare_runs()
    curves = data_of(report.to_html())["curves"]
    assert curves["ks"] == [1, 2, 3]
    for s, system in enumerate(report.systems.values()):
        for (name, by_system), measure in zip(curves["at"], ["R", "P", "SetF", "RR", "nDCG", "Success"], strict=True):
            at_k = ft.evaluate(system.run, QRELS, [f"{measure}@{k}" for k in curves["ks"]])
            assert by_system[s] == pytest.approx(list(at_k.values()), abs=1e-6), name
        precision = ft.evaluate(system.run, QRELS, [ft.measures.IPrec @ x for x in curves["recalls"]])
        assert curves["precision"][s] == pytest.approx(list(precision.values()), abs=1e-6)


def test_rankings_are_cut_at_the_depth_and_ranks_of_relevant_documents_go_beyond() -> None:
    page = compare_runs({"good": GOOD, "bad": BAD}).to_html(depth=2)
    data = data_of(page)
    docs, ranking = data["docs"], data["rankings"][1]
    assert [[docs[d] for d in ids] for ids in ranking["lists"]] == [["d3"], ["d8", "d9"]]
    assert {docs[d]: g for d, g in ranking["grades"]} == {"d3": 1, "d9": 0}
    assert [(docs[d], *rest) for d, *rest in ranking["relevant"]] == [("d3", 1, 1, 3)]
    first = data["rankings"][0]
    assert [(docs[d], *rest) for d, *rest in first["relevant"]] == [("d2", 2, 1, 0), ("d1", 1, 2, 2), ("d7", 1, 0, 0)]
    assert first["count"] == 3


def test_the_texts_of_known_documents_are_cut_and_of_unknown_ones_left_out() -> None:
    report = compare_runs({"good": GOOD, "bad": ft.Run.of(BAD).with_(documents=Library())})
    data = data_of(report.to_html(snippet=160))
    texts = dict(zip(data["docs"], data["texts"], strict=True))
    assert texts.pop("d8") == 0
    for doc_id, (title, text) in texts.items():
        assert title == " ".join(f"{HOSTILE} of {doc_id}".split())
        assert text.startswith("the text of it")
        assert text.endswith("…")
        assert len(title) + len(text) <= 160
    assert data_of(report.to_html(snippet=0))["texts"] == []


def test_the_pair_shown_first_is_the_best_against_the_baseline() -> None:
    systems = {"bad": BAD, "good": GOOD, "none": {}}
    assert data_of(compare_runs(systems, baseline="none").to_html())["pair"] == [1, 2]
    assert data_of(compare_runs(systems).to_html())["pair"] == [1, 0]


def test_a_large_page_leaves_out_rankings_and_shortens_texts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_page, "MAX_RANKED", 40)
    monkeypatch.setattr(report_page, "MAX_CHARACTERS", 240)
    page = compare_runs({"good": ft.Run.of(GOOD).with_(documents=Library()), "bad": BAD}).to_html()
    data = data_of(page)
    assert (len(data["rankings"]), len(data["topics"])) == (2, 4)
    assert "Only the first 2 of 4 topics have their rankings in this page" in page
    length = 240 // len(data["docs"])
    assert f"texts are cut after {length} characters" in page
    assert all(len("".join(pair)) <= length for pair in data["texts"] if pair)
    assert "Topics' texts are cut after 60 characters" in page.replace("&#x27;", "'")
    assert 40 < max(len(text) for _, text in data["topics"]) <= 60


@pytest.mark.slow
def test_fourteen_hundred_topics_of_ten_systems_stay_below_four_megabytes() -> None:
    runs = {
        f"s{s}": {f"t{t}": {f"document-{t}-{(d * (s + 3)) % 41}": 1.0 / (d + 1) for d in range(20)} for t in range(1400)}
        for s in range(10)
    }
    qrels = {f"t{t}": {f"document-{t}-{d}": 1 for d in range(3)} for t in range(1400)}
    report = ft.compare(runs, {f"t{t}": "twenty words of a topic " * 4 for t in range(1400)}, qrels, ["AP", "RR"], cache=False)
    page = report.to_html()
    assert len(data_of(page)["rankings"]) == 1400
    assert len(page.encode()) < 4_000_000


def test_a_single_system_has_a_page_without_tests() -> None:
    page = compare_runs({"good": GOOD}).to_html()
    assert "tests-table" not in Elements(page).rows
    assert data_of(page)["pair"] == [0, 0]


def test_the_command_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from fontes.app.cli import app

    ft.write_qrels({"q1": {"d1": 1}}, tmp_path / "qrels.txt")
    ft.write_run({"q1": {"d1": 1.0}}, tmp_path / "a.run")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["compare", "qrels.txt", "a.run", "-m", "AP", "--html", "page.html", "-o", "same.html"])
    assert result.exit_code == 0
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "same.html").read_bytes()
    assert data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["docs"] == ["d1"]


def test_whether_evidence_is_complete_is_drawn_where_there_are_sets_of_documents() -> None:
    sets = ft.Qrels([("q1", "1", "d1", 1), ("q1", "1", "d2", 1), ("q2", "0", "d3", 1)])
    curves = data_of(ft.compare({"good": GOOD, "bad": BAD}, TEXTS, sets, ["AP"], cache=False).to_html())["curves"]
    at = dict(curves["at"])
    assert list(at)[-1] == "Complete"
    expected = ft.evaluate(GOOD, sets, [f"Complete@{k}" for k in curves["ks"]])
    assert at["Complete"][0] == list(expected.values())


class Picker(Library):
    """Documents with sentences that were picked of them."""

    def rationales(self, topic_id: str, doc_id: str) -> list[Rationale]:
        return [Rationale(3, 0.5, f"{HOSTILE} of {topic_id}")] if doc_id == "d1" else []


def test_sentences_picked_of_documents_stand_with_the_hits_of_their_system(monkeypatch: pytest.MonkeyPatch) -> None:
    systems = {"good": ft.Run.of(GOOD).with_(documents=Picker()), "bad": BAD}
    report = ft.compare(systems, TEXTS, QRELS, ["AP"], cache=False)
    data = data_of(report.to_html())
    first = data["rankings"][0]
    assert first["picked"] == [{str(data["docs"].index("d1")): [[3, f"{HOSTILE} of q1"]]}, {}]
    assert "picked" not in data_of(ft.compare({"bad": BAD}, TEXTS, QRELS, ["AP"], cache=False).to_html())["rankings"][0]
    monkeypatch.setattr(report_page, "MAX_CHARACTERS", 10)
    assert "Only the first 0 topics have the sentences that were picked" in report.to_html()
