"""The model of tests of late interaction."""

from typing import Any

import pytest


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from support.tiny_colbert import tiny_colbert

    return tiny_colbert(tmp_path_factory.mktemp("models") / "colbert")
