"""The page shows the nearest documents of a query that the pipeline refuses."""

from pathlib import Path
from typing import Any

import pytest
from support.pages import Pages
from support.serving import serving

import fontes as ft
from fontes.train import CalibrationSettings, train_calibration


@pytest.mark.slow
def test_a_refused_query_shows_the_sentence_and_the_nearest_documents(browser: Any, tmp_path: Path) -> None:
    ends = ("ak", "eth", "ins", "old", "ury", "wick", "yar")
    words = [start + end for start in ("bren", "carl", "dov", "elm") for end in ends]
    docs = [ft.Doc(f"d{n}", f"{word} lies by the harbour") for n, word in enumerate(words)]
    index = ft.Index.build(docs, tmp_path / "x.index")
    topics = [ft.Topic(f"q{n}", f"{word} harbour") for n, word in enumerate(words)]
    topics += [ft.Topic(f"n{n}", f"{word[::-1]} harbour") for n, word in enumerate(words)]
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(len(words))} | {f"n{n}": {"d0": 0} for n in range(len(words))}
    settings = CalibrationSettings(map="logistic", group=None)
    train_calibration((index.bm25() % 20)(ft.Topics(topics)), qrels, tmp_path / "c", settings)
    pipeline = f'bm25() % 20 >> calibrated("{tmp_path / "c"}") >> abstain()'
    with serving(tmp_path / "x.index", pipelines={"sure": pipeline}) as served:
        pages = Pages(browser, served.address)
        page = pages("/?q=harbour+tide")
        page.wait_for_selector("ol[aria-label='Nearest documents'] .hit")
        assert page.locator(".hit").count() == 5
        assert "Nothing in this collection answers this" in page.locator("#content .notes").first.text_content()
        pages.close()
