"""The page of a report in a browser: what a reader can click, at the width of a phone and of a desk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fontes as ft
from fontes.passages import Rationale

HOSTILE = "</script><script>window.broken = true</script> \"q\" 'r' <img src=x onerror=alert(1)> Ječmen"
TOPICS = 30
WIDTHS = [390, pytest.param(1280, marks=pytest.mark.slow)]


class Library:
    """Documents with hostile titles, of each of which one sentence was picked."""

    def rationales(self, topic_id: str, doc_id: str) -> list[Rationale]:
        return [Rationale(2, 0.5, f"sentence of {doc_id} {HOSTILE}")]

    def docs(self, ids: Any) -> list[ft.Doc]:
        return [ft.Doc(doc_id, f"text of {doc_id}", HOSTILE) for doc_id in ids]


@pytest.fixture(scope="module")
def report() -> ft.comparison.Report:
    """Thirty topics: in the first ten a is best, in the next ten it is worst; c lacks some topics."""
    topics = [HOSTILE, *(f"t{i}" for i in range(1, TOPICS))]
    qrels = {t: {f"{t} r{d}": 1 + d % 2 for d in range(5)} | {f"{t} n0": 0} for t in topics}
    runs: dict[str, dict[str, dict[str, float]]] = {"a": {}, "b": {}, f"c {HOSTILE}": {}}
    for i, t in enumerate(topics):
        good = [f"{t} r0", f"{t} n0", f"{t} r1", *(f"{t} u{d}" for d in range(12)), f"{t} r4"]
        bad = [f"{t} u3", f"{t} n0", *(f"{t} u{d}" for d in range(4, 9 + i % 3)), f"{t} r1", f"{t} u0", f"{t} u1", f"{t} r0"]
        first, second = (good, bad) if i < 10 else (bad, good) if i < 20 else (good, good)
        runs["a"][t] = {d: 1 / (n + 1) for n, d in enumerate(first)}
        runs["b"][t] = {d: 1 / (n + 1) for n, d in enumerate(second)}
        if i % 3:
            runs[f"c {HOSTILE}"][t] = {d: 1 / (n + 1) for n, d in enumerate(good[: i + 1])}
    texts = {t: f"what is topic {i}? {HOSTILE}" for i, t in enumerate(topics)}
    systems = {"a": ft.Run.of(runs["a"]).with_(documents=Library()), "b": runs["b"], f"c {HOSTILE}": runs[f"c {HOSTILE}"]}
    return ft.compare(systems, texts, qrels, ["AP", "nDCG@10", "NumRelRet"], baseline="b", cache=False)


@pytest.fixture
def opened(browser: Any, report: ft.comparison.Report, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page at a width; in the end there must have been no error, no request and no alert."""
    trouble: list[str] = []
    pages = []

    def open_page(width: int = 1280, shown: ft.comparison.Report | None = None, **options: Any) -> Any:
        path = tmp_path / "page.html"
        (shown or report).save(path)
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        pages.append(page)
        page.set_default_timeout(5000)
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: None if request.url in wanted else trouble.append(f"request: {request.url}"))
        wanted = {path.as_uri(), "data:,"}
        page.goto(path.as_uri())
        return page

    yield open_page
    for page in pages:
        page.close()
    assert trouble == []


def values(page: Any, table: str, column: int) -> list[str]:
    script = f"rows => rows.filter(r => !r.hidden).map(r => r.cells[{column}].firstChild.textContent)"
    shown: list[str] = page.eval_on_selector_all(f"#{table} tbody tr", script)
    return shown


def choose(page: Any, **choices: str) -> None:
    for place, label in choices.items():
        page.select_option(f"#{place}", label=label)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.slow)])
def test_the_page_never_scrolls_sideways(opened: Callable[..., Any], width: int, scheme: str) -> None:
    page = opened(width, color_scheme=scheme)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("#differences").scroll_into_view_if_needed()
    box = page.locator("#differences").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 100)
    assert page.locator("#differences .tip").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("window.broken") is None


def test_dark_and_light_differ_and_print_is_light(opened: Callable[..., Any]) -> None:
    page = opened(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 24, 28)"
    page.emulate_media(media="print")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert not page.locator("#find").is_visible()
    page.emulate_media(media="screen", color_scheme="light")
    assert page.evaluate(background) == "rgb(255, 255, 255)"


