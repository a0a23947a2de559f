"""The collection of tests that search."""

import pytest
from support.lexical import tied_index

from fontes.index import Index


@pytest.fixture(scope="session")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A collection in which many scores are tied, which is only read."""
    return tied_index(tmp_path_factory.mktemp("tied") / "x")


@pytest.fixture(scope="session")
def index(tied: Index) -> Index:
    """The same; some files have an index of their own."""
    return tied
