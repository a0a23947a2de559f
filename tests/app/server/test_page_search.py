"""The page of the server, clicked through in Chromium: searching, filtering, reading, and what stands side by side."""

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from support.odd_documents import HOSTILE, LONG, described
from support.pages import Pages, expect, ids, shown, state, texts
from support.proxies import PREFIX, proxy
from support.serving import serving

import fontes as ft

PORT = "/?q=who+closed+the+port"
LINES = "e => { const r = document.createRange(); r.selectNodeContents(e); return r.getClientRects().length; }"
Indexes = dict[str, ft.Index]


def test_a_query_is_typed_and_its_results_have_titles_metadata_and_marks(pages: Pages, collections: Indexes) -> None:
    page = pages()
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("who closed the port")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    ranking = collections["harbour"].bm25().search("who closed the port", 10)
    assert ids(page) == ranking.ids
    assert texts(page, ".hit .title") == [doc.title for doc in ranking.docs()]
    assert texts(page, ".hit .edge .score") == [f"{hit.score:.4f}" for hit in ranking]
    assert "date 2015-07-23" in page.locator(".hit .about").first.text_content()
    assert {mark.lower() for mark in texts(page, ".hit .snippet mark")} <= {
        "who",
        "closed",
        "close",
        "port",
        "port's",
        "closes",
    }
    assert state(page) == {"q": ["who closed the port"]}
    assert page.title() == "who closed the port · Fontes"


def test_marks_are_where_the_words_are_though_characters_before_them_take_two_units(pages: Pages) -> None:
    page = pages("/?index=odd&q=hostile")
    hit = page.locator(".hit").filter(has_text="🎻🎻")
    assert hit.locator(".snippet mark").all_text_contents() == ["hostile", "hostile"]
    hit.locator(".title a").click()
    page.wait_for_selector("#reader .words")
    assert texts(page, "#reader .words mark") == ["hostile", "hostile"]


@pytest.mark.slow
def test_the_address_holds_the_state_so_back_forward_and_a_link_show_it_again(pages: Pages) -> None:
    page = pages(PORT)
    first = ids(page)
    page.fill("#q", "tide flap")
    page.click("#send")
    page.wait_for_selector(".hit[data-id=h114]")
    second = ids(page)
    page.locator(".hit .title a").first.click()
    page.wait_for_selector("#reader h2")
    title, address = page.locator("#reader h2").text_content(), page.url
    page.go_back()
    page.wait_for_selector("#reader", state="hidden")
    page.go_back()
    page.wait_for_selector(f".hit:first-child[data-id={first[0]}]")
    assert (ids(page), page.input_value("#q")) == (first, "who closed the port")
    page.go_forward()
    page.wait_for_selector(f".hit:first-child[data-id={second[0]}]")
    linked = pages(address.removeprefix(pages.address))
    linked.wait_for_selector("#reader h2")
    assert (ids(linked), linked.locator("#reader h2").text_content()) == (second, title)


def test_values_are_clicked_to_filter_and_the_filter_is_text_that_can_be_written(pages: Pages, collections: Indexes) -> None:
    page, index = pages(PORT), collections["harbour"]
    counts = index.bm25().search("who closed the port").facets("section")["section"]
    assert texts(page, ".facet li")[:2] == [f"{value} {count}" for value, count in list(counts.items())[:2]]
    for value, where in (("business", "section == 'business'"), ("council", "section in ('business', 'council')")):
        page.locator(".facet li button", has_text=value).click()
        expect(page.locator("#where")).to_have_value(where)
        shown(page)
        assert ids(page) == index.bm25(where=where).search("who closed the port", 10).ids
        assert state(page)["where"] == [where]
        assert page.locator(".facet li button", has_text=value).get_attribute("aria-pressed") == "true"
    page.wait_for_selector(".facet li:nth-child(4)")  # what else could be chosen stays there
    page.fill("[aria-label='date from']", "2016-01-01")
    page.keyboard.press("Tab")
    where += " and date >= '2016-01-01'"
    expect(page.locator("#where")).to_have_value(where)
    shown(page)
    assert ids(page) == index.bm25(where=where).search("who closed the port", 10).ids
    page.fill("#where", "section == 'court' or section == 'health'")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit:first-child .about:has-text('court'), .hit:first-child .about:has-text('health')")
    page.locator(".facet li button", has_text="court").click()
    where = "(section == 'court' or section == 'health') and section == 'court'"
    expect(page.locator("#where")).to_have_value(where)
    shown(page)
    assert ids(page) == index.bm25(where=where).search("who closed the port", 10).ids
    page.fill("#where", "section == 'nothing'")
    page.click("text=Apply")
    page.wait_for_selector("text=Search without the filter")
    assert page.locator("#status").text_content() == "No document matches"
    page.click("text=Search without the filter")
    page.wait_for_selector(".hit")
    assert "where" not in state(page)


