"""Trainable T5 rewriter of transformers: rows, batches and files.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import transformers

from ..neural.models.base import token_ids
from ..neural.models.compute import set_dropout
from ..neural.models.hub import quiet, seq2seq, without_warnings
from ..rewrite.canardt5 import KIND, context_ids
from .runner.running import Rows

if TYPE_CHECKING:
    from .rewriter import RewritePair, RewriterSettings

INPUT = 512  # default tokens of a context
IGNORED = -100  # the label of padding


class RewriterModel:
    """T5 in float32 on the CPU, made from a base.

    Args:
        folder: Folder of the base.
        settings: Training settings.

    Raises:
        InputError: The base cannot be read, or is no encoder-decoder.
    """

    def __init__(self, folder: Path, settings: RewriterSettings) -> None:
        self._settings = settings
        self.network, self.tokenizer = seq2seq(folder, KIND)
        if settings.dropout is not None:
            set_dropout(self.network, settings.dropout)
        self.collator = transformers.DataCollatorForSeq2Seq(self.tokenizer, model=self.network, label_pad_token_id=IGNORED)

    def rows(self, pairs: Sequence[RewritePair]) -> Rows:
        """Return the turns as rows: tokens of the context, and those of the rewrite as labels."""
        inputs = context_ids(self.tokenizer, [pair.context for pair in pairs], self._settings.max_length or INPUT)
        labels = token_ids(self.tokenizer, [pair.rewrite for pair in pairs], self._settings.target_length)
        rows = [
            {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": written}
            for ids, written in zip(inputs, labels, strict=True)
        ]
        return Rows(rows, [len(ids) for ids in inputs])

    def counted(self, batch: Any) -> int:
        """Return the number of rewrite tokens of a batch, over which the loss is the mean."""
        return int((batch["labels"] != IGNORED).sum())

    def save(self, folder: Path) -> None:
        """Write the model to a folder."""
        with quiet():
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def restore(self, folder: Path) -> None:
        """Load weights from a folder."""
        with without_warnings():
            other, _ = seq2seq(folder, KIND)
        self.network.load_state_dict(other.state_dict())
