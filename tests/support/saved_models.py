"""Models of sentence-transformers with random weights in the shapes of published ones: modules, routers, decoders."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.tiny_models import MARKS, SIZES, WORDS, save_tokenizer, saved_once

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

from sentence_transformers.cross_encoder import modules as pair_parts  # noqa: E402
from sentence_transformers.sentence_transformer import modules as parts  # noqa: E402

from fontes.neural.models import hub  # noqa: E402

WIDTH = SIZES["hidden_size"]
VOCABULARY = [*MARKS, ":", ".", "yes", "no", *dict.fromkeys(WORDS)]
CHAT = (
    "{% for message in messages %}{% if message.role == 'system' %}{{ message.content }} . {% endif %}"
    "{% if message.role == 'query' %}{{ message.content }} : {% endif %}"
    "{% if message.role == 'document' %}{{ message.content }} . {% endif %}{% endfor %}"
)
KINDS: dict[str, Any] = {
    "bert": lambda: transformers.BertConfig(vocab_size=len(VOCABULARY), max_position_embeddings=64, **SIZES),
    "modernbert": lambda: transformers.ModernBertConfig(
        vocab_size=len(VOCABULARY),
        max_position_embeddings=64,
        local_attention=16,
        global_attn_every_n_layers=2,
        pad_token_id=0,
        cls_token_id=2,
        sep_token_id=3,
        bos_token_id=2,
        eos_token_id=3,
        **SIZES,
    ),
    "qwen3": lambda: transformers.Qwen3Config(
        vocab_size=len(VOCABULARY), max_position_embeddings=64, num_key_value_heads=1, head_dim=16, pad_token_id=0, **SIZES
    ),
}


def change(file: Path, **settings: object) -> None:
    """Set some settings of a JSON file."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))


def save_body(folder: Path, kind: str, head: str = "AutoModel") -> Path:
    """A transformer of one of KINDS, far from even attention, with a tokenizer of VOCABULARY."""
    return saved_once((kind, head), lambda kept: _save_body(kept, kind, head), folder)


def _save_body(folder: Path, kind: str, head: str) -> None:
    torch.manual_seed(5)
    model = getattr(transformers, head).from_config(KINDS[kind]())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    with hub.quiet():
        model.save_pretrained(folder)
    save_tokenizer(folder, VOCABULARY, strip_accents=False, model_max_length=48, **({"chat_template": CHAT} if head else {}))
    if "CausalLM" not in head:
        change(folder / "tokenizer_config.json", chat_template=None)
        (folder / "chat_template.jinja").unlink(missing_ok=True)


def transformer(folder: Path, kind: str = "bert", **settings: Any) -> Any:
    """A module Transformer over a new body beside `folder`."""
    return parts.Transformer(str(save_body(folder.with_name(f"{folder.name}-{kind}"), kind)), **settings)


def save_modules(folder: Path, modules: list[Any], **settings: Any) -> Path:
    """A model of sentence-transformers with these modules, its random weights from a fixed seed."""
    torch.manual_seed(6)
    for module in modules:
        if not isinstance(module, parts.Transformer):
            for parameter in module.parameters():
                torch.nn.init.normal_(parameter, 0.1, 0.3)
    model = sentence_transformers.SentenceTransformer(modules=modules, device="cpu", **settings)
    with hub.quiet():
        model.save_pretrained(str(folder), create_model_card=False)
    return folder


def save_pairs(folder: Path, modules: list[Any], **settings: Any) -> Path:
    """A cross-encoder of sentence-transformers with these modules, its random weights from a fixed seed."""
    torch.manual_seed(7)
    for module in modules[1:]:
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, 0.1, 0.3)
    model = sentence_transformers.CrossEncoder(modules=modules, device="cpu", **settings)
    with hub.quiet():
        model.save_pretrained(str(folder), create_model_card=False)
    return folder


def head(width: int = WIDTH, activation: Any = None, **settings: Any) -> Any:
    """The module that makes scores of vectors."""
    return parts.Dense(width, 1, activation_function=activation or torch.nn.Identity(), module_output_name="scores", **settings)


def decoder(folder: Path, false_token: str | None = "no") -> list[Any]:
    """Modules of a decoder whose score is the logit of "yes", or its difference from that of another word."""
    body = save_body(folder.with_name(f"{folder.name}-qwen3"), "qwen3", "AutoModelForCausalLM")
    number = VOCABULARY.index
    score = pair_parts.LogitScore(number("yes"), None if false_token is None else number(false_token))
    return [parts.Transformer(str(body), transformer_task="text-generation"), score]
