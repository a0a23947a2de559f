"""Static embeddings: a text's vector is the mean of its tokens' vectors, computed with tokenizers and numpy, without torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...core.arrays import AnyArray, Float32s, Int64s, Ints
from ...core.errors import InputError
from ...core.work import Progress, reporter
from ...storage.compiled import kernel
from ..models.compute import ComputePrecision, Prepared
from ..models.hub import library, model_errors, read_json
from ..models.modules import ModelSettings, modules_in
from ..models.tokens import FILE, STATIC, StaticTokenizer
from .architectures import NO_LIMIT
from .base import unit

BATCH_SIZE = 1024  # texts encoded at a time
MAX_TOKENS = 512  # tokens that a Model2Vec reads of a text, unless its configuration sets another limit
MODULES = (["StaticEmbedding"], ["StaticEmbedding", "Normalize"])  # class names of sentence-transformers
MAX_HEADER = 1 << 20  # bytes of the names of tensors that are looked through
TENSORS = ("embedding.weight", "embeddings", "mapping", "weights")


@lru_cache(maxsize=256)
def static_module(folder: Path, fingerprint: str) -> Path | None:
    """Return the folder with a static model's tensors and tokenizer; None for a model of another kind.

    Args:
        folder: Folder of a model, by Model2Vec or by sentence-transformers.
        fingerprint: Digest of its files, part of the cache key.
    """
    if not (folder / "modules.json").is_file():  # written before Model2Vec added it
        try:
            return folder if read_json(folder / "config.json", {}).get("model_type") == "model2vec" else None
        except InputError:  # the loader of the damaged model reports it
            return None
    modules = modules_in(folder)
    return modules[0].folder if [module.kind for module in modules] in MODULES else None


@lru_cache(maxsize=256)
def stated_truncation(module_folder: Path, fingerprint: str) -> int | None:
    """Return the maximum number of tokens that the tokenizer of a StaticEmbedding states; None for a Model2Vec, or without one.

    Args:
        module_folder: The result of `static_module`.
        fingerprint: As for `static_module`.
    """
    try:
        with (module_folder / "model.safetensors").open("rb") as file:
            header = file.read(min(MAX_HEADER, int.from_bytes(file.read(8), "little")))
        truncation = None if b'"embeddings"' in header else read_json(module_folder / FILE).get("truncation")
        return None if truncation is None else int(truncation["max_length"])
    except (OSError, InputError, AttributeError, KeyError, TypeError, ValueError):
        return None  # the loader of the damaged model reports it


class StaticModel:
    """A table of token vectors with its tokenizer, as Model2Vec or sentence-transformers' StaticEmbedding runs it.

    A Model2Vec, recognized by the names of its tensors, truncates texts to the `max_length` of its configuration, their
    characters first, and leaves out unknown tokens. A StaticEmbedding truncates them as its tokenizer.json says, or reads
    whole texts, with unknown tokens. A text without tokens has a vector of zeros.

    Args:
        folder: Folder of the model.
        module_folder: Folder of its tensors and tokenizer; see `static_module`.
        max_length: Maximum number of tokens read of a text; None: the model's limit.
        normalized: Whether a module behind it scales its vectors to length 1; None: as the model's modules.json says.

    Raises:
        InputError: A file is missing or damaged, or tensors and tokenizer do not fit.
    """

    def __init__(self, folder: Path, module_folder: Path, max_length: int | None, *, normalized: bool | None = None) -> None:
        self.settings = ModelSettings.of(folder)
        tensors = _tensors(module_folder / "model.safetensors")
        model2vec = "embeddings" in tensors
        if model2vec:
            config: dict[str, Any] = read_json(folder / "config.json", {})
            self._normalized, length = bool(config.get("normalize")), config.get("max_length", MAX_TOKENS)
        else:
            self._normalized, length = len(modules_in(folder)) > 1 if normalized is None else normalized, None
        self._table = tensors["embeddings" if model2vec else "embedding.weight"].astype(np.float32, copy=False)
        self._mapping, weights = tensors.get("mapping"), tensors.get("weights")
        self._weights = None if weights is None else weights.astype(np.float32, copy=False)
        self.tokenizer = StaticTokenizer(module_folder, max_length or length, model2vec)
        self.length = int(self.tokenizer.length or NO_LIMIT)
        self._check(module_folder)
        self.dim = int(self._table.shape[1])
        self.prepared = Prepared(self, ComputePrecision("float32", {}), "cpu")

    def state_dict(self) -> dict[str, Float32s]:
        """The table; its size is the model's size in memory."""
        return {"embeddings": self._table}

    def untruncated_lengths(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each untruncated text; see `StaticTokenizer.lengths`."""
        return self.tokenizer.lengths(texts)

    def vectors(self, texts: Sequence[str]) -> Float32s:
        """Vectors of texts, float32 (texts, dim)."""
        report = reporter()
        vectors, started = np.zeros((len(texts), self.dim), np.float32), time.perf_counter()
        for start in range(0, len(texts), BATCH_SIZE):
            batch = texts[start : start + BATCH_SIZE]
            ids, bounds = self.tokenizer.ids(batch)
            rows = ids if self._mapping is None else self._mapping[ids]
            weights = np.ones(len(ids), np.float32) if self._weights is None else self._weights[ids]
            vectors[start : start + BATCH_SIZE] = _means(self._table, rows, weights, bounds)
            report(Progress("encoding", start + len(batch), len(texts), time.perf_counter() - started, "documents"))
        return unit(vectors) if self._normalized else vectors

    def _check(self, module_folder: Path) -> None:
        """Raise InputError if the tensors do not fit each other or the tokenizer."""
        table, mapping, weights = self._table, self._mapping, self._weights
        if table.ndim != 2 or not table.size:
            raise InputError(f"{module_folder}: its embeddings have the shape {table.shape}, not tokens times dimensions")
        if mapping is not None and (mapping.ndim != 1 or mapping.dtype.kind not in "iu" or not _in_range(mapping, len(table))):
            raise InputError(f"{module_folder}: its mapping is no list of rows of its {len(table):,} embeddings")
        tokens = len(table if mapping is None else mapping)
        if weights is not None and weights.shape != (tokens,):
            raise InputError(
                f"{module_folder}: it has weights of the shape {weights.shape}, not one for each of its {tokens:,} tokens"
            )
        if self.tokenizer.last >= tokens:
            raise InputError(
                f"{module_folder}: its tokenizer has the token {self.tokenizer.last}, its embeddings have {tokens:,} tokens"
            )


def _tensors(file: Path) -> dict[str, AnyArray]:
    """Read the tensors of a static model; raises InputError if the file has no table or cannot be read."""
    safetensors = library("safetensors", STATIC, "static")
    if not file.is_file():
        raise InputError(f"{file.parent} has no model.safetensors, which {STATIC} need")
    with model_errors(f"{file} cannot be read"), safetensors.safe_open(file, framework="numpy") as stored:
        kinds = {name: stored.get_slice(name).get_dtype() for name in TENSORS if name in stored.keys()}  # noqa: SIM118
        if unsupported := [f"{name} in {kind}" for name, kind in kinds.items() if kind.startswith(("BF", "F8", "F4"))]:
            raise InputError(f"{file} has {unsupported[0]}, which numpy lacks: save it in float32 or float16")
        tensors = {name: stored.get_tensor(name) for name in kinds}
    if not {"embedding.weight", "embeddings"} & tensors.keys():
        raise InputError(f"{file} has neither embeddings (Model2Vec) nor embedding.weight (sentence-transformers)")
    return tensors


def _in_range(numbers: Ints, count: int) -> bool:
    """Whether all numbers are from 0 to count - 1."""
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < count)


@kernel(lambda table, rows, weights, bounds: len(rows) * table.shape[1])
def _means(table: Float32s, rows: Ints, weights: Float32s, bounds: Int64s) -> Float32s:
    """Means of weighted rows of a table, float32 (texts, dim); text i has rows[bounds[i] : bounds[i + 1]], zeros for none."""
    means = np.zeros((len(bounds) - 1, table.shape[1]), np.float32)
    for text in range(len(bounds) - 1):
        for position in range(bounds[text], bounds[text + 1]):
            row, weight = rows[position], weights[position]
            for column in range(table.shape[1]):
                means[text, column] += table[row, column] * weight
        if bounds[text + 1] > bounds[text]:
            means[text] /= np.float32(bounds[text + 1] - bounds[text])
    return means
