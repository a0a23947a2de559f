"""The index of this folder's tests."""

import pytest
from support.ranked import documents

from fontes.index import Index


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(documents(), tmp_path_factory.mktemp("ltr") / "springs.index", separate=True, positions=True)
