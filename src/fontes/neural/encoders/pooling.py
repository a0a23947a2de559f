"""Pooling, projections and normalization of token vectors, as configured by sentence-transformers.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from ..models.hub import read_json
from ..models.modules import PACKAGE, Module

Features = dict[str, Tensor]
"""Tensors by their names in sentence-transformers: "token_embeddings", "attention_mask", "sentence_embedding", "scores"."""
Step = Callable[[Features], None]
"""A module behind the transformer: reads some of the features and adds or replaces one."""
# Activations without parameters. A configuration names a class; no other name in it is called.
ACTIVATIONS = (
    *("Identity", "Tanh", "Sigmoid", "ReLU", "GELU", "SiLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "Mish"),
    *("Hardtanh", "Hardsigmoid", "Hardswish", "Softplus", "Softsign", "LogSigmoid", "Tanhshrink"),
)
TOKENS, MASK, VECTOR = "token_embeddings", "attention_mask", "sentence_embedding"
LAYER_NORM_EPS = 1e-5  # of torch.nn.LayerNorm, which the module LayerNorm of sentence-transformers does not change


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
    lengths = mask.sum(1).long()
    last = hidden[torch.arange(len(hidden), device=hidden.device), lengths.squeeze(-1) - 1]
    return last * (lengths > 0)  # 0 for a text without tokens


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
    settings = dict(read_json(folder / "config.json"))
    configured = settings.pop("pooling_mode", None) or [mode for name, mode in OLD_SETTINGS.items() if settings.get(name)]
    names = (configured,) if isinstance(configured, str) else tuple(configured)
    unsupported = settings.keys() - {*OLD_SETTINGS, "word_embedding_dimension", "embedding_dimension", "include_prompt"}
    if unsupported or not names or not set(names) <= POOLINGS.keys() or settings.get("include_prompt", True) is not True:
        return None
    return names


def activation(name: object) -> Callable[[Tensor], Tensor] | None:
    """Function of an activation by the name of its class in torch; None for a name that is not supported."""
    package, _, kind = str(name).rpartition(".")
    if not f"{package}.".startswith("torch.nn.") or kind not in ACTIVATIONS:
        return None
    function: Callable[[Tensor], Tensor] = getattr(nn, kind)()
    return function


def steps(modules: Iterable[Module]) -> tuple[Step, ...] | None:
    """Read the modules behind a transformer; None if one of them is not supported here."""
    read = []
    for module in modules:
        step = STEPS[module.kind](module) if module.kind in STEPS and module.type.startswith(f"{PACKAGE}.") else None
        if step is None:
            return None
        read.append(step)
    return tuple(read)


def _pooling(module: Module) -> Step | None:
    names = modes(module.folder)

    def step(features: Features) -> None:
        features[VECTOR] = pooled(features[TOKENS], features[MASK], names or ())

    return step if names else None


def _normalize(module: Module) -> Step | None:
    source, target, settings = _names(module)
    return None if settings else _mapped(source, target, lambda vectors: functional.normalize(vectors, dim=-1))


def _dropout(module: Module) -> Step | None:
    return lambda features: None  # at inference


def _layer_norm(module: Module) -> Step | None:
    """Function of a LayerNorm module."""
    settings = module.settings
    size = settings.pop("dimension", None)
    weights = _weights(module.folder)
    weight, bias = weights["norm.weight"], weights["norm.bias"]
    if settings or weight.shape != (size,):
        return None
    return _mapped(
        VECTOR,
        VECTOR,
        lambda vectors: functional.layer_norm(
            vectors, (size,), weight.to(vectors.device), bias.to(vectors.device), LAYER_NORM_EPS
        ),
    )


def _projection(module: Module) -> Step | None:
    """Function of a Dense module: a linear layer, an activation, and perhaps a residual sum."""
    source, target, settings = _names(module)
    function = activation(settings.pop("activation_function", "torch.nn.modules.activation.Tanh"))
    residual, biased = settings.pop("use_residual", False), settings.pop("bias", True)
    shape = settings.pop("out_features", None), settings.pop("in_features", None)
    if settings or function is None:
        return None
    weights = _weights(module.folder)
    weight, bias = weights["linear.weight"], weights["linear.bias"] if biased else None
    across = weights["residual.weight"] if residual and shape[0] != shape[1] else None
    if weight.shape != shape:
        return None

    def project(vectors: Tensor) -> Tensor:
        device = vectors.device
        projected = function(functional.linear(vectors, weight.to(device), None if bias is None else bias.to(device)))
        if not residual:
            return projected
        return projected + (vectors if across is None else functional.linear(vectors, across.to(device)))

    return _mapped(source, target, project)


def _mapped(source: str, target: str, function: Callable[[Tensor], Tensor]) -> Step:
    """Step that applies a function to one of the features."""

    def step(features: Features) -> None:
        features[target] = function(features[source])

    return step


def _names(module: Module) -> tuple[str, str, dict[str, Any]]:
    """Names of a module's input and output, and its other settings."""
    settings = module.settings
    source = settings.pop("module_input_name", None) or VECTOR
    return source, settings.pop("module_output_name", None) or source, settings


def _weights(folder: Path) -> Mapping[str, Tensor]:
    """Weights of a module in float32."""
    return {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}


STEPS: dict[str, Callable[[Module], Step | None]] = {
    "Pooling": _pooling,
    "Dense": _projection,
    "LayerNorm": _layer_norm,
    "Normalize": _normalize,
    "Dropout": _dropout,
}
"""By class of a module: the function that reads it; the function returns None for settings that are not supported."""