def test_the_buttons_of_a_table_sort_it_and_say_how(opened: Callable[..., Any], report: ft.comparison.Report) -> None:
    page = opened()
    header = page.locator("#means-table th").nth(2)
    assert header.get_attribute("aria-sort") == "none"
    header.locator("button").click()
    shown = [float(v) for v in values(page, "means-table", 2)]
    assert shown == sorted(shown, reverse=True)
    assert header.get_attribute("aria-sort") == "descending"
    header.locator("button").focus()
    page.keyboard.press("Enter")
    assert [float(v) for v in values(page, "means-table", 2)] == sorted(shown)
    assert header.get_attribute("aria-sort") == "ascending"
    page.locator("#means-table th button").nth(1).click()
    assert values(page, "means-table", 1) == [
        f"{name} (baseline)" if name == report.baseline else name for name in report.systems
    ]
    assert header.get_attribute("aria-sort") == "none"
    page.locator("#tests-table th button").nth(3).click()
    shown = [float(v.replace("−", "-")) for v in values(page, "tests-table", 3)]
    assert shown == sorted(shown, reverse=True)
    assert min(shown) < 0
    choose(page, tested="nDCG@10")
    assert values(page, "tests-table", 0) == ["nDCG@10"] * 2


def test_curves_show_the_values_under_the_pointer_and_the_arrow_keys(
    opened: Callable[..., Any], report: ft.comparison.Report
) -> None:
    page = opened()
    assert page.locator("#by-k path.line").count() == 3
    dashes = page.locator("#by-k path.line").evaluate_all("lines => lines.map(l => l.getAttribute('stroke-dasharray'))")
    assert len(set(dashes)) == 3
    page.locator("#by-k svg").focus()
    page.keyboard.press("Home")
    recall = ft.evaluate(report.systems["a"].run, report.qrels, [ft.R @ 1])[ft.R @ 1]
    assert f"a{recall:.4f}" in page.locator("#by-k .tip p").all_text_contents()
    page.keyboard.press("Escape")
    assert not page.locator("#by-k .tip").is_visible()
    page.locator("#precision svg").hover()
    assert page.locator("#precision .tip b").text_content() == "recall 0.45"
    precision = ft.evaluate(report.systems["b"].run, report.qrels, [ft.measures.IPrec @ 0.45])[ft.measures.IPrec @ 0.45]
    assert f"b{precision:.4f}" in page.locator("#precision .tip p").all_text_contents()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_reader_chooses_the_measure_that_is_drawn_against_k(
    opened: Callable[..., Any], report: ft.comparison.Report, width: int
) -> None:
    page = opened(width)
    page.select_option("#at-k", label="F1")
    page.locator("#by-k svg").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    f1 = ft.evaluate(report.systems["a"].run, report.qrels, ["SetF@2"])["SetF@2"]
    assert f"a{f1:.4f}" in page.locator("#by-k .tip p").all_text_contents()
    page.locator("#curves summary").click()
    assert page.locator("#by-k-values th").first.text_content() == "F1, k"
    assert page.locator("#by-k-values td").nth(2).text_content() == f"{f1:.4f}"
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_picked_sentences_are_shown_for_the_system_that_picked_them(opened: Callable[..., Any]) -> None:
    page = opened()
    choose(page, system="a", against="b")
    lists = page.locator("#topic .lists section")
    assert lists.nth(0).locator(".picked p").first.text_content().startswith("2sentence of")
    assert lists.nth(1).locator(".picked").count() == 0


def test_bars_follow_the_choice_of_measure_and_systems(opened: Callable[..., Any], report: ft.comparison.Report) -> None:
    page = opened()
    choose(page, measure="AP", system="a", against="b")
    rows = report.per_topic("AP").values()
    gains = sum(row["a"] > row["b"] for row in rows)
    losses = sum(row["a"] < row["b"] for row in rows)
    assert (page.locator("rect.gain").count(), page.locator("rect.loss").count()) == (gains, losses)
    test = report.comparison("a", "b", "AP")
    assert (gains, losses) == (test.wins, test.losses)
    sign = "+" if test.difference > 0 else "−"
    assert f"a minus b, AP: {sign}{abs(test.difference):.4f}" in page.locator("#summary").text_content()
    page.click("#swap")
    assert (page.locator("rect.gain").count(), page.locator("rect.loss").count()) == (losses, gains)
    choose(page, measure="NumRelRet")
    assert "NumRelRet" in page.locator("#summary").text_content()
    choose(page, against="b")
    assert page.locator("#differences svg rect").count() == 1
    assert "equal in 30" in page.locator("#summary").text_content()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_bar_opens_its_topic_with_both_rankings(opened: Callable[..., Any], report: ft.comparison.Report, width: int) -> None:
    page = opened(width)
    choose(page, measure="AP", system="a", against="b")
    bar = page.locator("rect.loss").last
    topic = list(report.topics)[int(bar.get_attribute("data-topic"))]
    page.locator("#differences").scroll_into_view_if_needed()
    box = bar.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#topic h4").text_content() == topic
    assert page.locator("#topic").bounding_box()["y"] < 900
    for side, system in enumerate("ab"):
        shown = page.locator(f"#topic .lists section:nth-child({side + 1}) .id").all_text_contents()
        assert shown == report.systems[system].run[topic].ids[:10]
    assert page.locator("#topic .lists .relevant .id").all_text_contents() == [
        d for s in "ab" for d in report.systems[s].run[topic].ids[:10] if report.qrels[topic].get(d, 0) > 0
    ]
    signs = page.locator("#topic .lists section:nth-child(2) .sign").all_text_contents()
    assert signs[:4] == ["✓", "✗", "✓", "?"]
    assert "grade 2" in page.locator("#topic .lists").text_content()
    assert page.locator("#topic .topic").text_content() == report.topics[topic].text


