"""Late-interaction models as models of sentence-transformers, for training; `ColBERT` runs the saved model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import ParameterError
from ..models.compute import set_dropout
from ..models.hub import library, transformer_module, without_warnings
from .colbert import NATIVE, ColBERT, ColBERTCheckpoint

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.sentence_transformer.modules import Dense

COLBERT_MARKERS = ("[unused0]", "[unused1]")  # of queries and documents
PYLATE_MARKERS = ("[Q] ", "[D] ")  # for vocabularies without ColBERT's markers


def trainable(colbert: ColBERT, *, markers: bool = True, dropout: float | None = None, seed: int = 0) -> MultiVectorEncoder:
    """Return a MultiVectorEncoder in float32 on the CPU with the same token vectors as a ColBERT.

    `ColBERT` gives the same vectors from a folder written by `save_pretrained`; so does sentence-transformers.

    Args:
        colbert: The model.
        markers: Whether to add markers of queries and documents to a model without them; training must learn their vectors.
        dropout: Dropout of all layers; None: the model's dropout.
        seed: Seed of the embeddings of new markers.

    Raises:
        InputError: The model is missing or cannot be read.
        ParameterError: The vectors do not have `dim` dimensions, or a length exceeds the model's positions.
    """
    colbert.check()
    settings, checkpoint = colbert.settings, ColBERTCheckpoint.of(colbert.folder)
    _ = colbert.width  # raises for wrong dimensions and lengths
    with without_warnings():
        problem = f"{colbert.name_or_path} cannot be loaded as a transformer"
        transformer: Any = transformer_module(checkpoint.backbone, problem)
    transformer.document_length = settings.document_length
    transformer.max_seq_length = max(settings.document_length, settings.query_length)
    if settings.expand:
        transformer.query_expansion = {"strategy": "fixed", "attend": settings.attend, "length": settings.query_length}
    else:
        transformer.query_length = settings.query_length
    prompts = (settings.query_marker, settings.document_marker)
    if prompts == ("", "") and markers:
        vocabulary = transformer.tokenizer.get_vocab()
        prompts = COLBERT_MARKERS if all(marker in vocabulary for marker in COLBERT_MARKERS) else PYLATE_MARKERS
    if settings.form != NATIVE:
        library("transformers", "training").set_seed(seed)
        _register(transformer, [prompt for prompt in prompts if prompt])
    sentence_transformers = library("sentence_transformers", "training")
    base_modules = sentence_transformers.sentence_transformer.modules
    late_modules = sentence_transformers.multi_vector_encoder.modules
    modules = [
        transformer,
        *_projections(colbert, checkpoint, transformer.get_embedding_dimension(), base_modules.Dense),
        late_modules.MultiVectorMask(skiplist_words=list(settings.skip)),
        base_modules.Normalize(module_input_name="token_embeddings"),
        *([late_modules.HierarchicalTokenPooling(settings.pool)] if settings.pool > 1 else []),
    ]
    with without_warnings():
        model: MultiVectorEncoder = sentence_transformers.MultiVectorEncoder(
            modules=modules,
            prompts=dict(zip(("query", "document"), prompts, strict=True)),
            similarity_fn_name="maxsim",
            device="cpu",
        )
    set_dropout(model, dropout)
    return model.float()


def fill_of(model: MultiVectorEncoder) -> int | None:
    """Return the id of the token that pads queries to their length; None if they are not padded."""
    if model[0].query_expansion is None:
        return None
    tokenizer = model.tokenizer
    return int(tokenizer.eos_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id)


def _register(transformer: Any, markers: Sequence[str]) -> None:
    """Make each marker a token, with a new row of the word embedding if the vocabulary lacks it."""
    tokenizers = library("tokenizers", "training")
    tokenizer, network = transformer.tokenizer, transformer.model
    tokenizer.add_tokens(
        [tokenizers.AddedToken(marker, normalized=False, special=True) for marker in markers], special_tokens=True
    )
    for marker in markers:
        if list(tokenizer.tokenize(marker)) != [marker]:
            raise ParameterError(f"the tokenizer divides the marker '{marker}': give markers=False (--no-markers)")
    if len(tokenizer) > network.get_input_embeddings().num_embeddings:
        with without_warnings():
            network.resize_token_embeddings(len(tokenizer))


def _projections(colbert: ColBERT, checkpoint: ColBERTCheckpoint, hidden: int, dense: type[Dense]) -> list[Dense]:
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
