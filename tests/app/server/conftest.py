"""What the tests of the page share: a browser, and a server with collections that are made for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.odd_documents import PIPELINES, odd
from support.serving import Running, serving, springs

import fontes as ft


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few documents, which is only read."""
    return springs(tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ft.Index]:
    folder = tmp_path_factory.mktemp("page")
    return {
        "harbour": ft.Index.build(ft.datasets.samples.harbour.corpus, folder / "harbour.index", analyzer="english", threads=1),
        "odd": ft.Index.build(odd(), folder / "odd.index", threads=1),
    }


@pytest.fixture(scope="session")
def served(collections: dict[str, ft.Index]) -> Iterator[Running]:
    """A server of both, in a thread."""
    paths = [Path(index.path) for index in collections.values()]
    with serving(*paths, pipelines=PIPELINES, rewriters={"weighted": "weighted_turns()", "last": "last_turns(1)"}) as running:
        yield running


@pytest.fixture
def pages(browser: Any, served: Running) -> Iterator[Any]:
    """Opens pages of the server; in the end there must have been no error, no alert and no request elsewhere."""
    from support.pages import Pages

    opened = Pages(browser, served.address)
    yield opened
    opened.close()
