"""A task that is learned in seconds: each word of a query stands for another word, which the right document has."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.threads import one_thread as one_thread
from support.tiny_models import CONFIGURATIONS, FOLDER, MARKS, save_tokenizer

from fontes import TransformerEncoder
from fontes.train import BiEncoderSettings, Example, Examples, Passage

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ASKED = ["brook", "beck", "burn", "rill", "creek", "ghyll", "bourne", "runnel", "sike", "lode", "rhyne", "winterbourne"]
MEANT = ["oak", "ash", "elm", "lime", "birch", "alder", "willow", "poplar", "hazel", "maple", "rowan", "beech"]
FILLED = ["the", "of", "a", "in", "and", "to", "on", "by", "at", "from", "with"]
KINDS = ("bert", "nystromformer", "longformer", "reformer", "favor+")
SETTINGS = BiEncoderSettings(
    epochs=6, batch=16, mini_batch=32, lr=1e-2, warm_up=0.05, dropout=0.0, precision="float32", evaluations=1
)


@cache
def start(kind: str) -> TransformerEncoder:
    """An encoder of fresh weights, of two layers and 32 dimensions, which knows the words."""
    folder = Path(FOLDER.name) / f"paired-{kind}"
    torch.manual_seed(1)
    config = CONFIGURATIONS["bert" if kind == "favor+" else kind]()
    config.axial_norm_std = 0.02  # Reformer's positions, which else are fifty times as long as its words
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    save_tokenizer(folder, [*MARKS, *ASKED, *MEANT, *FILLED], model_max_length=100_000)
    more: dict[str, Any] = {"attention": "favor+", "features": 16} if kind == "favor+" else {}
    return TransformerEncoder(folder, precision="float32", **more)


@cache
def masked_start() -> Path:
    """A masked language model of fresh weights, of two layers and 32 dimensions, which knows the words."""
    folder = Path(FOLDER.name) / "paired-masked"
    torch.manual_seed(1)
    config = CONFIGURATIONS["bert"]()
    transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    save_tokenizer(folder, [*MARKS, *ASKED, *MEANT, *FILLED], model_max_length=100_000)
    return folder


def examples(count: int, seed: int = 0, longest: int = 30, negatives: int = 3) -> Examples:
    """Queries of two words, documents of what they stand for among 0 to `longest` others, and up to so many negatives."""
    random = np.random.default_rng(seed)

    def document(words: list[int]) -> str:
        others = random.choice(FILLED, random.integers(0, longest + 1)).tolist()
        return " ".join(random.permutation([*(MEANT[word] for word in words), *others]).tolist())

    made = []
    for number in range(count):
        words = random.choice(len(ASKED), 3, replace=False).tolist()
        wrong = [Passage(f"n{seed}-{number}-{n}", document([words[0], words[2]])) for n in range(number % (negatives + 1))]
        query = " ".join(ASKED[word] for word in words[:2])
        made.append(Example(f"t{number}", query, Passage(f"p{seed}-{number}", document(words[:2])), tuple(wrong)))
    return Examples(made)
