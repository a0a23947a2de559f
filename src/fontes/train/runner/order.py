"""The order in which a training reads its rows: batches of like length, which waste little on padding.

Imports torch and transformers: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from transformers.trainer_pt_utils import get_length_grouped_indices


class LikeLength(torch.utils.data.Sampler[list[int]]):
    """The batches of an epoch, of rows of like length, themselves in any order: at random by the seed and the epoch alone.

    Args:
        lengths: The tokens of each row.
        batch: Rows of a batch; the last one of an epoch may have fewer.
        seed: Of the order.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        super().__init__()
        self._lengths, self._batch, self._seed, self._epoch = list(lengths), batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Makes the order that of an epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return -(-len(self._lengths) // self._batch)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator()
        generator.manual_seed(self._seed + self._epoch)
        # In each part from the longest to the shortest, which is learned from less well than batches in any order.
        grouped: list[int] = get_length_grouped_indices(  # type: ignore[no-untyped-call]
            self._lengths, self._batch, generator=generator
        )
        whole = len(grouped) // self._batch
        for at in [*torch.randperm(whole, generator=generator).tolist(), whole]:
            if batch := grouped[at * self._batch : (at + 1) * self._batch]:
                yield batch
