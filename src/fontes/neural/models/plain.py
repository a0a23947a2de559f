"""Models that run without transformers and sentence-transformers, whose imports take longer than a search: BERT and its kin."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .hub import library, read_json
from .tokens import Tokens, tokens

if TYPE_CHECKING:
    from .bert import Shape

T = TypeVar("T")
logger = logging.getLogger("fontes.neural")

WEIGHTS = "model.safetensors"
BESIDE = ("fontes.json", "adapter_config.json")  # files that say that a model is to be run in another way
# What `sentence_bert_config.json` may say besides length and case.
SETTINGS = {"feature-extraction": ("last_hidden_state", "token_embeddings"), "sequence-classification": ("logits", "scores")}


@dataclass(frozen=True)
class Plain:
    """The parts of a transformer over text.

    Args:
        shape: The sizes of its network.
        weights: The file of its weights.
        tokens: Its tokenizer.
        length: The tokens that are read of a text.
        config: Its configuration.
    """

    shape: Shape
    weights: Path
    tokens: Tokens
    length: int
    config: Mapping[str, Any]


def plain(folder: Path, task: str, length: int | None = None) -> Plain | None:
    """The transformer of a folder, of which nothing but its tokenizer is read; None where its files ask for more than is here.

    Args:
        folder: Of the transformer, which may be that of a module.
        task: Its task: one of SETTINGS.
        length: Tokens to which texts are cut; None: as the model says.
    """
    from .bert import Shape

    if not (folder / WEIGHTS).is_file() or any((folder / name).exists() for name in BESIDE):
        return None
    config = read_json(folder / "config.json")
    shape = Shape.of(config)
    settings: dict[str, Any] = read_json(folder / "sentence_bert_config.json", {})
    if shape is None or not _understood(settings, task):
        return None
    tokenizer = tokens(folder, shape, length or settings.get("max_seq_length"))
    if tokenizer is None or tokenizer[1] > shape.longest:
        return None
    if settings.get("do_lower_case"):
        tokenizer[0].lower()
    return Plain(shape, folder / WEIGHTS, *tokenizer, config)


def if_plain(read: Callable[[], T | None], folder: Path) -> T | None:
    """Result of `read` on a model's folder; None where it fails, since the library itself then names the problem."""
    library("torch", "running a model")
    try:
        return read()
    except Exception as error:
        logger.debug("%s is left to sentence-transformers (%s: %s)", folder, type(error).__name__, error)
        return None


def _understood(settings: Mapping[str, Any], task: str) -> bool:
    """Whether these settings of sentence-transformers' Transformer equal its defaults."""
    output, name = SETTINGS[task]
    usual = {
        **{name: settings.get(name) for name in ("max_seq_length", "do_lower_case")},
        "transformer_task": task,
        "modality_config": {"text": {"method": "forward", "method_output_name": output}},
        "module_output_name": name,
    }
    return all(key in usual and value == usual[key] for key, value in settings.items())
