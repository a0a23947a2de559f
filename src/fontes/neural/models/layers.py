"""Layers of our own networks: embeddings, normalization, and linear layers in float32, bfloat16 or with int8 weights.

Imports torch: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from ...core.work import processor_features

Network = TypeVar("Network", bound=nn.Module)
INT8, TINY = 127, 1e-12  # greatest int8, and the least scale
# Without these instructions x86 processors add two products of 8 bits in 16 bits, which weights of 7 bits cannot exceed.
VNNI = frozenset({"avx512_vnni", "avx_vnni"})
SEVEN_BITS = 63
PREFIXES = ("bert.", "roberta.", "model.")  # of the names of weights that were saved with a head
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class Uninitialized:
    """A module whose weights are read from a file; initializing them would load torch's compiler."""

    def reset_parameters(self) -> None:
        pass


class Embedding(Uninitialized, nn.Embedding):
    """Vectors by token id, position or type."""


class Norm(Uninitialized, nn.LayerNorm):
    """Layer normalization."""


class Int8Weight:
    """Weights (width, input width) in int8 with a scale for each output, packed into the processor's blocks (oneDNN).

    Inputs are rounded to 8 bits with a scale for each row, when they come (Yao et al., ZeroQuant, 2022). Weights have 7 bits on
    an x86 processor without VNNI, whose sums would else be cut.
    """

    def __init__(self, weight: Tensor) -> None:
        exceeds = "avx2" in processor_features() and not VNNI & processor_features()
        self._scales = (weight.abs().amax(1) / (SEVEN_BITS if exceeds else INT8)).clamp_min(TINY)
        rounded = (weight / self._scales[:, None]).round().to(torch.int8)
        self._packed = torch.ops.onednn.qlinear_prepack(rounded, None)
        self._zeros = torch.zeros(len(weight), dtype=torch.int32)

    def product(self, inputs: Tensor, bias: Tensor | None) -> Tensor:
        """Outputs, (rows, width), for inputs (rows, input width) of the same dtype."""
        scales = (inputs.abs().amax(1, keepdim=True).float() / INT8).clamp_min(TINY)
        # The product is faster for unsigned inputs; their conversion rounds down.
        rounded = (inputs * (1 / scales)).add_(INT8 + 1.5).to(torch.uint8)
        linear: Any = torch.ops.onednn.qlinear_pointwise
        outputs: Tensor = linear(
            rounded, 1.0, INT8 + 1, self._packed, self._scales, self._zeros, None, 1.0, 0, inputs.dtype, "none", [], ""
        )
        scales = scales.to(inputs.dtype)
        return outputs.mul_(scales) if bias is None else torch.addcmul(bias, outputs, scales)


class Linear(Uninitialized, nn.Linear):
    """A linear layer, followed by GELU, the sum with a residual, or the product with a factor.

    On a CPU its weights are packed once into the processor's blocks (oneDNN) and the following operation is fused; torch's own
    layer packs them each time, and in float32 multiplies by MKL, which is slower on processors of AMD.
    """

    _packed: Tensor | None = None
    _int8: Int8Weight | None = None

    def forward(
        self, inputs: Tensor, gelu: bool = False, residual: Tensor | None = None, factor: Tensor | None = None
    ) -> Tensor:
        """Outputs, (rows, width), for inputs (rows, input width).

        Args:
            inputs: Rows, contiguous.
            gelu: Whether to apply GELU (by the error function).
            residual: Rows to add, (rows, width).
            factor: Rows to multiply with, (rows, width).
        """
        if self._int8 is not None:
            outputs = self._int8.product(inputs, self.bias)
        elif inputs.device.type == "cpu" and (packed := self._packed_weight()) is not None:
            linear: Any = torch.ops.mkldnn._linear_pointwise
            for other, name in ((residual, "add"), (factor, "mul")):
                if other is not None:
                    combined: Tensor = linear.binary(inputs, other, packed, self.bias, name)
                    return combined
            pointwise: Tensor = linear(inputs, packed, self.bias, "gelu" if gelu else "none", [], "none" if gelu else "")
            return pointwise
        else:
            outputs = functional.linear(inputs, self.weight, self.bias)
        if gelu:
            outputs = functional.gelu(outputs)
        if factor is not None:
            outputs = outputs * factor
        return outputs if residual is None else outputs + residual

    def to_int8(self) -> None:
        """Replace the weights by int8 and a scale for each output; on a CPU only."""
        self._int8 = Int8Weight(self.weight.detach().float())
        self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)

    def _packed_weight(self) -> Tensor | None:
        """The packed weights; None if torch cannot pack them."""
        if self._packed is None and not torch.is_grad_enabled() and self.weight.dtype in (torch.float32, torch.bfloat16):
            with suppress(AttributeError, RuntimeError):  # a torch without oneDNN
                self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), None)
        return self._packed

    def _apply(self, *arguments: object, **settings: object) -> Any:
        self._packed = None  # the weights may change their dtype or device
        return super()._apply(*arguments, **settings)  # type: ignore[no-untyped-call]


def build(make: Callable[[], Network], weights: dict[str, Tensor]) -> Network:
    """Build a network with these weights, without copying them."""
    with torch.device("meta"):
        network = make()
    network.load_state_dict(weights, assign=True)
    return network.eval().requires_grad_(False)


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Tensors of a file in float32, by their current names without prefixes."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in load_file(file).items():
        for prefix in PREFIXES:
            name = name.removeprefix(prefix)
        for old, new in OLD_NAMES.items():
            name = name.replace(old, new)
        tensors[name] = tensor.float()
    return tensors


def has_linear(module: nn.Module) -> bool:
    """Whether a module has linear layers of our networks."""
    return any(isinstance(part, Linear) for part in module.modules())


def to_int8(module: nn.Module) -> None:
    """Give all linear layers of our networks in a module int8 weights."""
    for part in module.modules():
        if isinstance(part, Linear):
            part.to_int8()
