"""SPLADE models as models of sentence-transformers, for training; `Splade` runs the saved model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import ParameterError
from ..encoders.architectures import position_limit
from ..encoders.transformer import read_length
from ..models.compute import set_dropout
from ..models.hub import NO_CODE, library, modules_of, read_json, readable, without_warnings
from .model import LOGARITHMS, SpladeCheckpoint
from .splade import Splade

STATIC_NAME = r"sub_modules\.query\.0\.weight"  # pattern of the name of static weights among a model's parameters


def checkpoint_of(folder: Path) -> SpladeCheckpoint:
    """Return the checkpoint of a folder to train from, which may be an encoder for dense retrieval."""
    if (folder / "modules.json").is_file():
        kinds = [kind for kind, _ in modules_of(folder)]
        if kinds[0].endswith("Transformer") and "Pooling" in kinds[1:]:
            length = read_json(folder / "sentence_bert_config.json", {}).get("max_seq_length")
            return SpladeCheckpoint(modules_of(folder)[0][1], max_length=length)
    return SpladeCheckpoint.of(folder)


def is_headless(checkpoint: SpladeCheckpoint) -> bool:
    """Whether the model has no head of a masked language model, and training would begin with a new one."""
    names = read_json(checkpoint.transformer / "config.json").get("architectures") or [""]
    return not any(name.endswith("ForMaskedLM") for name in names)


def trainable(splade: Splade, *, dropout: float | None = None, static: Mapping[str, float] | None = None, seed: int = 0) -> Any:
    """Return a SparseEncoder in float32 on the CPU with the same weights as a Splade.

    `Splade` gives the same weights from a folder written by `save_pretrained`; so does sentence-transformers.

    Args:
        splade: The model.
        dropout: Dropout of all layers; None: the model's.
        static: Initial weights of tokens in queries without a transformer, 0 for others; None: as the model.
        seed: Seed of a new head.

    Raises:
        InputError: The model is missing or cannot be read.
        ParameterError: It cuts vectors, or has fewer positions than `max_length`.
    """
    if splade.document_terms is not None or splade.query_terms is not None:
        raise ParameterError("training needs all terms: give document_terms and query_terms to the trained model instead")
    splade.check()
    torch, transformers = library("torch", "training"), library("transformers", "training")
    library_of, name, checkpoint = (
        library("sentence_transformers", "training"),
        str(splade.name_or_path),
        checkpoint_of(splade.folder),
    )
    inputs, sparse = library_of.sentence_transformer.modules, library_of.sparse_encoder.modules
    transformers.set_seed(seed)
    with readable(f"transformers cannot read {name} as a masked language model"), without_warnings():
        transformer = inputs.Transformer(
            str(checkpoint.transformer),
            transformer_task="fill-mask",
            model_kwargs={**NO_CODE, "dtype": torch.float32},
            processor_kwargs=dict(NO_CODE),
            config_kwargs=dict(NO_CODE),
        )
    limit, tokens = position_limit(transformer.model.base_model), transformer.tokenizer.model_max_length
    transformer.max_seq_length = read_length(name, splade.max_length or checkpoint.max_length, limit, tokens)
    activation = next(kind for kind, times in LOGARITHMS.items() if times == checkpoint.logarithms)
    modules = [transformer, sparse.SpladePooling(checkpoint.pooling, activation, int(transformer.model.config.vocab_size))]
    query = None
    if static is not None:
        query = sparse.SparseStaticEmbedding(transformer.tokenizer, _vector(static, transformer.tokenizer, modules[1]))
    elif checkpoint.static is not None:
        query = sparse.SparseStaticEmbedding.load(str(checkpoint.static))
    if query is not None:
        modules = [inputs.Router.for_query_document([query], modules)]
    prompts = {"query": splade.query_prompt, "document": splade.document_prompt}
    stored = {"query": checkpoint.query_prompt, "document": checkpoint.document_prompt}
    model = library_of.SparseEncoder(
        modules=modules,
        prompts={side: stored[side] if prompt is None else prompt for side, prompt in prompts.items()},
        max_active_dims=checkpoint.terms,
        similarity_fn_name="dot",
        device="cpu",
    )
    if dropout is not None:
        set_dropout(model, dropout)
    return model.float()


def _vector(static: Mapping[str, float], tokenizer: Any, pooling: Any) -> Any:
    """Weights of tokens by their numbers, float32 (vocabulary,)."""
    vector = library("torch", "training").zeros(pooling.get_embedding_dimension())
    for token, weight in static.items():
        vector[tokenizer.convert_tokens_to_ids(token)] = weight
    return vector
