"""A small Punkt for NLTK's word_tokenize, made by NLTK's own trainer, in a folder of its own: no download."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fontes.text import external

TEXT = """
Dr. Hall measured the spread. Masks were worn on 3 of 10 wards, e.g. in surgery. Dr. Hall found less of it there. It fell by
half. Prof. Lind and Dr. Hall repeated this in the U.S. with more wards. Dr. Lind, e.g., counted twice. The wards of Prof. Lind
were smaller. Some had two beds. Others had ten. Prof. Hall wrote it up, e.g. for the ministry. Nobody read it. Dr. Lind left.
"""


def forget() -> None:
    """What was loaded of NLTK is loaded again when it is next used."""
    from nltk import tokenize

    tokenize._get_punkt_tokenizer.cache_clear()
    external.tokenizer.cache_clear()


@pytest.fixture
def punkt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of NLTK's data that holds a Punkt trained on `TEXT`, and nothing else."""
    nltk = pytest.importorskip("nltk")
    from nltk.tokenize.punkt import PunktTrainer, save_punkt_params

    data = tmp_path / "nltk_data"
    for folder in (data, data / "tokenizers", data / "tokenizers" / "punkt_tab"):
        folder.mkdir(mode=0o700)
    monkeypatch.setattr(nltk.data, "path", [str(data)])
    trainer = PunktTrainer()
    trainer.ABBREV = 0.1  # the text is short
    trainer.train(TEXT, finalize=True)
    save_punkt_params(trainer.get_params(), str(data / "tokenizers" / "punkt_tab" / "english"))
    forget()
    yield data
    forget()
