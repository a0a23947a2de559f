"""Encoders out of any model of transformers: BERT, mBERT, Longformer, Nyströmformer, Reformer, Performer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.progress import Report, silent
from ...core.values import Doc
from ..models.base import token_ids
from ..models.compute import padded, prepared
from ..models.hub import NO_CODE, library, quiet, readable
from . import architectures as architectures
from .base import PretrainedEncoder, sample_ids, text_of

logger = logging.getLogger("fontes.neural")

POOLINGS = ("cls", "mean", "max")


@dataclass(frozen=True)
class TransformerEncoder(PretrainedEncoder["TransformerModel"], name="transformer_encoder"):
    """An encoder out of any encoder model of transformers, its token vectors pooled to one.

    Nyströmformer runs with real Nyström attention, whatever its configuration says; Longformer with global attention on its
    first token; Reformer hashes from a fixed seed. With any of them a text has the same vector alone and in a batch (to
    rounding).

    Args:
        pooling: "cls" (the first token), "mean" or "max" over all tokens of the text, special ones included.
        max_length: Tokens that are read of a text, special ones included; never more than the model has positions for, so
            that BERT reads 512 of the 2,048.
        query_prompt: Text before each query, as the model was trained.
        document_prompt: Text before each document.
        attention: "model" (its own), or "favor+": the Performer's, in linear time, for a BERT-shaped model.
        features: Random features of FAVOR+; its error shrinks as they grow.

    Raises:
        InputError: When it is used: the model is not there.
        ParameterError: When it is used: a parameter is outside its range.
    """

    kind = "encoder"

    pooling: str = field(default="mean", metadata={"choices": POOLINGS})
    max_length: int = field(default=2048, metadata={"least": 3})
    query_prompt: str = ""
    document_prompt: str = ""
    attention: str = field(default="model", metadata={"choices": architectures.ATTENTIONS})
    features: int = field(default=256, metadata={"least": 1})

    @property
    def length(self) -> int:
        """Tokens that are read of a text at most: `max_length`, or the model's limit where that is lower."""
        return self._model.length(self.max_length)

    def encode_documents(self, docs: Sequence[Doc], progress: Report = silent) -> NDArray[np.float32]:
        """The vectors of documents (title, a space, text), float32 (number of documents, dim), in their order."""
        return self._encode([self.document_prompt + text_of(doc) for doc in docs], progress)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of queries, float32 (number of queries, dim), in their order."""
        return self._encode([self.query_prompt + text for text in texts], silent)

    def _encode(self, texts: Sequence[str], progress: Report) -> NDArray[np.float32]:
        model = self._model
        # A text without any token, with a tokenizer that adds none: the padding token stands for it.
        ids = [one or [model.padding] for one in token_ids(model.tokenizer, texts, model.length(self.max_length))]

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            return model.vectors(model.prepared.module, [ids[i] for i in batch], self.pooling)

        return self._vectors(list(map(len, ids)), work, progress)

    def _settings(self) -> dict[str, Any]:
        """Random features count with FAVOR+ alone."""
        settings = super()._settings()
        return settings if self.attention == "favor+" else {**settings, "features": None}

    def _load(self, folder: Path, device: str) -> TransformerModel:
        return TransformerModel(str(self.name_or_path), folder, self.attention, self.features, self.precision, device)

    def _loaded_with(self) -> tuple[Any, ...]:
        return self.attention, self.features


class TransformerModel:
    """A model of transformers with its tokenizer, ready to run."""

    def __init__(self, name: str, folder: Path, attention: str, features: int, precision: str, where: str) -> None:
        transformers = library("transformers", "TransformerEncoder")
        module = architectures.load(folder, name)
        with readable(f"transformers finds no tokenizer in the model {name}"), quiet():
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **NO_CODE)
        limit = architectures.installed(module, attention, features)
        self.padding: int = self.tokenizer.pad_token_id or 0
        limits = [most for most in (limit, self.tokenizer.model_max_length) if most]
        self.limit = min(limits, default=architectures.ENDLESS)
        self.name = name
        sample = [ids.tolist() for ids in sample_ids(module.config.vocab_size, min(256, self.limit))]
        self.prepared = prepared(module, lambda one: self.pooled(one, sample, "mean"), precision=precision, device=where)
        self.dim = int(self.vectors(self.prepared.module, sample[:1], "mean").shape[1])

    def length(self, most: int) -> int:
        """The tokens that are read of a text, where `most` would be."""
        if most > self.limit:
            logger.info("%s has positions for %d tokens: texts are cut there, not at %d", self.name, self.limit, most)
        return min(most, self.limit)

    def vectors(self, module: Any, ids: list[list[int]], pooling: str) -> NDArray[np.float32]:
        """The pooled vectors of texts, float32 (number of texts, dim)."""
        torch = library("torch", "TransformerEncoder")
        with torch.inference_mode():
            pooled: NDArray[np.float32] = self.pooled(module, ids, pooling).cpu().numpy()
        return pooled

    def pooled(self, module: Any, ids: list[list[int]], pooling: str) -> Any:
        """The same as a float32 tensor."""
        from .pooling import pooled

        tokens, mask = padded(ids, self.padding, next(module.parameters()).device)
        hidden = module(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
        return pooled(hidden, mask, (pooling,))
