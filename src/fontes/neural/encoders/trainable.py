"""Encoders as models of sentence-transformers, for training; `SentenceEncoder` runs the saved model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import ParameterError
from ..models.compute import set_dropout
from ..models.hub import library, transformer_module
from ..models.modules import TASKS
from .architectures import install_attention
from .chunked import ChunkedEncoder
from .sentence import SentenceEncoder, sentence_transformer
from .transformer import TransformerEncoder, read_length

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def trainable(encoder: object, *, dropout: float | None = None) -> SentenceTransformer:
    """Return a SentenceTransformer in float32 on the CPU with the same vectors as an encoder.

    Its modules are the transformer, which runs as in the encoder, in training too; the pooling; and the scaling to length 1.
    Its prompts "query" and "document" are the encoder's. `SentenceEncoder` gives the same vectors from a folder written by
    `save_pretrained`; so does sentence-transformers, unless the folder has a `fontes.json`, which declares an attention that
    sentence-transformers does not support.

    Args:
        encoder: A SentenceEncoder or a TransformerEncoder.
        dropout: Dropout of all layers; None: the model's dropout.

    Raises:
        InputError: The model is missing or cannot be read.
        ParameterError: The encoder is of another class or does not normalize, or `max_length` exceeds the model's positions.
    """
    if isinstance(encoder, ChunkedEncoder):
        raise ParameterError("windows cannot be trained: train the encoder inside, and use the result in chunked_encoder")
    if not isinstance(encoder, (SentenceEncoder, TransformerEncoder)):
        raise ParameterError(f"{encoder!r} cannot be trained; use sentence_encoder(…), transformer_encoder(…) or a model")
    if not encoder.normalize:
        raise ParameterError("training compares vectors by their cosine: leave normalize=False out")
    encoder.check()
    model: SentenceTransformer = _of_sentences(encoder) if isinstance(encoder, SentenceEncoder) else _of_transformer(encoder)
    if getattr(model.tokenizer, "padding_side", "right") != "right":
        model.tokenizer.padding_side = "right"
    set_dropout(model, dropout)
    return model.float()


def _of_sentences(encoder: SentenceEncoder) -> SentenceTransformer:
    modules = library("sentence_transformers", "training").sentence_transformer.modules
    model, _ = sentence_transformer(str(encoder.name_or_path), encoder.folder, encoder.max_length, "cpu")
    for task in TASKS:
        model.prompts[task] = encoder.prompt(task)
    model.default_prompt_name = None
    model.truncate_dim = encoder.dims or model.truncate_dim
    if not isinstance(model[-1], modules.Normalize):
        model.append(modules.Normalize())
    return model


def _of_transformer(encoder: TransformerEncoder) -> Any:
    transformer: Any = transformer_module(encoder.folder, f"transformers cannot read the model {encoder.name_or_path}")
    limit = install_attention(transformer.model, encoder.attention, encoder.features)
    tokenizer_limit = transformer.tokenizer.model_max_length
    transformer.max_seq_length = read_length(str(encoder.name_or_path), encoder.max_length, limit, tokenizer_limit)
    with library("torch", "training").inference_mode():
        hidden = transformer.eval()(transformer.preprocess(["a"]))["token_embeddings"]
    sentence_transformers = library("sentence_transformers", "training")
    modules = sentence_transformers.sentence_transformer.modules
    pooling = modules.Pooling(hidden.shape[-1], pooling_mode=encoder.pooling)
    prompts = {"query": encoder.query_prompt, "document": encoder.document_prompt}
    steps = [transformer, pooling, modules.Normalize()]
    return sentence_transformers.SentenceTransformer(modules=steps, prompts=prompts, similarity_fn_name="cosine", device="cpu")
