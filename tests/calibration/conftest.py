"""An index and a calibration of its BM25, which several files use."""

from pathlib import Path

import pytest
from support.ranked import documents, judgments, topics

from fontes.index import Index
from fontes.train import CalibrationSettings, train_calibration


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(documents(), tmp_path_factory.mktemp("calibration") / "springs.index")


@pytest.fixture(scope="module")
def folder(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "springs.calibration"
    settings = CalibrationSettings(map="logistic", share=0.2, group=None, near=1.0)
    train_calibration((index.bm25() % 40)(topics()), judgments(topics()), path, settings)
    return path
