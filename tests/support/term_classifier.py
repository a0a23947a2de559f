"""A tiny BERT of random weights and conversations with one pattern, for tests of term classification."""

import re
from pathlib import Path

import pytest
from support.threads import one_thread as one_thread
from support.tiny_models import MARKS, SIZES, save_tokenizer, transformers

from fontes.core import Topic, Topics, Turn
from fontes.rewrite import QuReTeC
from fontes.train import TermSettings, Training, train_terms

NOUNS = re.findall(
    r"\w+",
    "harbour lighthouse bridge tower castle museum station garden river canal market library church theatre school factory "
    "cinema stadium airport hospital palace mill abbey pier quarry forest valley island tunnel prison fountain orchard barn",
)
WORDS = re.findall(r"\S+", "tell me about the is it old who built how big when was made and what of ? . why again")
SETTINGS = TermSettings(epochs=15, batch=8, lr=5e-3, dropout=0.0, held_out=0.2, precision="float32", max_length=48)


def conversation(number: int, noun: str) -> list[Topic]:
    """Three turns that lack the noun of the first."""
    turns: tuple[Turn, ...] = ()
    topics = []
    for text, manual in (
        (f"Tell me about the {noun}.", f"Tell me about the {noun}."),
        ("Is it old?", f"Is the {noun} old?"),
        ("Who built it?", f"Who built the {noun}?"),
    ):
        turns = (*turns, Turn(text, manual=manual, answer=f"The {noun} is big." if turns else ""))
        topics.append(Topic(f"c{number}_{len(turns)}", text, turns=turns))
    return topics


TOPICS = Topics(topic for number, noun in enumerate(NOUNS) for topic in conversation(number, noun))


def asked(*texts: str, manual: str = "", answers: bool = False, id: str = "1_1") -> Topic:
    turns = tuple(Turn(text, manual=manual, answer="The mill is old." if answers else "") for text in texts)
    return Topic(id, texts[-1], turns=turns)


def tiny_bert(folder: Path) -> Path:
    """A BERT of two small layers with random weights, in `folder`."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = [*MARKS, *sorted({*WORDS, *NOUNS, *letters, *(f"##{letter}" for letter in letters)})]
    save_tokenizer(folder, vocabulary)
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=64, **SIZES)
    transformers.set_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Training]:
    folder = tmp_path_factory.mktemp("trained") / "model"
    return folder, train_terms(TOPICS, folder, base, SETTINGS)


@pytest.fixture(scope="module")
def model(trained: tuple[Path, Training]) -> QuReTeC:
    return QuReTeC(trained[0], precision="float32", device="cpu")