def test_any_value_and_any_name_can_be_filtered_by(pages: Pages, collections: Indexes) -> None:
    page = pages("/?index=odd")
    script = "([name, type, value, before]) => import('/page/filter.js').then(f => f.toggled(before, name, type, value))"
    index = collections["odd"]
    for name, value in (("kind", HOSTILE), ("and", "a 'b' \\"), (HOSTILE, HOSTILE), ("kind", "שלום")):
        where = page.evaluate(script, [name, "keyword", value, ""])
        assert len(index.bm25(where=where).search("hostile")) == 1, where
        both = page.evaluate(script, [name, "keyword", "x", where])
        assert page.evaluate(script, [name, "keyword", "x", both]) == where
        assert page.evaluate(script, [name, "keyword", value, f"kind is None or {where}"]).startswith("(kind is None or ")


def test_a_reader_sees_why_a_result_is_there_and_which_terms_weigh(pages: Pages, collections: Indexes) -> None:
    page = pages(PORT)
    first = page.locator(".hit").first
    first.locator("button.why").click()
    page.wait_for_selector(".tree")
    explanation = collections["harbour"].bm25().explain("who closed the port", first.get_attribute("data-id"))
    terms = {part.label.strip("'"): part.value for part in explanation.parts}
    assert first.locator(".tree .term").all_text_contents() == list(terms)
    weights = first.locator(".tree .term").evaluate_all("terms => terms.map(t => Number(t.style.getPropertyValue('--weight')))")
    assert weights == pytest.approx([value / max(terms.values()) for value in terms.values()], rel=1e-4)
    colours = first.locator(".tree .term").evaluate_all("terms => terms.map(t => getComputedStyle(t).backgroundColor)")
    assert len(set(colours)) == len(terms)
    assert first.locator(".snippet mark.weighed").count() > 0
    first.locator(".tree summary").nth(1).click()
    assert "idf" in first.locator(".tree li li").first.inner_text()
    explained = first.get_attribute("data-id")
    assert state(page)["why"] == [explained]
    again = pages(f"{PORT}&why={explained}")
    again.wait_for_selector(".hit:first-child .tree")
    again.locator(".hit button.why").first.click()
    assert not again.locator(".tree").is_visible()
    assert "why" not in state(again)


