"""Encoders of sentence-transformers whose transformer is a BERT, run from their files alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..models.compute import Prepared, prepared
from ..models.hub import library, read_json
from ..models.plain import Plain, if_plain, plain
from ..models.tokens import TokenIds, batch
from .base import sample_ids

if TYPE_CHECKING:
    from .pooling import Step

# What the settings of a whole model may say, besides the versions that it was made with and how its vectors are compared.
SETTINGS = {"__version__", "similarity_fn_name", "prompts", "default_prompt_name", "model_type", "truncate_dim"}


@dataclass(frozen=True)
class _Parts:
    """Modules of a model: its transformer, pooling, projections, and prompts."""

    transformer: Plain
    network: Any
    modes: tuple[str, ...]
    steps: tuple[Step, ...]
    settings: dict[str, Any]


class PlainModel:
    """A model of sentence-transformers, ready to run, with the vectors that it has there.

    Args:
        parts: The modules, as `of` read them.
        precision: Of its transformer; what follows it runs in float32.
        where: The device.
    """

    def __init__(self, parts: _Parts, precision: str, where: str) -> None:
        self._parts, self.tokenizer, self.length = parts, parts.transformer.tokens, parts.transformer.length
        self.prompts: dict[str, str | None] = parts.settings.get("prompts") or {}
        self.default_prompt_name: str | None = parts.settings.get("default_prompt_name")
        sample = np.stack(sample_ids(parts.transformer.shape.vocab_size, min(256, self.length)))
        self.prepared: Prepared = prepared(
            parts.network, lambda one: _means_of_network(one, sample), precision=precision, device=where
        )
        self.dim = int(self.vectors(self.inputs(["a"], ""), "", "").shape[1])

    @classmethod
    def of(cls, folder: Path, max_length: int | None, precision: str, where: str) -> PlainModel | None:
        """The model of a folder; None where its files ask for more than is here.

        Args:
            folder: Of the whole model.
            max_length: Tokens that are read of a text; None: as the model says.
            precision: Of its transformer.
            where: The device.
        """
        parts = if_plain(lambda: _parts(folder, max_length), folder)
        return None if parts is None else cls(parts, precision, where)

    def inputs(self, texts: Sequence[str], prompt: str) -> list[TokenIds]:
        """The tokens of each text behind the prompt."""
        return self.tokenizer.encoded([prompt + text for text in texts])

    def lengths(self, inputs: Sequence[TokenIds], prompt: str) -> list[int]:
        """The tokens of each text."""
        return [len(one.ids) for one in inputs]

    def whole_lengths(self, texts: Sequence[str]) -> list[int]:
        """The tokens of texts that are not cut."""
        return self.tokenizer.lengths(texts)

    def vectors(self, inputs: Sequence[TokenIds], prompt: str, task: str) -> NDArray[np.float32]:
        """The vectors of texts as one batch, float32 (number of texts, dim)."""
        from .pooling import pooled

        torch = library("torch", "SentenceEncoder")
        ids, mask, types = batch(inputs, self._parts.transformer.shape.pad_token_id, self.prepared.device)
        with torch.inference_mode():
            pooling = pooled(self.prepared.module(ids, mask, types).float(), mask, self._parts.modes)
            for step in self._parts.steps:
                pooling = step(pooling)
            vectors: NDArray[np.float32] = pooling.cpu().numpy()
        return vectors


def _parts(folder: Path, max_length: int | None) -> _Parts | None:
    from ..models.bert import encoder
    from .pooling import modes, step

    settings: dict[str, Any] = read_json(folder / "config_sentence_transformers.json", {})
    usual = settings.keys() <= SETTINGS and settings.get("truncate_dim") is None
    modules = [(str(one["type"]).split("."), Path(one["path"])) for one in read_json(folder / "modules.json")]
    kinds = [path[-1] for path, _ in modules]
    inside = all(not place.is_absolute() and ".." not in place.parts for _, place in modules)
    theirs = all(path[0] == "sentence_transformers" for path, _ in modules)
    named = settings.get("model_type", "SentenceTransformer") == "SentenceTransformer" and kinds[:2] == [
        "Transformer",
        "Pooling",
    ]
    if not (usual and inside and theirs and named):
        return None
    (_, first), (_, second), *others = modules
    transformer, pooling = plain(folder / first, "feature-extraction", max_length), modes(folder / second)
    steps = [step(path[-1], folder / place) for path, place in others]
    if transformer is None or pooling is None or None in steps:
        return None
    network = encoder(transformer.weights, transformer.shape)
    return _Parts(transformer, network, pooling, tuple(one for one in steps if one is not None), settings)


def _means_of_network(module: Any, ids: NDArray[np.int32]) -> Any:
    torch = library("torch", "SentenceEncoder")
    tokens = torch.from_numpy(ids.astype(np.int64)).to(next(module.parameters()).device)
    return module(tokens, torch.ones_like(tokens)).float().mean(dim=1)
