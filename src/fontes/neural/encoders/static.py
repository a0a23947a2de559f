"""Static embeddings: a text's vector is the mean of its tokens', by the libraries tokenizers and numpy, without torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.progress import Progress, ProgressCallback
from ...storage.compiled import kernel
from ..models.compute import ComputePrecision, Prepared
from ..models.hub import library, modules_of, read_json, readable
from ..models.tokens import STATIC, StaticTokenizer
from .architectures import ENDLESS
from .base import unit

TEXTS = 1024  # encoded at a time
LENGTH = 512  # tokens that a Model2Vec reads of a text unless its configuration tells otherwise
MODULES = (["StaticEmbedding"], ["StaticEmbedding", "Normalize"])  # of sentence-transformers
TENSORS = ("embedding.weight", "embeddings", "mapping", "weights")


@lru_cache(maxsize=256)
def static_part(folder: Path, fingerprint: str) -> Path | None:
    """Return the folder with a static model's tensors and tokenizer; None for a model of another kind.

    Args:
        folder: Folder of a model, by Model2Vec or by sentence-transformers.
        fingerprint: Digest of its files.
    """
    if not (folder / "modules.json").is_file():  # written before Model2Vec added it
        try:
            return folder if read_json(folder / "config.json", {}).get("model_type") == "model2vec" else None
        except InputError:  # a damaged model, which its loader names
            return None
    modules = modules_of(folder)
    settings: dict[str, Any] = read_json(folder / "config_sentence_transformers.json", {})
    cut = settings.get("truncate_dim") is not None
    return None if cut or [kind for kind, _ in modules] not in MODULES else modules[0][1]


class StaticModel:
    """A table of token vectors with its tokenizer, as Model2Vec or sentence-transformers' StaticEmbedding runs it.

    Tensors named as Model2Vec's are run as Model2Vec runs them: texts are cut at `max_length` of its configuration, and unknown
    tokens are left out. Those of sentence-transformers are read whole, with unknown tokens. A text without tokens has zeros.

    Args:
        folder: Folder of the whole model.
        part: Folder of its tensors and its tokenizer; see `static_part`.
        max_length: Maximum number of tokens read of a text; None: the model's.

    Raises:
        InputError: A file is missing or damaged, or tensors and tokenizer do not fit.
    """

    def __init__(self, folder: Path, part: Path, max_length: int | None) -> None:
        settings: dict[str, Any] = read_json(folder / "config_sentence_transformers.json", {})
        self.prompts: dict[str, str | None] = settings.get("prompts") or {}
        self.default_prompt_name: str | None = settings.get("default_prompt_name")
        tensors = _tensors(part / "model.safetensors")
        model2vec = "embeddings" in tensors
        if model2vec:
            config: dict[str, Any] = read_json(folder / "config.json", {})
            self._normalized, length = bool(config.get("normalize")), config.get("max_length", LENGTH)
        else:
            self._normalized, length = len(modules_of(folder)) > 1, None
        self.length = int(max_length or length or ENDLESS)
        self._table = tensors["embeddings" if model2vec else "embedding.weight"].astype(np.float32, copy=False)
        self._mapping, weights = tensors.get("mapping"), tensors.get("weights")
        self._weights = None if weights is None else weights.astype(np.float32, copy=False)
        self.tokenizer = StaticTokenizer(part, self.length, model2vec)
        self._check(part)
        self.dim = int(self._table.shape[1])
        self.prepared = Prepared(self, ComputePrecision("float32", {}), "cpu")

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """The table, whose size counts for models in memory."""
        return {"embeddings": self._table}

    def whole_lengths(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each untruncated text."""
        return self.tokenizer.lengths(texts)

    def vectors(self, texts: Sequence[str], progress: ProgressCallback) -> NDArray[np.float32]:
        """Vectors of texts, float32 (texts, dim)."""
        vectors, start = np.zeros((len(texts), self.dim), np.float32), time.perf_counter()
        for first in range(0, len(texts), TEXTS):
            batch = texts[first : first + TEXTS]
            ids, bounds = self.tokenizer.ids(batch)
            rows = ids if self._mapping is None else self._mapping[ids]
            weights = np.ones(len(ids), np.float32) if self._weights is None else self._weights[ids]
            vectors[first : first + TEXTS] = _means(self._table, rows, weights, bounds)
            progress(Progress("encoding", first + len(batch), len(texts), time.perf_counter() - start, "documents"))
        return unit(vectors) if self._normalized else vectors

    def _check(self, part: Path) -> None:
        """Raise InputError for tensors that do not fit each other or the tokenizer."""
        table, mapping, weights = self._table, self._mapping, self._weights
        if table.ndim != 2 or not table.size:
            raise InputError(f"{part}: its embeddings have the shape {table.shape}, not tokens times dimensions")
        if mapping is not None and (mapping.ndim != 1 or mapping.dtype.kind not in "iu" or not _within(mapping, len(table))):
            raise InputError(f"{part}: its mapping is no list of rows of its {len(table):,} embeddings")
        tokens = len(table if mapping is None else mapping)
        if weights is not None and weights.shape != (tokens,):
            raise InputError(f"{part}: it has weights of the shape {weights.shape}, not one for each of its {tokens:,} tokens")
        if self.tokenizer.last >= tokens:
            raise InputError(
                f"{part}: its tokenizer has the token {self.tokenizer.last}, its embeddings have {tokens:,} tokens"
            )


def _tensors(file: Path) -> dict[str, NDArray[Any]]:
    """Tensors of a static model; raises InputError for a file without a table, or one that cannot be read."""
    safetensors = library("safetensors", STATIC, "static")
    if not file.is_file():
        raise InputError(f"{file.parent} has no model.safetensors, which {STATIC} need")
    with readable(f"{file} cannot be read"), safetensors.safe_open(file, framework="numpy") as stored:
        kinds = {name: stored.get_slice(name).get_dtype() for name in TENSORS if name in stored.keys()}  # noqa: SIM118
        if wrong := [f"{name} in {kind}" for name, kind in kinds.items() if kind.startswith(("BF", "F8", "F4"))]:
            raise InputError(f"{file} has {wrong[0]}, which numpy lacks: save it in float32 or float16")
        tensors = {name: stored.get_tensor(name) for name in kinds}
    if not {"embedding.weight", "embeddings"} & tensors.keys():
        raise InputError(f"{file} has neither embeddings (Model2Vec) nor embedding.weight (sentence-transformers)")
    return tensors


def _within(numbers: NDArray[np.integer[Any]], count: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < count)


@kernel(lambda table, rows, weights, bounds: len(rows) * table.shape[1])
def _means(table: Any, rows: Any, weights: Any, bounds: Any) -> Any:
    """Mean of weighted rows of a table for each text, whose rows are rows[bounds[i] : bounds[i + 1]]; zeros for none."""
    means = np.zeros((len(bounds) - 1, table.shape[1]), np.float32)
    for text in range(len(bounds) - 1):
        for place in range(bounds[text], bounds[text + 1]):
            row, weight = rows[place], weights[place]
            for column in range(table.shape[1]):
                means[text, column] += table[row, column] * weight
        if bounds[text + 1] > bounds[text]:
            means[text] /= np.float32(bounds[text + 1] - bounds[text])
    return means
