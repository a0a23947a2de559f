"""A cross-encoder of a few random weights, with a tokenizer of a few words, and pairs of texts in these words."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.tiny_t5 import WORDS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


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
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ":", ".", *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=48,
    ).save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=48, num_labels=labels, **SIZES)
    model = getattr(transformers, architecture)(config)
    for parameter in model.parameters():
        parameter.data.mul_(4)  # scores that differ
    model.save_pretrained(folder)
    return folder
