"""Fixtures that all rooms use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public collections beside the checkout, or the one that FONTES_SHARED names."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    folder = Path(os.environ.get("FONTES_SHARED") or beside)
    if not folder.is_dir():
        pytest.skip(f"the public collections are not at {folder}; FONTES_SHARED can name their folder")
    return folder
