"""Late-interaction models as models of sentence-transformers, for training; `ColBERT` runs the saved model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import ParameterError
from ..models.compute import set_dropout
from ..models.hub import NO_CODE, library, readable, without_warnings
from .colbert import NATIVE, ColBERT, ColBERTCheckpoint

UNUSED = ("[unused0]", "[unused1]")  # ColBERT's markers of queries and documents
ADDED = ("[Q] ", "[D] ")  # PyLate's, for vocabularies without these


def trainable(colbert: ColBERT, *, markers: bool = True, dropout: float | None = None, seed: int = 0) -> Any:
    """Return a MultiVectorEncoder in float32 on the CPU with the same token vectors as a ColBERT.

    `ColBERT` gives the same vectors from a folder written by `save_pretrained`; so does sentence-transformers.

    Args:
        colbert: The model.
        markers: Whether a model without markers of queries and documents gets them, whose vectors training must learn.
        dropout: Dropout of all layers; None: the model's.
        seed: Seed of the embeddings of new markers.

    Raises:
        InputError: The model is missing or cannot be read.
        ParameterError: Its vectors do not have `dim` dimensions, or it has fewer positions than a length.
    """
    colbert.check()
    torch, library_of = library("torch", "training"), library("sentence_transformers", "training")
    parts, late = library_of.sentence_transformer.modules, library_of.multi_vector_encoder.modules
    settings, checkpoint = colbert.settings, ColBERTCheckpoint.of(colbert.folder)
    _ = colbert.width  # raises for wrong dimensions and lengths
    with readable(f"{colbert.name_or_path} cannot be loaded as a transformer"), without_warnings():
        transformer = parts.Transformer(
            str(checkpoint.backbone),
            model_kwargs={**NO_CODE, "dtype": torch.float32},
            processor_kwargs=dict(NO_CODE),
            config_kwargs=dict(NO_CODE),
        )
    transformer.document_length = settings.document_length
    transformer.max_seq_length = max(settings.document_length, settings.query_length)
    if settings.expand:
        transformer.query_expansion = {"strategy": "fixed", "attend": settings.attend, "length": settings.query_length}
    else:
        transformer.query_length = settings.query_length
    prompts = (settings.query_marker, settings.document_marker)
    if prompts == ("", "") and markers:
        known = transformer.tokenizer.get_vocab()
        prompts = UNUSED if all(marker in known for marker in UNUSED) else ADDED
    if settings.form != NATIVE:
        library("transformers", "training").set_seed(seed)
        _register(transformer, [prompt for prompt in prompts if prompt])
    modules = [
        transformer,
        *_projections(colbert, checkpoint, transformer.get_embedding_dimension(), parts.Dense),
        late.MultiVectorMask(skiplist_words=list(settings.skip)),
        parts.Normalize(module_input_name="token_embeddings"),
        *([late.HierarchicalTokenPooling(settings.pool)] if settings.pool > 1 else []),
    ]
    with without_warnings():
        model = library_of.MultiVectorEncoder(
            modules=modules,
            prompts=dict(zip(("query", "document"), prompts, strict=True)),
            similarity_fn_name="maxsim",
            device="cpu",
        )
    if dropout is not None:
        set_dropout(model, dropout)
    return model.float()


def fill_of(model: Any) -> int | None:
    """Return the id of the token that pads queries to their length; None if they are not padded."""
    if model[0].query_expansion is None:
        return None
    tokenizer = model.tokenizer
    return int(tokenizer.eos_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id)


def _register(transformer: Any, markers: Sequence[str]) -> None:
    """Make each marker a token of its own, with a new row of the word embedding where the vocabulary lacks it."""
    tokens = library("tokenizers", "training")
    tokenizer, network = transformer.tokenizer, transformer.model
    tokenizer.add_tokens([tokens.AddedToken(marker, normalized=False, special=True) for marker in markers], special_tokens=True)
    for marker in markers:
        if list(tokenizer.tokenize(marker)) != [marker]:
            raise ParameterError(f"the tokenizer divides the marker '{marker}': give markers=False (--no-markers)")
    if len(tokenizer) > network.get_input_embeddings().num_embeddings:
        with without_warnings():
            network.resize_token_embeddings(len(tokenizer))


def _projections(colbert: ColBERT, checkpoint: ColBERTCheckpoint, hidden: int, dense: Any) -> list[Any]:
    """Projections of token vectors, in order of application."""
    if checkpoint.dense:
        layers = [dense.load(str(folder)) for folder in checkpoint.dense]
        for layer in layers:
            layer.module_input_name = layer.module_output_name = "token_embeddings"
        return layers
    identity = library("torch", "training").nn.Identity()
    return [
        dense(
            layer.in_features,
            layer.out_features,
            bias=False,
            activation_function=identity,
            init_weight=layer.weight.detach().clone(),
            module_input_name="token_embeddings",
        )
        for layer in checkpoint.projections(hidden, colbert.dim)
    ]
