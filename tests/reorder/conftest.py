"""The index of this folder's tests."""

import pytest
from support.reordered import DOCS

from fontes.index import Index


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("shop") / "shop.index")