@pytest.mark.slow
def test_two_pipelines_stand_side_by_side_with_what_only_one_has(pages: Pages, collections: Indexes) -> None:
    page = pages(PORT)
    page.select_option("#against", label="rm3")
    page.wait_for_selector(".pair .hit")
    index = collections["harbour"]
    stages = index.bm25(), index.bm25() % 3 >> index.rm3() >> index.bm25()
    runs = [stage.search("who closed the port", 10).ids for stage in stages]
    sides = [".side:nth-child(1)", ".side:nth-child(2)"]
    assert [ids(page, side) for side in sides] == runs
    alone = [[i for i in run if i not in other] for run, other in (runs, runs[::-1])]
    for side, own in zip(sides, alone, strict=True):
        assert page.locator(f"{side} .hit:has(.alone)").evaluate_all("hits => hits.map(h => h.dataset.id)") == own
    assert page.locator("#status").text_content() == (
        f"{10 - len(alone[0])} documents in both, {len(alone[0])} only in bm25, {len(alone[1])} only in rm3"
    )
    page.check("#only")
    assert page.locator(".pair .hit:visible").count() == len(alone[0]) + len(alone[1])
    page.uncheck("#only")
    both = next(i for i in runs[0] if i in runs[1])
    page.locator(f"{sides[0]} .hit[data-id={both}] .other").click()
    assert page.evaluate("document.activeElement.closest('.hit').dataset.side") == "1"
    assert page.locator(".hit.same").count() == 2
    page.click("#content button:text-is('Swap')")
    page.wait_for_selector(".side:first-child h2 bdi:text-is('rm3')")
    assert [ids(page, side) for side in sides] == runs[::-1]
    page.click("text=Next →")
    expect(page.locator(".pair .rank").first).to_have_text("11")
    further = (
        index.bm25().search("who closed the port", 10, offset=10),
        stages[1].search("who closed the port", 10, offset=10),
    )
    assert [ids(page, side) for side in sides[::-1]] == [ranking.ids for ranking in further]
    expect(page.locator("#status")).to_have_text(re.compile("^Ranks 11–20: "))
    page.click("text=← Previous")
    expect(page.locator(".pair .rank").first).to_have_text("1")


def test_a_long_document_is_shown_in_pieces_and_its_matches_are_reached(pages: Pages) -> None:
    page = pages("/?index=odd&q=zebra&doc=long")
    page.wait_for_selector("#reader .piece")
    assert len(page.locator("#reader .words").text_content()) < LONG / 10
    assert page.locator("#reader [role=status]").text_content() == "1 match"
    page.click("[aria-label='Next match']")
    assert page.locator("#reader mark.here").text_content() == "zebra"
    text = page.locator("#reader .words").evaluate("words => words.textContent")
    assert len(text) == LONG // 47 * 47 + len(" zebra at the end")
    page.wait_for_timeout(200)
    assert page.locator("#reader mark.here").evaluate(
        "m => { const y = m.getBoundingClientRect().y; return y > 0 && y < innerHeight; }"
    )


@pytest.mark.slow
def test_a_thousand_results_are_there_and_the_last_is_reached(pages: Pages) -> None:
    page = pages("/?index=odd&q=many&k=1000")
    page.wait_for_selector(".hit:nth-child(1000)", state="attached")
    assert page.locator("#status").text_content() == "1–1,000 of 1,050 results"
    script = "scrollTo(0, document.body.scrollHeight), document.body.offsetHeight, performance.now() - began"
    milliseconds = page.evaluate(f"() => {{ const began = performance.now(); return ({script}); }}")
    assert milliseconds < 1000
    page.locator(".hit").last.scroll_into_view_if_needed()
    rank = page.locator(".hit").last.locator(".rank")
    assert rank.text_content() == "1000"
    assert rank.evaluate(LINES) == 1


def test_where_nothing_is_counted_there_are_more_than_a_thousand_results(browser: Any, tmp_path: Path) -> None:
    ft.Index.build({f"d{n}": "many" if n < 1001 else "few" for n in range(1003)}, tmp_path / "plain.index", threads=1)
    with serving(tmp_path / "plain.index") as running:
        pages = Pages(browser, running.address)
        page = pages("/?q=many")
        assert page.locator("#status").text_content() == "1–10 of more than 1,000 results"
        page.click("text=Next →")
        expect(page.locator("#status")).to_have_text("11–20 of more than 1,000 results")
        page.goto(f"{running.address}/?q=few")
        expect(page.locator("#status")).to_have_text("2 results")
        pages.close()


@pytest.mark.slow
def test_documents_open_whose_ids_browsers_take_for_places(pages: Pages) -> None:
    page = pages("/?index=odd&q=hostile&k=20")
    for dots in (".", ".."):
        page.locator(f".hit[data-id='{dots}'] .title a").click()
        page.wait_for_selector(f"#reader h2:text-is('Id {dots}')")
        assert page.locator("#reader .words").text_content() == f"hostile {dots}"
        page.reload()
        page.wait_for_selector(f"#reader h2:text-is('Id {dots}')")


