"""Pages in Chromium, for tests that click through them; they are skipped where playwright or a browser is missing."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is clicked through with playwright")
expect = sync_api.expect
expect.set_options(timeout=15_000)  # as pages have
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("the page needs chromium or google-chrome to be clicked through", allow_module_level=True)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Pages:
    """Pages of one address, which must do without errors, alerts and requests to other addresses.

    Args:
        browser: The browser.
        address: The address, as `http://127.0.0.1:8080`.
    """

    def __init__(self, browser: Any, address: str) -> None:
        self.browser = browser
        self.address = address
        self.trouble: list[str] = []
        self.expected: list[str] = []  # parts of messages of the console that belong to the test
        self._pages: list[Any] = []

    def __call__(
        self, path: str = "/", width: int = 1280, height: int = 900, audience: str = "researchers", **options: Any
    ) -> Any:
        """A page for researchers, or for searchers, that has loaded, and shows something."""
        page = self.watched(viewport={"width": width, "height": height}, **options)
        page.add_init_script(f"localStorage.audience ??= '{audience}'")
        page.set_default_navigation_timeout(60_000)
        page.goto(self.address + path)
        shown(page)
        return page

    def watched(self, **options: Any) -> Any:
        """A new page, whose trouble is kept."""
        page = self.browser.new_page(**options)
        self._pages.append(page)
        page.set_default_timeout(15_000)
        page.on("console", lambda message: self.trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.trouble.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._asked(request.url.removeprefix("blob:")))
        return page

    def _asked(self, url: str) -> None:
        if url != "data:," and not url.startswith(f"{self.address}/"):
            self.trouble.append(f"request: {url}")

    def close(self) -> None:
        """Closes the pages; raises AssertionError where one had trouble that was not expected."""
        for page in self._pages:
            page.close()
        assert [line for line in self.trouble if not any(part in line for part in self.expected)] == []


def shown(page: Any) -> None:
    """Waits until the page has what it asked for."""
    page.wait_for_selector("#results:not([aria-busy]) #content > *", state="attached")


def texts(page: Any, selector: str) -> list[str]:
    """The texts of elements."""
    contents: list[str] = page.locator(selector).all_text_contents()
    return contents


def ids(page: Any, inside: str = "") -> list[str]:
    """The ids of the hits that are shown."""
    shown_ids: list[str] = page.locator(f"{inside} .hit").evaluate_all("hits => hits.map(hit => hit.dataset.id)")
    return shown_ids


def state(page: Any) -> dict[str, list[str]]:
    """The parameters of the page's address."""
    return parse_qs(urlsplit(page.url).query)
