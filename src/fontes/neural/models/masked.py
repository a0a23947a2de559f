"""BERT, RoBERTa and ModernBERT as masked language models, for inference, without transformers.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from . import modernbert
from .bert import WEIGHTS, Network, Shape, backbone
from .hub import read_json
from .layers import Linear, Norm, build, read_tensors

# By type of model: names of the head's dense layer, of its normalization, and of its last layer, as transformers gives them.
HEADS = {
    "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder"),
    "roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"),
    "xlm-roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"),
    modernbert.TYPE: ("head.dense", "head.norm", "decoder"),
}
TIED_BIAS = {"cls.predictions.decoder": "cls.predictions.bias", "lm_head.decoder": "lm_head.bias"}


class LastLayer(nn.Module):
    """Weight (vocabulary, width) and bias (vocabulary,) of the logits; it does not run, since callers compute parts of them."""

    def __init__(self, vocabulary: int, width: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.bias = nn.Parameter(torch.empty(vocabulary)) if bias else None


class Head(nn.Module):
    """Dense layer, GELU and normalization of a masked language model, and its last layer."""

    def __init__(self, shape: Shape | modernbert.Shape, dense_bias: bool, norm_bias: bool, last_bias: bool) -> None:
        super().__init__()
        width = shape.hidden_size
        eps = shape.norm_eps if isinstance(shape, modernbert.Shape) else shape.layer_norm_eps
        self.dense, self.norm = Linear(width, width, bias=dense_bias), Norm(width, eps, bias=norm_bias)
        self.last = LastLayer(shape.vocab_size, width, last_bias)


class MaskedNetwork(nn.Module):
    """A network with the head of a masked language model, but for its last layer."""

    def __init__(self, body: Network, head: Head) -> None:
        super().__init__()
        self.body, self.head = body, head
        self.shape = body.shape

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Inputs of the last layer, (texts, positions, width); arguments as in `Bert.forward`."""
        hidden = self.body(ids, mask)
        rows = hidden.reshape(-1, hidden.shape[-1])
        transformed: Tensor = self.head.norm(self.head.dense(rows, gelu=True))
        return transformed.view(hidden.shape)


def masked_network(folder: Path) -> MaskedNetwork | None:
    """Load the masked language model of a folder, in float32; None if it is not supported here, KeyError without a head."""
    body = backbone(folder)
    if body is None:
        return None
    stored, config = read_tensors(folder / WEIGHTS), read_json(folder / "config.json")
    dense, norm, last = HEADS[body.shape.model_type]
    tied = config.get("tie_word_embeddings", True)
    bias_name = TIED_BIAS.get(last, f"{last}.bias") if tied else f"{last}.bias"
    weights = {"last.weight": body.words.weight.detach() if tied else stored[f"{last}.weight"]}
    if last in TIED_BIAS or config.get("decoder_bias", True):
        weights["last.bias"] = stored[bias_name]
    for target, name in (("dense", dense), ("norm", norm)):
        weights |= {f"{target}.{part}": stored[f"{name}.{part}"] for part in ("weight", "bias") if f"{name}.{part}" in stored}
    head = build(lambda: Head(body.shape, *(f"{part}.bias" in weights for part in ("dense", "norm", "last"))), weights)
    return MaskedNetwork(body, head)
