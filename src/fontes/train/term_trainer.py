"""A term classifier while it learns: the network, its optimizer and the schedule of its learning rate."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import ParameterError
from ..core.progress import Progress, Report
from ..core.values import Topic
from ..neural.models.compute import candidates, padded
from ..neural.models.hub import NO_CODE, library, quiet, readable
from ..rewrite.quretec import RELEVANT, Pieces, positions_of, without_warnings
from .term_data import IGNORED, Example, batches, examples_of
from .term_settings import TermSettings

WARM_UP = 0.1  # the share of the training in which the learning rate rises


class Trainer:
    """A network that is trained from an encoder."""

    def __init__(self, folder: Path, settings: TermSettings) -> None:
        """Reads the encoder in a folder. Raises InputError where it cannot be read."""
        self.settings = settings
        self._start = time.perf_counter()
        self._torch = library("torch", "training")
        transformers = library("transformers", "training")
        transformers.set_seed(settings.seed)
        labels = {0: "O", 1: RELEVANT}
        with readable(f"the base {folder} cannot be read as an encoder"), without_warnings():
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **NO_CODE)
            self.network = transformers.AutoModelForTokenClassification.from_pretrained(
                folder,
                **NO_CODE,
                id2label=labels,
                label2id={name: number for number, name in labels.items()},
                hidden_dropout_prob=settings.dropout,
                dtype=self._torch.float32,
            )
        self._half = settings.precision == "bfloat16" or (settings.precision == "auto" and "bfloat16" in candidates("cpu"))
        self._pieces = Pieces(self.tokenizer, positions_of(self.network.config))

    def examples(self, topics: Sequence[Topic]) -> list[Example]:
        """The topics as tokens with labels."""
        return examples_of(topics, self._pieces, self.settings)

    def train(self, examples: list[Example], progress: Report) -> list[float]:
        """Trains until the epochs or the minutes are over.

        Args:
            examples: What is learned from.
            progress: Is called about once a second; its note is the mean loss of the last steps.

        Returns:
            The loss of each step.
        """
        settings, begun = self.settings, time.perf_counter()
        optimizer = self._torch.optim.AdamW(_groups(self.network), lr=settings.lr, fused=True)
        weights = self._torch.tensor([1.0, settings.weight])
        steps = settings.epochs * math.ceil(len(examples) / settings.batch)
        losses: list[float] = []
        reported = begun
        self.network.train()
        for batch in batches(examples, settings):
            passed = time.perf_counter() - begun
            part = max(len(losses) / steps, passed / (60 * settings.minutes) if settings.minutes else 0.0)
            if losses and part >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * max(0.0, min((part + 1 / steps) / WARM_UP, (1 - part) / (1 - WARM_UP), 1.0))
            losses.append(self._step(batch, optimizer, weights))
            check_finite(settings, losses[-1:])
            if time.perf_counter() - reported > 1:
                reported = time.perf_counter()
                note = f"loss {np.mean(losses[-50:]):.4f}"
                progress(Progress("training", len(losses), steps, reported - self._start, "steps", part=part, note=note))
        self.network.eval()
        return losses

    def save(self, folder: Path, threshold: float, place: Path) -> None:
        """Writes the model to `folder`, which errors call `place`."""
        self.network.config.term_threshold = threshold
        with readable(f"{place} cannot be written"), quiet():
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def _step(self, batch: list[Example], optimizer: Any, weights: Any) -> float:
        """One step of the optimizer; the loss before it."""
        torch = self._torch
        ids, mask = padded([one.ids for one in batch], int(self.tokenizer.pad_token_id or 0), "cpu")
        labels, _ = padded([one.labels for one in batch], IGNORED, "cpu")
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            logits = self.network(input_ids=ids, attention_mask=mask).logits
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), weight=weights, ignore_index=IGNORED
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())


def check_finite(settings: TermSettings, values: Sequence[float]) -> None:
    """Raises ParameterError where a loss or a probability is no number any more."""
    if not np.isfinite(values).all():
        raise ParameterError(f"with lr={settings.lr:g} and weight={settings.weight:g} the numbers overflow: take less")


def _groups(network: Any) -> list[dict[str, Any]]:
    """The parameters in two groups: biases and norms are not decayed."""
    plain: list[Any] = []
    decayed: list[Any] = []
    for name, parameter in network.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
