"""Cross-encoders: a transformer reads query and document together and gives one score."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, ParameterError
from ...core.progress import Report
from ..models.compute import Prepared, in_batches, prepared
from ..models.hub import device, fingerprint, library, loaded, located, quiet, readable
from .base import Reranker, check_sizes, sigmoid, tokens_of

FORMS = ("logit", "sigmoid")
KIND = "cross-encoder"
SAMPLE_QUERIES = (
    "what is a geyser",
    "the effect of vitamin D on bones",
    "who wrote the first novel in Czech",
    "cost of a flight",
)
SAMPLE_DOCUMENTS = (
    "A geyser is a hot spring that erupts from time to time. It needs heat, water and a narrow pipe below the ground. ",
    "Vitamin D regulates how the body takes up calcium, and too little of it makes bones soft in children and adults. ",
    "Airlines change the prices of their tickets many times a day, as seats are sold and the day of departure comes near. ",
    "The novel appeared in the nineteenth century, and its author is remembered for plain and lively sentences since then. ",
)


@dataclass(frozen=True)
class CrossEncoder(Reranker, name="cross_encoder"):
    """Reranks with a cross-encoder, loaded through sentence-transformers (Nogueira and Cho, 2019).

    name_or_path   a folder, or a name on the Hugging Face hub; a name without an owner may be of cross-encoder/
    batch_size     how many pairs of the greatest length are computed at once; of shorter ones more, with the same number of
                   tokens. Default: what is quick on the device
    max_length     tokens of query and document together; the longer of the two is cut. Default: as the model says
    score          "logit": what the model gives, any number; or "sigmoid": 1 / (1 + exp(-logit)), from 0 to 1. Of a model
                   with two labels the logit is the second's minus the first's, and its sigmoid the second's probability
    cache          True keeps scores in the user's cache folder, a path keeps them in that file
    precision      "auto" (the quickest that agrees with float32), "float32", "bfloat16" or "float16"
    device         "cpu", "cuda", …; None takes a GPU where there is one

    Both forms put documents in the same order, save that the sigmoids of logits above 17.4 are all 1 in float32. What else is
    in a batch changes scores by rounding alone. The model is loaded when it is first used. Raises InputError for a model that
    is not there or is no cross-encoder with one or two labels.
    """

    name_or_path: str
    batch_size: int | None = None
    max_length: int | None = None
    score: str = "logit"
    cache: bool | str | Path = field(default=False, repr=False)
    precision: str = field(default="auto", repr=False)
    device: str | None = field(default=None, repr=False)

    def scores(self, pairs: Sequence[tuple[str, str]], progress: Report | None = None) -> NDArray[np.float32]:
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        self._check()
        model = self._model
        logits = model.logits(pairs, self.batch_size, progress)
        return sigmoid(logits) if self.score == "sigmoid" else logits

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of the model's content, the greatest length and the form of the score."""
        facts = {
            "model": fingerprint(located(self.name_or_path, KIND, KIND)),
            "max_length": self.max_length,
            "score": self.score,
        }
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def chosen_precision(self) -> str:
        """The precision that the model runs in, and what the calibration found. Loads the model."""
        return str(self._model.prepared.precision)

    @property
    def _model(self) -> _Model:
        folder = located(self.name_or_path, KIND, KIND)
        where = device(self.device)
        key = (KIND, folder, fingerprint(folder), self.max_length, self.precision, where)
        return loaded(key, lambda: _Model(folder, self.max_length, self.precision, where))

    def _check(self) -> None:
        if self.score not in FORMS:
            raise ParameterError(f"score is 'logit' or 'sigmoid', not {self.score!r}")
        check_sizes(self, "batch_size", "max_length")


class _Model:
    """A cross-encoder of sentence-transformers, in its precision."""

    def __init__(self, folder: Path, max_length: int | None, precision: str, where: str) -> None:
        self.model = _loaded(folder, max_length)
        self.tokenizer = self.model.tokenizer
        sample = [(query, document * 2) for query in SAMPLE_QUERIES for document in SAMPLE_DOCUMENTS]
        self.prepared: Prepared = prepared(
            self.model, lambda module: _logits(module, sample), precision=precision, device=where
        )

    def logits(self, pairs: Sequence[tuple[str, str]], batch_size: int | None, progress: Report | None) -> NDArray[np.float32]:
        queries, documents = zip(*pairs, strict=True)
        lengths = self._lengths(list(queries), list(documents))
        tokens = tokens_of(batch_size, lengths, self.prepared.device)

        def work(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            found: NDArray[np.float32] = _logits(self.prepared.module, [pairs[i] for i in batch.tolist()]).cpu().numpy()
            return found

        return in_batches(lengths, tokens, work, progress)

    def _lengths(self, queries: list[str], documents: list[str]) -> list[int]:
        encoded = self.tokenizer(queries, documents, truncation="longest_first", return_token_type_ids=False)
        return [len(ids) for ids in encoded["input_ids"]]


def _logits(model: Any, pairs: list[tuple[str, str]]) -> Any:
    """A float32 tensor of one score a pair, computed in one batch."""
    torch = library("torch", "a cross-encoder")
    identity = torch.nn.Identity()
    found = model.predict(pairs, batch_size=len(pairs), activation_fn=identity, show_progress_bar=False, convert_to_tensor=True)
    found = found.float()
    return found[:, 1] - found[:, 0] if found.ndim == 2 else found


def _loaded(folder: Path, max_length: int | None) -> Any:
    """The model in float32, with a length that it can read. Raises InputError for what is no cross-encoder."""
    library("torch", "a cross-encoder")
    sentence_transformers = library("sentence_transformers", "a cross-encoder")
    _check_architecture(folder)
    with readable(f"{folder} cannot be loaded as a cross-encoder"), quiet():
        model = sentence_transformers.CrossEncoder(str(folder), device="cpu", max_length=max_length, local_files_only=True)
    labels = int(model.num_labels)
    if labels > 2:
        raise InputError(f"{folder} gives {labels} labels a pair; a reranker has one, or two of which the second is 'relevant'")
    positions = getattr(model.model.config, "max_position_embeddings", None)
    if max_length is not None and positions and max_length > positions:
        raise ParameterError(f"max_length is {max_length}, but {folder.name} reads {positions} tokens at most")
    return model.float()


def _check_architecture(folder: Path) -> None:
    """A plain encoder would get a random head, and random scores."""
    file = folder / "config.json"
    if file.is_file():
        architectures = json.loads(file.read_text(encoding="utf-8")).get("architectures") or [""]
        if str(architectures[0]).endswith(("Model", "ForMaskedLM", "ForPreTraining")):
            raise InputError(
                f"{folder} is no cross-encoder: its architecture is {architectures[0]}, which has no layer for scores; "
                "take a model for sequence classification"
            )
