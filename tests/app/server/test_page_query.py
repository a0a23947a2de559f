"""The query language on the page, clicked through in Chromium: off by default, offered where a text has operators."""

import pytest
from support.pages import Pages, ids, shown, texts

import fontes as ft

Indexes = dict[str, ft.Index]


@pytest.mark.slow
def test_the_language_is_offered_where_a_text_has_operators(pages: Pages, collections: Indexes) -> None:
    harbour = collections["harbour"]
    page = pages("/?q=%2Bport+-cranes")
    page.wait_for_selector(".hit")
    assert not page.is_checked("#syntax")
    assert ids(page) == harbour.bm25().search("+port -cranes", 10).ids
    assert texts(page, ".reading") == ["Operators are plain text here. Read as a query"]
    page.get_by_role("link", name="Read as a query").click()
    page.wait_for_selector(".reading code")
    assert page.is_checked("#syntax")
    assert "syntax=query" in page.url
    assert texts(page, ".reading") == ["Understood as +port -cranes"]
    assert ids(page) == (harbour.query() >> harbour.bm25()).search("+port -cranes", 10).ids
    page.locator(".hit .title a").first.click()
    page.wait_for_selector("#reader:not([hidden]) mark")
    assert {mark.lower() for mark in texts(page, "#reader mark")} <= {"port", "port's", "ports"}


def test_the_switch_shows_what_was_understood_with_remarks_and_is_switched_off_again(pages: Pages) -> None:
    page = pages("/?q=port")
    page.wait_for_selector(".hit")
    assert texts(page, ".reading") == []
    page.check("#syntax")
    page.wait_for_selector(".reading")
    page.fill("#q", 'colour:red port* "strike')
    page.keyboard.press("Enter")
    page.wait_for_selector(".remark")
    first, *remarks = texts(page, ".reading")
    assert first == r"Understood as colour\:red port* strike"
    assert remarks[0].startswith("Character 1: there is no field or column 'colour'; there are")
    assert remarks[1] == "Character 18: the quotation mark is not closed."
    page.locator(".hit .why").first.click()
    page.wait_for_selector(".hit .tree, .hit ul")
    page.uncheck("#syntax")
    page.wait_for_selector(".hit")
    shown(page)
    assert "syntax" not in page.url


@pytest.mark.parametrize("width", [390, 1440])
def test_a_page_with_remarks_is_not_wider_than_its_window(pages: Pages, width: int) -> None:
    text = "colour%3Ared+" + "port" * 30 + "*+%2B%22the+strike%22~2+%22open"
    page = pages(f"/?q={text}&syntax=query", width)
    page.wait_for_selector(".remark")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
