"""Encoders from any model of transformers: BERT, mBERT, Longformer, Nyströmformer, Reformer, Performer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.arrays import Float32s, Indices
from ...core.errors import InputWarning, ParameterError
from ...core.values import Doc, text_of
from ...core.work import unreported
from ..models.base import token_ids
from ..models.compute import padded, prepare_module
from ..models.hub import library, read_json, tokenizer_in
from . import architectures
from .base import PretrainedEncoder, sample_ids

if TYPE_CHECKING:
    from torch import Tensor, nn

POOLINGS = ("cls", "mean", "max")
MAX_TOKENS = 2048  # maximum number of tokens read of a text without max_length


@dataclass(frozen=True)
class TransformerEncoder(PretrainedEncoder["TransformerModel"], name="transformer_encoder"):
    """An encoder from any encoder model of transformers, with pooled token vectors.

    A Nyströmformer runs with Nyström attention, regardless of its configuration; a Longformer with global attention on its
    first token; a Reformer with hashes from a fixed seed. With each of them a text has the same vector alone and in a batch,
    up to rounding.

    Args:
        pooling: "cls" (the first token), "mean" or "max" over all tokens of the text, special ones included.
        max_length: Maximum tokens read of a text, special ones included; an InputWarning tells if the tokenizer allows fewer
            than the model. None: 2,048, within the model's and its tokenizer's limits.
        query_prompt: Text before each query, as in the training of the model.
        document_prompt: Text before each document.
        attention: "model" (its own), or "favor+": the Performer's, in linear time, for a BERT-shaped model.
        features: Random features of FAVOR+; its error shrinks as they grow.

    Raises:
        InputError: On use: the model is missing.
        ParameterError: On use: a parameter is outside its range, or `max_length` exceeds the model's positions.
    """

    kind = "encoder"

    pooling: str = field(default="mean", metadata={"choices": POOLINGS})
    max_length: int | None = field(default=None, metadata={"least": 3})
    query_prompt: str = ""
    document_prompt: str = ""
    attention: str = field(default="model", metadata={"choices": architectures.ATTENTIONS})
    features: int = field(default=256, metadata={"least": 1})

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a text, including special tokens. Loads the model."""
        return self._model.length(self.max_length)

    def encode_documents(self, docs: Sequence[Doc]) -> Float32s:
        """Vectors of documents (title, a space, text), float32 (documents, dim)."""
        return self._encode([self.document_prompt + text_of(doc) for doc in docs])

    @unreported
    def encode_queries(self, texts: Sequence[str]) -> Float32s:
        """Vectors of queries, float32 (queries, dim)."""
        return self._encode([self.query_prompt + text for text in texts])

    def _encode(self, texts: Sequence[str]) -> Float32s:
        model = self._model
        ids = token_ids(model.tokenizer, texts, model.length(self.max_length))
        ids = [text_ids or [model.padding] for text_ids in ids]  # the padding token represents a text without tokens

        def work(batch: Indices) -> Float32s:
            return model.vectors(model.prepared.module, [ids[i] for i in batch], self.pooling)

        return self._vectors(list(map(len, ids)), work)

    @property
    def _model(self) -> TransformerModel:
        model = super()._model
        model.length(self.max_length)  # raises for a length beyond the positions, before anything is computed
        return model

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each untruncated document, special tokens and prompt included."""
        return list(map(len, token_ids(self._model.tokenizer, [self.document_prompt + text_of(doc) for doc in docs])))

    def _settings(self) -> dict[str, object]:
        """Parameters of the fingerprint: `features` for FAVOR+ only; whether `max_length` exceeds the tokenizer's limit."""
        settings = super()._settings()
        if self.max_length is None:
            settings["max_length"] = MAX_TOKENS
        elif self.max_length > tokenizer_limit(self.folder):
            settings["beyond_tokenizer"] = True
        return settings if self.attention == "favor+" else {**settings, "features": None}

    def _load(self, folder: Path, device: str) -> TransformerModel:
        return TransformerModel(str(self.name_or_path), folder, self.attention, self.features, self.precision, device)

    def _load_parameters(self) -> tuple[object, ...]:
        return self.attention, self.features