def test_bars_are_reached_by_keys(opened: Callable[..., Any], report: ft.comparison.Report) -> None:
    page = opened()
    choose(page, measure="AP", system="a", against="b")
    page.locator("#differences svg").focus()
    for key in ("End", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    rows = report.per_topic("AP")
    order = sorted(rows, key=lambda t: rows[t]["b"] - rows[t]["a"])
    assert page.locator("#topic h4").text_content() == order[-2]
    assert page.evaluate("document.activeElement.id") == "topic"


def test_the_same_document_is_marked_in_both_lists_and_its_rank_leads_to_it(opened: Callable[..., Any]) -> None:
    page = opened()
    choose(page, system="a", against="b")
    page.locator("#list button").nth(1).click()
    assert page.locator("#topic h4").text_content() == "t1"
    second = page.locator("#topic .lists section").nth(0).locator("li").nth(1)
    second.hover()
    assert page.locator(".docs li.same .id").all_text_contents() == ["t1 n0", "t1 n0"]
    third = page.locator("#topic .lists section").nth(0).locator("li").nth(2)
    rank = int(third.locator(".other button").text_content())
    assert third.locator(".other").text_content() == f"{rank} ▲{rank - 3}"
    third.locator(".other button").click()
    assert page.evaluate("document.activeElement.id").startswith("doc-1-")
    assert page.locator(":focus .id").text_content() == "t1 r1"
    first = page.locator("#topic .lists section").nth(0).locator("li").nth(0)
    assert first.locator(".other").text_content() == "12 ▲11"
    title = page.locator("#topic .docs .text b").first.text_content()
    assert title == HOSTILE


def test_relevant_documents_that_both_lack_are_listed_with_their_ranks(opened: Callable[..., Any]) -> None:
    page = opened()
    choose(page, system="a", against="b")
    page.locator("#list button").nth(1).click()
    assert page.locator(".missing h5").text_content() == "Relevant documents in neither list: 3 of 5"
    listed = dict(
        zip(page.locator(".missing .id").all_text_contents(), page.locator(".ranks").all_text_contents(), strict=True)
    )
    assert listed == {"t1 r3": "a: not found b: not found", "t1 r2": "a: not found b: not found", "t1 r4": "a: 16 b: not found"}


def test_topics_are_found_by_words_and_by_who_wins(opened: Callable[..., Any]) -> None:
    page = opened()
    choose(page, system="a", against="b")
    page.fill("#find", "17? TOPIC")
    assert page.locator("#list button span:first-child").all_text_contents() == ["t17"]
    page.fill("#find", "")
    choose(page, show="where both are equal")
    assert page.locator("#found").text_content() == "10 topics"
    choose(page, show="where it is worse")
    page.locator("#list button").first.click()
    assert page.locator("#list [aria-current]").count() == 1
    before = page.locator("#topic h4").text_content()
    page.locator("[aria-label='Topic after']").click()
    assert (
        page.locator("#topic h4").text_content()
        == page.locator("#list button span:first-child").nth(1).text_content()
        != before
    )


def test_unusual_reports_open_too(opened: Callable[..., Any]) -> None:
    for systems, qrels in (
        ({"a": {"q": {"d": 1.0}}}, {"q": {"d": 1}}),
        ({"a": {}, "b": {}}, {"q": {"d": 0}}),
        ({f"s{i}": {"q": {"d": 1.0}} for i in range(12)}, {"q": {"d": 1}}),
        ({name * 300: {"q": {"d" * 300: 1.0, "f": 0.5}} for name in "xy"}, {"q": {"e" * 300: 1, "f": 0}}),
    ):
        page = opened(390, ft.compare(systems, None, qrels, ["AP", "P@5"], cache=False))
        assert page.locator("#topic h4").text_content() == "q"
        assert page.locator("#legend li").count() == len(systems)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
