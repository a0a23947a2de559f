"""Completions below the query and corrections above the results, typed in Chromium."""

import re
from typing import Any

import pytest
from support.pages import Pages, expect, shown, texts

OPTIONS = "#completions [role=option]"


def typed(pages: Pages, text: str, **options: Any) -> Any:
    page = pages(**options)
    page.locator("#q").press_sequentially(text)
    page.wait_for_selector(OPTIONS)
    return page


def test_completions_appear_while_a_query_is_typed_and_a_click_searches(pages: Pages) -> None:
    page = typed(pages, "closed har")
    assert "closed harbour" in texts(page, OPTIONS)
    assert page.get_attribute("#q", "aria-expanded") == "true"
    page.locator(OPTIONS).filter(has_text="closed harbour").first.click()
    page.wait_for_selector(".hit")
    assert page.input_value("#q") == "closed harbour"
    expect(page.locator("#completions")).to_be_hidden()
    assert page.get_attribute("#q", "aria-expanded") == "false"


def test_arrows_choose_a_completion_enter_searches_for_it_and_escape_closes(pages: Pages) -> None:
    page = typed(pages, "har")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#completions [aria-selected=true]")
    assert page.get_attribute("#q", "aria-activedescendant") == chosen.get_attribute("id")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("ArrowUp")
    text = chosen.text_content()
    page.keyboard.press("Enter")
    page.wait_for_selector("#results:not([aria-busy]) .hit")
    assert page.input_value("#q") == text
    page.locator("#q").press_sequentially(" tid")
    page.wait_for_selector(OPTIONS)
    page.keyboard.press("Escape")
    expect(page.locator("#completions")).to_be_hidden()
    assert page.input_value("#q") == f"{text} tid"
    expect(page).to_have_title(f"{text} tid · Fontes")  # the results come as it is typed, and take the place of others
    shown(page)
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('.hit') !== null")


def test_the_focus_stays_on_a_hit_when_results_come_as_one_types(pages: Pages) -> None:
    page = pages("/?q=harbour")
    held: list[Any] = []
    page.route(re.compile(r"/search\?.*closed"), lambda route: held.append(route))
    page.focus("#q")
    page.keyboard.press("End")
    with page.expect_request(re.compile(r"/search\?.*closed")):
        page.keyboard.type(" closed")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    before = page.locator(".hit").nth(1).get_attribute("data-id")
    focused = "document.activeElement.closest('.hit')?.dataset.id"
    assert page.evaluate(focused) == before
    held[0].continue_()
    shown(page)
    ids = page.locator(".hit").evaluate_all("hits => hits.map(hit => hit.dataset.id)")
    assert page.evaluate(focused) == (before if before in ids else ids[1])


def test_results_of_a_word_that_is_being_typed_are_those_of_its_completion(pages: Pages) -> None:
    page = typed(pages, "harbo")
    page.wait_for_selector(".hit")
    assert page.locator(".forgiven span").text_content() == "Also searched: harbour for harbo"
    page.locator(".hit button.why").first.click()
    page.wait_for_selector(".hit .tree")
    page.click(".forgiven .exact")
    page.wait_for_selector("text=holds any of these words")
    page.click(".meant a")
    page.wait_for_selector(".hit")


def test_stop_words_are_said_and_no_other_word_is_searched_or_offered(pages: Pages) -> None:
    sentence = "All words of the query are stop words, which are not searched."
    page = pages("/?q=the")
    page.wait_for_selector(f"text={sentence}")
    assert (page.locator(".meant").count(), page.locator(".hit").count()) == (0, 0)
    page = pages()
    page.locator("#q").press_sequentially("the")
    page.wait_for_selector(f"text={sentence}")
    assert (page.locator(".meant").count(), page.locator(".hit").count()) == (0, 0)


def test_enter_without_a_choice_searches_for_what_was_typed(pages: Pages) -> None:
    page = typed(pages, "closed port har")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    assert page.input_value("#q") == "closed port har"
    expect(page.locator("#completions")).to_be_hidden()


def test_the_last_answer_wins_and_a_blank_ends_a_word(pages: Pages) -> None:
    page = pages()
    page.route("**/suggest?q=ha&*", lambda route: None)  # this one is never answered
    page.locator("#q").press_sequentially("ha", delay=10)
    page.wait_for_timeout(200)
    page.locator("#q").press_sequentially("rb")
    page.wait_for_selector(OPTIONS)
    assert all(text.startswith("harb") for text in texts(page, OPTIONS))
    page.keyboard.press("Space")
    expect(page.locator("#completions")).to_be_hidden()


def test_a_server_that_fails_to_suggest_disturbs_nobody(pages: Pages) -> None:
    pages.expected.append("500")
    page = pages()
    page.route("**/suggest?*", lambda route: route.fulfill(status=500, json={"detail": "no"}))
    page.locator("#q").press_sequentially("harbour")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    assert page.locator(".problem").count() == 0


def test_a_misspelt_query_is_corrected_by_a_click(pages: Pages) -> None:
    page = pages("/?q=harbuor+clsoed&tolerance=off")
    link = page.locator(".meant a")
    assert link.text_content() == "harbour closed"
    link.click()
    page.wait_for_selector(".hit")
    assert page.input_value("#q") == "harbour closed"
    assert page.locator(".meant").count() == 0
    page.go_back()
    shown(page)
    page.wait_for_selector(".meant")


@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_in_suggestions_and_nothing_scrolls_sideways(pages: Pages, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="accessibility is checked with axe-core").Axe()
    page = typed(pages, "harb", width=width)
    page.keyboard.press("ArrowDown")
    assert axe.run(page).response["violations"] == []
    page.goto(pages.address + "/?q=harbuor+clsoed&tolerance=off")
    page.wait_for_selector(".meant")
    assert axe.run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
