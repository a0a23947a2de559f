"""The subject of a training: all in which cross-encoders, bi-encoders and rewriters differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Rows:
    """The rows that a model is trained or validated on, as the data collator of its trainer takes them.

    Args:
        rows: A dict of columns for each row, all with the same columns in the same order; labels are under "label" or "labels".
        lengths: The tokens of each row, by which batches are made; texts that are cut count as they are cut.
    """

    rows: Sequence[Mapping[str, Any]] = ()
    lengths: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Fit:
    """The subject of a training: all in which cross-encoders, bi-encoders and rewriters differ.

    Args:
        kind: The kind of model, for messages and the card: "cross-encoder".
        base: The start, as it was named.
        folder: Where the start is.
        model: The model of sentence-transformers or transformers, in float32 on the CPU.
        trainer: The name of its trainer in sentence_transformers; without a loss, in transformers.
        loss: A torch module that gives a loss for features and labels, as the trainer calls it; None: the model gives its own.
        train: What is learned from.
        validation: What its loss is validated on; none where there is nothing.
        measure: Gives the value of the measure `best` on the validation run, for the model as it is; None: there is no run.
        save: Writes the model to an empty folder, from which it can be loaded.
        restore: Puts the weights that `save` wrote to a folder into the model again.
        identity: What tells this training from others, besides settings and base: the hashes of the data.
        facts: What else the card says: how many queries there were, that a head is new.
        tokens: The ids of all tokens in `train`, special ones and padding among them: of the word embeddings these alone are
            trained, which is quicker and no other training. None: all.
        collator: Makes a batch of rows; None: that of the trainer.
        counted: Gives the number of items that the loss of a batch, as the collator made it, is the mean of; None: its rows.
    """

    kind: str
    base: str
    folder: Path
    model: Any
    trainer: str
    loss: Any
    train: Rows
    save: Callable[[Path], None]
    restore: Callable[[Path], None]
    identity: Mapping[str, Any]
    validation: Rows = Rows()
    measure: Callable[[], float] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    tokens: frozenset[int] | None = None
    collator: Any = None
    counted: Callable[[Any], int] | None = None
