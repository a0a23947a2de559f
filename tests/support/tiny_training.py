"""Examples with one pattern, a tiny encoder without a head to start from, and settings that train it in a second."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.threads import one_thread as one_thread
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_t5 import TEXT

from fontes.core import Doc, MissingExtraError, Qrels, Run, Topic, Topics
from fontes.train import CrossEncoderSettings, Example, Examples, Passage

WORDS = TEXT.split()
SETTINGS = CrossEncoderSettings(epochs=2, batch=8, lr=3e-3, dropout=0.0, held_out=0.2, evaluations=1, precision="float32")


def examples(count: int = 20, negatives: int = 3, scored: bool = False) -> Examples:
    """Queries of two words; the relevant document has both of them, the others have neither."""
    generator = random.Random(5)
    pairs = generator.sample([(a, b) for a in WORDS for b in WORDS if a < b], count)

    def passage(name: str, words: tuple[str, ...], length: int, score: float) -> Passage:
        return Passage(name, " ".join([*words, *generator.choices(WORDS, k=length)]), score if scored else None)

    def without(words: tuple[str, ...], name: str) -> Passage:
        others = [word for word in WORDS if word not in words]
        text = " ".join(generator.choices(others, k=generator.randint(3, 16)))
        return Passage(name, text, generator.random() if scored else None)

    return Examples(
        Example(
            f"q{n}",
            " ".join(pair),
            passage(f"q{n}-yes", pair, generator.randint(1, 12), 1 + generator.random()),
            tuple(without(pair, f"q{n}-no{m}") for m in range(negatives)),
        )
        for n, pair in enumerate(pairs)
    )


class Documents:
    """The documents of examples, by id."""

    def __init__(self, those: Examples) -> None:
        self.texts = {passage.id: passage.text for one in those for passage in (one.positive, *one.negatives)}

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        return [Doc(name, "", self.texts[name]) for name in ids]


def candidates(those: Examples) -> tuple[Run, Qrels]:
    """A run with each example's documents, the relevant one last, and its judgments."""
    rows = [
        (one.topic, passage.id, float(rank)) for one in those for rank, passage in enumerate((one.positive, *one.negatives))
    ]
    topics = Topics(Topic(one.topic, one.query) for one in those)
    run = Run.of(rows, topics).with_(documents=Documents(those))
    return run, Qrels.of([(one.topic, one.positive.id, 1) for one in those])


@pytest.fixture(scope="module", autouse=True)
def no_curves() -> Iterator[None]:
    """No curves are drawn, which takes as long as the training."""

    def missing(*_: object) -> None:
        raise MissingExtraError("matplotlib is not used here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fontes.train.runner.card.learning_curves", missing)
        yield


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two small layers without a head."""
    return save_cross_encoder(tmp_path_factory.mktemp("base"), architecture="BertModel")
