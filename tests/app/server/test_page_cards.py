"""Cards, the first screen, the time of a search, values to find, and forgiven typos, in Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pages import expect, shown, texts
from support.serving import Running, serving

from fontes import Index

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3"/></svg>'
KINDS = ("lamp", "table", "kettle")
DOCS = [
    {
        "id": f"p{n}",
        "title": f"Brass {KINDS[n % 3]}" if n % 5 else f"Which {KINDS[n % 3]} suits a small room?",
        "text": f"A {KINDS[n % 3]} for the kitchen, made to last.",
        "kind": KINDS[n % 3],
        "brand": f"Fjörd {n % 130}" if n % 2 else f"Tal {n % 130}",
        "added": f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}",
        "image": f"https://pictures.example/{n}.jpg",
        "page": f"https://shop.example/{n}",
    }
    for n in range(260)
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("shop") / "shop.index"
    Index.build(DOCS, path, analyzer="english", threads=1)
    with serving(Path(path)) as running:
        yield running


@pytest.fixture
def pages(browser: Any, shop: Running) -> Iterator[Any]:
    from support.pages import Pages

    opened = Pages(browser, shop.address)
    opened.expected += ["https://pictures.example/"]
    yield opened
    opened.close()


def with_pictures(page: Any) -> None:
    page.route("https://pictures.example/*", lambda route: route.fulfill(content_type="image/svg+xml", body=PICTURE))


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_card_has_a_picture_and_a_link(pages: Any, width: int, scheme: str) -> None:
    page = pages(width=width, color_scheme=scheme, audience="searchers")
    with_pictures(page)
    page.goto(f"{pages.address}/?q=brass+lamp")
    expect(page.locator(".hit .picture").first).to_have_js_property("naturalWidth", 4)
    first = page.locator(".hit").first
    image, link = first.locator("img.picture"), first.locator("a.page")
    assert (image.get_attribute("loading"), image.get_attribute("referrerpolicy")) == ("lazy", "no-referrer")
    number = first.get_attribute("data-id").removeprefix("p")
    assert link.get_attribute("href") == f"https://shop.example/{number}"
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert link.text_content() == "shop.example ↗"
    assert "pictures.example" not in first.text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_picture_that_does_not_load_leaves_its_place_to_the_text(pages: Any) -> None:
    pages.expected.append("ERR_FAILED")
    page = pages()
    page.route("https://pictures.example/*", lambda route: route.abort())
    page.goto(f"{pages.address}/?q=lamp")
    shown(page)
    expect(page.locator(".hit").first.locator(".picture")).to_have_count(0)
    expect(page.locator(".hit").first.locator(".pictured")).to_have_count(0)


def test_the_first_screen_says_what_the_collection_is(pages: Any) -> None:
    page = pages(audience="searchers")
    with_pictures(page)
    page.wait_for_selector(".about-index h2")
    questions = texts(page, ".examples a")
    assert len(questions) == 3
    assert all(text.endswith("?") for text in questions)
    dates = texts(page, ".newest .when")
    assert dates == sorted(dates, reverse=True)
    assert dates[0] == max(doc["added"] for doc in DOCS)
    assert [text.split()[0] for text in texts(page, ".columns-of li")] == ["added", "brand", "kind"]
    page.click(".newest a")
    page.wait_for_selector("#reader h2")
    page.go_back()
    page.click(".examples a")
    page.wait_for_selector(".hit")


def test_the_time_of_a_search_is_shown_and_goes_with_it(pages: Any) -> None:
    page = pages()
    with_pictures(page)
    page.fill("#q", "brass lamp")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    expect(page.locator("#took")).to_have_text(re.compile(r"^in (\d+ ms|\d+\.\d s)$"))
    page.click(".name a")
    expect(page.locator("#took")).to_be_empty()


def test_a_value_of_a_facet_is_found_among_more_than_the_server_sends(pages: Any) -> None:
    page = pages()
    with_pictures(page)
    page.goto(f"{pages.address}/?q=kitchen")
    page.fill("#find-brand", "fjord 12")
    values = page.locator("[aria-label=brand] li bdi")
    expect(values).to_have_text(["Fjörd 121", "Fjörd 123", "Fjörd 125", "Fjörd 127", "Fjörd 129"], ignore_case=False)
    page.fill("#find-brand", "no such")
    expect(page.locator("[aria-label=brand] li")).to_have_text(["No value"])
    page.fill("#find-brand", "Tal 128")
    page.locator("[aria-label=brand] li button").click()
    expect(page.locator("#chips")).to_contain_text("Tal 128")
    expect(page.locator("#status")).to_have_text("2 results")


def test_typos_are_forgiven_which_is_said_and_switched_off_by_a_click(pages: Any) -> None:
    page = pages()
    with_pictures(page)
    page.goto(f"{pages.address}/?q=brass+kichen")
    page.wait_for_selector(".hit")
    assert page.locator(".forgiven span").text_content() == "Also searched: kitchen for kichen"
    page.locator(".hit button.why").first.click()
    page.wait_for_selector(".hit .tree")
    page.click(".forgiven .exact")
    page.wait_for_url("**tolerance=off**")
    shown(page)
    expect(page.locator(".forgiven")).to_have_count(0)
    assert page.locator("#tolerance").is_checked() is False
    page.click("#chips button")
    page.wait_for_selector(".forgiven")
    assert "tolerance" not in page.url


def test_results_come_for_the_beginning_of_a_word(pages: Any) -> None:
    page = pages()
    with_pictures(page)
    page.locator("#q").press_sequentially("kitch")
    page.wait_for_selector(".hit")
    expect(page.locator(".forgiven")).to_contain_text("kitchen for kitch")


def test_keys_go_to_the_ends_of_the_results_and_to_other_pages(pages: Any) -> None:
    page = pages()
    with_pictures(page)
    page.goto(f"{pages.address}/?q=kitchen")
    page.wait_for_selector(".hit")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("End")
    place = "[...document.querySelectorAll('.hit')].indexOf(document.activeElement.closest('.hit'))"
    assert page.evaluate(place) == 9
    page.keyboard.press("Home")
    assert page.evaluate(place) == 0
    page.keyboard.press("n")
    page.wait_for_url("**offset=10**")
    page.wait_for_selector("#results:not([aria-busy]) .hit")
    page.keyboard.press("p")
    page.wait_for_url(lambda url: "offset" not in url)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_first_screen_and_on_cards(pages: Any, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="accessibility is checked with axe-core").Axe()
    page = pages(width=width, color_scheme=scheme)
    with_pictures(page)
    page.wait_for_selector(".about-index h2")
    assert axe.run(page).response["violations"] == []
    page.goto(f"{pages.address}/?q=brass+kichen")
    page.wait_for_selector(".forgiven")
    assert axe.run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
