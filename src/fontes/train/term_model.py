"""Trainable term classifier of transformers: rows, loss and files.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers

from ..core.values import Topic
from ..neural.models.hub import NO_CODE, quiet, readable, without_warnings
from ..rewrite.quretec import RELEVANT, Pieces, positions_of
from ..rewrite.terms import Labels, history_of, words_of
from ..rewrite.turns import utterance
from .runner.running import Rows

if TYPE_CHECKING:
    from .terms import TermSettings

IGNORED = -100  # label of tokens that have none


class TermModel:
    """Token classifier in float32 on the CPU, made from an encoder.

    Args:
        folder: Folder of the encoder.
        settings: Training settings; the seed is that of the new head.

    Raises:
        InputError: The encoder cannot be read.
    """

    def __init__(self, folder: Path, settings: TermSettings) -> None:
        self._settings = settings
        labels = {0: "O", 1: RELEVANT}
        transformers.set_seed(settings.seed)
        with readable(f"the base {folder} cannot be read as an encoder"), without_warnings():
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, **NO_CODE)
            self.network: Any = transformers.AutoModelForTokenClassification.from_pretrained(
                folder,
                **NO_CODE,
                id2label=labels,
                label2id={name: number for number, name in labels.items()},
                hidden_dropout_prob=settings.dropout,
                dtype=torch.float32,
            )
        self.collator = transformers.DataCollatorForTokenClassification(self.tokenizer, label_pad_token_id=IGNORED)
        self._pieces = Pieces(self.tokenizer, positions_of(self.network.config))

    def rows(self, topics: Sequence[Topic]) -> Rows:
        """Return the topics as tokens, labelled 1 (relevant) or 0 at the first subword of a history's word, else IGNORED."""
        answers, labels = self._settings.answers, Labels(self._settings.analyzer)
        marks = [labels(topic, answers) for topic in topics]
        histories = [history_of(topic, answers) for topic in topics]
        turns = [words_of(utterance(topic)) for topic in topics]
        rows: list[dict[str, Any]] = []
        for one, marked in zip(self._pieces.inputs(histories, turns, self._settings.max_length), marks, strict=True):
            row = {"input_ids": one.ids, "labels": [IGNORED] * len(one.ids)}
            for at, mark in zip(one.starts, marked[one.lost :], strict=True):
                row["labels"][at] = int(mark)
            rows.append(row)
        return Rows(rows, [len(row["input_ids"]) for row in rows])

    def loss(self, outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        """Return the cross-entropy of a batch, relevant words weighted."""
        logits = outputs.logits.float()
        weights = torch.tensor([1.0, self._settings.weight], device=logits.device)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), weight=weights, ignore_index=IGNORED)

    def save(self, folder: Path, threshold: float | None = None) -> None:
        """Write the model to a folder, with the threshold of relevant terms if known."""
        if threshold is not None:
            self.network.config.term_threshold = threshold
        with quiet():
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def restore(self, folder: Path) -> None:
        """Load weights from a folder."""
        with without_warnings():
            other = transformers.AutoModelForTokenClassification.from_pretrained(folder, **NO_CODE, dtype=torch.float32)
        self.network.load_state_dict(other.state_dict())