@pytest.mark.slow
def test_a_long_title_is_cut_in_the_list_and_whole_in_the_document(pages: Pages) -> None:
    page = pages("/?index=odd&q=hostile&k=20&doc=wide")
    page.wait_for_selector("#reader h2")
    assert len(page.locator("#reader h2").text_content()) == 10_000
    hit = page.locator(".hit[data-id=wide]")
    assert hit.locator(".title").text_content() == "W" * 299 + "…"
    assert "free yes" in hit.locator(".about").text_content()


@pytest.mark.slow
def test_what_is_clicked_in_the_filter_stays_under_the_mouse(pages: Pages) -> None:
    page = pages(f"{PORT}&k=100")
    value = page.locator(".facet li button").nth(6)
    name, before = value.locator("bdi").text_content(), value.bounding_box()
    value.click()
    page.wait_for_selector(".facet [aria-pressed=true]")
    for _ in range(2):
        shown(page)
        page.wait_for_load_state("networkidle")  # the counts come after the results and replace the list
        after = page.locator(".facet [aria-pressed=true]")
        assert after.locator("bdi").text_content() == name
        assert after.bounding_box() == before
    heights = page.locator(".facet .count").evaluate_all(f"counts => counts.map({LINES})")
    assert set(heights) == {1}
    page.click("#chips button")
    page.wait_for_selector(".facet [aria-pressed=true]", state="detached")
    assert "where" not in state(page)


@pytest.mark.slow
def test_the_focus_returns_to_the_document_that_was_read_last(pages: Pages) -> None:
    page = pages(PORT)
    page.focus("[aria-label='date from']")
    page.keyboard.type("2015-01-01")
    page.keyboard.press("Tab")
    expect(page.locator("#where")).to_have_value("date >= '2015-01-01'")
    shown(page)
    assert page.evaluate("document.activeElement.ariaLabel") == "date to"
    second = page.locator(".hit .title a").nth(1)
    page.locator(".hit .title a").first.press("Enter")
    page.wait_for_selector("#reader h2")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(f"#reader h2:text-is({second.text_content()!r})")
    page.keyboard.press("Escape")
    assert second.evaluate("a => a === document.activeElement")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "more"), [(390, ""), (1280, ""), (1280, "&against=rm3")])
def test_the_ring_of_what_has_the_focus_is_drawn_whole(pages: Pages, width: int, more: str) -> None:
    page = pages(PORT + more, width)
    inside = """button => { const own = button.getBoundingClientRect(), hit = button.closest('.hit').getBoundingClientRect();
        return own.right + 4 <= hit.right && own.left - 4 >= hit.left; }"""
    for button in page.locator(".hit button").all():
        assert button.evaluate(inside)


def test_an_index_that_is_not_there_is_said(pages: Pages) -> None:
    page = pages("/?index=nothing&q=hostile")
    assert page.locator("[role=alert]").text_content() == "There is no index 'nothing'; there are harbour, odd."
    page.select_option("#index", "odd")
    page.wait_for_selector(".hit")
    assert state(page)["index"] == ["odd"]


def test_hostile_text_is_shown_as_text(pages: Pages) -> None:
    for address in (
        "/?index=odd&q=hostile",
        f"/?index=odd&q={HOSTILE.replace('%', '%25').replace('&', '%26').replace('#', '%23')}",
    ):
        page = pages(address)
        hit = page.locator(".hit").filter(has_text="window.broken").first
        assert hit.locator(".title").text_content() == HOSTILE
        assert hit.locator(".id").text_content() == HOSTILE
        hit.locator(".title a").click()
        page.wait_for_selector("#reader .words")
        assert page.locator("#reader h2").text_content() == HOSTILE
        assert HOSTILE in texts(page, "#reader dt")
        page.locator("#reader dd button").first.click()
        page.wait_for_selector(".facet [aria-pressed=true]", state="attached")
        assert page.evaluate("window.broken") is None
        assert page.locator("#content img, #content script, #reader img").count() == 0
    page = pages("/?index=odd&q=hostile&doc=a%2Fb%3Fc%3D1%23d%252F")
    page.wait_for_selector("#reader .words")
    assert page.locator("#reader .words").text_content() == "hostile too"


