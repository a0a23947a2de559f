"""Trainable cross-encoder, a model of sentence-transformers: rows, losses and files.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sentence_transformers
import torch
import transformers
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, LambdaLoss, ListNetLoss

from ..core.errors import InputError
from ..core.run import Run
from ..core.values import Qrels
from ..neural.models.compute import set_dropout
from ..neural.models.hub import NO_CODE, model_errors, quiet, without_warnings
from ..neural.rerank.crossencoder import is_headless, logits_of
from .current import CurrentReranker
from .dual_encoder import restore
from .examples import DISTILLED, Example, passages_of
from .runner.running import QueryRow, Rows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from .cross_encoder import CrossEncoderSettings

PADDING_MULTIPLE = 8  # batches are padded to a multiple of this many tokens


class PairModel:
    """Cross-encoder in float32 on the CPU, loaded from the base in a folder; a new head depends on the seed."""

    def __init__(self, folder: Path, settings: CrossEncoderSettings) -> None:
        self._settings = settings
        self.new_head = is_headless(folder)
        transformers.set_seed(settings.seed)
        with model_errors(f"the base {folder} cannot be read as a cross-encoder"), without_warnings():
            self.network: Any = sentence_transformers.CrossEncoder(
                str(folder),
                device="cpu",
                max_length=settings.max_length,
                activation_fn=torch.nn.Identity(),
                num_labels=1 if self.new_head else None,
                **NO_CODE,
            ).float()
        # A tokenizer saves the options of its last call; `save` restores the base's.
        self._truncation_and_padding = _truncation_and_padding(self.network.tokenizer)
        self.tokens = {self.network.tokenizer.pad_token_id or 0}  # of all rows so far
        # Padding to multiples gives few distinct lengths, for each of which the matrix library caches work.
        self._processing = self.network[0].processing_kwargs
        if (self.network.max_seq_length or 0) % PADDING_MULTIPLE == 0:
            self.network[0].processing_kwargs = {**self._processing, "text": {"pad_to_multiple_of": PADDING_MULTIPLE}}
        set_dropout(self.network, settings.dropout)
        if (labels := self.network.num_labels) != 1:
            raise InputError(f"{folder} has {labels} labels; training starts from a model with one, or from an encoder")

    def rows(self, examples: Sequence[Example]) -> Rows:
        """Return the examples as rows of the loss: pairs with labels, or groups."""
        if self._settings.loss == "bce":
            labelled = [
                (example.query, passage.text, float(passage is example.positive))
                for example in examples
                for passage in passages_of(example)
            ]
            rows = [{"query": query, "document": text, "label": label} for query, text, label in labelled]
            return Rows(rows, self._lengths([(query, text) for query, text, _ in labelled]))
        scale = self._settings.teacher_scale if self._settings.loss in DISTILLED else None
        groups = [_group(example, scale) for example in examples if example.negatives]
        lengths = self._lengths([(group["query"], text) for group in groups for text in group["documents"]])
        ends = np.cumsum([len(group["documents"]) for group in groups]).tolist()
        return Rows(groups, [max(lengths[start:end]) for start, end in zip([0, *ends], ends, strict=False)])

    def cut_of(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the token limit of a pair, and the share of longer pairs; empty without a limit."""
        pairs = [(example.query, passage.text) for example in examples for passage in passages_of(example)]
        if not pairs or not (limit := self.network.max_seq_length):
            return {}
        encoded = self.network.tokenizer(*map(list, zip(*pairs, strict=True)), truncation=False, verbose=False)
        cut = sum(len(ids) > limit for ids in encoded["input_ids"])
        return {"tokens_read": int(limit), "pairs_cut": round(cut / len(pairs), 6)}

    def loss(self) -> torch.nn.Module:
        """Return the loss that the settings name."""
        settings = self._settings
        if settings.loss == "bce":
            return BinaryCrossEntropyLoss(self.network)
        if settings.loss == "lambda":
            return LambdaLoss(self.network, mini_batch_size=-1)
        if settings.loss == "kl":
            return ListNetLoss(self.network, mini_batch_size=-1)
        return _DistanceLoss(self.network, settings.margin if settings.loss == "margin" else None)

    def measure(self, run: Run, qrels: Qrels) -> Callable[[], float]:
        """Return a function that reranks a run with the current model and measures it."""

        def lengths(pairs: Sequence[tuple[str, str]]) -> list[int]:
            encoded = self.network.tokenizer(*map(list, zip(*pairs, strict=True)), truncation="longest_first")
            return list(map(len, encoded["input_ids"]))

        stage = CurrentReranker(self.network, list, lengths, lambda pairs: logits_of(self.network, pairs))
        return stage.measured(run, qrels, self._settings.measure)

    def save(self, folder: Path) -> None:
        """Write the model to a folder."""
        _set_truncation_and_padding(self.network.tokenizer, self._truncation_and_padding)
        with quiet(), self._unpadded():
            self.network.save_pretrained(str(folder), create_model_card=False)

    def restore(self, folder: Path) -> None:
        """Load weights from a folder."""
        restore(self.network, folder)

    @contextmanager
    def _unpadded(self) -> Iterator[None]:
        """Disable the padding to multiples, which is for training only."""
        transformer = self.network[0]
        processing, transformer.processing_kwargs = transformer.processing_kwargs, self._processing
        try:
            yield
        finally:
            transformer.processing_kwargs = processing

    def _lengths(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        if not pairs:
            return []
        queries, documents = map(list, zip(*pairs, strict=True))
        encoded = self.network.tokenizer(
            queries, documents, truncation="longest_first", max_length=self.network.max_seq_length, return_token_type_ids=False
        )
        self.tokens.update(*encoded["input_ids"])
        return [len(ids) for ids in encoded["input_ids"]]


def _truncation_and_padding(
    tokenizer: PreTrainedTokenizerBase,
) -> tuple[Mapping[str, object] | None, Mapping[str, object] | None]:
    """Return truncation and padding of a fast tokenizer; (None, None) for other tokenizers."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return (backend.truncation, backend.padding) if backend is not None else (None, None)


def _set_truncation_and_padding(
    tokenizer: PreTrainedTokenizerBase, cuts: tuple[Mapping[str, object] | None, Mapping[str, object] | None]
) -> None:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return
    truncation, padding = cuts
    backend.no_truncation() if truncation is None else backend.enable_truncation(**truncation)
    backend.no_padding() if padding is None else backend.enable_padding(**padding)


def _group(example: Example, scale: float | None) -> QueryRow:
    """Return a row: query, documents, and as labels 1 and 0, or with a scale the teacher's scores times the scale."""
    passages = passages_of(example)
    labels = [float(p is example.positive) if scale is None else scale * (p.score or 0.0) for p in passages]
    return {"query": example.query, "documents": [passage.text for passage in passages], "labels": labels}


class _DistanceLoss(torch.nn.Module):
    """Mean error of the score differences between the relevant document and the others of a group.

    With a margin the error is the hinge max(0, margin - difference), otherwise the squared error against the differences of the
    labels (MarginMSE; Hofstätter et al. 2020).
    """

    def __init__(self, model: sentence_transformers.CrossEncoder, margin: float | None) -> None:
        super().__init__()
        self.model, self.margin = model, margin

    def forward(
        self,
        inputs: tuple[list[str], list[list[str]]],
        labels: list[torch.Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> torch.Tensor:
        queries, groups = inputs
        pairs = [(query, text) for query, texts in zip(queries, groups, strict=True) for text in texts]
        tokens = self.model.preprocess(pairs, prompt=prompt, task=task)
        tokens = {name: value.to(self.model.device) if hasattr(value, "to") else value for name, value in tokens.items()}
        scores = self.model(tokens)["scores"].view(-1).float().split([len(texts) for texts in groups])
        distances = torch.cat([group[0] - group[1:] for group in scores])
        if self.margin is not None:
            return torch.relu(self.margin - distances).mean()
        targets = torch.cat([group[0] - group[1:] for group in labels]).to(distances)
        return torch.square(distances - targets).mean()
