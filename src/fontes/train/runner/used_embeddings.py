"""Training of only those rows of a word embedding that occur in the data.

AdamW reads and writes each weight, its gradient and its two moments at every step. Without weight decay, rows of words that
never occur do not change, since their gradients and moments are 0. In a model with 250,000 words these rows are most of the
weights; leaving them out changes only the time and the size of checkpoints.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers

WORTH = 0.8  # greatest share of occurring rows at which leaving out the others is worthwhile


class UsedRows(torch.nn.Module):
    """Word embedding of which only the rows `used` (ascending) are trained."""

    def __init__(self, whole: torch.nn.Embedding, used: torch.Tensor) -> None:
        super().__init__()
        self.padding_idx = None
        self.weight = torch.nn.Parameter(whole.weight.detach()[used].clone())
        row_numbers = torch.full((whole.num_embeddings,), -1, dtype=torch.int64)
        row_numbers[used] = torch.arange(len(used))
        if whole.padding_idx is not None and row_numbers[whole.padding_idx] >= 0:
            self.padding_idx = int(row_numbers[whole.padding_idx])
        self.register_buffer("used", used, persistent=False)
        self.register_buffer("row_numbers", row_numbers, persistent=False)
        self.register_buffer("others", whole.weight.detach(), persistent=False)

    def forward(self, ids: Any) -> Any:
        """Return the rows of tokens; untrained ones unchanged."""
        at = self.row_numbers[ids]  # type: ignore[index]
        rows = torch.nn.functional.embedding(at.clamp(min=0), self.weight, self.padding_idx)
        unused = at < 0
        if bool(unused.any()):
            rows = torch.where(unused[..., None], torch.nn.functional.embedding(ids, self.others), rows)  # type: ignore[arg-type]
        return rows


class UsedEmbeddings:
    """Word embeddings of a model, restricted in training to the rows of `tokens`; all rows if there are no tokens."""

    def __init__(self, model: Any, tokens: Iterable[int]) -> None:
        self._replaced: list[tuple[Any, str, torch.nn.Embedding, UsedRows]] = []
        used = torch.tensor(sorted(set(tokens)), dtype=torch.int64)
        for whole in _embeddings(model):
            if 0 < len(used) <= WORTH * whole.num_embeddings:
                small = UsedRows(whole, used)
                for parent in model.modules():
                    for name, child in parent.named_children():
                        if child is whole:
                            self._replaced.append((parent, name, whole, small))
        self._put(small=True)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Restore the whole embeddings, as trained, within the block; weights loaded into them are kept."""
        self.put_back()
        try:
            yield
        finally:
            self._put(small=True)

    def put_back(self) -> None:
        """Restore the whole embeddings, as trained."""
        self._put(small=False)

    def _put(self, small: bool) -> None:
        with torch.no_grad():
            for parent, name, whole, rows in self._replaced:
                used = rows.used
                if small:
                    rows.weight.copy_(whole.weight.to(rows.weight.device)[used])  # type: ignore[index]
                    rows.others = whole.weight.detach().to(rows.weight.device)
                else:
                    whole.to(rows.weight.device)
                    whole.weight[used] = rows.weight  # type: ignore[index]
                setattr(parent, name, rows if small else whole)


def _embeddings(model: Any) -> list[torch.nn.Embedding]:
    """Plain word embeddings of the inner models whose weights nothing else uses."""
    wholes: list[Any] = []
    for part in model.modules():
        if isinstance(part, transformers.PreTrainedModel):
            try:
                whole = part.get_input_embeddings()
            except NotImplementedError:
                continue
            owners = {id(child) for child in model.modules() for weight in child._parameters.values() if weight is whole.weight}
            plain = type(whole) is torch.nn.Embedding and whole.max_norm is None and not whole.sparse
            if plain and whole.weight.requires_grad and len(owners) == 1 and all(whole is not other for other in wholes):
                wholes.append(whole)
    return wholes
