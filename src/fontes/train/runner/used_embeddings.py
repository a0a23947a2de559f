"""Training of only the rows of a word embedding whose words occur in the data.

AdamW reads and writes each weight, its gradient and its two moments at every step. Without weight decay, rows of words that
never occur do not change, since their gradients and moments are 0. In a model with 250,000 words most weights are in such rows;
leaving them out changes only the time and the size of checkpoints.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers

MAX_USED_SHARE = 0.8  # greatest share of used rows at which leaving out the others is worthwhile


class UsedRows(torch.nn.Module):
    """Word embedding of which only the rows `used` (ascending) are trained."""

    used: torch.Tensor
    row_numbers: torch.Tensor
    all_weights: torch.Tensor

    def __init__(self, embedding: torch.nn.Embedding, used: torch.Tensor) -> None:
        super().__init__()
        self.padding_idx = None
        self.weight = torch.nn.Parameter(embedding.weight.detach()[used].clone())
        row_numbers = torch.full((embedding.num_embeddings,), -1, dtype=torch.int64)
        row_numbers[used] = torch.arange(len(used))
        if embedding.padding_idx is not None and row_numbers[embedding.padding_idx] >= 0:
            self.padding_idx = int(row_numbers[embedding.padding_idx])
        self.register_buffer("used", used, persistent=False)
        self.register_buffer("row_numbers", row_numbers, persistent=False)
        self.register_buffer("all_weights", embedding.weight.detach(), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of tokens; rows that are not trained come from the original embedding."""
        row_numbers = self.row_numbers[ids]
        rows = torch.nn.functional.embedding(row_numbers.clamp(min=0), self.weight, self.padding_idx)
        unused = row_numbers < 0
        if bool(unused.any()):
            rows = torch.where(unused[..., None], torch.nn.functional.embedding(ids, self.all_weights), rows)
        return rows


class UsedEmbeddings:
    """Word embeddings of a model, restricted in training to the rows of `tokens`; without tokens all rows are trained."""

    def __init__(self, model: torch.nn.Module, tokens: Iterable[int]) -> None:
        self._replaced: list[tuple[torch.nn.Module, str, torch.nn.Embedding, UsedRows]] = []
        used = torch.tensor(sorted(set(tokens)), dtype=torch.int64)
        for embedding in _embeddings(model):
            if 0 < len(used) <= MAX_USED_SHARE * embedding.num_embeddings:
                used_rows = UsedRows(embedding, used)
                for parent in model.modules():
                    for name, child in parent.named_children():
                        if child is embedding:
                            self._replaced.append((parent, name, embedding, used_rows))
        self._replace(small=True)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Restore the whole embeddings, as trained, within the block; weights loaded into them are kept."""
        self.restore()
        try:
            yield
        finally:
            self._replace(small=True)

    def restore(self) -> None:
        """Restore the whole embeddings, as trained."""
        self._replace(small=False)

    def _replace(self, small: bool) -> None:
        with torch.no_grad():
            for parent, name, embedding, rows in self._replaced:
                used = rows.used
                if small:
                    rows.weight.copy_(embedding.weight.to(rows.weight.device)[used])
                    rows.all_weights = embedding.weight.detach().to(rows.weight.device)
                else:
                    embedding.to(rows.weight.device)
                    embedding.weight[used] = rows.weight
                setattr(parent, name, rows if small else embedding)


def _embeddings(model: torch.nn.Module) -> list[torch.nn.Embedding]:
    """Return the plain word embeddings of the inner models whose weights no other module uses."""
    embeddings: list[Any] = []
    for part in model.modules():
        if isinstance(part, transformers.PreTrainedModel):
            try:
                embedding = part.get_input_embeddings()
            except NotImplementedError:
                continue
            weight = embedding.weight
            owners = {
                id(child) for child in model.modules() if any(parameter is weight for parameter in child._parameters.values())
            }
            is_plain = type(embedding) is torch.nn.Embedding and embedding.max_norm is None and not embedding.sparse
            is_new = all(embedding is not earlier for earlier in embeddings)
            if is_plain and weight.requires_grad and len(owners) == 1 and is_new:
                embeddings.append(embedding)
    return embeddings