class TransformerModel:
    """A model of transformers with its tokenizer, ready to run."""

    def __init__(self, name: str, folder: Path, attention: str, features: int, precision: str, device: str) -> None:
        library("transformers", "TransformerEncoder")
        library("torch", "TransformerEncoder")
        from ..models.bert import backbone, try_plain

        module: Any = try_plain(lambda: backbone(folder), folder) if attention == "model" else None
        self._by_transformers = module is None
        if not self._by_transformers:
            vocabulary, limit = module.shape.vocab_size, module.shape.longest
        else:
            module = architectures.load(folder, name)
            vocabulary, limit = module.config.vocab_size, architectures.install_attention(module, attention, features)
        self.tokenizer = tokenizer_in(folder, f"transformers finds no tokenizer in the model {name}")
        self.padding: int = self.tokenizer.pad_token_id or 0
        self.limit = limit or architectures.NO_LIMIT
        self.name = name
        sample = [ids.tolist() for ids in sample_ids(vocabulary, min(256, self.limit))]
        self.prepared = prepare_module(
            module, lambda network: self.pooled(network, sample, "mean"), precision=precision, device=device
        )
        self.dim = int(self.vectors(self.prepared.module, sample[:1], "mean").shape[1])

    def length(self, max_length: int | None) -> int:
        """Maximum number of tokens read of a text; see `read_length`."""
        return read_length(self.name, max_length, self.limit, self.tokenizer.model_max_length)

    def vectors(self, module: nn.Module, ids: list[list[int]], pooling: str) -> Float32s:
        """Pooled vectors of texts, float32 (texts, dim)."""
        torch = library("torch", "TransformerEncoder")
        with torch.inference_mode():
            pooled: Float32s = self.pooled(module, ids, pooling).cpu().numpy()
        return pooled

    def pooled(self, module: nn.Module, ids: list[list[int]], pooling: str) -> Tensor:
        """Pooled vectors as a float32 tensor."""
        from .pooling import pooled

        tokens, mask = padded(ids, self.padding, next(module.parameters()).device)
        if self._by_transformers:
            hidden = module(input_ids=tokens, attention_mask=mask).last_hidden_state
        else:
            hidden = module(tokens, mask)
        return pooled(hidden.float(), mask, (pooling,))


def read_length(name: str, max_length: int | None, positions: int | None, tokenizer: int | None) -> int:
    """Maximum number of tokens read of a text: `max_length`, or for None MAX_TOKENS within the limits of model and tokenizer.

    Args:
        name: Name of the model, for errors.
        max_length: The parameter of the encoder.
        positions: Number of positions of the model; None: no limit.
        tokenizer: Maximum number of tokens of the tokenizer; None: no limit.

    Raises:
        ParameterError: `max_length` exceeds `positions`.
    """
    if max_length is None:
        most = min(MAX_TOKENS, positions or MAX_TOKENS)
        if tokenizer is not None and tokenizer < most:
            remedy = f"give max_length={most} to read that many"
            warnings.warn(
                InputWarning(f"{name}: its tokenizer cuts at {tokenizer} tokens, its positions allow {most}; {remedy}"),
                stacklevel=2,
            )
        return min(most, tokenizer or MAX_TOKENS)
    if positions is not None and max_length > positions:
        raise ParameterError(f"max_length is {max_length}, but {name} has positions for {positions} tokens only")
    return max_length


def tokenizer_limit(folder: Path) -> int:
    """Maximum number of tokens of a text, from the tokenizer's configuration in a model's folder; NO_LIMIT without one."""
    limit = read_json(folder / "tokenizer_config.json", {}).get("model_max_length")
    return int(limit) if isinstance(limit, (int, float)) and limit >= 1 else architectures.NO_LIMIT
