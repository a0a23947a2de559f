"""SPLADE models as models of sentence-transformers, for training; `Splade` runs the saved model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ParameterError
from ..encoders.architectures import position_limit
from ..encoders.transformer import read_length
from ..models.compute import set_dropout
from ..models.hub import library, read_json, transformer_module, without_warnings
from ..models.modules import modules_in
from .model import LOGARITHMS, SpladeCheckpoint
from .splade import Splade

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import SpladePooling
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

STATIC_NAME = r"sub_modules\.query\.0\.weight"  # pattern of the name of static weights among a model's parameters


def checkpoint_of(folder: Path) -> SpladeCheckpoint:
    """Return the checkpoint of a folder to train from, which may have an encoder for dense retrieval."""
    if (folder / "modules.json").is_file():
        modules = modules_in(folder)
        kinds = [module.kind for module in modules]
        if kinds[0].endswith("Transformer") and "Pooling" in kinds[1:]:
            length = read_json(folder / "sentence_bert_config.json", {}).get("max_seq_length")
            return SpladeCheckpoint(modules[0].folder, max_length=length)
    return SpladeCheckpoint.of(folder)


def is_headless(checkpoint: SpladeCheckpoint) -> bool:
    """Whether the model has no head of a masked language model, so that training starts with a new head."""
    names = read_json(checkpoint.transformer / "config.json").get("architectures") or [""]
    return not any(name.endswith("ForMaskedLM") for name in names)


def trainable(
    splade: Splade, *, dropout: float | None = None, static: Mapping[str, float] | None = None, seed: int = 0
) -> SparseEncoder:
    """Return a SparseEncoder in float32 on the CPU with the same weights as a Splade.

    `Splade` gives the same weights from a folder written by `save_pretrained`; so does sentence-transformers.

    Args:
        splade: The model.
        dropout: Dropout of all layers; None: the model's dropout.
        static: Initial weights of tokens for queries without a transformer, 0 for other tokens; None: as in the model.
        seed: Seed of a new head.

    Raises:
        InputError: The model is missing or cannot be read.
        ParameterError: The model limits the number of terms, or `max_length` exceeds its positions.
    """
    if splade.document_terms is not None or splade.query_terms is not None:
        raise ParameterError("training needs all terms: give document_terms and query_terms to the trained model instead")
    splade.check()
    name, checkpoint = str(splade.name_or_path), checkpoint_of(splade.folder)
    library("transformers", "training").set_seed(seed)
    with without_warnings():
        problem = f"transformers cannot read {name} as a masked language model"
        transformer: Any = transformer_module(checkpoint.transformer, problem, transformer_task="fill-mask")
    sentence_transformers = library("sentence_transformers", "training")
    base_modules = sentence_transformers.sentence_transformer.modules
    sparse_modules = sentence_transformers.sparse_encoder.modules
    limit, tokens = position_limit(transformer.model.base_model), transformer.tokenizer.model_max_length
    transformer.max_seq_length = read_length(name, splade.max_length or checkpoint.max_length, limit, tokens)
    activation = next(function for function, logarithms in LOGARITHMS.items() if logarithms == checkpoint.logarithms)
    modules = [
        transformer,
        sparse_modules.SpladePooling(checkpoint.pooling, activation, int(transformer.model.config.vocab_size)),
    ]
    query = None
    if static is not None:
        query = sparse_modules.SparseStaticEmbedding(transformer.tokenizer, _vector(static, transformer.tokenizer, modules[1]))
    elif checkpoint.static is not None:
        query = sparse_modules.SparseStaticEmbedding.load(str(checkpoint.static))
    if query is not None:
        modules = [base_modules.Router.for_query_document([query], modules)]
    prompts = {"query": splade.query_prompt, "document": splade.document_prompt}
    stored = {"query": checkpoint.query_prompt, "document": checkpoint.document_prompt}
    model: SparseEncoder = sentence_transformers.SparseEncoder(
        modules=modules,
        prompts={side: stored[side] if prompt is None else prompt for side, prompt in prompts.items()},
        max_active_dims=checkpoint.terms,
        similarity_fn_name="dot",
        device="cpu",
    )
    set_dropout(model, dropout)
    return model.float()


def _vector(static: Mapping[str, float], tokenizer: PreTrainedTokenizerBase, pooling: SpladePooling) -> Tensor:
    """Weights of tokens by their ids, float32 (vocabulary,)."""
    vector: Tensor = library("torch", "training").zeros(pooling.get_embedding_dimension())
    for token, weight in static.items():
        vector[tokenizer.convert_tokens_to_ids(token)] = weight
    return vector
