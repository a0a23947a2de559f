"""A cross-encoder of a few random weights, with a tokenizer of a few words, and pairs of texts in these words."""

import random
from pathlib import Path

from support.tiny_models import MARKS, SIZES, save_tokenizer, saved_once, torch, transformers
from support.tiny_t5 import WORDS


def pairs(n: int, longest: int = 60) -> list[tuple[str, str]]:
    generator = random.Random(7)
    return [
        (
            " ".join(generator.choices(WORDS, k=generator.randint(1, 8))),
            " ".join(generator.choices(WORDS, k=generator.randint(0, longest))),
        )
        for _ in range(n)
    ]


def save_cross_encoder(folder: Path, labels: int = 1, architecture: str = "BertForSequenceClassification") -> Path:
    return saved_once(("cross-encoder", labels, architecture), lambda kept: _save(kept, labels, architecture), folder)


def _save(folder: Path, labels: int, architecture: str) -> None:
    vocabulary = [*MARKS, ":", ".", *WORDS]
    save_tokenizer(folder, vocabulary, strip_accents=False, model_max_length=48)
    torch.manual_seed(3)
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=48, num_labels=labels, **SIZES)
    model = getattr(transformers, architecture)(config)
    for parameter in model.parameters():
        parameter.data.mul_(4)  # scores that differ
    model.save_pretrained(folder)
