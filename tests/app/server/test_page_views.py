"""The page of the server, clicked through in Chromium: conversations, causes, evidence, keys, trouble, and who can use it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.odd_documents import PIPELINES
from support.pages import Pages, ids, shown, texts
from support.serving import serving

import fontes as ft

PORT = "/?q=who+closed+the+port"
FIRST, SECOND = "What price did Ruddock and Sons ask for the two Skerrow ferries?", "And what did they cost in the end?"
VIEWS = {
    "the start": "/",
    "results and filter": f"{PORT}&where=section+%3D%3D+%27business%27",
    "reasons": f"{PORT}&why=h041",
    "two pipelines": f"{PORT}&against=turned",
    "a document": f"{PORT}&doc=h041",
    "evidence": "/?pipeline=claims&q=The+fitter+belonged+to+the+depot+at+Tollen.",
    "hostile": "/?index=odd&q=hostile&doc=right",
    "causes": "/?view=why&q=Flood+at+Marram+Flats&weak=1&leads=1",
    "a conversation": "/?view=talk",
    "trouble": f"{PORT}&where=nothing",
}
Indexes = dict[str, ft.Index]


def say(page: Any, text: str) -> None:
    page.fill("#q", text)
    page.press("#q", "Enter")
    page.wait_for_selector(f".turn:first-child h2:text-is({text!r})")


def test_a_conversation_shows_what_was_searched_and_lets_it_be_changed(pages: Pages, collections: Indexes) -> None:
    page, index = pages("/?view=talk"), collections["harbour"]
    conversation = ft.Conversation(ft.rewrite.WeightedTurns(index) >> index.bm25())
    for text in (FIRST, SECOND):
        say(page, text)
        ranking = conversation.ask(text)
        assert ids(page, ".turn:first-child")[:10] == ranking.ids[:10]
        assert page.input_value("#rewritten") == ranking.topic.text
    assert texts(page, ".turn h2") == [SECOND, FIRST]
    weights = dict(ranking.topic.weights)
    assert {t.split()[0]: float(t.split()[1]) for t in texts(page, ".terms li")} == pytest.approx(weights)
    page.locator(".turn:first-child .why").first.click()
    page.wait_for_selector(".tree")
    assert float(page.locator(".tree .value").first.text_content()) == pytest.approx(ranking[0].score, rel=1e-3)
    page.fill("#rewritten", "the price of haddock")
    page.click("text=Search again")
    page.wait_for_selector("label[for=rewritten]:text('Searched (edited)')")
    assert ids(page, ".turn:first-child") == index.bm25().search("the price of haddock", 10).ids
    assert page.evaluate("document.activeElement.id") == "rewritten"
    assert len(texts(page, ".turn h2")) == 2

    shown = ids(page, ".turn:first-child")
    page.reload()
    page.wait_for_selector(".turn:first-child .hit")
    assert page.input_value("#rewritten") == "the price of haddock"
    assert ids(page, ".turn:first-child") == shown
    page.click("text=Undo the edit")
    page.wait_for_selector(".terms")
    assert page.input_value("#rewritten") == ranking.topic.text
    page.click("text=New conversation")
    page.wait_for_selector(".turn", state="detached")
    assert page.url.endswith("/?view=talk")


def test_a_conversation_that_is_over_says_so_and_another_begins(pages: Pages) -> None:
    page = pages("/?view=talk&talk=nobody")
    assert page.locator("[role=alert]").text_content().startswith("There is no such conversation")
    page.click("text=New conversation")
    say(page, FIRST)
    assert page.locator(".turn .hit").count() == 10


def test_causes_are_a_tree_with_what_the_documents_say(pages: Pages, collections: Indexes) -> None:
    page = pages("/?view=why")
    page.fill("#q", "Flood at Marram Flats")
    page.check("#weak")
    page.select_option("#leads", "1")
    page.click("#send")
    page.wait_for_selector(".causes")
    chain = ft.causal.causes(collections["harbour"].bm25(), "Flood at Marram Flats", weak=True, leads=1)
    assert texts(page, ".cause") == [cause.text for cause in chain.all()]
    assert texts(page, ".source .id") == [source.doc_id for cause in chain.all() for source in cause.sources]
    assert page.locator(".causes .lead .other").count() == sum(cause.lead for cause in chain.all())
    page.locator(".source a").first.click()
    page.wait_for_selector("#reader h2")
    assert page.locator("#reader h2").text_content() == texts(page, ".source .title bdi")[0]
    assert texts(page, "#reader mark.sentence") == texts(page, ".source .snippet")[:1]
    page.locator(".causes summary").first.click()
    assert not page.locator(".source").first.is_visible()


def test_a_claim_comes_with_its_evidence_sentences(pages: Pages, collections: Indexes) -> None:
    claim = "The fitter who came too late to Marl Creek belonged to the depot at Tollen."
    page = pages()
    page.select_option("#pipeline", "claims")
    page.fill("#q", claim)
    page.press("#q", "Enter")
    page.wait_for_selector(".picked")
    run = (collections["harbour"].bm25() >> ft.Rationales(n=2))(ft.Topics.of({"c": claim}))
    first = run["c"][0].id
    picked = ft.passages.rationales_of(run, "c", first)
    assert texts(page, f".hit[data-id={first}] .picked p") == [one.text for one in picked]
    assert texts(page, ".facet li")
    page.locator(f".hit[data-id={first}] a").click()
    page.wait_for_selector("#reader mark")
    assert texts(page, "#reader mark.sentence") == [one.text for one in picked]
    assert page.locator("#reader mark.sentence mark").count() > 0
    page.keyboard.press("n")
    page.keyboard.press("n")
    assert page.locator("#reader [role=status]").text_content() == f"2 of {len(picked)} evidence sentences"
    page.keyboard.press("p")
    assert page.locator("#reader mark.here").text_content() == picked[0].text


def test_everything_is_reached_by_keys(pages: Pages) -> None:
    page = pages(PORT)
    hits, press = ids(page), page.keyboard.press
    here = "document.activeElement.closest('.hit')?.dataset.id ?? document.activeElement.id"
    press("j")
    press("ArrowDown")
    assert page.evaluate(here) == hits[1]
    press("k")
    assert page.evaluate(here) == hits[0]
    press("w")
    page.wait_for_selector(".tree")
    press("w")
    assert not page.locator(".tree").is_visible()
    press("Enter")
    page.wait_for_selector("#reader h2")
    assert page.evaluate("document.activeElement.id") == "reader"
    press("ArrowRight")
    page.wait_for_selector(f"#reader .id:text-is('{hits[1]}')")
    press("Escape")
    page.wait_for_selector("#reader", state="hidden")
    assert page.evaluate(here) == hits[1]
    press("/")
    assert page.evaluate(here) == "q"
    press("ArrowDown")
    assert page.evaluate(here) == hits[0]
    press("?")
    assert page.locator("dialog#keys").is_visible()
    press("Escape")
    assert not page.locator("dialog#keys").is_visible()
    press("Escape")
    assert page.evaluate(here) == "q"
    page.keyboard.type("?")
    assert not page.locator("dialog#keys").is_visible()


def test_a_problem_is_a_sentence_and_the_next_search_is_answered(pages: Pages) -> None:
    pages.expected += ["422", "ERR_FAILED", "404"]
    page = pages(f"{PORT}&where=sektion+%3D%3D+1")
    assert (
        page.locator("[role=alert]").text_content()
        == "Where, character 1: there is no column 'sektion'; did you mean 'section'? write section == \"1\"."
    )
    page.fill("#where", "")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    page.route("**/search?**", lambda route: route.abort())
    page.fill("#q", "tide")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]")
    assert page.locator("[role=alert]").text_content() == "The server does not answer."
    page.unroute("**/search?**")
    page.click("text=Try again")
    page.wait_for_selector(".hit")
    page.goto(f"{pages.address}{PORT}&doc=nobody")
    page.wait_for_selector("#reader [role=alert]")
    assert page.locator("#reader [role=alert]").text_content() == "There is no document 'nobody' in harbour."
    page.goto(f"{pages.address}/?q=xyzzy")
    page.wait_for_selector("text=holds any of these words")


@pytest.mark.slow
def test_a_request_that_is_overtaken_is_given_up(pages: Pages) -> None:
    page = pages()
    waiting: list[Any] = []
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.route(re.compile(r"/search\?q=tide&"), lambda route: waiting.append(route))
    page.fill("#q", "tide")
    page.keyboard.press("Enter")
    page.wait_for_selector("#progress:not([hidden])")
    assert page.locator("#results").get_attribute("aria-busy") == "true"
    page.fill("#q", "haddock")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    page.wait_for_selector("#progress", state="hidden")
    assert len(waiting) == 1
    assert [url for url in failed if "q=tide" in url]
    assert page.title().startswith("haddock")
    assert page.locator("[role=alert]").count() == 0


@pytest.mark.slow
def test_light_and_dark_follow_the_system_until_one_is_chosen_and_it_is_remembered(pages: Pages) -> None:
    page = pages(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 24, 28)"
    page.click("#theme")
    assert page.locator("#theme").text_content() == "Theme: light"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.click("#theme")
    page.emulate_media(color_scheme="light")
    assert page.evaluate(background) == "rgb(20, 24, 28)"


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(390, "dark"), *(pytest.param(*case, marks=SLOW) for case in ((1440, "light"), (390, "light"), (1440, "dark")))],
)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(pages: Pages, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="accessibility is checked with axe-core").Axe()
    pages.expected.append("422")
    page = pages("/", width, color_scheme=scheme)
    for name, address in VIEWS.items():
        page.goto(pages.address + address)
        shown(page)
        if "doc=" in address:
            page.wait_for_selector("#reader .words")
        elif "why=" in address:
            page.wait_for_selector(".tree")
        elif name == "a conversation":
            for text in (FIRST, SECOND):
                say(page, text)
        elif width == 390:
            for summary in page.locator("#filters summary:visible, #settings summary:visible").all():
                summary.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        violations = axe.run(page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"]) for v in violations] == [], name
    page.keyboard.press("Escape")
    page.click("#help")
    assert axe.run(page).response["violations"] == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [768, 1100, 1920])
def test_widths_between_and_beyond_do_not_scroll_sideways(pages: Pages, width: int) -> None:
    page = pages("/?index=odd&q=hostile", width)
    for address in ("/?index=odd&q=hostile&against=turned", "/?index=odd&q=hostile&against=turned&doc=right"):
        page.goto(pages.address + address)
        shown(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture
def free(browser: Any, collections: Indexes) -> Iterator[Pages]:
    with serving(collections["harbour"].path, pipelines={"bm25": PIPELINES["bm25"]}, any_pipeline=True) as running:
        opened = Pages(browser, running.address)
        yield opened
        opened.close()


def test_where_the_server_takes_any_pipeline_one_is_written(free: Pages, collections: Indexes) -> None:
    page = free(PORT)
    page.fill("#against", "bm25(k1=2.0, b=0.9)")
    page.keyboard.press("Enter")
    page.wait_for_selector(".pair .hit")
    assert ids(page, ".side:nth-child(2)") == collections["harbour"].bm25(k1=2.0, b=0.9).search("who closed the port", 10).ids
