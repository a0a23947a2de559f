"""Trainable encoder-decoder such as T5, for rewriters and rerankers: rows, loss and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..neural.models.compute import set_dropout
from ..neural.models.hub import quiet, seq2seq, without_warnings
from .runner.running import Fit, Rows
from .runner.settings import FitSettings

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IGNORED = -100  # label of padding


class Seq2SeqModel:
    """Encoder-decoder in float32 on the CPU with its tokenizer; its loss is the mean cross-entropy of the labels' tokens.

    Args:
        folder: Folder of the start.
        network: Encoder-decoder.
        tokenizer: Its tokenizer.
        kind: Noun for the model in errors.
        settings: Settings with the dropout.
    """

    def __init__(
        self, folder: Path, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, kind: str, settings: FitSettings
    ) -> None:
        import transformers

        self._folder, self.network, self.tokenizer, self._kind = folder, network, tokenizer, kind
        set_dropout(network, settings.dropout)
        self.collator = transformers.DataCollatorForSeq2Seq(tokenizer, model=network, label_pad_token_id=IGNORED)

    def fit(self, base: str, **parts: Any) -> Fit:
        """Return the fit of the model from a start; `parts` are further arguments of `Fit`."""
        return Fit(
            kind=self._kind,
            base=base,
            folder=self._folder,
            model=self.network,
            trainer="Seq2SeqTrainer",
            loss=None,
            save=self.save,
            restore=self.restore,
            collator=self.collator,
            counted=self.counted,
            **parts,
        )

    def rows_of(self, inputs: Sequence[list[int]], labels: Sequence[list[int]]) -> Rows:
        """Return rows of token ids."""
        pairs = zip(inputs, labels, strict=True)
        rows = [{"input_ids": ids, "attention_mask": [1] * len(ids), "labels": target} for ids, target in pairs]
        return Rows(rows, [len(ids) for ids in inputs])

    def counted(self, batch: Mapping[str, Tensor]) -> int:
        """Return the number of labels in a batch; the loss is their mean."""
        return int((batch["labels"] != IGNORED).sum())

    def save(self, folder: Path) -> None:
        """Write the model to a folder."""
        with quiet():
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def restore(self, folder: Path) -> None:
        """Load weights from a folder."""
        with without_warnings():
            loaded, _ = seq2seq(folder, self._kind)
        self.network.load_state_dict(loaded.state_dict())
