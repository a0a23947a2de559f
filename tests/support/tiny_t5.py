"""A T5 of a few random weights, with a tokenizer of a few words."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT = "water spring geyser rock hot cold river lake rain storm well cave mountain stream flow dye heat pipe steam glacier"
WORDS = [*TEXT.split(), "true", "false", "query", "document", "relevant", "příliš", "žluťoučký", "kůň"]


def save_t5(folder: Path, single: bool = True) -> Path:
    kept = WORDS if single else [word for word in WORDS if word != "false"]
    characters = {*"".join(WORDS), *"QueryDocumentRelevant:.-▁"}
    size = save_t5_tokenizer(folder, characters, [*kept, "Query:", "Document:", "Relevant:"])
    torch.manual_seed(5)
    transformers.T5ForConditionalGeneration(t5_config(size)).save_pretrained(folder)
    return folder


def t5_config(vocab_size: int) -> Any:
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    return transformers.T5Config(vocab_size=vocab_size, decoder_start_token_id=0, pad_token_id=0, **sizes)


def save_t5_tokenizer(folder: Path, characters: set[str], words: Iterable[str], decoder: Any = None) -> int:
    """Save a tokenizer of words, and of the characters of others; return the size of its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((c, -9.0) for c in sorted(characters))]
    pieces += [(f"▁{word}", -3.0) for word in words]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Replace(" {2,}", " "), pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    if decoder is not None:
        tokenizer.decoder = decoder
    marks = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **marks).save_pretrained(folder)
    return len(pieces)
