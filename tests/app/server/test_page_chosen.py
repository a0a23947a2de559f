"""What is chosen on the page, clicked through in Chromium: dates, numbers, values, order, pages, and for whom the page is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.odd_documents import PIPELINES, described
from support.pages import Pages, expect, ids, shown, state, texts
from support.serving import Running, serving

import fontes as ft

SEARCH = "/?q=who+closed+the+port"
CHOSEN = (
    f"{SEARCH}&where=section+in+('business','news')+and+date+>=+'2015-01-01'+and+words+<=+120+and+(words+>+2+or+date+is+None)"
    "&sort=date&descending=true&syntax=query&pipeline=rm3"
)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ft.Index, Running]]:
    """An index with dates and numbers, and its server; beside it are an index without documents and one without titles."""
    folder = tmp_path_factory.mktemp("market")
    index = ft.Index.build(described(), folder / "market.index", analyzer="english", threads=1)
    ft.Index.build([], folder / "empty.index", threads=1)
    untitled = [{"_id": f"u{n}", "text": f"{place}は港です。人口は多い。"} for n, place in enumerate(("東京", "横浜", "神戸"))]
    ft.Index.build(untitled, folder / "untitled.index", threads=1)
    paths = [Path(index.path), folder / "empty.index", folder / "untitled.index"]
    with serving(*paths, pipelines=PIPELINES) as running:
        yield index, running


@pytest.fixture
def pages(browser: Any, market: tuple[ft.Index, Running]) -> Iterator[Pages]:
    opened = Pages(browser, market[1].address)
    yield opened
    opened.close()


@pytest.fixture
def index(market: tuple[ft.Index, Running]) -> ft.Index:
    return market[0]


def chips(page: Any) -> list[str]:
    return [text.rstrip("×") for text in texts(page, "#chips .chip")]


def test_dates_are_chosen_on_a_chart_by_mouse_and_by_keys_and_chips_take_them_back(pages: Pages, index: ft.Index) -> None:
    page, question = pages(SEARCH, audience="searchers"), "who closed the port"
    bars = page.locator("[aria-label=date] .bars button")
    bars.first.wait_for()
    bins = list(index.bm25().search(question).facets("date", bins=20)["date"])
    first, last = bars.nth(4).bounding_box(), bars.nth(9).bounding_box()
    page.mouse.move(first["x"] + 2, first["y"] + 20)
    page.mouse.down()
    page.mouse.move(last["x"] + 2, last["y"] + 20, steps=4)
    page.mouse.up()
    where = f"date >= '{bins[4][0]}' and date <= '{bins[9][1]}'"
    expect(page.locator("#chips .chip")).to_have_text(f"date {bins[4][0]} to {bins[9][1]}×")
    shown(page)
    assert ids(page) == index.bm25(where=where).search(question, 10).ids
    assert state(page)["where"] == [where]
    expect(page.locator("[aria-label=date] .bars .pressed")).to_have_count(6)
    bars.nth(9).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    where = f"date >= '{bins[10][0]}' and date <= '{bins[12][1]}'"
    expect(page.locator("#chips .chip")).to_have_text(f"date {bins[10][0]} to {bins[12][1]}×")
    shown(page)
    assert ids(page) == index.bm25(where=where).search(question, 10).ids
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").endswith("documents")
    page.keyboard.press("Enter")
    expect(page.locator("#chips .chip")).to_have_text(f"date {bins[12][0]} to {bins[12][1]}×")
    page.locator(".facet li button", has_text="news").click()
    expect(page.locator("#chips .chip")).to_have_count(2)
    page.click("text=Clear all")
    expect(page.locator("#chips")).to_be_hidden()
    shown(page)
    assert (ids(page), "where" in state(page)) == (index.bm25().search(question, 10).ids, False)
    page.go_back()
    expect(page.locator("#chips .chip")).to_have_count(2)
    page.click("[aria-label='Remove section: news']")
    expect(page.locator("#chips .chip")).to_have_count(1)
    assert page.evaluate("document.activeElement.className") == "chip"


def test_results_come_as_a_query_is_typed_and_the_last_request_wins(pages: Pages, index: ft.Index) -> None:
    page = pages(audience="searchers")
    late: list[Any] = []
    page.evaluate(
        """() => {
            const fetched = window.fetch;
            let running = 0;
            window.most = 0;
            window.fetch = (address, options) => {
                let own = Number(address.startsWith("search"));
                window.most = Math.max(window.most, running += own);
                const ended = () => { running -= own; own = 0; };
                options.signal.addEventListener("abort", ended);
                return fetched(address, options).finally(ended);
            };
        }"""
    )
    page.route(re.compile(r"/search\?q=tide&"), lambda route: late.append(route))
    page.keyboard.type("tide", delay=5)
    page.wait_for_selector("#progress:not([hidden])")
    page.keyboard.type(" flap ", delay=5)
    expect(page).to_have_title("tide flap · Fontes")
    shown(page)
    assert ids(page) == index.bm25().search("tide flap", 10).ids
    assert page.input_value("#q") == "tide flap "
    assert page.evaluate("document.activeElement.id") == "q"
    assert late
    assert page.evaluate("window.most") == 1
    page.keyboard.type("jammed")
    expect(page).to_have_title("tide flap jammed · Fontes")
    shown(page)
    page.go_back()
    page.wait_for_selector(".examples")
    assert page.input_value("#q") == ""


def test_a_request_is_sent_at_each_pause_unless_a_model_is_chosen(pages: Pages) -> None:
    page, asked = pages(), []
    page.on("request", lambda request: "/search?" in request.url and asked.append(request.url))
    page.keyboard.type("closed port", delay=20)
    page.wait_for_selector(".hit")
    assert len(asked) < 5
    script = "live => import('/page/app.js').then(({ app }) => { app.indexes[0].pipelines[0].model = live; })"
    page.evaluate(script, True)
    before = len(asked)
    page.keyboard.type("s and harbours")
    page.wait_for_timeout(500)
    assert len(asked) == before
    page.keyboard.press("Enter")
    expect(page).to_have_title("closed ports and harbours · Fontes")


@pytest.mark.slow
def test_numbers_are_chosen_by_two_handles(pages: Pages, index: ft.Index) -> None:
    page = pages(SEARCH, audience="searchers")
    least, greatest = (page.locator(f"[aria-label='words, {end}']") for end in ("least", "greatest"))
    least.focus()
    low, step = int(least.get_attribute("min")), int(least.get_attribute("step"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chips .chip")).to_have_text(f"words from {low + 2 * step}×")
    shown(page)
    assert ids(page) == index.bm25(where=f"words >= {low + 2 * step}").search("who closed the port", 10).ids
    expect(least).to_be_focused()
    assert least.get_attribute("aria-valuetext") == str(low + 2 * step)
    assert page.input_value("[aria-label='words from']") == str(low + 2 * step)
    box = greatest.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    expect(page.locator("#chips .chip")).to_have_text(re.compile(rf"words {low + 2 * step} to \d+×"))
    high = int(page.input_value("[aria-label='words to']"))
    shown(page)
    expect(greatest).to_have_attribute("aria-valuetext", str(high))
    greatest.focus()
    page.keyboard.press("Home")  # not below the other handle
    expect(page.locator("#chips .chip")).to_have_text(f"words {low + 2 * step} to {low + 2 * step}×")
    least.focus()
    page.keyboard.press("Home")
    expect(page.locator("#chips .chip")).to_have_text(f"words to {low + 2 * step}×")


@pytest.mark.slow
def test_pages_are_turned_and_shared_and_those_beyond_the_end_say_so(pages: Pages, index: ft.Index) -> None:
    page, ranking = pages(f"{SEARCH}&k=20"), index.bm25().search("who closed the port", 1000)
    expect(page.locator("#status")).to_have_text(f"1–20 of {len(ranking)} results")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.click("text=Next →")
    expect(page.locator("#status")).to_have_text(f"21–40 of {len(ranking)} results")
    assert (ids(page), state(page)["offset"]) == (ranking.ids[20:40], ["20"])
    assert page.locator(".hit .rank").first.text_content() == "21"
    assert not [url for url in asked if "facets" in url or "count" in url]  # they are those of the first page
    assert page.evaluate("document.activeElement.id") == "results"
    linked = pages(page.url.removeprefix(pages.address))
    linked.wait_for_selector(".hit")
    assert ids(linked) == ranking.ids[20:40]
    page.go_back()
    expect(page.locator("#status")).to_have_text(f"1–20 of {len(ranking)} results")
    page.goto(f"{pages.address}{SEARCH}&offset=500")
    expect(page.locator("#content .notes")).to_contain_text("The results end before number 501.")
    page.click("text=First page")
    expect(page.locator("#status")).to_have_text(f"1–10 of {len(ranking)} results")
    page.goto(f"{pages.address}/?q=the&k=20&offset=980")
    pages.expected.append("422")
    page.goto(f"{pages.address}{SEARCH}&offset=995")
    expect(page.locator("[role=alert]")).to_have_text(re.compile("goes beyond the best 1,000 hits"))


@pytest.mark.slow
def test_results_are_sorted_by_a_column(pages: Pages, index: ft.Index) -> None:
    page = pages(SEARCH)
    page.select_option("#sort", label="date, newest first")
    expect(page.locator("#chips .chip")).to_have_text("Sorted by date, newest first×")
    shown(page)
    stage = index.bm25() >> index.sort("date", descending=True)
    assert ids(page) == stage.search("who closed the port", 10).ids
    page.select_option("#sort", label="words, lowest first")
    expect(page.locator("#chips .chip")).to_have_text("Sorted by words, lowest first×")
    shown(page)
    assert ids(page) == (index.bm25() >> index.sort("words")).search("who closed the port", 10).ids
    page.select_option("#sort", label="Best match")
    expect(page.locator("#chips")).to_be_hidden()
    assert "sort" not in state(page)


@pytest.mark.slow
def test_what_researchers_see_is_behind_a_switch_that_is_remembered(pages: Pages) -> None:
    page = pages(SEARCH, audience="searchers")
    page.wait_for_selector(".facet")
    words = re.compile(r"\b(pipeline|beside|bm25|keyword|integer|condition)\b", re.IGNORECASE)
    for address in (SEARCH, "/", "/?view=talk"):
        page.goto(pages.address + address)
        shown(page)
        assert not words.findall(page.inner_text("body"))
    page.goto(pages.address + SEARCH)
    shown(page)
    page.locator("#audience").get_by_text("For researchers").click()
    expect(page.locator("#where")).to_be_visible()
    expect(page.locator(".score").first).to_be_visible()
    assert "integer" in page.inner_text(".facet >> nth=1")
    page.reload()
    shown(page)
    assert page.is_checked("[value=researchers]")
    page.goto(pages.address)
    expect(page.locator("h2:text-is('Pipelines')")).to_be_visible()
    page.focus("[value=researchers]")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("h2:text-is('Pipelines')")).to_be_hidden()


@pytest.mark.slow
def test_the_first_screen_shows_queries_that_find_something(pages: Pages, market: tuple[ft.Index, Running]) -> None:
    page = pages()
    page.wait_for_selector(".examples a")
    examples = texts(page, ".examples a")
    assert len(examples) == 3
    for text in examples:
        page.goto(pages.address)
        page.get_by_role("link", name=text, exact=True).click()
        page.wait_for_selector(".hit")
        assert page.locator(".hit .title").first.text_content() == text
    page.goto(f"{pages.address}/?index=untitled")
    page.wait_for_selector(".examples a")
    assert texts(page, ".examples a") == ["東京は港です。", "横浜は港です。", "神戸は港です。"]
    page.goto(f"{pages.address}/?index=empty")
    expect(page.locator("#status")).to_have_text("0 documents in empty")
    assert page.locator(".examples *").count() == 0
    page.fill("#q", "anything")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=holds any of these words")


@pytest.mark.slow
def test_what_a_link_has_chosen_is_shown_to_everybody_and_can_be_taken_back(pages: Pages) -> None:
    page = pages(CHOSEN, audience="searchers")
    assert chips(page) == [
        "section business",
        "section news",
        "date from 2015-01-01",
        "words to 120",
        "(words > 2 or date is None)",
        "Sorted by date, newest first",
        "Query language",
        "Ranked by rm3",
    ]
    for left in range(7, 0, -1):
        page.locator("#chips .chip").first.click()
        expect(page.locator("#chips .chip")).to_have_count(left)
        assert page.evaluate("document.activeElement.className") == "chip"
    page.locator("#chips .chip").first.click()
    expect(page.locator("#chips")).to_be_hidden()
    assert set(state(page)) == {"q"}


@pytest.mark.slow
def test_a_slow_answer_moves_nothing_and_a_failure_is_a_sentence(pages: Pages) -> None:
    pages.expected.append("500")
    page = pages(SEARCH)
    waiting: list[Any] = []
    page.route(re.compile(r"/search\?.*sort=date"), lambda route: waiting.append(route))
    before = page.locator(".hit").first.bounding_box()
    page.select_option("#sort", label="date, oldest first")
    page.wait_for_selector("#progress:not([hidden])")
    after = page.locator(".hit").first.bounding_box()
    assert after["y"] - before["y"] == pytest.approx(page.locator("#chips").bounding_box()["height"] + 9.6, abs=1)  # a chip
    waiting[0].fulfill(status=500, json={"detail": "the server failed at this request"})
    expect(page.locator("[role=alert]")).to_have_text("The server failed at this request.")
    page.unroute_all()
    page.click("text=Try again")
    page.wait_for_selector(".hit")


@pytest.mark.slow
def test_without_javascript_the_page_says_so(browser: Any, market: tuple[ft.Index, Running]) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(market[1].address)
    assert page.locator("noscript p").bounding_box()["height"] > 0
    assert page.locator("noscript p").inner_text().startswith("This page needs JavaScript")
    expect(page.locator("#q")).to_be_hidden()
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(pages: Pages, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="accessibility is checked with axe-core").Axe()
    for audience in ("searchers", "researchers"):
        page = pages("/", width, color_scheme=scheme, audience=audience)
        for address in ("/", SEARCH, f"{SEARCH}&offset=20", CHOSEN, f"{SEARCH}&offset=500", "/?q=xyzzy"):
            page.goto(pages.address + address)
            shown(page)
            for summary in page.locator("#filters summary:visible, #settings summary:visible").all():
                summary.click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            violations = axe.run(page).response["violations"]
            assert [(v["id"], v["nodes"][0]["html"]) for v in violations] == [], address
