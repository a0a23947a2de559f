"""A decoder of a few random weights, with a tokenizer by bytes and a chat template."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKS = ["<pad>", "<|im_start|>", "<|im_end|>"]


def save_decoder(folder: Path, template: str | None = TEMPLATE, positions: int = 2048) -> Path:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ye", "yes", "no"]
    vocabulary = {token: number for number, token in enumerate([*MARKS, *pieces])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("y", "e"), ("ye", "s"), ("n", "o")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    saved = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    saved.chat_template = template
    saved.save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.Qwen2Config(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        pad_token_id=0,
        eos_token_id=2,
        bos_token_id=None,
    )
    network = transformers.Qwen2ForCausalLM(config)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.3)  # far from the even probabilities of fresh weights
    network.save_pretrained(folder)
    return folder
