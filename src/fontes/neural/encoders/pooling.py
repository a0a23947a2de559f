"""Pooling, projections and normalization of token vectors, as configured by sentence-transformers.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from ..models.hub import read_json

Step = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Step] = {
    "Identity": lambda vectors: vectors,
    "Tanh": torch.tanh,
    "ReLU": torch.relu,
    "GELU": functional.gelu,
}
DEFAULT_NAMES = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}


def pooled(hidden: Tensor, mask: Tensor, modes: tuple[str, ...]) -> Tensor:
    """One vector per text, (texts, width times modes), from token vectors, float32 (texts, positions, width).

    `mask` is 1 at tokens and 0 at padding, which is on the right; `modes` are keys of POOLINGS.
    """
    return torch.cat([POOLINGS[mode](hidden, mask.unsqueeze(-1).to(hidden.dtype)) for mode in modes], dim=-1)


def _sum(hidden: Tensor, weights: Tensor) -> Tensor:
    return (hidden.masked_fill(weights == 0, 0.0) * weights).sum(1)


def _mean(hidden: Tensor, weights: Tensor) -> Tensor:
    return _sum(hidden, weights) / weights.sum(1).clamp(min=1e-9)


def _weighted_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    return _mean(hidden, mask * torch.arange(1, hidden.shape[1] + 1, device=hidden.device).view(1, -1, 1))


def _last(hidden: Tensor, mask: Tensor) -> Tensor:
    return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1).long().squeeze(-1) - 1]


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": lambda hidden, mask: hidden[:, 0],
    "max": lambda hidden, mask: hidden.masked_fill(mask == 0, float("-inf")).max(1).values,
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda hidden, mask: _sum(hidden, mask) / mask.sum(1).clamp(min=1e-9).sqrt(),
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
OLD_SETTINGS = {  # before sentence-transformers 5, with the mode that each selects
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def modes(folder: Path) -> tuple[str, ...] | None:
    """Read the modes of a Pooling module from its folder; None if the module is not supported."""
    settings = read_json(folder / "config.json")
    configured = settings.pop("pooling_mode", None) or [mode for name, mode in OLD_SETTINGS.items() if settings.get(name)]
    names = (configured,) if isinstance(configured, str) else tuple(configured)
    unsupported = settings.keys() - {*OLD_SETTINGS, "word_embedding_dimension", "embedding_dimension", "include_prompt"}
    if unsupported or not names or not set(names) <= POOLINGS.keys() or settings.get("include_prompt", True) is not True:
        return None
    return names


def step(kind: str, folder: Path) -> Step | None:
    """Read the function of a Dense or Normalize module from its folder; None if the module is not supported."""
    settings: dict[str, Any] = read_json(folder / "config.json", {})
    if any(settings.pop(name, default) not in (default, None) for name, default in DEFAULT_NAMES.items()):
        return None
    if kind == "Normalize" and not settings:
        return functional.normalize
    return _projection(settings, folder) if kind == "Dense" else None


def _projection(settings: Mapping[str, Any], folder: Path) -> Step | None:
    """Function of a Dense module: a linear layer and an activation; None if the module is not supported."""
    supported = {"in_features", "out_features", "bias", "activation_function", "use_residual"}
    package, _, name = str(settings.get("activation_function")).rpartition(".")
    if (
        settings.keys() - supported
        or settings.get("use_residual")
        or not package.startswith("torch.nn")
        or name not in ACTIVATIONS
    ):
        return None
    weights = load_file(folder / "model.safetensors")
    weight, bias = weights["linear.weight"].float(), weights["linear.bias"].float() if settings["bias"] else None
    if weight.shape != (settings["out_features"], settings["in_features"]):
        return None
    return lambda vectors: ACTIVATIONS[name](
        functional.linear(vectors, weight.to(vectors.device), None if bias is None else bias.to(vectors.device))
    )