def test_the_page_is_small_and_has_no_way_to_make_markup_of_text() -> None:
    files = list((resources.files("fontes.app.server") / "page").iterdir())
    assert sum(len(file.read_bytes()) for file in files) <= 170_000
    for file in files:
        if file.name.endswith((".js", ".html")):
            source = file.read_text(encoding="utf-8")
            assert not [
                word
                for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "//cdn", "style=")
                if word in source
            ]


@pytest.mark.slow
def test_numbers_and_dates_come_first_with_histograms_and_links_are_links(browser: Any, tmp_path: Path) -> None:
    index = ft.Index.build(described(), tmp_path / "harbour.index", analyzer="english", threads=1)
    with serving(tmp_path / "harbour.index") as running:
        pages = Pages(browser, running.address)
        page = pages(PORT)
        page.wait_for_selector(".bars")
        assert texts(page, ".facet h2 bdi") == ["date", "words", "section"]
        bins = index.bm25().search("who closed the port").facets("date", bins=20)["date"]
        titles = page.locator("[aria-label=date] .bars button").evaluate_all("bars => bars.map(bar => bar.title)")
        assert titles == [f"{low} to {high}: {found}" for (low, high), found in bins.items()]
        (low, high), found = max(bins.items(), key=lambda item: item[1])
        bar = page.locator(f"[aria-label=date] .bars button[title^='{low}']")
        bar.click()
        expect(page.locator("#where")).to_have_value(f"date >= '{low}' and date <= '{high}'")
        shown(page)
        assert page.locator(".hit").count() == min(found, 10)
        page.wait_for_selector(f"[aria-label=date] .bars .pressed[title^='{low}']")
        assert page.locator("[aria-label=date] .bars button").count() == len(bins)  # counted as if there were no bounds
        bar.click()
        expect(page.locator("#where")).to_have_value("")
        shown(page)
        first = page.locator(".hit").first
        address = index.doc(first.get_attribute("data-id")).metadata["url"]
        assert first.locator(".about a").evaluate_all("links => links.map(a => [a.getAttribute('href'), a.rel])") == [
            [address, "noopener noreferrer nofollow"]
        ]
        first.locator(".title a").click()
        page.wait_for_selector("#reader .metadata")
        assert page.locator("#reader .metadata a").evaluate_all("links => links.map(a => a.href)") == [
            address.replace("'", "%27")
        ]
        pages.close()


@pytest.mark.slow
def test_a_server_under_a_path_of_a_proxy_has_its_whole_page(browser: Any, collections: Indexes) -> None:
    path = Path(collections["harbour"].path)
    for strips in (True, False):
        with serving(path, root_path=PREFIX) as running, proxy(running, strips) as address:
            pages = Pages(browser, address + PREFIX)
            page = pages(PORT)
            assert page.evaluate("getComputedStyle(document.querySelector('.hits')).listStyleType") == "none"
            page.locator(".hit .title a").first.click()
            page.wait_for_selector("#reader h2")
            assert page.url.startswith(f"{address}{PREFIX}/?q=")
            page.click("text=Conversation")
            page.fill("#q", "who closed the port?")
            page.press("#q", "Enter")
            page.wait_for_selector(".turn .hit")
            page.click(".name a")
            page.wait_for_url(f"{address}{PREFIX}/")
            page.click("text=API")
            page.wait_for_url(f"{address}{PREFIX}/docs")
            assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
            pages.close()


def test_the_page_asks_for_the_key_of_the_server(browser: Any, collections: Indexes) -> None:
    with serving(Path(collections["harbour"].path), key="a key of many letters") as running:
        pages = Pages(browser, running.address)
        pages.expected.append("401")
        page = pages(PORT)
        for key, status in (("wrong", "This key is not valid for this server."), ("a key of many letters", None)):
            page.fill("#key", key)
            page.keyboard.press("Enter")
            if status:
                expect(page.locator("[role=alert]")).to_have_text(status)
        page.wait_for_selector(".hit")
        page.reload()
        page.wait_for_selector(".hit")
        assert "letters" not in page.url
        pages.close()
